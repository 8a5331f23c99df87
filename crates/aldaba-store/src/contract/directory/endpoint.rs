//! An endpoint: a URL that wants messages.

use crate::LastError;
use aldaba_delivery::filter::Filter;
use aldaba_delivery::{
    AppId, ConditionCause, Controls, EndpointId, EndpointState, Health, Ordering, OrgId, Timestamp,
    WhenDisabled,
};
use std::sync::Arc;

/// What an endpoint is asked to be: what its owner gives, and may give again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    pub uid: Option<String>,
    /// Without credentials: those are among the sealed secrets.
    pub url: String,
    pub description: String,
    pub version: u16,
    /// Turned off by its operator.
    pub disabled: bool,
    pub when_disabled: WhenDisabled,
    /// Sorted, without repeats; empty: all.
    pub event_types: Vec<String>,
    /// Sorted, without repeats; empty: all.
    pub channels: Vec<String>,
    /// `None`: it takes all that it subscribes to.
    pub filter: Option<Arc<Filter>>,
    pub throttle_rate: Option<u16>,
    pub policy: String,
    /// `None`: the server's default.
    pub profile: Option<String>,
    /// HTTP/2 is offered to the receiver.
    pub http2: bool,
    pub ordering: Ordering,
    /// A JSON object of strings.
    pub metadata: String,
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
        Self {
            uid: None,
            url: url.into(),
            description: String::new(),
            version: 1,
            disabled: false,
            when_disabled: WhenDisabled::Skip,
            event_types: Vec::new(),
            channels: Vec::new(),
            filter: None,
            throttle_rate: None,
            policy: policy.into(),
            profile: None,
            http2: false,
            ordering: Ordering::None,
            metadata: "{}".into(),
        }
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
