//! What a delivery waits for, or has ended by. Pages say it in several languages; the API, in English ([`super::english`]).

use aldaba_delivery::{FailureKind, GateScope, HealthStatus, Reason, SkipReason, Timestamp};

/// What came of the newest attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status_code: Option<u16>,
    pub(crate) kind: Option<FailureKind>,
    /// In English; a phrase of the receiver may be in it.
    pub(crate) text: String,
}

/// With everything that the texts of all languages need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    // It has ended.
    Skipped(SkipReason),
    Delivered {
        attempt: u32,
        at: Timestamp,
    },
    Dead {
        reason: Reason,
        at: Timestamp,
        attempts: u32,
        failure: Option<Failure>,
    },
    // It waits.
    EndpointDeleted,
    InFlight {
        attempt: u32,
    },
    EndpointDisabled,
    /// Until a person resumes the endpoint.
    NeedsResume(HealthStatus),
    /// The endpoint has failed, and one delivery goes first.
    ProbeFirst,
    ReceiverBusy {
        until: Timestamp,
    },
    FailedUntilProbe {
        at: Timestamp,
    },
    HostHeld {
        scope: GateScope,
        until: Option<Timestamp>,
    },
    /// At an ordered endpoint.
    TakesPlaceAt(Timestamp),
    InOrder,
    Paused,
    FirstPlanned {
        at: Timestamp,
    },
    RetryPlanned {
        retry: u32,
        of: Option<u32>,
        at: Timestamp,
        failure: Option<Failure>,
    },
    Throttled {
        rate: u16,
    },
    ApplicationThrottled,
    HostBusy,
    Due,
    // There is no delivery.
    EndpointNewer,
    ForAnotherEndpoint,
    EventTypeNotSubscribed {
        event_type: String,
    },
    ChannelNotSubscribed,
    FilteredAt {
        location: String,
        text: String,
    },
    /// By a payload that is deleted.
    FilteredUnknown,
    SubscriptionChanged,
    /// Only a bug leaves a delivery behind.
    NoEndpoint,
}

impl Cause {
    /// The API's word for it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Skipped(reason) => reason.name(),
            Self::Delivered { .. } => "delivered",
            Self::Dead { reason, .. } => reason.name(),
            Self::EndpointDeleted | Self::NoEndpoint => "endpoint_deleted",
            Self::InFlight { .. } => "in_flight",
            Self::EndpointDisabled => "endpoint_disabled",
            Self::NeedsResume(HealthStatus::Blocked) => "endpoint_blocked",
            Self::NeedsResume(HealthStatus::Gone) => "endpoint_gone",
            Self::NeedsResume(HealthStatus::Failed | HealthStatus::Active)
            | Self::ProbeFirst
            | Self::FailedUntilProbe { .. } => "endpoint_failed",
            Self::ReceiverBusy { .. } => "receiver_busy",
            Self::HostHeld { .. } => "host_held",
            Self::TakesPlaceAt(_) | Self::FirstPlanned { .. } => "scheduled",
            Self::InOrder => "in_order",
            Self::Paused => "paused",
            Self::RetryPlanned { .. } => "retry",
            Self::Throttled { .. } => "throttled",
            Self::ApplicationThrottled => "application_throttled",
            Self::HostBusy => "host_busy",
            Self::Due => "due",
            Self::EndpointNewer => "endpoint_newer",
            Self::ForAnotherEndpoint => "for_another_endpoint",
            Self::EventTypeNotSubscribed { .. } => "event_type_not_subscribed",
            Self::ChannelNotSubscribed => "channel_not_subscribed",
            Self::FilteredAt { .. } | Self::FilteredUnknown => "filtered",
            Self::SubscriptionChanged => "subscription_changed",
        }
    }
}
