//! Events of a source by their states. A state follows from deliveries, and those that wait or are dead are in indexes of
//! their endpoints: where there are few, nothing else is looked at, however many events there are.

use super::codes::{Code, State};
use super::rows::{count, id};
use crate::{EventState, Order, SourceEventsQuery};
use aldaba_delivery::{AppId, EndpointId, MessageId};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeSet;

/// Endpoints and deliveries that are looked at. Where there are more, so many events are in the state that they are found
/// among all of them.
const MOST: usize = 2000;

const ENDPOINTS: &str = "SELECT id FROM endpoint INDEXED BY endpoint_walk WHERE app = ?1 LIMIT ?2";
const WAITING: &str =
    "SELECT message, state FROM delivery INDEXED BY delivery_lane WHERE endpoint = ?1 AND state = 0 LIMIT ?2";
/// With those that were skipped.
const DEAD: &str = "SELECT message, state FROM delivery INDEXED BY delivery_dead WHERE endpoint = ?1 AND state >= 2 LIMIT ?2";

/// All events of a part of the list that may be in the wanted state, with the numbers of their rows, in its order. `None`:
/// they may be too many, or there is no telling.
pub(super) fn few(
    connection: &Connection,
    query: &SourceEventsQuery,
) -> rusqlite::Result<Option<Vec<(i64, MessageId)>>> {
    let (wanted, deliveries) = match query.state {
        Some(EventState::Processing) => (State::Waiting, WAITING),
        Some(EventState::Failed) => (State::Dead, DEAD),
        Some(EventState::Processed) | None => return Ok(None),
    };
    let most = MOST.min(query.part.walk);
    let Some(endpoints) = endpoints(connection, query.app, most)? else { return Ok(None) };
    let (lowest, highest) = query.part.bounds();
    let (mut looked_at, mut messages) = (endpoints.len(), BTreeSet::new());
    let mut find = connection.prepare_cached(deliveries)?;
    for endpoint in endpoints {
        let mut rows = find.query((endpoint.as_bytes(), count(most + 1)))?;
        while let Some(row) = rows.next()? {
            looked_at += 1;
            if looked_at > most {
                return Ok(None);
            }
            let message: MessageId = id(row, 0)?;
            if State::from_code(row.get(1)?)? == wanted && lowest < message && message < highest {
                messages.insert(message);
            }
        }
    }
    numbered(connection, query, messages).map(Some)
}

/// Deleted ones too: their deliveries count.
fn endpoints(connection: &Connection, app: AppId, most: usize) -> rusqlite::Result<Option<Vec<EndpointId>>> {
    let mut find = connection.prepare_cached(ENDPOINTS)?;
    let found = find.query_map((app.as_bytes(), count(most + 1)), |row| id(row, 0))?;
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    Ok((found.len() <= most).then_some(found))
}

/// What is not kept any more is left out.
fn numbered(
    connection: &Connection,
    query: &SourceEventsQuery,
    messages: BTreeSet<MessageId>,
) -> rusqlite::Result<Vec<(i64, MessageId)>> {
    let mut find = connection.prepare_cached("SELECT rowid FROM message WHERE app = ?1 AND id = ?2")?;
    let number = |row: &Row<'_>| row.get::<_, i64>(0);
    let mut found = Vec::with_capacity(messages.len());
    for message in messages {
        let row = find.query_row((query.app.as_bytes(), message.as_bytes()), number).optional()?;
        found.extend(row.map(|row| (row, message)));
    }
    if query.part.order == Order::Descending {
        found.reverse();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn what_waits_or_is_dead_is_found_in_indexes() {
        for (statement, index) in [
            (ENDPOINTS, "COVERING INDEX endpoint_walk (app=?)"),
            (WAITING, "INDEX delivery_lane (endpoint=?)"),
            (DEAD, "INDEX delivery_dead (endpoint=?)"),
        ] {
            assert_eq!(plan(statement).split(" USING ").nth(1), Some(index), "{}", plan(statement));
        }
    }
}
