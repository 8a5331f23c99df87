//! Lists of messages: of an application, and of an endpoint. Both walk the application's messages by their
//! index, from a place in it.

use super::history;
use super::monotonic::Slice;
use super::rows::{self, id};
use super::source;
use super::source_states;
use super::walk::{Direction, Walk};
use crate::{
    DeliveryStatus, EndpointMessage, EndpointMessagesQuery, Found, Message, MessageFilter, MessagesQuery,
    Order, Part, Payloads, SourceEvent, SourceEventsQuery,
};
use aldaba_delivery::{AppId, MessageId};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};

pub(super) fn messages(
    connection: &Connection,
    slice: &Slice<'_>,
    query: &MessagesQuery,
) -> rusqlite::Result<Found<Message, MessageId>> {
    let list = List { connection, app: query.app, filter: &query.filter, payloads: query.payloads };
    list.walk(&query.part, slice, |_, _| Ok(Some(())), |message, ()| message)
}

/// One step looks at one message, and at its deliveries until it has come to that of the endpoint.
pub(super) fn of_endpoint(
    connection: &Connection,
    slice: &Slice<'_>,
    query: &EndpointMessagesQuery,
) -> rusqlite::Result<Found<EndpointMessage, MessageId>> {
    let list = List { connection, app: query.app, filter: &query.filter, payloads: query.payloads };
    let mut rounds = connection.prepare_cached(&rounds_statement())?;
    let newest = |message: MessageId, looked_at: &mut usize| {
        let mut rounds = rounds.query((message.as_bytes(),))?;
        while let Some(row) = rounds.next()? {
            *looked_at += 1;
            if id::<_>(row, 1)? == query.endpoint {
                let newest: DeliveryStatus = rows::delivery(row)?;
                return Ok(Some(newest).filter(|delivery| query.wants(delivery)));
            }
        }
        Ok(None)
    };
    list.walk(&query.part, slice, newest, |message, delivery| EndpointMessage { message, delivery })
}

/// One step looks at one message and all its deliveries.
pub(super) fn of_source(
    connection: &Connection,
    slice: &Slice<'_>,
    query: &SourceEventsQuery,
) -> rusqlite::Result<Found<SourceEvent, MessageId>> {
    let filter = MessageFilter::default();
    // What waits now may be dead a moment later: all of it is about one moment.
    let connection = &*connection.unchecked_transaction()?;
    let list = List { connection, app: query.app, filter: &filter, payloads: Payloads::Without };
    let wanted = |message: MessageId, looked_at: &mut usize| {
        let rounds = history::deliveries(connection, message)?;
        *looked_at += rounds.len();
        let newest = SourceEvent::newest(rounds, |endpoint| source::is_there(connection, endpoint))?;
        if !query.wants(&newest) {
            return Ok(None);
        }
        source::views(connection, query.app, newest).map(Some)
    };
    let event = |message, (deliveries, deleted)| SourceEvent { message, deliveries, deleted };
    match source_states::few(connection, query)? {
        Some(few) => list.walk_along(few.into_iter().map(Ok), &query.part, slice, wanted, event),
        None => list.walk(&query.part, slice, wanted, event),
    }
}

pub(super) fn bare(
    connection: &Connection,
    app: AppId,
    messages: &[MessageId],
) -> rusqlite::Result<Vec<Message>> {
    let select = format!("SELECT {} FROM message WHERE app = ?1 AND id = ?2", rows::BARE_MESSAGE);
    let mut find = connection.prepare_cached(&select)?;
    let mut message =
        |id: &MessageId| find.query_row((app.as_bytes(), id.as_bytes()), rows::message).optional();
    messages.iter().filter_map(|id| message(id).transpose()).collect()
}

struct List<'a> {
    connection: &'a Connection,
    app: AppId,
    filter: &'a MessageFilter,
    payloads: Payloads,
}

impl List<'_> {
    /// The messages for which `look` finds something, with that. It says how many rows it has looked at.
    fn walk<L, T>(
        &self,
        part: &Part<MessageId>,
        slice: &Slice<'_>,
        look: impl FnMut(MessageId, &mut usize) -> rusqlite::Result<Option<L>>,
        item: impl Fn(Message, L) -> T,
    ) -> rusqlite::Result<Found<T, MessageId>> {
        let mut messages = self.connection.prepare_cached(&statement(part.order))?;
        let (lowest, highest) = part.bounds();
        let bounds = (self.app.as_bytes(), lowest.as_bytes(), highest.as_bytes());
        let along = messages.query_map(bounds, |row| Ok((row.get(0)?, id(row, 1)?)))?;
        self.walk_along(along, part, slice, look, item)
    }

    /// The same along some of its messages, with the numbers of their rows, that lie in this part and in its order.
    fn walk_along<L, T>(
        &self,
        along: impl Iterator<Item = rusqlite::Result<(i64, MessageId)>>,
        part: &Part<MessageId>,
        slice: &Slice<'_>,
        mut look: impl FnMut(MessageId, &mut usize) -> rusqlite::Result<Option<L>>,
        item: impl Fn(Message, L) -> T,
    ) -> rusqlite::Result<Found<T, MessageId>> {
        let mut kind = Kind::new(self.connection, self.filter)?;
        let mut whole = self.connection.prepare_cached(&message_statement(self.payloads))?;
        let mut walk = Walk::new(part, slice);
        let mut bytes = 0;
        for row in along {
            let (rowid, message) = row?;
            if !walk.goes_on(message) {
                break;
            }
            if !kind.fits(rowid)? {
                continue;
            }
            let mut looked_at = 0;
            let looked = look(message, &mut looked_at)?;
            walk.worked(looked_at);
            let Some(looked) = looked else { continue };
            let message = whole.query_row((rowid,), rows::message)?;
            if part.within.includes(message.created_at) {
                bytes += message.content.bytes();
                walk.find(item(message, looked));
                if matches!(self.payloads, Payloads::UpTo(most) if bytes > most) {
                    walk.give_up();
                }
            }
        }
        Ok(walk.end())
    }
}

/// Tells whether a message is of the wanted kind, and reads no more of it than that takes.
pub(super) struct Kind<'a> {
    filter: &'a MessageFilter,
    by_rowid: CachedStatement<'a>,
    by_id: CachedStatement<'a>,
}

impl<'a> Kind<'a> {
    pub(super) fn new(connection: &'a Connection, filter: &'a MessageFilter) -> rusqlite::Result<Self> {
        // Tags lie behind the payload, and are read only for who asks for them.
        let tags = if filter.tag.is_some() { "tags" } else { "''" };
        let select = |which: &str| format!("SELECT event_type, channels, {tags} FROM message WHERE {which}");
        Ok(Self {
            filter,
            by_rowid: connection.prepare_cached(&select("rowid = ?1"))?,
            by_id: connection.prepare_cached(&select("app = ?1 AND id = ?2"))?,
        })
    }

    fn fits(&mut self, rowid: i64) -> rusqlite::Result<bool> {
        if self.filter.wants_all() {
            return Ok(true);
        }
        self.by_rowid.query_row((rowid,), |row| is_wanted(self.filter, row))
    }

    /// One that is not kept any more fits nothing: nobody knows what it was.
    pub(super) fn message_fits(&mut self, app: AppId, message: MessageId) -> rusqlite::Result<bool> {
        let key = (app.as_bytes(), message.as_bytes());
        let fits = self.by_id.query_row(key, |row| is_wanted(self.filter, row)).optional()?;
        Ok(fits.unwrap_or(false))
    }
}

fn is_wanted(filter: &MessageFilter, row: &Row<'_>) -> rusqlite::Result<bool> {
    let (channels, tags) = match (&filter.channel, &filter.tag) {
        (None, None) => (Vec::new(), Vec::new()),
        _ => (rows::list(row, 1)?, rows::list(row, 2)?),
    };
    Ok(filter.wants(row.get_ref(0)?.as_str()?, &channels, &tags))
}

fn statement(order: Order) -> String {
    let Direction { word, .. } = Direction::of(order);
    format!(
        "SELECT rowid, id FROM message INDEXED BY message_app WHERE app = ?1 AND id > ?2 AND id < ?3
         ORDER BY id {word}"
    )
}

fn message_statement(payloads: Payloads) -> String {
    let columns = match payloads {
        Payloads::Without => rows::BARE_MESSAGE,
        Payloads::UpTo(_) => rows::MESSAGE,
    };
    format!("SELECT {columns} FROM message WHERE rowid = ?1")
}

fn rounds_statement() -> String {
    format!(
        "SELECT {} FROM delivery INDEXED BY delivery_message WHERE message = ?1 ORDER BY seq DESC",
        rows::DELIVERY
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn messages_are_walked_in_their_index_alone_from_a_place_in_it() {
        for order in [Order::Ascending, Order::Descending] {
            assert_eq!(
                plan(&statement(order)),
                "SEARCH message USING COVERING INDEX message_app (app=? AND id>? AND id<?)"
            );
        }
        assert_eq!(plan(&rounds_statement()), "SEARCH delivery USING INDEX delivery_message (message=?)");
    }
}
