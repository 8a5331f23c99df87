//! An event comes in: message, deliveries and keys.

use crate::operations::codes::{Code, StoredState};
use crate::operations::keys::{self, Kept, KeyKind, UniqueKey};
use crate::operations::transaction::{statements, values};
use crate::operations::{Batch, Result, application, audit, endpoint, message, policy, profile};
use crate::{Accept, Accepted, Seq};
use aldaba_delivery::{AppId, MessageId};

statements! {
    MESSAGE = "INSERT INTO message (app, id, created_at, event_type, channels, event_id, payload, tags, version,
            deliver_at, headers, only_for, sealed_headers, job, payload_until)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING";
    DELIVERY = "INSERT INTO delivery (seq, endpoint, message, due_at, clock_start, ordered, dispatched, app)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    SKIPPED = "INSERT INTO delivery (seq, endpoint, message, due_at, clock_start, settled_at, state, reason)
        VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6)";
}

pub(crate) fn accept(batch: &mut Batch<'_>, accept: &Accept) -> Result<Accepted> {
    let (tx, message, owner) = (batch.tx, &accept.message, accept.app.as_bytes());
    let event_id = message.content.event_id.as_ref();
    let event_id = event_id.map(|id| UniqueKey { owner, kind: KeyKind::EventId, key: id.as_bytes() });

    if let Some(used) = &accept.idempotency
        && let Some(first) = keys::find_request(tx, owner, &used.digest)?
    {
        return Ok(Accepted::Repeated { message: MessageId::from_bytes(first) });
    }
    let stale = match &accept.creates {
        Some(new) => application::has_used_uid(tx, &new.application)?,
        None => version(batch, accept.app)? != Some(accept.version),
    };
    if stale {
        return Ok(Accepted::Stale);
    }
    if let Some(key) = event_id
        && let Some(first) = keys::find(tx, key)?
    {
        return Ok(Accepted::EventIdTaken { message: MessageId::from_bytes(first) });
    }
    // In this commit, as for endpoints: what is named may just have been deleted.
    if let Some(address) = &accept.direct {
        if !policy::is_known(tx, address.org, &address.config.policy)? {
            return Ok(Accepted::NoSuchPolicy);
        }
        if !profile::is_known(tx, address.org, address.config.profile.as_deref())? {
            return Ok(Accepted::NoSuchProfile);
        }
    }
    if let Some(quota) = &accept.quota
        && !message::exists(tx, accept.app, message.id)?
        && let Some(whose) = batch.counters.messages.count(tx, accept, quota)?
    {
        return Ok(Accepted::OverQuota(whose));
    }
    if let Some(new) = &accept.creates {
        application::create(tx, &new.application)?;
        audit::note(tx, &new.audit.with_values_of_new(&new.application), 1)?;
        batch.versions.remove(&accept.app);
    }
    if !insert_message(batch, accept)? {
        // The same message was submitted twice.
        return Ok(Accepted::Repeated { message: message.id });
    }
    if let Some(address) = &accept.direct {
        endpoint::insert_row(tx, address)?;
    }
    let first = insert_deliveries(batch, accept)?;
    if let Some(key) = event_id {
        keys::keep(tx, key, message.id.as_bytes(), Kept::WithResource { at_least: message.event_id_until })?;
    }
    if let Some(used) = &accept.idempotency {
        keys::keep_request(tx, owner, used, message.id.as_bytes())?;
    }
    batch.counters.accepted(accept);
    Ok(Accepted::New { first })
}

/// The version of an application, read once in a batch.
fn version(batch: &mut Batch<'_>, app: AppId) -> Result<Option<u64>> {
    if let Some(version) = batch.versions.get(&app) {
        return Ok(*version);
    }
    let version = application::version(batch.tx, app)?;
    batch.versions.insert(app, version);
    Ok(version)
}

fn insert_message(batch: &Batch<'_>, accept: &Accept) -> Result<bool> {
    let (message, content) = (&accept.message, &*accept.message.content);
    let values = values![
        accept.app,
        message.id,
        message.created_at,
        content.event_type,
        message.channels,
        content.event_id,
        content.payload,
        message.tags,
        content.version,
        message.deliver_at,
        message.headers,
        message.only_for,
        content.sealed_headers,
        message.job,
        message.payload_until
    ];
    Ok(batch.tx.execute(&MESSAGE, values)? == 1)
}

/// Returns the number of the first delivery. The others follow without a gap.
fn insert_deliveries(batch: &mut Batch<'_>, accept: &Accept) -> Result<Seq> {
    if accept.deliveries.is_empty() {
        return Ok(Seq(0));
    }
    let (tx, message) = (batch.tx, &accept.message);
    let first = batch.numbers.draw(tx, accept.deliveries.len())?;
    let dispatched = accept.dispatched().map_or(0, Code::code);
    let app = accept.direct.as_ref().map(|address| address.app);
    for (seq, delivery) in (first.0..).zip(&accept.deliveries) {
        let (endpoint, due_at) = (delivery.endpoint, delivery.due_at);
        if let Some(reason) = delivery.skipped {
            let state = StoredState::Skipped;
            tx.execute(&SKIPPED, values![seq, endpoint, message.id, message.created_at, state, reason])?;
            continue;
        }
        // The stop date counts from when the delivery may first go out.
        let clock_start = message.created_at.max(due_at);
        let ordered = if accept.is_sequenced_later(delivery) { 2 } else { i64::from(delivery.ordered) };
        let values = values![seq, endpoint, message.id, due_at, clock_start, ordered, dispatched, app];
        tx.execute(&DELIVERY, values)?;
    }
    Ok(first)
}
