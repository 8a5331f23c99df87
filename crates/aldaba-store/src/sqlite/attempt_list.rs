//! Lists of attempts: of an endpoint, of a message, of a delivery.

use super::message_list::Kind;
use super::monotonic::Slice;
use super::rows::{self, id};
use super::walk::{Direction, Walk};
use crate::{Attempt, AttemptFilter, AttemptScope, AttemptsQuery, Count, Found, MessageFilter, Order, Seq};
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};

/// What the index of unusual attempts has: the words of the schema, by which SQLite knows that it may use it.
const UNUSUAL: &str = "(success = 0 OR status_code < 200 OR status_code > 299)";

pub(super) fn attempts(
    connection: &Connection,
    slice: &Slice<'_>,
    query: &AttemptsQuery,
) -> rusqlite::Result<Found<Attempt, AttemptId>> {
    let columns = if query.responses { rows::ATTEMPT } else { rows::BARE_ATTEMPT };
    let mut whole = connection.prepare_cached(&format!("SELECT {columns} FROM attempt WHERE rowid = ?1"))?;
    walk(connection, slice, query, |rowid, _| {
        let attempt = whole.query_row((rowid,), rows::attempt)?;
        Ok(query.part.within.includes(attempt.started_at).then_some(attempt))
    })
}

/// The index has the moments of attempts roughly, in their ids. Only close to a bound is more of them read.
pub(super) fn count(
    connection: &Connection,
    slice: &Slice<'_>,
    query: &AttemptsQuery,
) -> rusqlite::Result<Count> {
    let within = query.part.within;
    let mut moment = connection.prepare_cached("SELECT started_at FROM attempt WHERE rowid = ?1")?;
    let found = walk(connection, slice, query, |rowid, id| {
        let (earliest, latest) = id.made_between();
        let inside = within.includes(earliest) && within.includes(latest)
            || within.includes(moment.query_row((rowid,), |row| rows::moment(row, 0))?);
        Ok(inside.then_some(()))
    })?;
    let counted = found.items.len();
    Ok(Count { counted: counted as u64, more: found.stopped.is_some() || counted >= query.part.page.limit })
}

fn walk<T>(
    connection: &Connection,
    slice: &Slice<'_>,
    query: &AttemptsQuery,
    mut read: impl FnMut(i64, AttemptId) -> rusqlite::Result<Option<T>>,
) -> rusqlite::Result<Found<T, AttemptId>> {
    let part = &query.part;
    let (lowest, highest) = part.bounds();
    let mut statement = connection.prepare_cached(&statement(query.scope, &query.filter, part.order))?;
    let bounds = (lowest.as_bytes(), highest.as_bytes());
    let mut rows = match query.scope {
        AttemptScope::Endpoint(endpoint) => statement.query((endpoint.as_bytes(), bounds.0, bounds.1))?,
        AttemptScope::Message(message) => statement.query((message.as_bytes(), bounds.0, bounds.1))?,
        AttemptScope::Delivery(message, Seq(seq)) => {
            statement.query((message.as_bytes(), bounds.0, bounds.1, seq))?
        }
    };
    let mut sieve = Sieve::new(connection, &query.filter)?;
    let mut walk = Walk::new(part, slice);
    while let Some(row) = rows.next()? {
        let (rowid, attempt) = (row.get(0)?, id(row, 1)?);
        if !walk.goes_on(attempt) {
            break;
        }
        if sieve.lets_through(row, rowid, query.scope)?
            && let Some(item) = read(rowid, attempt)?
        {
            walk.find(item);
        }
    }
    Ok(walk.end())
}

/// What of an attempt a filter looks at.
const FACTS: &str = "success, status_code, endpoint, message";

/// Tells whether an attempt is a wanted one.
struct Sieve<'a> {
    filter: &'a AttemptFilter,
    attempt: CachedStatement<'a>,
    messages: Option<Messages<'a>>,
}

impl<'a> Sieve<'a> {
    fn new(connection: &'a Connection, filter: &'a AttemptFilter) -> rusqlite::Result<Self> {
        let of_message = filter.message.as_ref();
        Ok(Self {
            filter,
            attempt: connection.prepare_cached(&format!("SELECT {FACTS} FROM attempt WHERE rowid = ?1"))?,
            messages: of_message.map(|(app, kind)| Messages::new(connection, *app, kind)).transpose()?,
        })
    }

    fn lets_through(&mut self, row: &Row<'_>, rowid: i64, scope: AttemptScope) -> rusqlite::Result<bool> {
        if self.filter.wants_all() {
            return Ok(true);
        }
        let (fits, message) = match scope {
            // It was sorted by the index alone; the rest is read now.
            AttemptScope::Message(_) => self.attempt.query_row((rowid,), |row| facts(self.filter, row, 0))?,
            AttemptScope::Endpoint(_) | AttemptScope::Delivery(..) => facts(self.filter, row, 2)?,
        };
        match &mut self.messages {
            Some(messages) if fits => messages.fit(message),
            _ => Ok(fits),
        }
    }
}

/// Whether an attempt alone is wanted, and its message. [`FACTS`] begin with that column.
fn facts(filter: &AttemptFilter, row: &Row<'_>, first: usize) -> rusqlite::Result<(bool, MessageId)> {
    let endpoint: EndpointId = id(row, first + 2)?;
    Ok((filter.wants(row.get(first)?, row.get(first + 1)?, endpoint), id(row, first + 3)?))
}

/// The same of its message. Attempts of a message often follow each other, so that the last answer is kept.
struct Messages<'a> {
    app: AppId,
    kind: Kind<'a>,
    last: Option<(MessageId, bool)>,
}

impl<'a> Messages<'a> {
    fn new(connection: &'a Connection, app: AppId, filter: &'a MessageFilter) -> rusqlite::Result<Self> {
        Ok(Self { app, kind: Kind::new(connection, filter)?, last: None })
    }

    fn fit(&mut self, message: MessageId) -> rusqlite::Result<bool> {
        if let Some((_, fits)) = self.last.filter(|(last, _)| *last == message) {
            return Ok(fits);
        }
        let fits = self.kind.message_fits(self.app, message)?;
        self.last = Some((message, fits));
        Ok(fits)
    }
}

/// The attempts of a message are sorted, from the index alone; all others come in their order.
fn statement(scope: AttemptScope, filter: &AttemptFilter, order: Order) -> String {
    let Direction { word, .. } = Direction::of(order);
    let (index, of) = match scope {
        AttemptScope::Endpoint(_) if filter.wants_only_unusual() => {
            ("attempt_unusual", format!("{UNUSUAL} AND endpoint = ?1"))
        }
        AttemptScope::Endpoint(_) => ("attempt_endpoint", "endpoint = ?1".to_owned()),
        AttemptScope::Message(_) => ("attempt_message", "message = ?1".to_owned()),
        AttemptScope::Delivery(..) => ("attempt_message", "message = ?1 AND seq = ?4".to_owned()),
    };
    let facts = match scope {
        AttemptScope::Endpoint(_) | AttemptScope::Delivery(..) if !filter.wants_all() => format!(", {FACTS}"),
        _ => String::new(),
    };
    format!(
        "SELECT rowid, id{facts} FROM attempt INDEXED BY {index} WHERE {of} AND id > ?2 AND id < ?3 ORDER BY id {word}"
    )
}

const ONE: &str = "rowid FROM attempt INDEXED BY attempt_message WHERE message = ?1 AND id = ?2";

pub(super) fn one(
    connection: &Connection,
    message: MessageId,
    attempt: AttemptId,
) -> rusqlite::Result<Option<Attempt>> {
    connection
        .prepare_cached(&format!("SELECT {} FROM attempt WHERE rowid = (SELECT {ONE})", rows::ATTEMPT))?
        .query_row((message.as_bytes(), attempt.as_bytes()), rows::attempt)
        .optional()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn attempts_are_walked_in_an_index_from_a_place_in_it() {
        let (endpoint, message) = (EndpointId::from_bytes([0; 20]), MessageId::from_bytes([0; 20]));
        let all = AttemptFilter::default();
        let failed = AttemptFilter { success: Some(false), ..AttemptFilter::default() };
        for order in [Order::Ascending, Order::Descending] {
            assert_eq!(
                plan(&statement(AttemptScope::Endpoint(endpoint), &all, order)),
                "SEARCH attempt USING COVERING INDEX attempt_endpoint (endpoint=? AND id>? AND id<?)"
            );
            assert_eq!(
                plan(&statement(AttemptScope::Endpoint(endpoint), &failed, order)),
                "SEARCH attempt USING INDEX attempt_unusual (endpoint=? AND id>? AND id<?)"
            );
            assert_eq!(
                plan(&statement(AttemptScope::Delivery(message, Seq(1)), &all, order)),
                "SEARCH attempt USING COVERING INDEX attempt_message (message=? AND seq=? AND id>? AND id<?)"
            );
            assert_eq!(
                plan(&statement(AttemptScope::Message(message), &all, order)),
                "SEARCH attempt USING COVERING INDEX attempt_message (message=?); USE TEMP B-TREE FOR ORDER BY"
            );
        }
        assert_eq!(
            plan(&format!("SELECT {ONE}")),
            "SEARCH attempt USING COVERING INDEX attempt_message (message=?)"
        );
    }
}
