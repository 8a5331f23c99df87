//! The headers of an attempt that was made. They are not kept with it: they follow from the message, the attempt and
//! how its endpoint is set up, and are worked out again when somebody asks. Where the endpoint was changed since, its
//! headers, keys or profile, they are what the attempt would have now.

use crate::Engine;
use crate::configuration::Facts;
use crate::configuration::is_sensitive;
use crate::delivering::target::Target;
use aldaba_store::{
    Attempt, AttemptFilter, AttemptScope, AttemptsQuery, Endpoint, Error, ListRange, Message, Order, Page,
};
use http::HeaderMap;

/// How many attempts before it are looked at: no policy makes more.
const MOST_BEFORE: usize = aldaba_delivery::policy::MAX_ATTEMPTS as usize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentHeaders {
    pub shown: Vec<(String, String)>,
    /// The names of those whose values are nobody's business.
    pub sensitive: Vec<String>,
}

impl Engine {
    /// The headers that an attempt went out with, as far as they can be told.
    pub async fn sent_headers(
        &self,
        endpoint: &Endpoint,
        message: &Message,
        attempt: &Attempt,
    ) -> Result<SentHeaders, Error> {
        let target = self.target(endpoint);
        let Ok(address) = &target.address else { return Ok(SentHeaders::default()) };
        let facts = Facts {
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
        };
        // Without the payload nobody knows the signature any more.
        let own = match message.expunged {
            true => target.profile.headers_without_body(&facts),
            false => target.profile.headers(&facts),
        };
        let of_message = self.vault().open_headers(&target, endpoint.id, &message.content);
        let of_message = of_message.unwrap_or_default();
        Ok(SentHeaders::of(&Target::with_own(&target.profile, address, &of_message, own)))
    }

    /// How many attempts of the policy there were before this one.
    async fn attempts_before(&self, attempt: &Attempt) -> Result<u32, Error> {
        let page = Page { after: Some(attempt.id), limit: MOST_BEFORE };
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
