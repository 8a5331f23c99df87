//! An event comes in: message, deliveries and keys.

use super::audit;
use super::change;
use super::codes::{Code, State};
use super::counters::Counters;
use super::keys::{Kept, KeyKind, Keys, UniqueKey};
use super::names;
use super::{policy, profile};
use crate::{Accept, Accepted, Seq};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use std::collections::HashMap;

const SKIP: &str = "INSERT INTO delivery (endpoint, message, due_at, clock_start, settled_at, state, reason)
     VALUES (?1, ?2, ?3, ?3, ?3, ?4, ?5)";

pub(super) struct Accepting<'c> {
    connection: &'c Connection,
    keys: Keys<'c>,
    version: CachedStatement<'c>,
    message: CachedStatement<'c>,
    delivery: CachedStatement<'c>,
    /// The versions of the applications met in this batch; `None`: there is no such application.
    versions: HashMap<AppId, Option<u64>>,
}

impl<'c> Accepting<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            keys: Keys::new(connection)?,
            version: connection
                .prepare_cached("SELECT version FROM application WHERE id = ?1 AND deleted = 0")?,
            message: connection.prepare_cached(
                "INSERT INTO message (app, id, created_at, event_type, channels, event_id, payload, tags, version,
                     deliver_at, headers, only_for, sealed_headers, job, payload_until)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING",
            )?,
            delivery: connection.prepare_cached(
                "INSERT INTO delivery (endpoint, message, due_at, clock_start, ordered, dispatched, app)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?,
            versions: HashMap::new(),
        })
    }

    pub(super) fn accept(&mut self, accept: &Accept, counters: &mut Counters) -> rusqlite::Result<Accepted> {
        let message = &accept.message;
        let owner = accept.app.as_bytes();
        let event_id = message.content.event_id.as_ref();
        let event_id = event_id.map(|id| UniqueKey { owner, kind: KeyKind::EventId, key: id.as_bytes() });

        if let Some(used) = &accept.idempotency
            && let Some(first) = self.keys.find_request(owner, &used.digest)?
        {
            return Ok(Accepted::Repeated { message: MessageId::from_bytes(first) });
        }
        let stale = match &accept.creates {
            Some(new) => change::has_taken_uid(self.connection, &new.application)?,
            None => self.version(accept.app)? != Some(accept.version),
        };
        if stale {
            return Ok(Accepted::Stale);
        }
        if let Some(key) = event_id
            && let Some(first) = self.keys.find(key)?
        {
            return Ok(Accepted::EventIdTaken { message: MessageId::from_bytes(first) });
        }
        // In this commit, as for endpoints: what is named may just have been deleted.
        if let Some(address) = &accept.direct {
            if !policy::is_known(self.connection, address.org, &address.config.policy)? {
                return Ok(Accepted::NoSuchPolicy);
            }
            if !profile::is_known(self.connection, address.org, address.config.profile.as_deref())? {
                return Ok(Accepted::NoSuchProfile);
            }
        }
        if let Some(quota) = &accept.quota
            && !self.exists(accept)?
            && let Some(whose) = counters.messages.count(self.connection, accept, quota)?
        {
            return Ok(Accepted::OverQuota(whose));
        }
        if let Some(new) = &accept.creates {
            change::create_application(self.connection, &new.application)?;
            audit::note(self.connection, &new.audit.with_values_of_new(&new.application), 1)?;
            self.versions.remove(&accept.app);
        }
        if !self.insert_message(accept)? {
            // The very same message was handed in twice.
            return Ok(Accepted::Repeated { message: message.id });
        }
        if let Some(address) = &accept.direct {
            change::insert_endpoint(self.connection, address)?;
        }
        let first = self.insert_deliveries(accept)?;
        if let Some(key) = event_id {
            let kept = Kept::WithResource { at_least: message.event_id_until };
            self.keys.keep(key, message.id.as_bytes(), kept)?;
        }
        if let Some(used) = &accept.idempotency {
            self.keys.keep_request(owner, used, message.id.as_bytes())?;
        }
        counters.accepted(accept);
        Ok(Accepted::New { first })
    }

    /// The very same message was handed in before.
    fn exists(&self, accept: &Accept) -> rusqlite::Result<bool> {
        let mut find = self.connection.prepare_cached("SELECT 1 FROM message WHERE app = ?1 AND id = ?2")?;
        find.exists((accept.app.as_bytes(), accept.message.id.as_bytes()))
    }

    fn version(&mut self, app: AppId) -> rusqlite::Result<Option<u64>> {
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

    fn insert_message(&mut self, accept: &Accept) -> rusqlite::Result<bool> {
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

    /// The number of the first delivery. The writer is alone, so the others follow without a gap.
    fn insert_deliveries(&mut self, accept: &Accept) -> rusqlite::Result<Seq> {
        let message = &accept.message;
        let mut first = None;
        let dispatched = accept.dispatched().map_or(0, Code::code);
        let app = accept.direct.as_ref().map(|address| *address.app.as_bytes());
        for delivery in &accept.deliveries {
            if let Some(reason) = delivery.skipped {
                let mut skip = self.connection.prepare_cached(SKIP)?;
                skip.execute((
                    delivery.endpoint.as_bytes(),
                    message.id.as_bytes(),
                    message.created_at.millis(),
                    State::Skipped.code(),
                    reason.code(),
                ))?;
                first.get_or_insert_with(|| self.connection.last_insert_rowid());
                continue;
            }
            // The stop date counts from when the delivery may first go out.
            let clock_start = message.created_at.max(delivery.due_at);
            self.delivery.execute((
                delivery.endpoint.as_bytes(),
                message.id.as_bytes(),
                delivery.due_at.millis(),
                clock_start.millis(),
                if accept.takes_place_later(delivery) { 2 } else { i64::from(delivery.ordered) },
                dispatched,
                app,
            ))?;
            first.get_or_insert_with(|| self.connection.last_insert_rowid());
        }
        Ok(Seq(first.unwrap_or_default()))
    }
}
