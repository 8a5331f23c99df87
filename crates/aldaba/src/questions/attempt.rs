//! Attempts: one, a list, and their number.

use super::{ApplicationQuestions, Error, Missing, distinct};
use aldaba_delivery::{AttemptId, EndpointId, MessageId};
use aldaba_store::{
    Attempt, AttemptFilter, AttemptScope, AttemptsQuery, BoundedCount, DeliveryStatus, Endpoint,
    Error as StoreError, ListPage, ListRange, Message, MessageFilter,
};
use std::collections::BTreeMap;

/// Whose attempts a list has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttemptsOf<'a> {
    Endpoint(&'a Endpoint),
    /// Of one message at all endpoints, or at one.
    Message(&'a Message, Option<EndpointId>),
    Delivery(&'a DeliveryStatus),
}

/// Which attempts a list has.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptSelection {
    pub(crate) success: Option<bool>,
    /// The hundreds of the status code; 0 for attempts that have none.
    pub(crate) status_class: Option<u16>,
    pub(crate) message: MessageFilter,
}

/// What is read with each attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptFields {
    pub(crate) responses: bool,
    /// The messages, without payloads.
    pub(crate) messages: bool,
}

#[derive(Debug, Default)]
pub(crate) struct AttemptsPage {
    pub(crate) list: ListPage<Attempt, AttemptId>,
    /// The URLs of the endpoints, deleted ones too: what happened stays visible.
    pub(crate) urls: BTreeMap<EndpointId, String>,
    pub(crate) messages: BTreeMap<MessageId, Message>,
}

impl AttemptsPage {
    pub(crate) fn url(&self, attempt: &Attempt) -> &str {
        self.urls.get(&attempt.endpoint).map_or("", String::as_str)
    }
}

impl ApplicationQuestions<'_> {
    fn attempts_query(
        &self,
        of: AttemptsOf<'_>,
        selection: AttemptSelection,
        part: ListRange<AttemptId>,
        responses: bool,
    ) -> AttemptsQuery {
        let AttemptSelection { success, status_class, message } = selection;
        let (scope, endpoint) = match of {
            AttemptsOf::Endpoint(endpoint) => (AttemptScope::Endpoint(endpoint.id), None),
            AttemptsOf::Message(message, endpoint) => (AttemptScope::Message(message.id), endpoint),
            AttemptsOf::Delivery(status) => (AttemptScope::Delivery(status.message, status.seq), None),
        };
        let message = (!message.wants_all()).then_some((self.id, message));
        let filter = AttemptFilter { success, status_class, endpoint, message };
        AttemptsQuery { scope, filter, part, responses }
    }

    pub(crate) async fn attempts(
        &self,
        of: AttemptsOf<'_>,
        selection: AttemptSelection,
        part: ListRange<AttemptId>,
        fields: AttemptFields,
    ) -> Result<AttemptsPage, Error> {
        let list = self.store().attempts(self.attempts_query(of, selection, part, fields.responses)).await?;
        let endpoints = distinct(list.items.iter().map(|attempt| attempt.endpoint));
        let endpoints = self.store().lane_endpoints(endpoints).await?;
        let urls = endpoints.into_iter().map(|endpoint| (endpoint.id, endpoint.config.url)).collect();
        let messages = match fields.messages {
            false => Vec::new(),
            true => {
                let ids = distinct(list.items.iter().map(|attempt| attempt.message));
                self.store().bare_messages(self.id, ids).await?
            }
        };
        let messages = messages.into_iter().map(|message| (message.id, message)).collect();
        Ok(AttemptsPage { list, urls, messages })
    }

    /// Counts attempts at an endpoint, up to the limit of the page.
    pub(crate) async fn count_attempts(
        &self,
        endpoint: &Endpoint,
        selection: AttemptSelection,
        part: ListRange<AttemptId>,
    ) -> Result<BoundedCount, Error> {
        let query = self.attempts_query(AttemptsOf::Endpoint(endpoint), selection, part, false);
        Ok(self.store().count_attempts(query).await?)
    }

    /// An attempt by its id, with its message.
    pub(crate) async fn attempt(&self, message: &str, attempt: &str) -> Result<(Message, Attempt), Error> {
        let message = self.message(message).await?;
        let found = match attempt.parse() {
            Ok(id) => self.attempt_of(&message, id).await?,
            Err(_) => None,
        };
        Ok((message, found.ok_or(Missing::Attempt)?))
    }

    pub(crate) async fn attempt_of(
        &self,
        message: &Message,
        id: AttemptId,
    ) -> Result<Option<Attempt>, Error> {
        Ok(self.stored_attempt(message, id).await?)
    }

    /// The same, for actions of the engine.
    pub(crate) async fn stored_attempt(
        &self,
        message: &Message,
        id: AttemptId,
    ) -> Result<Option<Attempt>, StoreError> {
        self.store().attempt(message.id, id).await
    }

    /// The endpoint of an attempt, deleted or not.
    pub(crate) async fn endpoint_of(&self, attempt: &Attempt) -> Result<Option<Endpoint>, Error> {
        Ok(self.store().lane_endpoints(vec![attempt.endpoint]).await?.pop())
    }
}
