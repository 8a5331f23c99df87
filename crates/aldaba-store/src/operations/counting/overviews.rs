//! Numbers for pages, from counters and from indexes.

use crate::operations::column::{Columns, FromRow};
use crate::operations::counters::COLUMNS;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, application};
use crate::{
    ANSWER_CLASSES, AttemptCounts, DeadLetterGroup, DeadLetterGroups, DeadLetterOf, ENDPOINT_MILLIS,
    EndpointCounts, Hour,
};
use aldaba_delivery::{AppId, EndpointId, OrgId, Reason};
use std::collections::BTreeMap;

/// The columns of an endpoint's minutes that pages show.
const SHOWN: usize = 2 + ENDPOINT_MILLIS.len() + 1 + ANSWER_CLASSES;

statements! {
    ENDPOINT_HOURS = endpoint_hours_text();
    APPLICATION_HOURS = "SELECT hour, CAST(sum(attempts) AS BIGINT), CAST(sum(successes) AS BIGINT) FROM application_hour
        WHERE app = ?1 AND hour BETWEEN ?2 AND ?3 GROUP BY hour ORDER BY hour";
    GIVEN_UP = "SELECT app, id FROM endpoint
        WHERE health_status >= 1 AND health_status <= 2 AND deleted = 0 AND org = ?1 LIMIT ?2";
    DEAD_OF_ORGANIZATION = newest_dead("org");
    DEAD_OF_APPLICATION = newest_dead("app");
    DEAD = "SELECT count(*) FROM (SELECT seq FROM dead_letter WHERE app = ?1 LIMIT ?2) AS dead";
    WAITING = "SELECT count(*) FROM (SELECT seq FROM delivery WHERE state = 0 AND endpoint = ?1 LIMIT ?2) AS waiting";
}

fn shown_columns() -> Vec<&'static str> {
    let is_shown = |column: &&str| {
        ["attempts", "successes", "slower", "no_answer"].contains(column)
            || column.starts_with("within_")
            || column.starts_with("status_")
    };
    COLUMNS.into_iter().filter(is_shown).collect()
}

fn endpoint_hours_text() -> String {
    let sums: Vec<_> =
        shown_columns().iter().map(|column| format!("CAST(sum({column}) AS BIGINT)")).collect();
    format!(
        "SELECT minute / 60, {} FROM endpoint_minute WHERE endpoint = ?1 AND minute >= ?2 AND minute < ?3
         GROUP BY minute / 60 ORDER BY minute / 60",
        sums.join(", ")
    )
}

fn newest_dead(column: &str) -> String {
    format!(
        "SELECT app, endpoint, reason, count(*) FROM (
             SELECT app, endpoint, reason FROM dead_letter WHERE {column} = ?1 ORDER BY settled_at DESC LIMIT ?2
         ) AS newest GROUP BY app, endpoint, reason"
    )
}

impl FromRow for EndpointCounts {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let mut numbers = [0; SHOWN];
        for number in &mut numbers {
            *number = columns.take()?;
        }
        let mut counts = Self { attempts: numbers[0], successes: numbers[1], ..Self::default() };
        let (by_time, by_answer) = numbers[2..].split_at(counts.by_time.len());
        counts.by_time.copy_from_slice(by_time);
        counts.by_answer.copy_from_slice(by_answer);
        Ok(counts)
    }
}

pub(crate) fn endpoint_hours(
    reading: &dyn Reading,
    endpoint: EndpointId,
    first: Hour,
    last: Hour,
) -> Result<Vec<(Hour, EndpointCounts)>> {
    let minute = |hour: Hour| hour.0.saturating_mul(60);
    reading.all(&ENDPOINT_HOURS, values![endpoint, minute(first), minute(last.next())])
}

pub(crate) fn application_hours(
    reading: &dyn Reading,
    apps: &[AppId],
    first: Hour,
    last: Hour,
) -> Result<Vec<(AppId, Hour, AttemptCounts)>> {
    let mut hours = Vec::new();
    for app in apps {
        let found: Vec<(Hour, AttemptCounts)> = reading.all(&APPLICATION_HOURS, values![app, first, last])?;
        hours.extend(found.into_iter().map(|(hour, counts)| (*app, hour, counts)));
    }
    Ok(hours)
}

pub(crate) fn given_up_endpoints(
    reading: &dyn Reading,
    org: OrgId,
    limit: usize,
) -> Result<Vec<(AppId, EndpointId)>> {
    reading.all(&GIVEN_UP, values![org, limit])
}

/// What a deleted application leaves in the dead letter is not counted.
pub(crate) fn dead_letter_groups(
    reading: &dyn Reading,
    of: DeadLetterOf,
    most: usize,
) -> Result<DeadLetterGroups> {
    let found: Vec<(AppId, EndpointId, Reason, u64)> = match of {
        DeadLetterOf::Organization(org) => reading.all(&DEAD_OF_ORGANIZATION, values![org, most + 1])?,
        DeadLetterOf::Application(app) => reading.all(&DEAD_OF_APPLICATION, values![app, most + 1])?,
    };
    let counted: u64 = found.iter().map(|(.., deliveries)| *deliveries).sum();
    let mut existing = BTreeMap::new();
    let mut groups = Vec::with_capacity(found.len());
    for (app, endpoint, reason, deliveries) in found {
        let exists = match (of, existing.get(&app)) {
            (DeadLetterOf::Application(_), _) => true,
            (_, Some(exists)) => *exists,
            (DeadLetterOf::Organization(org), None) => {
                let exists = application::exists(reading, app, org)?;
                existing.insert(app, exists);
                exists
            }
        };
        if exists {
            groups.push(DeadLetterGroup { app, endpoint, reason, deliveries });
        }
    }
    Ok(DeadLetterGroups { groups, more: counted > most as u64 })
}

pub(crate) fn dead_counts(reading: &dyn Reading, apps: &[AppId], most: usize) -> Result<Vec<u64>> {
    let count = |app: &AppId| Ok(u64::try_from(reading.number(&DEAD, values![app, most])?).unwrap_or(0));
    apps.iter().map(count).collect()
}

pub(crate) fn waiting_counts(
    reading: &dyn Reading,
    endpoints: &[EndpointId],
    most: usize,
) -> Result<Vec<u64>> {
    let count = |endpoint: &EndpointId| {
        Ok(u64::try_from(reading.number(&WAITING, values![endpoint, most])?).unwrap_or(0))
    };
    endpoints.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_come_in_the_order_in_which_they_are_read() {
        let columns = shown_columns();
        assert_eq!(columns.len(), SHOWN);
        assert_eq!(columns[..2], ["attempts", "successes"]);
        for (column, bound) in columns[2..].iter().zip(ENDPOINT_MILLIS) {
            assert_eq!(*column, format!("within_{bound}"));
        }
        assert_eq!(columns[SHOWN - ANSWER_CLASSES - 1], "slower");
        assert_eq!(columns[SHOWN - ANSWER_CLASSES..][..2], ["no_answer", "status_1xx"]);
    }
}
