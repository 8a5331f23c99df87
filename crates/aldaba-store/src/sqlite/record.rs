//! A result is recorded: fence and transition, attempt, health, gates.

use super::codes::{Code, State};
use super::counters::Counters;
use super::health;
use super::rows::{nanos, scope_bytes};
use crate::{GateRecord, NewAttempt, Record, Recorded};
use aldaba_delivery::{Ending, Timestamp, Transition};
use rusqlite::{CachedStatement, Connection, params};

pub(super) struct Recording<'c> {
    connection: &'c Connection,
    retry: CachedStatement<'c>,
    settle: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
}

impl<'c> Recording<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            retry: connection.prepare_cached(
                "UPDATE delivery SET attempts = attempts + ?3, due_at = ?4
                 WHERE seq = ?1 AND state = 0 AND attempts = ?2",
            )?,
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
            self.insert_attempt(record, attempt)?;
        }
        if let Some(health) = &record.health {
            health::after_attempt(self.connection, record, health)?;
        }
        if let Some(attempt) = record.attempt.as_ref().filter(|attempt| !attempt.success) {
            health::set_last_error(self.connection, record.endpoint, attempt)?;
        }
        for gate in &record.gates {
            self.set_gate(gate)?;
        }
        counters.recorded(record);
        Ok(Recorded::Applied)
    }

    /// The fence: changes the delivery only if it still is what the record was made for.
    fn change_if_unchanged(&mut self, record: &Record) -> rusqlite::Result<bool> {
        let made = i64::from(record.attempt.is_some());
        let (seq, before) = (record.seq.0, record.attempts_before);
        let changed = match record.transition {
            Transition::Retry { due_at } => self.retry.execute((seq, before, made, due_at.millis()))?,
            Transition::Settle(ending) => {
                let (state, reason) = match ending {
                    Ending::Delivered => (State::Delivered, None),
                    Ending::Dead(reason) => (State::Dead, Some(reason.code())),
                };
                self.settle.execute((seq, before, made, state.code(), record.at.millis(), reason))?
            }
        };
        Ok(changed == 1)
    }

    fn insert_attempt(&mut self, record: &Record, attempt: &NewAttempt) -> rusqlite::Result<()> {
        self.attempt.execute(params![
            attempt.id.as_bytes(),
            record.seq.0,
            record.endpoint.as_bytes(),
            record.message.as_bytes(),
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

    fn set_gate(&self, record: &GateRecord) -> rusqlite::Result<()> {
        let (origin, scope, gate) = (record.origin.as_str(), scope_bytes(&record.scope), &record.gate);
        if gate.is_clear() {
            let mut remove =
                self.connection.prepare_cached("DELETE FROM gate WHERE origin = ?1 AND scope = ?2")?;
            remove.execute((origin, scope))?;
            return Ok(());
        }
        let mut set = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO gate (origin, scope, failures, held_until, hold, probing, since, why)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let held_until = gate.held_until.map(Timestamp::millis);
        let since = gate.since.map(Timestamp::millis);
        let hold = nanos(gate.hold);
        set.execute((origin, scope, gate.failures, held_until, hold, gate.probing, since, &record.why))?;
        Ok(())
    }
}
