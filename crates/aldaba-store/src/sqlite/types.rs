//! Attempts by application, event type and hour.
//!
//! A commit may hold results of as many applications as there are results, and a counter in the database for
//! each of them would cost a tenth of it. So these are kept in memory for a few seconds and written together. How
//! far they are counted is written with them; after a crash the few attempts beyond that are counted anew.

use super::transaction::all;
use crate::operations::{Monotonic, Reading, Result, TypeCounts, statistics};
use crate::{ApplicationAttemptsQuery, AttemptCounts, Hour};
use aldaba_delivery::{AppId, Timestamp};
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long counts stay in memory while commits could include them.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// The maximum number of attempts to count again after a crash.
const MAX_ATTEMPTS: i64 = 20_000;
/// Read retries after a concurrent commit.
const READ_RETRIES: usize = 8;

/// What is counted and not written yet.
#[derive(Debug, Default)]
pub(crate) struct Types {
    state: Mutex<UnwrittenTypes>,
    settled: Condvar,
}

#[derive(Debug, Default)]
struct UnwrittenTypes {
    counts: TypeCounts,
    attempts: i64,
    /// When the first of it was counted.
    since: Option<Duration>,
    /// It is part of a commit whose fate is not known yet.
    writing: bool,
    /// How often it was written.
    written: u64,
}

impl Types {
    /// Counts what a crash has kept from being written.
    pub(super) fn restore(connection: &Connection) -> Result<Self> {
        let uncounted: Vec<(AppId, Timestamp, bool, Arc<str>)> =
            all(&mut connection.prepare(UNCOUNTED)?, ())?;
        let types = Self::default();
        let mut state = types.state.lock();
        for (app, at, success, event_type) in uncounted {
            state.attempts += 1;
            state.counts.add((app, Hour::of(at), event_type), [1, i64::from(success)]);
        }
        state.since = (state.attempts > 0).then_some(Duration::ZERO);
        drop(state);
        Ok(types)
    }

    /// Writes what has waited long enough, or everything. It must come before the batch's own attempts, and
    /// [`Self::ended`] must follow.
    pub(super) fn write(&self, connection: &Connection, clock: &Monotonic, all: bool) -> Result<()> {
        let mut state = self.state.lock();
        let Some(since) = state.since else { return Ok(()) };
        let is_due = state.attempts >= MAX_ATTEMPTS || clock.now().saturating_sub(since) >= MAX_DELAY;
        if !is_due && !all {
            return Ok(());
        }
        state.writing = true;
        // Only this thread changes it, and readers need not wait for the statements.
        let unwritten = state.counts.0.clone();
        drop(state);
        let mut add = connection.prepare_cached(ADD)?;
        for ((app, Hour(hour), event_type), [attempts, successes]) in &unwritten {
            add.execute((app.as_bytes(), hour, &**event_type, attempts, successes))?;
        }
        connection.prepare_cached(COUNTED)?.execute(())?;
        Ok(())
    }

    /// The fate of a batch is known: with what it has counted, if it is on disk.
    pub(super) fn ended(&self, clock: &Monotonic, counted: Option<TypeCounts>) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.writing) && counted.is_some() {
            let written = state.written + 1;
            *state = UnwrittenTypes { written, ..UnwrittenTypes::default() };
        }
        for (key, counts) in counted.unwrap_or_default().0 {
            state.attempts += counts[0];
            state.since.get_or_insert_with(|| clock.now());
            state.counts.add(key, counts);
        }
        self.settled.notify_all();
    }

    /// What is written, and what is not. A commit that moves the one to the other must not come in between.
    pub(super) fn read(
        &self,
        reading: &dyn Reading,
        renew: impl Fn() -> Result<()>,
        query: &ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>> {
        let mut found = None;
        for _ in 0..READ_RETRIES {
            let (written, unwritten) = self.unwritten(query);
            renew()?;
            let left = query.most.checked_sub(unwritten.len());
            found = match left {
                Some(left) => statistics::application_attempts(reading, query, left)?,
                None => None,
            };
            if let Some(found) = &mut found {
                for (event_type, counts) in unwritten {
                    *found.entry(event_type).or_default() += counts;
                }
            }
            let state = self.state.lock();
            if state.written == written && !state.writing {
                break;
            }
        }
        Ok(found)
    }

    fn unwritten(&self, query: &ApplicationAttemptsQuery) -> (u64, Vec<(String, AttemptCounts)>) {
        let mut state = self.state.lock();
        if state.writing {
            self.settled.wait_for(&mut state, MAX_DELAY);
        }
        let asked = |event_type: &str| {
            query.event_types.is_empty() || query.event_types.iter().any(|wanted| wanted == event_type)
        };
        let first = (query.app, query.first, Arc::from(""));
        let of_app = state.counts.0.range(first..);
        let of_app = of_app.take_while(|((app, hour, _), _)| *app == query.app && *hour <= query.last);
        let counts = |[attempts, successes]: [i64; 2]| {
            let number = |number: i64| u64::try_from(number).unwrap_or(0);
            AttemptCounts { successes: number(successes), failures: number(attempts - successes) }
        };
        let found = of_app
            .filter(|((_, _, event_type), _)| asked(event_type))
            .map(|((_, _, event_type), sums)| (event_type.to_string(), counts(*sums)));
        (state.written, found.collect())
    }
}

/// Rows that come next may get the numbers of rows that were removed: those count as uncounted from here on.
pub(super) fn attempts_were_removed(connection: &Connection) -> Result<()> {
    connection.prepare_cached(COUNTED_AT_MOST)?.execute(())?;
    Ok(())
}

/// The attempts that nobody has counted: they are the newest.
const UNCOUNTED: &str = "
    SELECT endpoint.app, attempt.started_at, attempt.success, message.event_type FROM attempt
    JOIN endpoint ON endpoint.id = attempt.endpoint
    JOIN message ON message.app = endpoint.app AND message.id = attempt.message
    WHERE attempt.rowid > (SELECT value FROM total WHERE name = 'types_counted')";
const COUNTED: &str =
    "UPDATE total SET value = (SELECT coalesce(max(rowid), 0) FROM attempt) WHERE name = 'types_counted'";
const COUNTED_AT_MOST: &str = "UPDATE total SET value = (SELECT coalesce(max(rowid), 0) FROM attempt)
    WHERE name = 'types_counted' AND value > (SELECT coalesce(max(rowid), 0) FROM attempt)";
const ADD: &str = "
    INSERT INTO application_hour (app, hour, event_type, attempts, successes) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET attempts = attempts + excluded.attempts, successes = successes + excluded.successes";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn what_nobody_has_counted_is_found_from_there_on() {
        let plan = plan(UNCOUNTED);
        assert!(plan.contains("SEARCH attempt USING INTEGER PRIMARY KEY (rowid>?)"), "{plan}");
        assert!(!plan.contains("SCAN"), "{plan}");
    }
}
