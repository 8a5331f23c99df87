//! Messages and attempts.

use crate::sqlite::{SqliteStore, attempt_list, history, message_list};
use crate::{
    Attempt, AttemptsQuery, Count, DeliveryStatus, EndpointMessage, EndpointMessagesQuery, Found, History,
    Key, Message, MessagesQuery, Read,
};
use aldaba_delivery::{AppId, AttemptId, MessageId};

impl History for SqliteStore {
    fn message(&self, app: AppId, key: Key) -> Read<Option<Message>> {
        self.read(move |connection| history::message(connection, app, &key))
    }

    fn messages(&self, query: MessagesQuery) -> Read<Found<Message, MessageId>> {
        self.walk(move |connection, slice| message_list::messages(connection, slice, &query))
    }

    fn bare_messages(&self, app: AppId, messages: Vec<MessageId>) -> Read<Vec<Message>> {
        self.read(move |connection| message_list::bare(connection, app, &messages))
    }

    fn attempts(&self, query: AttemptsQuery) -> Read<Found<Attempt, AttemptId>> {
        self.walk(move |connection, slice| attempt_list::attempts(connection, slice, &query))
    }

    fn count_attempts(&self, query: AttemptsQuery) -> Read<Count> {
        self.walk(move |connection, slice| attempt_list::count(connection, slice, &query))
    }

    fn attempt(&self, message: MessageId, attempt: AttemptId) -> Read<Option<Attempt>> {
        self.read(move |connection| attempt_list::one(connection, message, attempt))
    }

    fn endpoint_messages(&self, query: EndpointMessagesQuery) -> Read<Found<EndpointMessage, MessageId>> {
        self.walk(move |connection, slice| message_list::of_endpoint(connection, slice, &query))
    }

    fn deliveries(&self, message: MessageId) -> Read<Vec<DeliveryStatus>> {
        self.read(move |connection| history::deliveries(connection, message))
    }

    fn waiting(&self) -> Read<u64> {
        self.read(history::waiting)
    }
}
