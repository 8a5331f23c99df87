//! Due times that a wrong clock has stored, and the newest moment.

use crate::operations::codes::Code;
use crate::operations::column::count;
use crate::operations::{Result, delivery, message};
use crate::sqlite::transaction::{SqliteTransaction, all, one};
use crate::{FutureDelivery, LanePosition, Seq, Trigger};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use rusqlite::Connection;
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

type EndpointOwner = (AppId, OrgId, String);

pub(super) fn not_due(
    connection: &Connection,
    after: LanePosition,
    limit: usize,
) -> Result<Vec<FutureDelivery>> {
    let tx = &SqliteTransaction(connection);
    let mut walk = connection.prepare_cached(NOT_DUE)?;
    let mut owner = connection.prepare_cached("SELECT app, org, policy FROM endpoint WHERE id = ?1")?;
    let mut attempt = connection.prepare_cached(LAST_TRIED)?;
    let mut owners: HashMap<EndpointId, Option<EndpointOwner>> = HashMap::new();
    let mut found = Vec::new();
    let turns: Vec<(Timestamp, Seq, EndpointId)> =
        all(&mut walk, (after.due_at.millis(), after.seq.0, count(limit)))?;
    for (_, seq, endpoint) in turns {
        let Some(waiting) = delivery::waiting(tx, seq)? else { continue };
        let known = match owners.get(&endpoint) {
            Some(known) => known.clone(),
            None => {
                let read: Option<EndpointOwner> = one(&mut owner, (endpoint.as_bytes(),))?;
                owners.insert(endpoint, read.clone());
                read
            }
        };
        let Some((app, org, policy)) = known else { continue };
        let (mut deliver_at, mut tried_at) = (None, None);
        if waiting.attempts == 0 {
            deliver_at = message::deliver_at(tx, app, waiting.message)?;
        } else {
            let of = (waiting.message.as_bytes(), seq.0, Trigger::Manual.code());
            tried_at = one(&mut attempt, of)?;
        }
        found.push(FutureDelivery { waiting, endpoint, app, org, policy, deliver_at, tried_at });
    }
    Ok(found)
}

const LAST_MESSAGE: &str = "SELECT created_at FROM message ORDER BY rowid DESC LIMIT 1";
const LAST_ATTEMPT: &str = "SELECT started_at FROM attempt ORDER BY rowid DESC LIMIT 1";

/// By the order in which rows were written: a clock that was ahead once does not count for ever.
pub(in crate::sqlite) fn newest_moment(connection: &Connection) -> Result<Option<Timestamp>> {
    let mut newest = None;
    for statement in [LAST_MESSAGE, LAST_ATTEMPT] {
        let mut last = connection.prepare_cached(statement)?;
        newest = newest.max(one(&mut last, ())?);
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
