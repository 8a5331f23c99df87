//! Sums of counters, and minutes that become hours.

use crate::operations::column::{Columns, FromRow};
use crate::operations::counters::COLUMNS;
use crate::operations::retention::ExpiredItem;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{BULK_SLICE, Monotonic, Reading, Result, Slice, Statement, Transaction};
use crate::{ApplicationAttemptsQuery, AttemptCounts, Hour, SumUp};
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Counters that are removed by one statement.
const REMOVED_AT_ONCE: usize = 64;

fn sums(columns: &str) -> String {
    format!("CAST(coalesce(sum({columns}), 0) AS BIGINT)")
}

statements! {
    MINUTES = format!(
        "SELECT {}, {} FROM endpoint_minute WHERE endpoint = ?1 AND minute BETWEEN ?2 AND ?3",
        sums("attempts"), sums("successes")
    );
    HOURS = format!(
        "SELECT {}, {} FROM endpoint_hour WHERE endpoint = ?1 AND hour BETWEEN ?2 AND ?3",
        sums("attempts"), sums("successes")
    );
    TYPES = "SELECT event_type, attempts, successes FROM application_hour
        WHERE app = ?1 AND hour BETWEEN ?2 AND ?3 ORDER BY hour, event_type LIMIT ?4";
    REACHED = "SELECT value FROM total WHERE name = ?1";
    /// An hour that was reached stays so, though a clock that is set back may name an earlier one.
    REACH = "UPDATE total SET value = ?2 WHERE name = ?1 AND value < ?2";
    UNSUMMED =
        "SELECT 1 FROM endpoint_minute WHERE endpoint = ?1 AND minute >= ?2 AND minute < ?3 LIMIT 1";
    /// From the minutes, whatever was there before.
    SUM_UP = sum_up_text();
    OLD_MINUTES = "SELECT minute FROM endpoint_minute WHERE endpoint = ?1 AND minute < ?2
        ORDER BY minute LIMIT ?3";
    OLD_HOURS = "SELECT hour FROM endpoint_hour WHERE endpoint = ?1 AND hour < ?2 ORDER BY hour LIMIT ?3";
    OLD_TYPE_HOURS = "SELECT DISTINCT hour FROM application_hour WHERE app = ?1 AND hour < ?2
        ORDER BY hour LIMIT ?3";
    REMOVE_MINUTE = "DELETE FROM endpoint_minute WHERE endpoint = ?1 AND minute = ?2";
    REMOVE_HOUR = "DELETE FROM endpoint_hour WHERE endpoint = ?1 AND hour = ?2";
    TYPES_OF_HOUR = "SELECT event_type FROM application_hour WHERE app = ?1 AND hour = ?2
        ORDER BY event_type LIMIT ?3";
    REMOVE_TYPE = "DELETE FROM application_hour WHERE app = ?1 AND hour = ?2 AND event_type = ?3";
    REMOVE_APPLICATION = "DELETE FROM application_hour WHERE app = ?1";
}

fn sum_up_text() -> String {
    let sums = COLUMNS.map(|column| format!("CAST(sum({column}) AS BIGINT)")).join(", ");
    let replacements = COLUMNS.map(|column| format!("{column} = excluded.{column}")).join(", ");
    format!(
        "INSERT INTO endpoint_hour (endpoint, hour, {})
         SELECT endpoint, minute / 60, {sums} FROM endpoint_minute
         WHERE endpoint = ?1 AND minute >= ?2 AND minute < ?3 GROUP BY endpoint, minute / 60
         ON CONFLICT (endpoint, hour) DO UPDATE SET {replacements}",
        COLUMNS.join(", ")
    )
}

/// Attempts, and the successes among them.
impl FromRow for AttemptCounts {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (attempts, successes): (i64, i64) = columns.take()?;
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(Self { successes: number(successes), failures: number(attempts - successes) })
    }
}

/// The hours whose sums are whole are taken as such, and minutes for the rest.
pub(crate) fn endpoint_attempts(
    reading: &dyn Reading,
    endpoint: EndpointId,
    since: Timestamp,
    until: Timestamp,
) -> Result<AttemptCounts> {
    let minute = |millis: i64| millis.div_euclid(60_000);
    let minutes = minute(since.millis())..=minute(until.millis().saturating_sub(1));
    let hours = whole_hours(&minutes, hours_summed(reading)?);
    let mut counts = AttemptCounts::default();
    let mut add = |statement: &'static Statement, range: RangeInclusive<i64>| {
        if !range.is_empty() {
            let found: Option<AttemptCounts> =
                reading.one(statement, values![endpoint, range.start(), range.end()])?;
            counts += found.unwrap_or_default();
        }
        Ok::<_, crate::Error>(())
    };
    if hours.is_empty() {
        add(&MINUTES, minutes)?;
    } else {
        add(&MINUTES, *minutes.start()..=hours.start() * 60 - 1)?;
        add(&MINUTES, (hours.end() + 1) * 60..=*minutes.end())?;
        add(&HOURS, hours)?;
    }
    Ok(counts)
}

/// The hours that lie in a range of minutes as a whole, and are summed up.
fn whole_hours(minutes: &RangeInclusive<i64>, summed: Hour) -> RangeInclusive<i64> {
    let first = minutes.start().saturating_add(59).div_euclid(60);
    let last = minutes.end().saturating_add(1).div_euclid(60) - 1;
    first..=last.min(summed.0)
}

/// `None`: there are more than `most` counters.
pub(crate) fn application_attempts(
    reading: &dyn Reading,
    query: &ApplicationAttemptsQuery,
    most: usize,
) -> Result<Option<BTreeMap<String, AttemptCounts>>> {
    let limit = most.saturating_add(1);
    let found: Vec<(String, AttemptCounts)> =
        reading.all(&TYPES, values![query.app, query.first, query.last, limit])?;
    if found.len() > most {
        return Ok(None);
    }
    let mut types: BTreeMap<String, AttemptCounts> = BTreeMap::new();
    for (event_type, counts) in found {
        if query.event_types.is_empty() || query.event_types.contains(&event_type) {
            *types.entry(event_type).or_default() += counts;
        }
    }
    Ok(Some(types))
}

pub(crate) fn hours_summed(reading: &dyn Reading) -> Result<Hour> {
    reading.number(&REACHED, values!["hours_summed"]).map(Hour)
}

/// Up to which hour counters may be summed up already.
pub(crate) fn hours_begun(reading: &dyn Reading) -> Result<Hour> {
    reading.number(&REACHED, values!["hours_begun"]).map(Hour)
}

pub(crate) fn unsummed(
    reading: &dyn Reading,
    endpoints: &[EndpointId],
    through: Hour,
) -> Result<Vec<EndpointId>> {
    let (first, end) = minutes_to_sum(reading, through)?;
    let mut unsummed = Vec::new();
    for endpoint in endpoints {
        let found = reading.exists(&UNSUMMED, values![endpoint, first, end])?;
        unsummed.extend(found.then_some(*endpoint));
    }
    Ok(unsummed)
}

fn minutes_to_sum(reading: &dyn Reading, through: Hour) -> Result<(i64, i64)> {
    let minutes = |hour: Hour| hour.next().0.saturating_mul(60);
    Ok((minutes(hours_summed(reading)?), minutes(through)))
}

pub(crate) fn sum_up(tx: &dyn Transaction, clock: &Monotonic, step: &SumUp) -> Result<usize> {
    let slice = Slice::begin(clock, BULK_SLICE);
    let (first, end) = minutes_to_sum(tx, step.through)?;
    // From this commit on, what is counted for these hours is added to their sums as well.
    tx.execute(&REACH, values!["hours_begun", step.through])?;
    for (done, endpoint) in step.endpoints.iter().enumerate() {
        if done > 0 && slice.is_over() {
            return Ok(done);
        }
        tx.execute(&SUM_UP, values![endpoint, first, end])?;
    }
    if step.last {
        tx.execute(&REACH, values!["hours_summed", step.through])?;
    }
    Ok(step.endpoints.len())
}

/// Of each endpoint the hours first: they must not be left behind when it goes with its last minute.
pub(crate) fn old_counters(
    reading: &dyn Reading,
    endpoints: &[EndpointId],
    before: Timestamp,
    limit: usize,
) -> Result<Vec<ExpiredItem>> {
    let (first_hour, first_minute) = (first_hour(before), before.millis().div_euclid(60_000));
    let mut stale = Vec::new();
    for endpoint in endpoints {
        let hours: Vec<Hour> = reading.all(&OLD_HOURS, values![endpoint, first_hour, limit - stale.len()])?;
        stale.extend(hours.into_iter().map(|hour| ExpiredItem::HourCounters(*endpoint, hour)));
        let minutes: Vec<i64> =
            reading.all(&OLD_MINUTES, values![endpoint, first_minute, limit - stale.len()])?;
        stale.extend(minutes.into_iter().map(|minute| ExpiredItem::Counters(*endpoint, minute)));
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

pub(crate) fn old_application_counters(
    reading: &dyn Reading,
    apps: &[AppId],
    before: Timestamp,
    limit: usize,
) -> Result<Vec<ExpiredItem>> {
    let mut stale = Vec::new();
    for app in apps {
        let hours: Vec<Hour> =
            reading.all(&OLD_TYPE_HOURS, values![app, first_hour(before), limit - stale.len()])?;
        stale.extend(hours.into_iter().map(|hour| ExpiredItem::ApplicationCounters(*app, hour)));
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

/// The first hour that did not begin before a moment.
fn first_hour(before: Timestamp) -> Hour {
    Hour::of(Timestamp::from_millis(before.millis().saturating_sub(1))).next()
}

pub(crate) fn remove_minute(tx: &dyn Transaction, endpoint: EndpointId, minute: i64) -> Result<usize> {
    tx.execute(&REMOVE_MINUTE, values![endpoint, minute])
}

pub(crate) fn remove_hour(tx: &dyn Transaction, endpoint: EndpointId, hour: Hour) -> Result<usize> {
    tx.execute(&REMOVE_HOUR, values![endpoint, hour])
}

/// Removes some of the counters of an hour: there is one for every event type that was met in it. Returns how many, and
/// whether that was all.
pub(crate) fn remove_types(tx: &dyn Transaction, app: AppId, hour: Hour) -> Result<(usize, bool)> {
    let types: Vec<String> = tx.all(&TYPES_OF_HOUR, values![app, hour, REMOVED_AT_ONCE])?;
    for event_type in &types {
        tx.execute(&REMOVE_TYPE, values![app, hour, event_type])?;
    }
    Ok((types.len(), types.len() < REMOVED_AT_ONCE))
}

pub(crate) fn remove_of_application(tx: &dyn Transaction, app: AppId) -> Result<()> {
    tx.execute(&REMOVE_APPLICATION, values![app]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

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
