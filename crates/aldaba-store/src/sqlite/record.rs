//! A result is recorded: fence and transition, attempt, health, gates.

use super::audit;
use super::codes::{Code, State};
use super::counters::Counters;
use super::health;
use super::keys::Keys;
use super::notice;
use super::rows::{self, GATE, IS_GATE, gate_key, nanos};
use crate::{GateRecord, IdempotencyKey, NewAttempt, Record, Recorded, RequestDigest, Resent, Seq};
use aldaba_delivery::{
    AppId, AttemptId, Ending, EndpointId, GateKey, MessageId, Reason, Timestamp, Transition,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

pub(super) struct Recording<'c> {
    connection: &'c Connection,
    retry: CachedStatement<'c>,
    waits: CachedStatement<'c>,
    settle: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
}

impl<'c> Recording<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            retry: connection.prepare_cached(
                "UPDATE delivery SET attempts = attempts + ?3, retries = retries + ?3, due_at = ?4
                 WHERE seq = ?1 AND state = 0 AND attempts = ?2",
            )?,
            waits: connection
                .prepare_cached("SELECT 1 FROM delivery WHERE seq = ?1 AND state = 0 AND attempts = ?2")?,
            settle: connection.prepare_cached(
                "UPDATE delivery SET attempts = attempts + ?3, state = ?4, settled_at = ?5, reason = ?6
                 WHERE seq = ?1 AND state = 0 AND attempts = ?2",
            )?,
            attempt: connection.prepare_cached(
                "INSERT INTO attempt (id, seq, endpoint, message, started_at, duration, status_code, failure,
                     made_by, success, error, response)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?,
        })
    }

    pub(super) fn record(&mut self, record: &Record, counters: &mut Counters) -> rusqlite::Result<Recorded> {
        if !self.change_if_unchanged(record)? {
            return Ok(Recorded::Fenced);
        }
        if let Some(attempt) = &record.attempt {
            self.insert_attempt((record.seq, record.endpoint, record.message), attempt)?;
        }
        if let Some(health) = &record.health {
            health::after_attempt(self.connection, record, health)?;
        }
        if let Some(attempt) = record.attempt.as_ref().filter(|attempt| attempt.is_own_failure()) {
            health::set_last_error(self.connection, record.endpoint, attempt)?;
        }
        for gate in &record.gates {
            self.set_gate(gate)?;
        }
        if let Some(Ending::Dead(reason)) = record.transition.ending() {
            self.put_in_dead_letter(record, reason)?;
        }
        notice::keep(self.connection, &record.notices)?;
        if let Some(entry) = &record.audit {
            audit::note(self.connection, entry, 1)?;
        }
        if let (Some(key), Some(attempt)) = (&record.idempotency, &record.attempt) {
            self.keep_key(record.app, key, attempt)?;
        }
        counters.recorded(record);
        Ok(Recorded::Applied)
    }

    fn keep_key(&self, app: AppId, used: &IdempotencyKey, attempt: &NewAttempt) -> rusqlite::Result<()> {
        Keys::new(self.connection)?.keep_request(app.as_bytes(), used, attempt.id.as_bytes())
    }

    /// The fence: changes the delivery only if it still is what the record was made for.
    fn change_if_unchanged(&mut self, record: &Record) -> rusqlite::Result<bool> {
        let made = i64::from(record.counts());
        let (seq, before) = (record.seq.0, record.attempts_before);
        let ending = match record.transition {
            // Its due time may have been corrected while the attempt was made.
            Transition::Retry { .. } if record.is_by_hand() => return self.waits.exists((seq, before)),
            Transition::Retry { due_at } => {
                return Ok(self.retry.execute((seq, before, made, due_at.millis()))? == 1);
            }
            Transition::Settle(ending) => ending,
            Transition::Stop { reason, .. } => Ending::Dead(reason),
        };
        let (state, reason) = match ending {
            Ending::Delivered => (State::Delivered, None),
            Ending::Dead(reason) => (State::Dead, Some(reason.code())),
        };
        let settled = self.settle.execute((seq, before, made, state.code(), record.at.millis(), reason))?;
        Ok(settled == 1)
    }

    /// An attempt by hand of a delivery that does not wait, and whose it is. `None`: its endpoint or its message
    /// has been removed meanwhile, and what was written now would stay for ever.
    pub(super) fn resent(&mut self, resent: &Resent) -> rusqlite::Result<Option<AppId>> {
        let Resent { endpoint, message, attempt, at, .. } = resent;
        let key = (message.as_bytes(), endpoint.as_bytes());
        let mut kept = self.connection.prepare_cached(
            "SELECT endpoint.app FROM endpoint JOIN message ON message.app = endpoint.app AND message.id = ?1
             WHERE endpoint.id = ?2",
        )?;
        let Some(app) = kept.query_row(key, |row| rows::id(row, 0)).optional()? else {
            return Ok(None);
        };
        let mut find = self.connection.prepare_cached(
            "SELECT seq, state FROM delivery WHERE message = ?1 AND endpoint = ?2 ORDER BY seq DESC LIMIT 1",
        )?;
        let found = find.query_row(key, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
        let found = found
            .map(|(seq, state)| Ok::<_, rusqlite::Error>((seq, State::from_code(state)?)))
            .transpose()?;
        let seq = match found {
            Some((seq, State::Dead | State::Skipped)) if attempt.success => {
                let mut settle = self.connection.prepare_cached(
                    "UPDATE delivery SET state = ?2, settled_at = ?3, reason = NULL, discarded = 0 WHERE seq = ?1",
                )?;
                settle.execute((seq, State::Delivered.code(), at.millis()))?;
                self.connection.prepare_cached("DELETE FROM dead_letter WHERE seq = ?1")?.execute((seq,))?;
                seq
            }
            Some((seq, _)) => seq,
            None if attempt.success => {
                let mut insert = self.connection.prepare_cached(
                    "INSERT INTO delivery (endpoint, message, state, due_at, clock_start, settled_at)
                     VALUES (?1, ?2, ?3, ?4, ?4, ?4)",
                )?;
                insert.execute((key.1, key.0, State::Delivered.code(), at.millis()))?;
                self.connection.last_insert_rowid()
            }
            None => 0,
        };
        self.insert_attempt((Seq(seq), *endpoint, *message), attempt)?;
        if let Some(key) = &resent.idempotency {
            self.keep_key(app, key, attempt)?;
        }
        Ok(Some(app))
    }

    fn insert_attempt(
        &mut self,
        (seq, endpoint, message): (Seq, EndpointId, MessageId),
        attempt: &NewAttempt,
    ) -> rusqlite::Result<()> {
        self.attempt.execute(params![
            attempt.id.as_bytes(),
            seq.0,
            endpoint.as_bytes(),
            message.as_bytes(),
            attempt.started_at.millis(),
            nanos(attempt.duration),
            attempt.status_code,
            attempt.failure.map(Code::code),
            attempt.trigger.code(),
            attempt.success,
            attempt.error,
            &attempt.response[..],
        ])?;
        Ok(())
    }

    /// What ends because its endpoint is deleted, or after that, is nobody's business any more.
    fn put_in_dead_letter(&self, record: &Record, reason: Reason) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare_cached(&format!(
            "INSERT OR REPLACE INTO dead_letter (seq, org, app, endpoint, settled_at, reason, event_type)
             SELECT ?1, endpoint.org, endpoint.app, endpoint.id, ?3, ?4,
                 coalesce((SELECT event_type FROM message WHERE app = endpoint.app AND id = ?5), '')
             FROM endpoint WHERE endpoint.id = ?2 AND {}",
            rows::THERE
        ))?;
        insert.execute((
            record.seq.0,
            record.endpoint.as_bytes(),
            record.at.millis(),
            reason.code(),
            record.message.as_bytes(),
        ))?;
        Ok(())
    }

    fn set_gate(&self, record: &GateRecord) -> rusqlite::Result<()> {
        let ((org, origin, scope), gate) = (gate_key(&record.key), &record.gate);
        if gate.is_clear() {
            return remove_gate(self.connection, &record.key);
        }
        let mut set = self.connection.prepare_cached(&format!(
            "INSERT OR REPLACE INTO gate ({GATE}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        ))?;
        let [held_until, failed_at, since] =
            [gate.held_until, gate.failed_at, gate.since].map(|at| at.map(Timestamp::millis));
        let (failures, hold, probing) = (gate.failures, nanos(gate.hold), gate.probing);
        set.execute((
            org,
            origin,
            scope,
            failures,
            held_until,
            hold,
            failed_at,
            probing,
            since,
            &record.why,
        ))?;
        Ok(())
    }
}

pub(super) fn remove_gate(connection: &Connection, key: &GateKey) -> rusqlite::Result<()> {
    let mut remove = connection.prepare_cached(&format!("DELETE FROM gate WHERE {IS_GATE}"))?;
    remove.execute(gate_key(key))?;
    Ok(())
}

/// What a key of an attempt by hand has led to.
pub(super) fn attempt_of_key(
    connection: &Connection,
    app: AppId,
    digest: &RequestDigest,
) -> rusqlite::Result<Option<AttemptId>> {
    let found = Keys::new(connection)?.find_request(app.as_bytes(), digest)?;
    Ok(found.map(AttemptId::from_bytes))
}
