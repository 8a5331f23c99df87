//! Why a delivery is pending, as far as only memory knows.

use crate::Policies;
use crate::delivering::origin_of;
use aldaba_delivery::{AppId, EndpointId, GateScope, OrgId, Origin, Policy, Timestamp};
use aldaba_store::{Endpoint, Seq};

/// Why a delivery is pending, besides what is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitReasons {
    /// An attempt is in flight, or being recorded.
    pub in_flight: bool,
    /// A gate holds the host.
    pub hold: Option<HostHold>,
    /// The rate of the endpoint is used up.
    pub throttled_until: Option<Timestamp>,
    /// The rate of the application is used up.
    pub app_throttled_until: Option<Timestamp>,
    /// The in-flight limit of the origin is reached.
    pub origin_busy: bool,
    /// Nothing is sent: the server stops, or its store cannot be written.
    pub paused: bool,
}

/// A hold of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHold {
    pub scope: GateScope,
    /// `None`: the result of a probe decides.
    pub until: Option<Timestamp>,
}

/// The delivery in question.
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
