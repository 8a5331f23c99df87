//! Lists of messages and attempts. Nothing here is quick; it only has to be right.

use super::SimStore;
use super::disk::Disk;
use super::expunge::readable;
use aldaba_delivery::{AppId, AttemptId, Id, IdKind, MessageId, Timestamp};
use aldaba_store::{
    Attempt, AttemptScope, AttemptsQuery, Count, DeliveryStatus, EndpointMessage, EndpointMessagesQuery,
    Found, History, Key, Message, MessageFilter, MessagesQuery, Order, Part, Payloads, Read,
};
use bytes::Bytes;

/// Walks items in the order of their ids; `wanted` makes of one what is listed, with its bytes.
pub(super) fn walk<'a, T: 'a, K: IdKind, U>(
    items: impl DoubleEndedIterator<Item = &'a T>,
    part: &Part<Id<K>>,
    place: impl Fn(&T) -> (Id<K>, Timestamp),
    most_bytes: usize,
    wanted: impl Fn(&'a T) -> Option<(U, usize)>,
) -> Found<U, Id<K>> {
    let mut ordered: Vec<_> = items.collect();
    if part.order == Order::Descending {
        ordered.reverse();
    }
    let beyond = |id: Id<K>| match (part.page.after, part.order) {
        (None, _) => true,
        (Some(after), Order::Ascending) => id > after,
        (Some(after), Order::Descending) => id < after,
    };
    let (mut found, mut last, mut bytes) = (Found::default(), None, 0);
    let inside = |item: &&&T| beyond(place(item).0) && part.within.includes(place(item).1);
    for (walked, item) in ordered.iter().filter(inside).enumerate() {
        if found.items.len() >= part.page.limit {
            return found;
        }
        if walked >= part.walk.max(1) || bytes > most_bytes {
            found.stopped = last;
            return found;
        }
        last = Some(place(item).0);
        if let Some((item, size)) = wanted(item) {
            found.items.push(item);
            bytes += size;
        }
    }
    if found.items.len() < part.page.limit && bytes > most_bytes {
        found.stopped = last;
    }
    found
}

fn bytes_of(payloads: Payloads) -> usize {
    match payloads {
        Payloads::Without => usize::MAX,
        Payloads::UpTo(most) => most,
    }
}

fn shown(message: &Message, payloads: Payloads) -> Message {
    let mut shown = readable(message);
    if payloads == Payloads::Without {
        shown.content.payload = Bytes::new();
    }
    shown
}

fn is_wanted(filter: &MessageFilter, message: &Message) -> bool {
    filter.wants(&message.content.event_type, &message.channels, &message.tags)
}

impl Disk {
    fn of_application(&self, app: AppId) -> impl DoubleEndedIterator<Item = &Message> {
        self.messages.values().filter(move |message| message.app == app)
    }

    fn message_list(&self, query: &MessagesQuery) -> Found<Message, MessageId> {
        let wanted = |message: &Message| {
            let size = message.content.bytes();
            is_wanted(&query.filter, message).then(|| (shown(message, query.payloads), size))
        };
        let place = |message: &Message| (message.id, message.created_at);
        walk(self.of_application(query.app), &query.part, place, bytes_of(query.payloads), wanted)
    }

    fn endpoint_messages(&self, query: &EndpointMessagesQuery) -> Found<EndpointMessage, MessageId> {
        let wanted = |message: &Message| {
            let rounds = self.deliveries(message.id);
            let newest = rounds.into_iter().rfind(|round| round.endpoint == query.endpoint);
            let delivery = newest.filter(|delivery| query.wants(delivery))?;
            let item = EndpointMessage { message: shown(message, query.payloads), delivery };
            is_wanted(&query.filter, message).then(|| (item, message.content.bytes()))
        };
        let place = |message: &Message| (message.id, message.created_at);
        walk(self.of_application(query.app), &query.part, place, bytes_of(query.payloads), wanted)
    }

    fn attempt_list(&self, query: &AttemptsQuery) -> Found<Attempt, AttemptId> {
        let filter = &query.filter;
        let in_scope = |attempt: &&Attempt| match query.scope {
            AttemptScope::Endpoint(endpoint) => attempt.endpoint == endpoint,
            AttemptScope::Message(message) => attempt.message == message,
            AttemptScope::Delivery(_, seq) => attempt.seq == seq,
        };
        let of_message = |attempt: &Attempt| match &filter.message {
            None => true,
            Some((app, filter)) => {
                let message = self.messages.get(&(*app, attempt.message));
                message.is_some_and(|message| is_wanted(filter, message))
            }
        };
        let wanted = |attempt: &Attempt| {
            let fits = filter.wants(attempt.success, attempt.status_code, attempt.endpoint);
            let mut shown = attempt.clone();
            if !query.responses {
                shown.response = Bytes::new();
            }
            (fits && of_message(attempt)).then_some((shown, 0))
        };
        let place = |attempt: &Attempt| (attempt.id, attempt.started_at);
        walk(self.attempts.values().filter(in_scope), &query.part, place, usize::MAX, wanted)
    }
}

impl History for SimStore {
    fn message(&self, app: AppId, key: Key) -> Read<Option<Message>> {
        self.read(move |disk| disk.message(app, &key))
    }

    fn messages(&self, query: MessagesQuery) -> Read<Found<Message, MessageId>> {
        self.read(move |disk| disk.message_list(&query))
    }

    fn bare_messages(&self, app: AppId, messages: Vec<MessageId>) -> Read<Vec<Message>> {
        self.read(move |disk| {
            let found = messages.iter().filter_map(|id| disk.messages.get(&(app, *id)));
            found.map(|message| shown(message, Payloads::Without)).collect()
        })
    }

    fn attempts(&self, query: AttemptsQuery) -> Read<Found<Attempt, AttemptId>> {
        self.read(move |disk| disk.attempt_list(&query))
    }

    fn count_attempts(&self, query: AttemptsQuery) -> Read<Count> {
        self.read(move |disk| {
            let found = disk.attempt_list(&query);
            let counted = found.items.len();
            let more = found.stopped.is_some() || counted >= query.part.page.limit;
            Count { counted: counted as u64, more }
        })
    }

    fn attempt(&self, message: MessageId, attempt: AttemptId) -> Read<Option<Attempt>> {
        self.read(move |disk| disk.attempts.get(&attempt).filter(|row| row.message == message).cloned())
    }

    fn endpoint_messages(&self, query: EndpointMessagesQuery) -> Read<Found<EndpointMessage, MessageId>> {
        self.read(move |disk| disk.endpoint_messages(&query))
    }

    fn deliveries(&self, message: MessageId) -> Read<Vec<DeliveryStatus>> {
        self.read(move |disk| disk.deliveries(message))
    }

    fn waiting(&self) -> Read<u64> {
        self.read(Disk::waiting)
    }
}
