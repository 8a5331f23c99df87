//! Sums of counters, and minutes that become hours.

use super::counters::COLUMNS;
use super::monotonic::{Monotonic, Slice};
use super::remove::SLICE;
use super::rows::count;
use crate::{ApplicationAttemptsQuery, AttemptCounts, Hour, SumUp};
use aldaba_delivery::{EndpointId, Timestamp};
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const MINUTES: &str = "
    SELECT coalesce(sum(attempts), 0), coalesce(sum(successes), 0) FROM endpoint_minute
    WHERE endpoint = ?1 AND minute BETWEEN ?2 AND ?3";
const HOURS: &str = "
    SELECT coalesce(sum(attempts), 0), coalesce(sum(successes), 0) FROM endpoint_hour
    WHERE endpoint = ?1 AND hour BETWEEN ?2 AND ?3";

/// The hours whose sums are whole are taken as such, and minutes for the rest.
pub(super) fn endpoint_attempts(
    connection: &Connection,
    endpoint: EndpointId,
    since: Timestamp,
    until: Timestamp,
) -> rusqlite::Result<AttemptCounts> {
    // The sums and how far they go are one state: they are read in one transaction.
    let snapshot = connection.unchecked_transaction()?;
    let minute = |millis: i64| millis.div_euclid(60_000);
    let minutes = minute(since.millis())..=minute(until.millis().saturating_sub(1));
    let hours = whole_hours(&minutes, hours_summed(&snapshot)?);
    let mut counts = AttemptCounts::default();
    let mut add = |statement: &str, range: RangeInclusive<i64>| {
        if !range.is_empty() {
            let mut sum = snapshot.prepare_cached(statement)?;
            counts += sum.query_row((endpoint.as_bytes(), range.start(), range.end()), attempts)?;
        }
        Ok::<_, rusqlite::Error>(())
    };
    if hours.is_empty() {
        add(MINUTES, minutes)?;
    } else {
        add(MINUTES, *minutes.start()..=hours.start() * 60 - 1)?;
        add(MINUTES, (hours.end() + 1) * 60..=*minutes.end())?;
        add(HOURS, hours)?;
    }
    Ok(counts)
}

/// The hours that lie in a range of minutes as a whole, and are summed up.
fn whole_hours(minutes: &RangeInclusive<i64>, summed: Hour) -> RangeInclusive<i64> {
    let first = minutes.start().saturating_add(59).div_euclid(60);
    let last = minutes.end().saturating_add(1).div_euclid(60) - 1;
    first..=last.min(summed.0)
}

fn attempts(row: &Row<'_>) -> rusqlite::Result<AttemptCounts> {
    let number = |column| row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0));
    let (attempts, successes) = (number(0)?, number(1)?);
    Ok(AttemptCounts { successes, failures: attempts.saturating_sub(successes) })
}

const TYPES: &str = "
    SELECT attempts, successes, event_type FROM application_hour
    WHERE app = ?1 AND hour BETWEEN ?2 AND ?3 LIMIT ?4";

/// `None`: there are more than `most` of them.
pub(super) fn application_attempts(
    connection: &Connection,
    query: &ApplicationAttemptsQuery,
    most: usize,
) -> rusqlite::Result<Option<BTreeMap<String, AttemptCounts>>> {
    let mut find = connection.prepare_cached(TYPES)?;
    let limit = count(most).saturating_add(1);
    let mut rows = find.query((query.app.as_bytes(), query.first.0, query.last.0, limit))?;
    let mut types: BTreeMap<String, AttemptCounts> = BTreeMap::new();
    let mut left = most;
    while let Some(row) = rows.next()? {
        let Some(fewer) = left.checked_sub(1) else { return Ok(None) };
        left = fewer;
        let event_type = row.get_ref(2)?.as_str()?;
        if query.event_types.is_empty() || query.event_types.iter().any(|wanted| wanted == event_type) {
            match types.get_mut(event_type) {
                Some(counts) => *counts += attempts(row)?,
                None => drop(types.insert(event_type.to_owned(), attempts(row)?)),
            }
        }
    }
    Ok(Some(types))
}

pub(super) fn hours_summed(connection: &Connection) -> rusqlite::Result<Hour> {
    total(connection, "hours_summed")
}

/// Up to which hour counters may be summed up already.
pub(super) fn hours_begun(connection: &Connection) -> rusqlite::Result<Hour> {
    total(connection, "hours_begun")
}

fn total(connection: &Connection, name: &str) -> rusqlite::Result<Hour> {
    let mut find = connection.prepare_cached("SELECT value FROM total WHERE name = ?1")?;
    find.query_row((name,), |row| row.get(0).map(Hour))
}

/// An hour that was reached stays so, though a clock that is set back may name an earlier one.
fn reach(connection: &Connection, name: &str, hour: Hour) -> rusqlite::Result<()> {
    let mut set = connection.prepare_cached("UPDATE total SET value = max(value, ?2) WHERE name = ?1")?;
    set.execute((name, hour.0))?;
    Ok(())
}

const UNSUMMED: &str = "SELECT 1 FROM endpoint_minute WHERE endpoint = ?1 AND minute >= ?2 AND minute < ?3";

pub(super) fn unsummed(
    connection: &Connection,
    endpoints: &[EndpointId],
    through: Hour,
) -> rusqlite::Result<Vec<EndpointId>> {
    let first = hours_summed(connection)?.next().0.saturating_mul(60);
    let mut has = connection.prepare_cached(UNSUMMED)?;
    let mut unsummed = Vec::new();
    for endpoint in endpoints {
        let found = has.exists((endpoint.as_bytes(), first, through.next().0.saturating_mul(60)))?;
        unsummed.extend(found.then_some(*endpoint));
    }
    Ok(unsummed)
}

/// From the minutes, whatever was there before.
fn sum_statement() -> String {
    let sums = COLUMNS.map(|column| format!("sum({column})")).join(", ");
    format!(
        "INSERT OR REPLACE INTO endpoint_hour (endpoint, hour, {})
         SELECT endpoint, minute / 60, {sums} FROM endpoint_minute
         WHERE endpoint = ?1 AND minute >= ?2 AND minute < ?3 GROUP BY endpoint, minute / 60",
        COLUMNS.join(", ")
    )
}

pub(super) fn sum_up(connection: &Connection, clock: &Monotonic, step: &SumUp) -> rusqlite::Result<usize> {
    let slice = Slice::begin(clock, SLICE);
    let first = hours_summed(connection)?.next().0.saturating_mul(60);
    // From this commit on, what is counted for these hours is added to their sums as well.
    reach(connection, "hours_begun", step.through)?;
    let mut sum = connection.prepare_cached(&sum_statement())?;
    for (done, endpoint) in step.endpoints.iter().enumerate() {
        if done > 0 && slice.is_over() {
            return Ok(done);
        }
        sum.execute((endpoint.as_bytes(), first, step.through.next().0.saturating_mul(60)))?;
    }
    if step.last {
        reach(connection, "hours_summed", step.through)?;
    }
    Ok(step.endpoints.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn counters_are_found_without_sorting_and_without_reading_those_of_others() {
        for statement in [MINUTES, HOURS, TYPES, UNSUMMED, &sum_statement()] {
            let plan = plan(statement);
            assert!(plan.starts_with("SEARCH"), "{statement}\n{plan}");
            assert!(!plan.contains("SCAN"), "{statement}\n{plan}");
        }
    }

    #[test]
    fn a_month_is_a_few_hundred_counters() {
        let start = 29_000_000;
        let month = start..=start + 28 * 24 * 60 - 1;
        let hours = whole_hours(&month, Hour(start / 60 + 28 * 24 - 2));
        let minutes = hours.start() * 60 - start + (month.end() - (hours.end() + 1) * 60 + 1);
        assert!(hours.clone().count() as i64 + minutes < 1000, "{hours:?} and {minutes} minutes");
        assert!(whole_hours(&(60..=118), Hour(i64::MAX)).is_empty());
        assert_eq!(whole_hours(&(60..=119), Hour(i64::MAX)), 1..=1);
        assert_eq!(whole_hours(&(59..=300), Hour(2)), 1..=2);
        assert!(whole_hours(&(59..=300), Hour(-1)).is_empty());
    }
}
