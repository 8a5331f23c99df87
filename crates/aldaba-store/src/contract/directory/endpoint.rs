//! An endpoint: a URL that wants messages.

use crate::LastError;
use crate::contract::audit::{FieldValues, audited, audited_config, stored};
use aldaba_delivery::filter::Filter;
use aldaba_delivery::{
    AppId, ConditionCause, Controls, EndpointId, EndpointState, Health, Ordering, OrgId, Timestamp,
    WhenDisabled,
};
use serde_json::{Value, json};
use std::sync::Arc;

audited_config! {
    /// What an endpoint is asked to be: what its owner gives, and may give again.
    pub struct EndpointConfig {
        "uid" uid: Option<String> = None;
        /// Without credentials: those are among the sealed secrets.
        "url" url: String = String::new();
        "description" description: String = String::new();
        "name" name: Option<String> = None;
        /// A mail address.
        "ownerEmail" owner_email: Option<String> = None;
        "version" version: u16 = 1;
        /// Turned off by its operator.
        "disabled" disabled: bool = false;
        "whenDisabled" when_disabled: WhenDisabled = WhenDisabled::Skip, shown as json!(when_disabled.name());
        /// Sorted, without repeats; empty: all.
        "eventTypes" event_types: Vec<String> = Vec::new();
        /// Sorted, without repeats; empty: all.
        "channels" channels: Vec<String> = Vec::new();
        "throttleRate" throttle_rate: Option<u16> = None;
        "policy" policy: String = String::new();
        /// `None`: the server's default.
        "profile" profile: Option<String> = None;
        /// HTTP/2 is offered to the receiver.
        "http2" http2: bool = false;
        "ordering" ordering: Ordering = Ordering::None, shown as json!(ordering.name());
        /// `None`: it takes all that it subscribes to.
        "filter" filter: Option<Arc<Filter>> = None,
            shown as filter.as_ref().map_or(Value::Null, |filter| stored(filter.as_str()));
        /// A JSON object of strings.
        "metadata" metadata: String = "{}".into(), shown as stored(metadata);
    }
}

impl EndpointConfig {
    /// Bytes.
    pub const MAX_URL_BYTES: usize = 8192;
    /// Bytes.
    pub const MAX_DESCRIPTION_BYTES: usize = 4096;
    pub const MAX_EVENT_TYPES: usize = 1000;
    pub const MAX_CHANNELS: usize = 10;

    /// One that takes everything, at this URL.
    pub fn new(url: impl Into<String>, policy: impl Into<String>) -> Self {
        Self { url: url.into(), policy: policy.into(), ..Self::default() }
    }

    /// What decides whether deliveries go to it.
    pub fn controls(&self) -> Controls {
        Controls { disabled: self.disabled, ordering: self.ordering }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub id: EndpointId,
    pub app: AppId,
    pub org: OrgId,
    pub config: EndpointConfig,
    /// Signing keys, credentials, headers and the client certificate, encrypted. The store never looks inside.
    pub sealed: Vec<u8>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted: bool,
    /// Nobody has made it: something was dispatched to its address. It is on no list and hears of no event.
    pub direct: bool,
    pub health: Health,
    /// The newest failed attempt.
    pub last_error: Option<LastError>,
}

impl Endpoint {
    /// The same one with a part of its configuration changed.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut EndpointConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// What its deliveries are judged by.
    pub fn state(&self) -> EndpointState<'_> {
        EndpointState::of(&self.health, self.config.controls())
    }

    /// What becomes of the health when this configuration takes the place of `before`, where anything does, with the
    /// cause for the history.
    pub fn after_controls_change(
        &self,
        before: &Self,
        resume: bool,
    ) -> Option<(Health, Option<ConditionCause>)> {
        let controls = (before.config.controls(), self.config.controls());
        before.health.after_controls_change(controls.0, controls.1, resume, self.updated_at)
    }

    /// The same, but for what a change of the ordering does.
    pub fn after_toggle(&self, before: &Self, resume: bool) -> Option<(Health, ConditionCause)> {
        let (was_off, is_off) = (before.config.disabled, self.config.disabled);
        before.health.after_toggle(was_off, is_off, resume, self.updated_at)
    }

    /// It waits for its owner, because a delivery ended without success.
    pub fn is_blocked(&self) -> bool {
        self.state().is_blocked()
    }
}

/// What an endpoint was when it was read. It keeps two callers from undoing each other's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub updated_at: Timestamp,
    pub sealed: Vec<u8>,
}

impl From<&Endpoint> for Fence {
    fn from(endpoint: &Endpoint) -> Self {
        Self { updated_at: endpoint.updated_at, sealed: endpoint.sealed.clone() }
    }
}
