//! Due times that a wrong clock has stored: found, and corrected.

use super::codes::Code;
use super::rows::{self, count, waiting_columns};
use crate::{Changed, NotDue, Rescheduled, Seq, Trigger, Turn, Waiting};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::HashMap;

/// Two searches, as in `lanes.rs`.
const NOT_DUE: &str = "
    SELECT due_at, seq, endpoint FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND due_at = ?1 AND seq > ?2
    UNION ALL
    SELECT due_at, seq, endpoint FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND due_at > ?1
    ORDER BY due_at, seq LIMIT ?3";

/// By the order in which rows were written: ids follow the clock, which may have been ahead.
const LAST_TRIED: &str = "
    SELECT started_at FROM attempt INDEXED BY attempt_message
    WHERE message = ?1 AND seq = ?2 AND made_by <> ?3 ORDER BY rowid DESC LIMIT 1";

type Owner = (AppId, OrgId, String);

pub(super) fn not_due(connection: &Connection, after: Turn, limit: usize) -> rusqlite::Result<Vec<NotDue>> {
    let snapshot = connection.unchecked_transaction()?;
    let mut walk = snapshot.prepare_cached(NOT_DUE)?;
    let mut delivery = snapshot.prepare_cached(concat!(
        "SELECT ",
        waiting_columns!(),
        " FROM delivery WHERE seq = ?1 AND state = 0"
    ))?;
    let mut owner = snapshot.prepare_cached("SELECT app, org, policy FROM endpoint WHERE id = ?1")?;
    let mut message = snapshot.prepare_cached("SELECT deliver_at FROM message WHERE app = ?1 AND id = ?2")?;
    let mut attempt = snapshot.prepare_cached(LAST_TRIED)?;
    let mut owners: HashMap<EndpointId, Option<Owner>> = HashMap::new();
    let mut found = Vec::new();
    let mut places = walk.query((after.due_at.millis(), after.seq.0, count(limit)))?;
    while let Some(row) = places.next()? {
        let (seq, endpoint): (i64, EndpointId) = (row.get(1)?, rows::id(row, 2)?);
        let Some(waiting) = delivery.query_row((seq,), rows::waiting).optional()? else { continue };
        let known = match owners.get(&endpoint) {
            Some(known) => known.clone(),
            None => {
                let read = |row: &Row<'_>| Ok((rows::id(row, 0)?, rows::id(row, 1)?, row.get(2)?));
                let read: Option<Owner> = owner.query_row((endpoint.as_bytes(),), read).optional()?;
                owners.insert(endpoint, read.clone());
                read
            }
        };
        let Some((app, org, policy)) = known else { continue };
        let (mut deliver_at, mut tried_at) = (None, None);
        if waiting.attempts == 0 {
            let key = (app.as_bytes(), waiting.message.as_bytes());
            deliver_at = message.query_row(key, |row| rows::moment_or_none(row, 0)).optional()?.flatten();
        } else {
            let key = (waiting.message.as_bytes(), seq, Trigger::Manual.code());
            tried_at = attempt.query_row(key, |row| rows::moment(row, 0)).optional()?;
        }
        found.push(NotDue { waiting, endpoint, app, org, policy, deliver_at, tried_at });
    }
    Ok(found)
}

pub(super) fn reschedule(connection: &Connection, deliveries: &[Rescheduled]) -> rusqlite::Result<Changed> {
    let mut update = connection.prepare_cached(
        "UPDATE delivery SET due_at = ?4, clock_start = ?5
         WHERE seq = ?1 AND state = 0 AND due_at = ?2 AND attempts = ?3",
    )?;
    for Rescheduled {
        was: Waiting { seq: Seq(seq), due_at: was, attempts, .. }, due_at, clock_start, ..
    } in deliveries
    {
        update.execute((seq, was.millis(), attempts, due_at.millis(), clock_start.millis()))?;
    }
    Ok(Changed::Done { removed: Vec::new() })
}

const LAST_MESSAGE: &str = "SELECT created_at FROM message ORDER BY rowid DESC LIMIT 1";
const LAST_ATTEMPT: &str = "SELECT started_at FROM attempt ORDER BY rowid DESC LIMIT 1";

/// By the order in which rows were written: a clock that was ahead once does not count for ever.
pub(super) fn newest_moment(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let mut newest = None;
    for statement in [LAST_MESSAGE, LAST_ATTEMPT] {
        let mut last = connection.prepare_cached(statement)?;
        newest = newest.max(last.query_row((), |row| rows::moment(row, 0)).optional()?);
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn what_is_not_due_is_walked_in_the_index_alone() {
        let plan = plan(NOT_DUE);
        assert!(plan.contains("COVERING INDEX delivery_due") && !plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn the_last_attempt_of_a_delivery_is_found_among_its_own() {
        let plan = plan(LAST_TRIED);
        assert!(plan.contains("INDEX attempt_message (message=? AND seq=?)"), "{plan}");
    }

    #[test]
    fn the_newest_rows_are_found_without_a_walk() {
        for statement in [LAST_MESSAGE, LAST_ATTEMPT] {
            assert!(!plan(statement).contains("TEMP B-TREE"), "{statement}");
        }
    }
}
