//! A result is recorded: the fence and the transition, and the attempt. Its other effects are in `operations/result.rs`.

use crate::operations::codes::{Code, StoredState};
use crate::operations::result::{self, INSERT_ATTEMPT_TEXT};
use crate::operations::{Batch, Result};
use crate::sqlite::transaction::prepare;
use crate::{NewAttempt, Record, Recorded};
use aldaba_delivery::{Ending, Transition};
use rusqlite::{CachedStatement, Connection, params};

pub(super) struct Recording<'c> {
    retry: CachedStatement<'c>,
    waits: CachedStatement<'c>,
    settle: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
}

impl<'c> Recording<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            retry: prepare(
                connection,
                "UPDATE delivery SET attempts = attempts + ?3, retries = retries + ?3, due_at = ?4
                 WHERE seq = ?1 AND state = 0 AND attempts = ?2",
            )?,
            waits: connection
                .prepare_cached("SELECT 1 FROM delivery WHERE seq = ?1 AND state = 0 AND attempts = ?2")?,
            settle: connection.prepare_cached(
                "UPDATE delivery SET attempts = attempts + ?3, state = ?4, settled_at = ?5, reason = ?6
                 WHERE seq = ?1 AND state = 0 AND attempts = ?2",
            )?,
            attempt: connection.prepare_cached(INSERT_ATTEMPT_TEXT)?,
        })
    }

    pub(super) fn record(&mut self, batch: &mut Batch<'_>, record: &Record) -> Result<Recorded> {
        if !self.change_if_unchanged(record)? {
            return Ok(Recorded::Fenced);
        }
        if let Some(attempt) = &record.attempt {
            self.insert_attempt(record, attempt)?;
        }
        result::effects(batch, record)?;
        Ok(Recorded::Applied)
    }

    /// The fence: changes the delivery only if it still is what the record was made for.
    fn change_if_unchanged(&mut self, record: &Record) -> Result<bool> {
        let made = i64::from(record.counts());
        let (seq, before) = (record.seq.0, record.attempts_before);
        let ending = match record.transition {
            // Its due time may have been corrected while the attempt was made.
            Transition::Retry { .. } if record.is_manual() => {
                return Ok(self.waits.exists((seq, before))?);
            }
            Transition::Retry { due_at } => {
                return Ok(self.retry.execute((seq, before, made, due_at.millis()))? == 1);
            }
            Transition::Settle(ending) => ending,
            Transition::Stop { reason, .. } => Ending::Dead(reason),
        };
        let (state, reason) = match ending {
            Ending::Delivered => (StoredState::Delivered, None),
            Ending::Dead(reason) => (StoredState::Dead, Some(reason.code())),
        };
        let settled = self.settle.execute((seq, before, made, state.code(), record.at.millis(), reason))?;
        Ok(settled == 1)
    }

    fn insert_attempt(&mut self, record: &Record, attempt: &NewAttempt) -> Result<()> {
        self.attempt.execute(params![
            attempt.id.as_bytes(),
            record.seq.0,
            record.endpoint.as_bytes(),
            record.message.as_bytes(),
            attempt.started_at.millis(),
            i64::try_from(attempt.duration.as_nanos()).unwrap_or(i64::MAX),
            attempt.status_code,
            attempt.failure.map(Code::code),
            attempt.trigger.code(),
            attempt.success,
            attempt.error,
            &attempt.response[..],
        ])?;
        Ok(())
    }
}
