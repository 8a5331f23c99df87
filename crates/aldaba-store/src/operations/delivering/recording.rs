//! A result is recorded: the fence and the transition, the attempt, and all that follows from it. Manual attempts of deliveries
//! that do not wait.

use crate::operations::codes::StoredState;
use crate::operations::endpoint::NOT_DELETED;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Batch, Result, Transaction, audit, gate, health, keys, mail, notice};
use crate::{IdempotencyKey, ManualRecord, NewAttempt, Record, Recorded, Seq};
use aldaba_delivery::{AppId, Ending, EndpointId, MessageId, Reason, Transition};

statements! {
    DEAD_LETTER = format!(
        "INSERT INTO dead_letter (seq, org, app, endpoint, settled_at, reason, event_type)
         SELECT ?1, endpoint.org, endpoint.app, endpoint.id, ?3, ?4,
             coalesce((SELECT event_type FROM message WHERE message.app = endpoint.app AND message.id = ?5), '')
         FROM endpoint WHERE endpoint.id = ?2 AND {NOT_DELETED}
         ON CONFLICT (seq) DO UPDATE SET settled_at = excluded.settled_at, reason = excluded.reason"
    );
    OWNER = "SELECT endpoint.app FROM endpoint JOIN message ON message.app = endpoint.app AND message.id = ?1
        WHERE endpoint.id = ?2";
    ORGANIZATION = "SELECT org FROM endpoint WHERE id = ?1";
    NEWEST = "SELECT seq, state FROM delivery WHERE message = ?1 AND endpoint = ?2 ORDER BY seq DESC LIMIT 1";
    DELIVER = "UPDATE delivery SET state = 1, settled_at = ?2, reason = NULL, discarded = 0 WHERE seq = ?1";
    REMOVE_DEAD = "DELETE FROM dead_letter WHERE seq = ?1";
    INSERT_DELIVERED = "INSERT INTO delivery (seq, endpoint, message, state, due_at, clock_start, settled_at)
        VALUES (?1, ?2, ?3, 1, ?4, ?4, ?4)";
    INSERT_ATTEMPT = "INSERT INTO attempt (id, seq, endpoint, message, started_at, duration, status_code, failure,
            made_by, success, error, response)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    RETRY = "UPDATE delivery SET attempts = attempts + ?3, retries = retries + ?3, due_at = ?4
        WHERE seq = ?1 AND state = 0 AND attempts = ?2";
    WAITS = "SELECT 1 FROM delivery WHERE seq = ?1 AND state = 0 AND attempts = ?2";
    SETTLE = "UPDATE delivery SET attempts = attempts + ?3, state = ?4, settled_at = ?5, reason = ?6
        WHERE seq = ?1 AND state = 0 AND attempts = ?2";
}

pub(crate) fn record(batch: &mut Batch<'_>, record: &Record) -> Result<Recorded> {
    if !change_if_unchanged(batch.tx, record)? {
        return Ok(Recorded::Fenced);
    }
    if let Some(attempt) = &record.attempt {
        insert_attempt(batch.tx, (record.seq, record.endpoint, record.message), attempt)?;
    }
    effects(batch, record)?;
    Ok(Recorded::Applied)
}

/// The fence: changes the delivery only if it still is what the record was made for.
fn change_if_unchanged(tx: &dyn Transaction, record: &Record) -> Result<bool> {
    let Record { seq, attempts_before: before, at, .. } = record;
    let made = record.counts();
    let (state, reason) = match record.transition {
        // Its due time may have been corrected while the attempt was made.
        Transition::Retry { .. } if record.is_manual() => return tx.exists(&WAITS, values![seq, before]),
        Transition::Retry { due_at } => {
            return Ok(tx.execute(&RETRY, values![seq, before, made, due_at])? == 1);
        }
        Transition::Settle(Ending::Delivered) => (StoredState::Delivered, None),
        Transition::Settle(Ending::Dead(reason)) | Transition::Stop { reason, .. } => {
            (StoredState::Dead, Some(reason))
        }
    };
    Ok(tx.execute(&SETTLE, values![seq, before, made, state, at, reason])? == 1)
}

/// Everything that a result changes, once its delivery and its attempt are written: health, gates, the dead letter, notices,
/// the audit log, the key of its request and the counters.
fn effects(batch: &mut Batch<'_>, record: &Record) -> Result<()> {
    let tx = batch.tx;
    let is_health_kept = match &record.health {
        Some(health) => health::after_attempt(tx, batch.rules, record, health)?,
        None => true,
    };
    if is_health_kept && !record.mails.is_empty() {
        mail::keep(tx, batch.numbers, &record.mails)?;
    }
    if let Some(attempt) = record.attempt.as_ref().filter(|attempt| attempt.is_own_failure()) {
        health::set_last_error(tx, record.endpoint, attempt)?;
    }
    for gate in &record.gates {
        gate::set(tx, gate)?;
    }
    if let Some(Ending::Dead(reason)) = record.transition.ending() {
        put_in_dead_letter(tx, record, reason)?;
    }
    if !record.notices.is_empty() {
        notice::keep(tx, batch.numbers, &record.notices)?;
    }
    if let Some(entry) = &record.audit {
        audit::note(tx, entry, 1)?;
    }
    if let (Some(key), Some(attempt)) = (&record.idempotency, &record.attempt) {
        keep_key(tx, record.app, key, attempt)?;
    }
    let org = match record.org {
        Some(org) => Some(org),
        None => tx.one(&ORGANIZATION, values![record.endpoint])?,
    };
    if let Some(org) = org {
        batch.counters.recorded(org, record);
    }
    Ok(())
}

/// What ends because its endpoint is deleted, or after that, concerns nobody any more.
fn put_in_dead_letter(tx: &dyn Transaction, record: &Record, reason: Reason) -> Result<()> {
    let Record { seq, endpoint, at, message, .. } = record;
    tx.execute(&DEAD_LETTER, values![seq, endpoint, at, reason, message]).map(drop)
}

fn keep_key(tx: &dyn Transaction, app: AppId, used: &IdempotencyKey, attempt: &NewAttempt) -> Result<()> {
    keys::keep_request(tx, app.as_bytes(), used, attempt.id.as_bytes())
}

/// A manual attempt of a delivery that does not wait. Where its endpoint or its message has been removed meanwhile, nothing is
/// written: it would stay for ever.
pub(crate) fn resent(batch: &mut Batch<'_>, resent: &ManualRecord) -> Result<()> {
    let tx = batch.tx;
    let ManualRecord { endpoint, message, attempt, at, .. } = resent;
    let Some(app) = tx.one::<AppId>(&OWNER, values![message, endpoint])? else { return Ok(()) };
    let newest: Option<(Seq, StoredState)> = tx.one(&NEWEST, values![message, endpoint])?;
    let seq = match newest {
        Some((seq, StoredState::Dead | StoredState::Skipped)) if attempt.success => {
            tx.execute(&DELIVER, values![seq, at])?;
            tx.execute(&REMOVE_DEAD, values![seq])?;
            seq
        }
        Some((seq, _)) => seq,
        None if attempt.success => {
            let seq = batch.numbers.draw(tx, 1)?;
            tx.execute(&INSERT_DELIVERED, values![seq, endpoint, message, at])?;
            seq
        }
        None => Seq(0),
    };
    insert_attempt(tx, (seq, *endpoint, *message), attempt)?;
    if let Some(key) = &resent.idempotency {
        keep_key(tx, app, key, attempt)?;
    }
    if let Some(entry) = &resent.audit {
        audit::note(tx, entry, 1)?;
    }
    batch.counters.resent(app, resent);
    Ok(())
}

fn insert_attempt(
    tx: &dyn Transaction,
    (seq, endpoint, message): (Seq, EndpointId, MessageId),
    attempt: &NewAttempt,
) -> Result<()> {
    let NewAttempt {
        id, started_at, duration, status_code, failure, trigger, success, error, response, ..
    } = attempt;
    let values = values![
        id,
        seq,
        endpoint,
        message,
        started_at,
        duration,
        status_code,
        failure,
        trigger,
        success,
        error,
        response
    ];
    tx.execute(&INSERT_ATTEMPT, values).map(drop)
}
