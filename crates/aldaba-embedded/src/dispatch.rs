//! Messages to a URL that is not an endpoint.

use crate::application::sent;
use crate::endpoint::{checked_headers, key, target};
use crate::{Application, Error, Event, Sent};
use aldaba_delivery::{AppId, Timestamp};
use aldaba_engine::wire::Guard;
use aldaba_engine::{NewDispatch, Policies};
use serde::Serialize;
use std::fmt;

/// The default event type of a dispatch.
const EVENT_TYPE: &str = "dispatch";

/// A message to one URL, independent of endpoints. It is stored, retried and listed like an event.
#[derive(Clone)]
#[must_use]
pub struct Dispatch {
    url: String,
    event: Event,
    policy: Option<String>,
    profile: Option<String>,
    headers: Vec<(String, String)>,
    secret: Option<String>,
}

impl Dispatch {
    /// A dispatch to this URL, http or https; user and password in it become basic authentication. The payload is
    /// serialized as JSON; these bytes are signed and sent.
    pub fn to(url: impl Into<String>, payload: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        Ok(Self::of(url.into(), Event::of_json(EVENT_TYPE, payload)?))
    }

    /// A dispatch whose body is sent unchanged, as `application/json`.
    pub fn raw(url: impl Into<String>, body: impl Into<String>) -> Self {
        Self::of(url.into(), Event::raw(EVENT_TYPE, body))
    }

    fn of(url: String, event: Event) -> Self {
        Self { url, event, policy: None, profile: None, headers: Vec::new(), secret: None }
    }

    /// Sets the event type in the history and in wire profiles that send it. Default: `dispatch`.
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event = self.event.of_type(event_type.into());
        self
    }

    /// Sets the retry policy. Default: `standard`.
    pub fn policy(mut self, name: impl Into<String>) -> Self {
        self.policy = Some(name.into());
        self
    }

    /// Sets the wire profile: headers and signature. Default: the engine's.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Adds a header to this dispatch.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the signing secret: `whsec_…` or `whsk_…`. The default is the application's secret for dispatches:
    /// [`Application::dispatch_secret`].
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// See [`Event`].
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.event = self.event.id(id);
        self
    }

    /// See [`Event`].
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.event = self.event.idempotency_key(key);
        self
    }

    /// See [`Event`].
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.event = self.event.tags(tags);
        self
    }

    /// See [`Event`].
    pub fn deliver_at(mut self, moment: impl Into<Timestamp>) -> Self {
        self.event = self.event.deliver_at(moment);
        self
    }

    fn checked(self, app: AppId, longest_payload: usize, guard: &Guard) -> Result<NewDispatch, Error> {
        let (url, credentials) = target(&self.url, guard)?;
        Ok(NewDispatch {
            url,
            credentials,
            policy: self.policy.unwrap_or_else(|| Policies::DEFAULT.to_owned()),
            profile: self.profile,
            key: self.secret.as_deref().map(key).transpose()?,
            headers: checked_headers(self.headers)?,
            job: None,
            event: self.event.checked(app, longest_payload)?,
        })
    }
}

/// Does not show values that may be secret.
impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").field("event", &self.event).finish_non_exhaustive()
    }
}

impl Application {
    /// Accepts a message for one URL, which is on disk when this returns. [`message`](Self::message) returns its
    /// deliveries.
    pub async fn dispatch(&self, dispatch: Dispatch) -> Result<Sent, Error> {
        let guard = self.aldaba().installation().wire.guard();
        let dispatch = dispatch.checked(self.id(), self.aldaba().longest_payload(), &guard)?;
        let (engine, which) = (self.aldaba().engine().clone(), self.which());
        let dispatching = async move {
            let (accepted, _) = engine.dispatch(&which, dispatch).await?;
            Ok(sent(&accepted))
        };
        self.aldaba().run(dispatching).await
    }

    /// The key with which receivers verify dispatches without their own secret.
    pub fn dispatch_secret(&self) -> String {
        self.aldaba().engine().dispatch_key(self.id()).secret_text().to_string()
    }
}
