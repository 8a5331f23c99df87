//! Messages, and lists of them.

use crate::operations::column::{Columns, FromRow};
use crate::operations::keys::{self, KeyKind, UniqueKey};
use crate::operations::lists::{self, Looked};
use crate::operations::stored::{columns, columns_without, stored};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Slice, Transaction, delivery, endpoint, source, source_states};
use crate::{
    Changed, Content, DeliveryStatus, EndpointMessage, EndpointMessagesQuery, ListPage, ListRange, Message,
    MessageFilter, MessagesQuery, Payloads, ResourceKey, SourceEvent, SourceEventsQuery,
};
use aldaba_delivery::filter::FilterSet;
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};

stored! { Content { event_type, event_id, payload, version, sealed_headers } }

stored! { Message {
    id, app, content: [Content], expunged, channels, tags, headers, created_at, deliver_at, payload_until,
    only_for, job,
} }

/// What a list or a replay looks at, without the payload.
pub(crate) struct Facts {
    pub id: MessageId,
    pub created_at: Timestamp,
    pub event_type: String,
    pub channels: Vec<String>,
    /// Read only where they are asked for: they lie behind the payload.
    pub tags: Vec<String>,
}

impl FromRow for Facts {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (id, created_at) = columns.take()?;
        let (event_type, channels, tags): (_, _, Option<Vec<String>>) = columns.take()?;
        Ok(Self { id, created_at, event_type, channels, tags: tags.unwrap_or_default() })
    }
}

const KEY: &str = "app = ?1 AND id = ?2";
const WALK: &str = "FROM message WHERE app = ?1 AND id > ?2 AND id < ?3 ORDER BY id";

statements! {
    WHOLE = format!("SELECT {} FROM message WHERE {KEY}", columns::<Message>());
    BARE = format!(
        "SELECT {} FROM message WHERE {KEY}", columns_without::<Message>(&["payload", "sealed_headers"])
    );
    IDS[order] = format!("SELECT id {WALK} {} LIMIT ?4", order.word);
    FACTS[order] =
        format!("SELECT id, created_at, event_type, channels, NULL {WALK} {} LIMIT ?4", order.word);
    FACTS_WITH_TAGS[order] =
        format!("SELECT id, created_at, event_type, channels, tags {WALK} {} LIMIT ?4", order.word);
    ONE_FACTS = format!("SELECT id, created_at, event_type, channels, tags FROM message WHERE {KEY}");
    KIND = format!("SELECT event_type, created_at FROM message WHERE {KEY}");
    FILTERED = format!("SELECT payload, tags, headers FROM message WHERE {KEY}");
    ADDRESSEE = format!("SELECT only_for FROM message WHERE {KEY}");
    DELIVER_AT = format!("SELECT deliver_at FROM message WHERE {KEY}");
    HAS_CONTENT = format!("SELECT 1 FROM message WHERE {KEY} AND expunged = 0");
    EXISTS = format!("SELECT 1 FROM message WHERE {KEY}");
    OLDEST = "SELECT id FROM message WHERE app = ?1 ORDER BY id LIMIT 1";
    EXPUNGE = format!("UPDATE message SET payload = ?3, sealed_headers = NULL, expunged = 1
        WHERE {KEY} AND expunged = 0");
    EXPUNGE_OLD = format!("UPDATE message SET payload = ?3, sealed_headers = NULL, expunged = 1
        WHERE {KEY} AND expunged = 0 AND payload_until <= ?4
            AND NOT EXISTS (SELECT 1 FROM delivery WHERE message = ?2 AND state = 0)");
    ROUNDS = format!("SELECT {} FROM delivery WHERE message = ?1 ORDER BY seq DESC", delivery::COLUMNS);
}

/// By id first, then by event id.
pub(crate) fn find(reading: &dyn Reading, app: AppId, key: &ResourceKey) -> Result<Option<Message>> {
    find_by(reading, app, key, |id| reading.one(&WHOLE, values![app, id]))
}

/// The same without its payload.
pub(crate) fn find_bare(reading: &dyn Reading, app: AppId, key: &ResourceKey) -> Result<Option<Message>> {
    find_by(reading, app, key, |id| bare(reading, app, id))
}

fn find_by(
    reading: &dyn Reading,
    app: AppId,
    key: &ResourceKey,
    by_id: impl Fn(MessageId) -> Result<Option<Message>>,
) -> Result<Option<Message>> {
    if let Ok(id) = key.parse()
        && let Some(found) = by_id(id)?
    {
        return Ok(Some(found));
    }
    let key = UniqueKey { owner: app.as_bytes(), kind: KeyKind::EventId, key: key.as_bytes() };
    keys::find(reading, key)?.map_or(Ok(None), |id| by_id(MessageId::from_bytes(id)))
}

pub(crate) fn whole(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<Option<Message>> {
    reading.one(&WHOLE, values![app, message])
}

fn bare(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<Option<Message>> {
    reading.one(&BARE, values![app, message])
}

pub(crate) fn all_bare(reading: &dyn Reading, app: AppId, messages: &[MessageId]) -> Result<Vec<Message>> {
    messages.iter().filter_map(|message| bare(reading, app, *message).transpose()).collect()
}

/// The type of a message, and when it was accepted.
pub(crate) fn kind(
    reading: &dyn Reading,
    app: AppId,
    message: MessageId,
) -> Result<Option<(String, Timestamp)>> {
    reading.one(&KIND, values![app, message])
}

pub(crate) fn exists(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<bool> {
    reading.exists(&EXISTS, values![app, message])
}

/// Whether it is there with its payload.
pub(crate) fn has_content(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<bool> {
    reading.exists(&HAS_CONTENT, values![app, message])
}

/// Whether an endpoint's filter lets a message through.
pub(crate) fn passes(reading: &dyn Reading, app: AppId, facts: &Facts, filters: &FilterSet) -> Result<bool> {
    type Filtered = (Vec<u8>, Vec<String>, Vec<(String, String)>);
    let found: Option<Filtered> = reading.one(&FILTERED, values![app, facts.id])?;
    let Some((payload, tags, headers)) = found else { return Ok(false) };
    let facts = aldaba_delivery::filter::FilterInput {
        event_type: &facts.event_type,
        channels: &facts.channels,
        tags: &tags,
        headers: &headers,
        payload: &payload,
    };
    Ok(filters.run(facts).passes(0))
}

/// The one endpoint that a message is for, if there is one.
pub(crate) fn addressee(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<Option<EndpointId>> {
    Ok(reading.one::<Option<EndpointId>>(&ADDRESSEE, values![app, message])?.flatten())
}

pub(crate) fn deliver_at(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<Option<Timestamp>> {
    Ok(reading.one::<Option<Timestamp>>(&DELIVER_AT, values![app, message])?.flatten())
}

pub(crate) fn oldest(reading: &dyn Reading, app: AppId) -> Result<Option<MessageId>> {
    reading.one(&OLDEST, values![app])
}

pub(crate) fn expunge(tx: &dyn Transaction, app: AppId, message: MessageId) -> Result<Changed> {
    if tx.execute(&EXPUNGE, values![app, message, [0_u8; 0]])? > 0 {
        return Ok(Changed::done());
    }
    Ok(if exists(tx, app, message)? { Changed::Unchanged } else { Changed::NotFound })
}

/// Removes a payload whose time has come, unless something of it waits.
pub(crate) fn expunge_old(
    tx: &dyn Transaction,
    app: AppId,
    message: MessageId,
    now: Timestamp,
) -> Result<usize> {
    tx.execute(&EXPUNGE_OLD, values![app, message, [0_u8; 0], now])
}

pub(crate) fn list(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    query: &MessagesQuery,
) -> Result<ListPage<Message, MessageId>> {
    let list = List { reading, slice, app: query.app, filter: &query.filter, payloads: query.payloads };
    list.walk(&query.part, |_, _| Ok(Some(())), |message, ()| message)
}

/// Looks at one message after the other, and at its deliveries.
pub(crate) fn of_endpoint(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    query: &EndpointMessagesQuery,
) -> Result<ListPage<EndpointMessage, MessageId>> {
    let list = List { reading, slice, app: query.app, filter: &query.filter, payloads: query.payloads };
    let newest = |message: MessageId, looked: &mut Looked| {
        let rounds: Vec<DeliveryStatus> = reading.all(&ROUNDS, values![message])?;
        let newest = rounds.iter().position(|round| round.endpoint == query.endpoint);
        looked.rows += newest.map_or(rounds.len(), |place| place + 1);
        Ok(newest.map(|place| rounds[place].clone()).filter(|delivery| query.wants(delivery)))
    };
    list.walk(&query.part, newest, |message, delivery| EndpointMessage { message, delivery })
}

pub(crate) fn of_source(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    query: &SourceEventsQuery,
) -> Result<ListPage<SourceEvent, MessageId>> {
    let filter = MessageFilter::default();
    let list = List { reading, slice, app: query.app, filter: &filter, payloads: Payloads::Without };
    let wanted = |message: MessageId, looked: &mut Looked| {
        let rounds = delivery::of_message(reading, message)?;
        looked.rows += rounds.len();
        let newest = SourceEvent::newest(rounds, |endpoint| endpoint::is_there(reading, endpoint))?;
        if !query.wants(&newest) {
            return Ok(None);
        }
        source::views(reading, query.app, newest).map(Some)
    };
    let event = |message, (deliveries, deleted)| SourceEvent { message, deliveries, deleted };
    match source_states::few(reading, query)? {
        Some(few) => list.walk_along(&few, &query.part, wanted, event),
        None => list.walk(&query.part, wanted, event),
    }
}

/// A list of the messages of an application.
struct List<'a> {
    reading: &'a dyn Reading,
    slice: &'a Slice<'a>,
    app: AppId,
    filter: &'a MessageFilter,
    payloads: Payloads,
}

impl List<'_> {
    /// The messages for which `look` finds something, with that.
    fn walk<L, T>(
        &self,
        part: &ListRange<MessageId>,
        look: impl FnMut(MessageId, &mut Looked) -> Result<Option<L>>,
        item: impl Fn(Message, L) -> T,
    ) -> Result<ListPage<T, MessageId>> {
        let (app, filter) = (self.app, self.filter);
        if filter.wants_all() {
            let page = |low, high, rows| self.reading.all(IDS.by(part.order), values![app, low, high, rows]);
            return self.look_at(part, page, |message| *message, |_| true, look, item);
        }
        let statement = if filter.tag.is_some() { &FACTS_WITH_TAGS } else { &FACTS };
        let page = |low, high, rows| {
            self.reading.all::<Facts>(statement.by(part.order), values![app, low, high, rows])
        };
        let fits = |facts: &Facts| filter.wants(&facts.event_type, &facts.channels, &facts.tags);
        self.look_at(part, page, |facts| facts.id, fits, look, item)
    }

    /// The same along some of the messages, which are in the order of the list.
    fn walk_along<L, T>(
        &self,
        messages: &[MessageId],
        part: &ListRange<MessageId>,
        look: impl FnMut(MessageId, &mut Looked) -> Result<Option<L>>,
        item: impl Fn(Message, L) -> T,
    ) -> Result<ListPage<T, MessageId>> {
        let page = |low: MessageId, high: MessageId, rows: usize| {
            let inside = messages.iter().copied().filter(|message| low < *message && *message < high);
            Ok(inside.take(rows).collect())
        };
        self.look_at(part, page, |message| *message, |_| true, look, item)
    }

    fn look_at<I, L, T>(
        &self,
        part: &ListRange<MessageId>,
        page: impl FnMut(MessageId, MessageId, usize) -> Result<Vec<I>>,
        id: impl Fn(&I) -> MessageId,
        fits: impl Fn(&I) -> bool,
        mut look: impl FnMut(MessageId, &mut Looked) -> Result<Option<L>>,
        item: impl Fn(Message, L) -> T,
    ) -> Result<ListPage<T, MessageId>> {
        let whole = match self.payloads {
            Payloads::Without => &BARE,
            Payloads::UpTo(_) => &WHOLE,
        };
        let mut bytes = 0;
        lists::walk(part.into(), self.slice, page, &id, |row, looked| {
            let message = id(&row);
            if !fits(&row) {
                return Ok(None);
            }
            let Some(found) = look(message, looked)? else { return Ok(None) };
            let Some(message) = self.reading.one::<Message>(whole, values![self.app, message])? else {
                return Ok(None);
            };
            if !part.within.includes(message.created_at) {
                return Ok(None);
            }
            bytes += message.content.bytes();
            looked.ends_page = matches!(self.payloads, Payloads::UpTo(most) if bytes > most);
            Ok(Some(item(message, found)))
        })
    }
}

/// Tells whether the message of an attempt is of the wanted kind. One that is not kept any more fits nothing.
pub(crate) fn fits(
    reading: &dyn Reading,
    app: AppId,
    message: MessageId,
    filter: &MessageFilter,
) -> Result<bool> {
    let facts: Option<Facts> = reading.one(&ONE_FACTS, values![app, message])?;
    Ok(facts.is_some_and(|facts| filter.wants(&facts.event_type, &facts.channels, &facts.tags)))
}
