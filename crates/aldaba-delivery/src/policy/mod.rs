//! When to try again, what counts as success, and when to stop: data, checked once.

mod builtin;
mod overrides;
mod preview;
mod retention;
mod schedule;
mod status_set;
mod text;
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

/// A policy that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(Arc<PolicySpec>);

/// A policy as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    pub name: String,
    pub schedule: Schedule,
    pub jitter: Jitter,
    pub limit: Limit,
    pub timeouts: Timeouts,
    pub success: StatusSet,
    pub redirects: Redirects,
    /// Answers that end the delivery at once. Every other answer that is no success is retried.
    pub rejects: StatusSet,
    /// Whether something that is not HTTP ends the delivery at once.
    pub malformed_rejects: bool,
    /// Whether 410 ends the delivery and turns the endpoint off.
    pub gone_disables: bool,
    pub retry_after: RetryAfterRule,
    pub gate: GateRule,
    pub endpoint_fails: EndpointFails,
    /// How a failed endpoint is tried again without a hand; `None`: it is not.
    pub probe: Option<Probe>,
    pub retention: RetentionRule,
}

/// When a delivery stops without success. At least one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// `None`: as many as fit before the stop date, though never more than [`MAX_ATTEMPTS`].
    pub attempts: Option<u32>,
    pub stop_after: Option<Duration>,
}

/// All three run at once; the first to pass ends the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name, connection and TLS together.
    pub connect: Duration,
    /// From the moment the connection stands.
    pub answer: Duration,
    /// Over everything, redirects included.
    pub total: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// A redirect is an answer like any other that is no success.
    Fail,
    /// Sent again as POST with the body, each hop vetted.
    Follow {
        hops: u8,
    },
    TakeAsSuccess,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAfterRule {
    /// The answers in which it is read.
    pub statuses: StatusSet,
    pub use_: RetryAfterUse,
    pub shortest: Duration,
    pub longest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfterUse {
    /// The later of the planned delay and the wish.
    Lengthen,
    /// The wish in place of the planned delay.
    Replace,
}

/// The part that lanes under this policy take in host control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateRule {
    /// Neither sets nor obeys holds.
    Apart,
    /// Holds after so many failures of the host itself in a row, longer each time.
    HostFailures { in_a_row: u32, first: Duration, longest: Duration },
    /// Holds until the next attempt, within `longest`, whenever that lies further off than the
    /// threshold.
    DelayOver { threshold: Duration, longest: Duration },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointFails {
    Never,
    /// As soon as one delivery has used up its attempts or its time.
    WhenExhausted,
    /// At a failure this long after the first one with no success between.
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

    /// The same for an address that is nobody's: nobody could turn on again what failures have turned off.
    #[must_use]
    pub fn without_owner(&self) -> Self {
        if self.endpoint_fails == EndpointFails::Never && !self.gone_disables && self.probe.is_none() {
            return self.clone();
        }
        // A 410 still ends what it answers: there is only nobody to turn off for it.
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

    /// The same policy on a clock that is not trusted: an endpoint does not fail because time has passed.
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

    /// Whether lanes under this policy set and obey holds of that scope.
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

    /// What is granted of a receiver's wish.
    pub(crate) fn grant(&self, wish: RetryAfter, now: Timestamp) -> Duration {
        wish.delay(now).max(self.shortest).min(self.longest)
    }
}
