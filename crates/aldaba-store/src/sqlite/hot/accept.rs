//! An event comes in: message, deliveries and keys.

use crate::operations::codes::{Code, StoredState};
use crate::operations::keys::{FIND_TEXT, KEEP_TEXT, Kept, KeyKind, UniqueKey};
use crate::operations::{Batch, Result, application, audit, endpoint, names, policy, profile};
use crate::sqlite::transaction::prepare;
use crate::{Accept, Accepted, IdempotencyKey, RequestDigest, Seq};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use std::collections::HashMap;

const SKIP: &str =
    "INSERT INTO delivery (seq, endpoint, message, due_at, clock_start, settled_at, state, reason)
     VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6)";

pub(super) struct Accepting<'c> {
    connection: &'c Connection,
    find_key: CachedStatement<'c>,
    keep_key: CachedStatement<'c>,
    version: CachedStatement<'c>,
    message: CachedStatement<'c>,
    delivery: CachedStatement<'c>,
    /// The versions of the applications met in this batch; `None`: there is no such application.
    versions: HashMap<AppId, Option<u64>>,
}

impl<'c> Accepting<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            connection,
            find_key: prepare(connection, FIND_TEXT)?,
            keep_key: connection.prepare_cached(KEEP_TEXT)?,
            version: connection
                .prepare_cached("SELECT version FROM application WHERE id = ?1 AND deleted = 0")?,
            message: connection.prepare_cached(
                "INSERT INTO message (app, id, created_at, event_type, channels, event_id, payload, tags, version,
                     deliver_at, headers, only_for, sealed_headers, job, payload_until)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING",
            )?,
            delivery: connection.prepare_cached(
                "INSERT INTO delivery (seq, endpoint, message, due_at, clock_start, ordered, dispatched, app)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?,
            versions: HashMap::new(),
        })
    }

    pub(super) fn accept(&mut self, batch: &mut Batch<'_>, accept: &Accept) -> Result<Accepted> {
        let message = &accept.message;
        let owner = accept.app.as_bytes();
        let event_id = message.content.event_id.as_ref();
        let event_id = event_id.map(|id| UniqueKey { owner, kind: KeyKind::EventId, key: id.as_bytes() });

        if let Some(used) = &accept.idempotency
            && let Some(first) = self.find_request(owner, &used.digest)?
        {
            return Ok(Accepted::Repeated { message: MessageId::from_bytes(first) });
        }
        let stale = match &accept.creates {
            Some(new) => application::has_used_uid(batch.tx, &new.application)?,
            None => self.version(accept.app)? != Some(accept.version),
        };
        if stale {
            return Ok(Accepted::Stale);
        }
        if let Some(key) = event_id
            && let Some(first) = self.find(key)?
        {
            return Ok(Accepted::EventIdTaken { message: MessageId::from_bytes(first) });
        }
        // In this commit, as for endpoints: what is named may just have been deleted.
        if let Some(address) = &accept.direct {
            if !policy::is_known(batch.tx, address.org, &address.config.policy)? {
                return Ok(Accepted::NoSuchPolicy);
            }
            if !profile::is_known(batch.tx, address.org, address.config.profile.as_deref())? {
                return Ok(Accepted::NoSuchProfile);
            }
        }
        if let Some(quota) = &accept.quota
            && !self.exists(accept)?
            && let Some(whose) = batch.counters.messages.count(batch.tx, accept, quota)?
        {
            return Ok(Accepted::OverQuota(whose));
        }
        if let Some(new) = &accept.creates {
            application::create(batch.tx, &new.application)?;
            audit::note(batch.tx, &new.audit.with_values_of_new(&new.application), 1)?;
            self.versions.remove(&accept.app);
        }
        if !self.insert_message(accept)? {
            // The very same message was handed in twice.
            return Ok(Accepted::Repeated { message: message.id });
        }
        if let Some(address) = &accept.direct {
            endpoint::insert_row(batch.tx, address)?;
        }
        let first = self.insert_deliveries(batch, accept)?;
        if let Some(key) = event_id {
            let kept = Kept::WithResource { at_least: message.event_id_until };
            self.keep(key, message.id.as_bytes(), kept)?;
        }
        if let Some(used) = &accept.idempotency {
            self.keep_request(owner, used, message.id.as_bytes())?;
        }
        batch.counters.accepted(accept);
        Ok(Accepted::New { first })
    }

    /// The very same message was handed in before.
    fn exists(&self, accept: &Accept) -> Result<bool> {
        let mut find = self.connection.prepare_cached("SELECT 1 FROM message WHERE app = ?1 AND id = ?2")?;
        Ok(find.exists((accept.app.as_bytes(), accept.message.id.as_bytes()))?)
    }

    fn version(&mut self, app: AppId) -> Result<Option<u64>> {
        if let Some(version) = self.versions.get(&app) {
            return Ok(*version);
        }
        let version = self
            .version
            .query_row((app.as_bytes(),), |row| row.get::<_, i64>(0))
            .optional()?
            .map(|version| version as u64);
        self.versions.insert(app, version);
        Ok(version)
    }

    fn insert_message(&mut self, accept: &Accept) -> Result<bool> {
        let message = &accept.message;
        let inserted = self.message.execute((
            accept.app.as_bytes(),
            message.id.as_bytes(),
            message.created_at.millis(),
            &*message.content.event_type,
            names::write(&message.channels),
            message.content.event_id.as_deref(),
            &message.content.payload[..],
            names::write(&message.tags),
            message.content.version.as_deref(),
            message.deliver_at.map(Timestamp::millis),
            names::write_pairs(&message.headers),
            message.only_for.as_ref().map(EndpointId::as_bytes),
            message.content.sealed_headers.as_deref(),
            &message.job,
            message.payload_until.map(Timestamp::millis),
        ))?;
        Ok(inserted == 1)
    }

    /// The number of the first delivery. The others follow without a gap.
    fn insert_deliveries(&mut self, batch: &mut Batch<'_>, accept: &Accept) -> Result<Seq> {
        if accept.deliveries.is_empty() {
            return Ok(Seq(0));
        }
        let message = &accept.message;
        let first = batch.numbers.draw(batch.tx, accept.deliveries.len())?;
        let dispatched = accept.dispatched().map_or(0, Code::code);
        let app = accept.direct.as_ref().map(|address| *address.app.as_bytes());
        for (seq, delivery) in (first.0..).zip(&accept.deliveries) {
            if let Some(reason) = delivery.skipped {
                let mut skip = self.connection.prepare_cached(SKIP)?;
                skip.execute((
                    seq,
                    delivery.endpoint.as_bytes(),
                    message.id.as_bytes(),
                    message.created_at.millis(),
                    StoredState::Skipped.code(),
                    reason.code(),
                ))?;
                continue;
            }
            // The stop date counts from when the delivery may first go out.
            let clock_start = message.created_at.max(delivery.due_at);
            self.delivery.execute((
                seq,
                delivery.endpoint.as_bytes(),
                message.id.as_bytes(),
                delivery.due_at.millis(),
                clock_start.millis(),
                if accept.is_sequenced_later(delivery) { 2 } else { i64::from(delivery.ordered) },
                dispatched,
                app,
            ))?;
        }
        Ok(first)
    }

    /// The bytes of the id that a key has led to.
    fn find(&mut self, UniqueKey { owner, kind, key }: UniqueKey<'_>) -> Result<Option<[u8; 20]>> {
        Ok(self.find_key.query_row((owner, kind as i64, key), |row| row.get(0)).optional()?)
    }

    /// Under the current digest of a request, or its former one.
    fn find_request(&mut self, owner: &[u8; 20], digest: &RequestDigest) -> Result<Option<[u8; 20]>> {
        for key in digest.all() {
            let found = self.find(UniqueKey { owner, kind: KeyKind::Idempotency, key })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn keep(
        &mut self,
        UniqueKey { owner, kind, key }: UniqueKey<'_>,
        resource: &[u8; 20],
        kept: Kept,
    ) -> Result<()> {
        let (expires_at, at_least) = kept.columns();
        let moments = (expires_at.map(Timestamp::millis), at_least.map(Timestamp::millis));
        self.keep_key.execute((owner, kind as i64, key, resource, moments.0, moments.1))?;
        Ok(())
    }

    fn keep_request(&mut self, owner: &[u8; 20], used: &IdempotencyKey, resource: &[u8; 20]) -> Result<()> {
        let key = UniqueKey { owner, kind: KeyKind::Idempotency, key: &used.digest.current };
        self.keep(key, resource, Kept::Until(used.expires_at))
    }
}
