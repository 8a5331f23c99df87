//! The headers of a past attempt. They are not stored: they are derived again from the message, the attempt
//! and the endpoint's configuration. After a change of the endpoint's headers, keys or profile they are what
//! the attempt would send now.

use crate::Engine;
use crate::configuration::HeaderContext;
use crate::configuration::is_sensitive;
use crate::delivering::target::Target;
use aldaba_store::{
    Attempt, AttemptFilter, AttemptScope, AttemptsQuery, Endpoint, Error, ListRange, Message, Order, Page,
};
use http::HeaderMap;

/// How many earlier attempts are read: no policy makes more.
const MAX_ATTEMPTS_BEFORE: usize = aldaba_delivery::policy::MAX_ATTEMPTS as usize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentHeaders {
    pub shown: Vec<(String, String)>,
    /// Names of headers whose values are not shown.
    pub sensitive: Vec<String>,
}

impl Engine {
    /// The headers that an attempt was sent with, as far as they can be derived.
    pub async fn sent_headers(
        &self,
        endpoint: &Endpoint,
        message: &Message,
        attempt: &Attempt,
    ) -> Result<SentHeaders, Error> {
        let target = self.target(endpoint);
        let Ok(address) = &target.address else { return Ok(SentHeaders::default()) };
        let context = HeaderContext {
            message: message.id,
            event_id: message.content.event_id.as_deref(),
            event_type: &message.content.event_type,
            version: message.content.version.as_deref(),
            app: endpoint.app,
            endpoint: endpoint.id,
            attempts: self.attempts_before(attempt).await?,
            now: attempt.started_at,
            keys: &address.keys.at(attempt.started_at),
            body: &message.content.payload,
            // It is not stored.
            traceparent: None,
        };
        // The signature cannot be derived without the payload.
        let own = match message.expunged {
            true => target.profile.headers_without_body(&context),
            false => target.profile.headers(&context),
        };
        let of_message = self.vault().open_headers(&target, endpoint.id, &message.content);
        let of_message = of_message.unwrap_or_default();
        Ok(SentHeaders::of(&Target::with_own(&target.profile, address, &of_message, own)))
    }

    /// How many scheduled attempts came before this one.
    async fn attempts_before(&self, attempt: &Attempt) -> Result<u32, Error> {
        let page = Page { after: Some(attempt.id), limit: MAX_ATTEMPTS_BEFORE };
        let query = AttemptsQuery {
            scope: AttemptScope::Delivery(attempt.message, attempt.seq),
            filter: AttemptFilter { endpoint: Some(attempt.endpoint), ..AttemptFilter::default() },
            part: ListRange::page(page, Order::Descending),
            responses: false,
        };
        let before = self.store().attempts(query).await?.items;
        let scheduled = before.iter().filter(|attempt| attempt.trigger.counts()).count();
        Ok(u32::try_from(scheduled).unwrap_or(u32::MAX))
    }
}

impl SentHeaders {
    fn of(headers: &HeaderMap) -> Self {
        let mut sent = Self::default();
        for (name, value) in headers {
            if is_sensitive(name.as_str()) {
                sent.sensitive.push(name.to_string());
            } else {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                sent.shown.push((name.to_string(), value));
            }
        }
        sent
    }
}
