//! Policies: when to retry, what counts as success, and when to stop. Data, validated once.

mod body;
mod builtin;
mod overrides;
mod preview;
mod retention;
mod schedule;
mod status_set;
mod validate;

pub use builtin::{BUILTIN_NAMES, builtin};
pub use overrides::{OverrideError, Overrides};
pub use preview::{Preview, SeededChances};
pub use retention::{
    Cutoffs, Keep, MAX_RETAINED_DELIVERIES, MAX_RETENTION, RetentionDefaults, RetentionRule,
};
pub use schedule::{Jitter, Schedule};
pub use status_set::StatusSet;
pub use validate::{
    MAX_ATTEMPTS, MAX_DELAY, MAX_GATE_HOLD, MAX_RETRY_AFTER, MAX_SCHEDULE_STEPS, MAX_STATUS_RANGES,
    MAX_TIMEOUT, MIN_GATE_CONNECT_TIMEOUT, PolicyError,
};

use crate::{GateScope, RetryAfter, Timestamp};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// A validated policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(Arc<PolicySpec>);

/// The fields of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    pub name: String,
    pub schedule: Schedule,
    pub jitter: Jitter,
    pub limit: Limit,
    pub timeouts: Timeouts,
    pub success: StatusSet,
    pub redirects: Redirects,
    /// Statuses that end the delivery at once. Every other unsuccessful status is retried.
    pub rejects: StatusSet,
    /// Whether a malformed response ends the delivery at once.
    pub malformed_rejects: bool,
    /// Whether 410 ends the delivery and turns the endpoint off.
    pub gone_disables: bool,
    pub retry_after: RetryAfterRule,
    pub gate: GateRule,
    pub endpoint_fails: EndpointFails,
    /// The probes of a failed endpoint; `None`: no probes.
    pub probe: Option<Probe>,
    pub retention: RetentionRule,
}

/// When a delivery stops without success. At least one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// `None`: as many as fit before the stop date, but at most [`MAX_ATTEMPTS`].
    pub attempts: Option<u32>,
    pub stop_after: Option<Duration>,
}

/// All three run concurrently; the first to expire ends the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// DNS, connection and TLS together.
    pub connect: Duration,
    /// From the moment the connection is established.
    pub answer: Duration,
    /// Over everything, redirects included.
    pub total: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// A redirect is an unsuccessful response like any other.
    Fail,
    /// Follows with POST and the body, each hop checked by the guard.
    Follow {
        hops: u8,
    },
    TakeAsSuccess,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAfterRule {
    /// The statuses whose `Retry-After` is read.
    pub statuses: StatusSet,
    pub use_: RetryAfterUse,
    pub shortest: Duration,
    pub longest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfterUse {
    /// The longer of the planned delay and the requested one.
    Lengthen,
    /// The requested delay replaces the planned one.
    Replace,
}

/// How lanes under this policy use gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateRule {
    /// Neither sets nor obeys holds.
    Apart,
    /// Holds after so many consecutive host failures, longer each time.
    HostFailures { in_a_row: u32, first: Duration, longest: Duration },
    /// Holds until the next attempt, at most `longest`, whenever its delay exceeds the threshold.
    DelayOver { threshold: Duration, longest: Duration },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointFails {
    Never,
    /// As soon as one delivery uses up its attempts or its time.
    WhenExhausted,
    /// At a failure this long after the first one without a success between.
    WithoutSuccessFor(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub first_gap: Duration,
    pub longest_gap: Duration,
}

impl Policy {
    pub fn new(spec: PolicySpec) -> Result<Self, PolicyError> {
        validate::check(&spec)?;
        Ok(Self(Arc::new(spec)))
    }

    /// The policy for an address without an owner: nobody could turn on again what failures have turned off.
    #[must_use]
    pub fn without_owner(&self) -> Self {
        if self.endpoint_fails == EndpointFails::Never && !self.gone_disables && self.probe.is_none() {
            return self.clone();
        }
        // A 410 still ends its delivery: there is only no endpoint to turn off.
        let gone = self.gone_disables.then_some((410, 410));
        let rejects = StatusSet::ranges(self.rejects.as_ranges().iter().copied().chain(gone));
        let spec = PolicySpec {
            rejects,
            endpoint_fails: EndpointFails::Never,
            gone_disables: false,
            probe: None,
            ..PolicySpec::clone(self)
        };
        Self(Arc::new(spec))
    }

    /// The policy while the clock is not trusted: an endpoint does not fail because of elapsed time.
    #[must_use]
    pub fn on_untrusted_clock(&self) -> Self {
        match self.endpoint_fails {
            EndpointFails::WithoutSuccessFor(_) => {
                Self(Arc::new(PolicySpec { endpoint_fails: EndpointFails::Never, ..PolicySpec::clone(self) }))
            }
            EndpointFails::Never | EndpointFails::WhenExhausted => self.clone(),
        }
    }

    /// The longest delay of its schedule, with jitter. A receiver's `Retry-After` can be longer.
    pub fn longest_delay(&self) -> Duration {
        self.jitter.longest(self.schedule.longest())
    }

    pub fn has_stop_date(&self) -> bool {
        self.limit.stop_after.is_some()
    }

    pub fn uses_gates(&self) -> bool {
        self.gate != GateRule::Apart
    }

    /// Whether lanes under this policy set and obey gates of this scope.
    pub fn uses_gate(&self, scope: GateScope) -> bool {
        match self.gate {
            GateRule::Apart => false,
            GateRule::HostFailures { .. } => scope == GateScope::Host,
            GateRule::DelayOver { .. } => true,
        }
    }

    /// The longest hold that lanes under this policy set or obey.
    pub fn longest_hold(&self) -> Duration {
        match self.gate {
            GateRule::Apart => Duration::ZERO,
            GateRule::HostFailures { longest, .. } | GateRule::DelayOver { longest, .. } => longest,
        }
    }
}

impl Deref for Policy {
    type Target = PolicySpec;

    fn deref(&self) -> &PolicySpec {
        &self.0
    }
}

impl RetryAfterRule {
    pub fn ignored() -> Self {
        Self {
            statuses: StatusSet::default(),
            use_: RetryAfterUse::Lengthen,
            shortest: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    /// The part of the requested delay that the policy grants.
    pub(crate) fn grant(&self, wish: RetryAfter, now: Timestamp) -> Duration {
        wish.delay(now).max(self.shortest).min(self.longest)
    }
}
