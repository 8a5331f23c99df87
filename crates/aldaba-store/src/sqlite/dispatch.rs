//! What was dispatched, read back. Each state has its own stretch of the index; a list of all merges them.

use super::codes::{Code, State};
use super::deliveries::view;
use super::rows::{self, count, id};
use super::walk::Direction;
use crate::{DeliveryStatus, Dispatch, DispatchState, DispatchesQuery, Found, Order};
use aldaba_delivery::{AppId, MessageId};
use rusqlite::{Connection, OptionalExtension, Row};

/// In one transaction: what changes its state meanwhile is in the list once.
pub(super) fn list(
    connection: &Connection,
    query: &DispatchesQuery,
) -> rusqlite::Result<Found<Dispatch, MessageId>> {
    let connection = &*connection.unchecked_transaction()?;
    let (messages, stopped) = match &query.job {
        Some(job) => of_job(connection, query, job)?,
        None => by_state(connection, query)?,
    };
    let (mut found, mut bytes) = (Found { stopped, ..Found::default() }, 0);
    for message in messages {
        if found.items.len() >= query.part.page.limit {
            break;
        }
        if let Some(dispatch) = one(connection, query.app, message)?
            && query.wants(dispatch.delivery.status.state)
            && query.part.within.includes(dispatch.message.created_at)
        {
            bytes += dispatch.message.content.bytes();
            found.items.push(dispatch);
            if bytes > query.bytes {
                found.stopped = Some(message);
                break;
            }
        }
    }
    if found.items.len() >= query.part.page.limit {
        found.stopped = None;
    }
    Ok(found)
}

/// Bounds know their moments roughly: so many more than a page are read that those beside it do not empty it.
const BESIDE: usize = 64;

/// With where to go on, if there may be more than were read.
type Read = (Vec<MessageId>, Option<MessageId>);

fn by_state(connection: &Connection, query: &DispatchesQuery) -> rusqlite::Result<Read> {
    let states: &[State] = match query.state {
        None => &[State::Waiting, State::Delivered, State::Dead, State::Skipped],
        Some(DispatchState::Pending) => &[State::Waiting],
        Some(DispatchState::Delivered) => &[State::Delivered],
        Some(DispatchState::Failed) => &[State::Dead, State::Skipped],
    };
    let mut find = connection.prepare_cached(&statement(query.part.order))?;
    let (lowest, highest) = query.part.bounds();
    let most = query.part.page.limit.saturating_add(BESIDE);
    let order = |a: &MessageId, b: &MessageId| match query.part.order {
        Order::Ascending => a.cmp(b),
        Order::Descending => b.cmp(a),
    };
    let (mut messages, mut stopped) = (Vec::new(), None);
    for state in states {
        let key = (
            query.app.as_bytes(),
            query.how.code(),
            state.code(),
            lowest.as_bytes(),
            highest.as_bytes(),
            count(most),
        );
        let of_state = find.query_map(key, |row| id(row, 0))?.collect::<Result<Vec<MessageId>, _>>()?;
        // Beyond the last of it there may be more of this state between those of others.
        if let Some(last) = of_state.last().filter(|_| of_state.len() >= most) {
            stopped = Some(stopped.map_or(*last, |before| std::cmp::min_by(before, *last, order)));
        }
        messages.extend(of_state);
    }
    messages.sort_unstable_by(order);
    messages.dedup();
    if let Some(stopped) = &stopped {
        messages.retain(|message| order(message, stopped).is_le());
    }
    Ok((messages, stopped))
}

fn of_job(connection: &Connection, query: &DispatchesQuery, job: &str) -> rusqlite::Result<Read> {
    let (lowest, highest) = query.part.bounds();
    let walk = query.part.walk;
    let messages: Vec<MessageId> = connection
        .prepare_cached(&job_statement(query.part.order))?
        .query_map((query.app.as_bytes(), job, lowest.as_bytes(), highest.as_bytes(), count(walk)), |row| {
            id(row, 0)
        })?
        .collect::<Result<_, _>>()?;
    let stopped = messages.last().copied().filter(|_| messages.len() >= walk);
    Ok((messages, stopped))
}

pub(super) fn one(
    connection: &Connection,
    app: AppId,
    message: MessageId,
) -> rusqlite::Result<Option<Dispatch>> {
    let mut newest = connection.prepare_cached(&newest_statement())?;
    let Some(status): Option<DeliveryStatus> =
        newest.query_row((message.as_bytes(), app.as_bytes()), rows::delivery).optional()?
    else {
        return Ok(None);
    };
    let mut address = connection.prepare_cached("SELECT url, policy FROM endpoint WHERE id = ?1")?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let address = address.query_row((status.endpoint.as_bytes(),), read).optional()?;
    let select = format!("SELECT {} FROM message WHERE app = ?1 AND id = ?2", rows::MESSAGE);
    let mut whole = connection.prepare_cached(&select)?;
    let whole = whole.query_row((app.as_bytes(), message.as_bytes()), rows::message).optional()?;
    let (Some((url, policy)), Some(message)) = (address, whole) else { return Ok(None) };
    Ok(Some(Dispatch { delivery: view(connection, app, status)?, message, url, policy }))
}

fn statement(order: Order) -> String {
    let Direction { word, .. } = Direction::of(order);
    format!(
        "SELECT message FROM delivery INDEXED BY delivery_dispatched
         WHERE dispatched > 0 AND app = ?1 AND dispatched = ?2 AND state = ?3 AND message > ?4 AND message < ?5
         ORDER BY message {word} LIMIT ?6"
    )
}

fn job_statement(order: Order) -> String {
    let Direction { word, .. } = Direction::of(order);
    format!(
        "SELECT id FROM message INDEXED BY message_job
         WHERE app = ?1 AND job = ?2 AND job IS NOT NULL AND id > ?3 AND id < ?4 ORDER BY id {word} LIMIT ?5"
    )
}

fn newest_statement() -> String {
    format!(
        "SELECT {} FROM delivery INDEXED BY delivery_message
         WHERE message = ?1 AND dispatched > 0 AND app = ?2 ORDER BY seq DESC LIMIT 1",
        rows::DELIVERY
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn every_list_is_a_search_in_an_index_without_sorting() {
        let both = [Order::Ascending, Order::Descending];
        let statements = both.map(statement).into_iter().chain(both.map(job_statement));
        for statement in statements.chain([newest_statement()]) {
            let plan = plan(&statement);
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{statement}\n{plan}");
        }
    }
}
