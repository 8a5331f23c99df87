//! What a delivery waits for, as far as only memory knows.

use crate::Policies;
use crate::delivering::origin_of;
use aldaba_delivery::{AppId, EndpointId, GateScope, OrgId, Origin, Policy, Timestamp};
use aldaba_store::{Endpoint, Seq};

/// What of a waiting delivery is not on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitReasons {
    /// An attempt is being made, or its end is being written.
    pub in_flight: bool,
    /// The host is held back.
    pub hold: Option<HostHold>,
    /// The endpoint has had as many requests as it may have.
    pub throttled_until: Option<Timestamp>,
    /// All endpoints of the application together have had as many as they may have.
    pub app_throttled_until: Option<Timestamp>,
    /// As many requests are in flight to its origin as may be.
    pub origin_busy: bool,
    /// Nothing at all is sent: the server stops, or its store cannot be written.
    pub paused: bool,
}

/// A hold of an origin that binds a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHold {
    pub scope: GateScope,
    /// `None`: a probe is on its way, and its end decides.
    pub until: Option<Timestamp>,
}

/// Who asks.
pub(crate) struct WaitQuestion {
    pub(crate) org: OrgId,
    pub(crate) app: AppId,
    pub(crate) endpoint: EndpointId,
    pub(crate) seq: Seq,
    pub(crate) origin: Origin,
    pub(crate) policy: Policy,
}

impl WaitQuestion {
    pub(crate) fn new(endpoint: &Endpoint, seq: Seq, policies: &Policies) -> Self {
        Self {
            org: endpoint.org,
            app: endpoint.app,
            endpoint: endpoint.id,
            seq,
            origin: origin_of(endpoint).unwrap_or_else(|| Origin::new("none", "", 0)),
            policy: policies.of(endpoint.org, &endpoint.config.policy),
        }
    }
}
