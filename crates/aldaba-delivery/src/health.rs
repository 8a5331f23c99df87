use crate::policy::{EndpointFails, MAX_RETRY_AFTER, Policy};
use crate::{Class, Reason, Timestamp, Transition, Verdict};
use std::time::Duration;

/// An endpoint's health, derived from its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub status: HealthStatus,
    /// Retriable failures since the last success. Active with a count above zero is *degraded*.
    pub failure_count: u32,
    /// The first failure since the last success. While the endpoint is not active a success does not reset it:
    /// deliveries that died since then are what its owner wants to recover.
    pub failing_since: Option<Timestamp>,
    /// When the status last changed.
    pub changed_at: Option<Timestamp>,
    /// While failed under a policy with probes: when the next probe is due.
    pub next_probe_at: Option<Timestamp>,
    /// The current interval between probes.
    pub probe_gap: Duration,
    /// No request before this moment, as the receiver asked with `Retry-After`.
    pub quiet_until: Option<Timestamp>,
    /// When held deliveries were last released: by an operator, or by recovery.
    pub released_at: Option<Timestamp>,
    /// An operator released them, so each held delivery is owed an attempt.
    pub released_by_person: bool,
    /// Counts operator actions. Results of attempts of an older epoch no longer apply.
    pub epoch: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthStatus {
    Active,
    /// Failed according to the policy; new deliveries are held.
    Failed,
    /// The receiver responded with 410.
    Gone,
    /// A delivery ended without success, and the ordering lets no other overtake it.
    Blocked,
}

/// Whether a delivery may go to the endpoint now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    Open,
    /// One request only, as a probe.
    Probe,
    /// Not before this moment; `None`: until an operator resumes it.
    Held(Option<Timestamp>),
}

impl HealthStatus {
    /// Whether the policy or the receiver ended deliveries: the endpoint reads as disabled, and its
    /// organization is notified.
    pub fn is_given_up(self) -> bool {
        matches!(self, Self::Failed | Self::Gone)
    }
}

impl Availability {
    /// Whether an admitted request may still start. `is_probe`: it is the endpoint's probe.
    pub fn admits_start(self, is_probe: bool) -> bool {
        match self {
            Self::Open => true,
            Self::Probe => is_probe,
            Self::Held(_) => false,
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            status: HealthStatus::Active,
            failure_count: 0,
            failing_since: None,
            changed_at: None,
            next_probe_at: None,
            probe_gap: Duration::ZERO,
            quiet_until: None,
            released_at: None,
            released_by_person: false,
            epoch: 0,
        }
    }
}

impl Health {
    /// Whether the endpoint's owner is alerted: it is given up, or has more failures in a row than `limit`.
    pub fn is_alerting(&self, limit: u32) -> bool {
        self.status.is_given_up() || self.failure_count > limit
    }

    pub fn degraded(&self) -> bool {
        self.status == HealthStatus::Active && self.failure_count > 0
    }

    pub fn availability(&self, now: Timestamp) -> Availability {
        let quiet = self.quiet_at(now);
        match (self.status, self.next_probe_at) {
            (HealthStatus::Active, _) => quiet.map_or(Availability::Open, |at| Availability::Held(Some(at))),
            (HealthStatus::Failed, Some(at)) => match quiet.max((!self.probe_due(at, now)).then_some(at)) {
                None => Availability::Probe,
                held => Availability::Held(held),
            },
            (HealthStatus::Failed, None) | (HealthStatus::Gone | HealthStatus::Blocked, _) => {
                Availability::Held(None)
            }
        }
    }

    /// Whether nothing is sent until an operator resumes the endpoint.
    pub fn needs_resume(&self) -> bool {
        match self.status {
            HealthStatus::Active => false,
            HealthStatus::Failed => self.next_probe_at.is_none(),
            HealthStatus::Gone | HealthStatus::Blocked => true,
        }
    }

    /// When the outage began, while the endpoint is not active. A 410 fails it before any failure is counted.
    pub fn outage_began(&self) -> Option<Timestamp> {
        match self.status {
            HealthStatus::Active => None,
            HealthStatus::Failed | HealthStatus::Gone | HealthStatus::Blocked => {
                self.failing_since.into_iter().chain(self.changed_at).min()
            }
        }
    }

    /// The end of the `Retry-After` pause, while it lasts. A pause longer than allowed predates a clock change
    /// and counts as over.
    fn quiet_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.quiet_until.filter(|until| *until > now && *until <= now + MAX_RETRY_AFTER)
    }

    /// Whether the probe is due. A probe further ahead than its interval was planned before the clock was set
    /// back.
    fn probe_due(&self, at: Timestamp, now: Timestamp) -> bool {
        at <= now || at > now + self.probe_gap
    }

    /// The endpoint's health after one attempt.
    #[must_use]
    pub fn after_attempt(
        &self,
        policy: &Policy,
        class: &Class,
        transition: &Transition,
        now: Timestamp,
    ) -> Self {
        let mut next = match class.verdict {
            Verdict::Delivered => self.after_success(policy, now),
            Verdict::Final(Reason::EndpointGone) => {
                Self { status: HealthStatus::Gone, next_probe_at: None, ..self.clone() }
            }
            // It ends its delivery only; but as a probe it was no success.
            Verdict::Final(_) => self.after_probe(policy, now),
            Verdict::Retriable if !class.concerns_receiver() => self.after_probe(policy, now),
            Verdict::Retriable => self.after_failure(policy, transition, now),
        };
        // The moment that the receiver named, not this delivery's retry: that may be hours later and does not
        // concern other deliveries.
        let asked = class.retry_after.map(|wish| now + policy.retry_after.grant(wish, now));
        next.quiet_until = self.quiet_at(now).max(asked).filter(|until| *until > now);
        if next.status != self.status {
            next.changed_at = Some(now);
        }
        next
    }

    /// Whether deliveries are held: only probes are sent, and stop dates are suspended. `off`: the endpoint is
    /// turned off.
    pub fn holds(&self, off: bool) -> bool {
        off || self.status != HealthStatus::Active
    }

    /// The start of a delivery's stop date. It restarts when held deliveries are released.
    pub fn clock_start(&self, clock_start: Timestamp) -> Timestamp {
        self.released_at.map_or(clock_start, |at| at.max(clock_start))
    }

    /// Whether an operator released a delivery due at `due_at` that was not attempted since: it gets one
    /// attempt however late.
    pub fn owes_attempt(&self, due_at: Timestamp) -> bool {
        self.released_by_person && self.released_at.is_some_and(|at| due_at <= at)
    }

    /// When a delivery due at `due_at` has been held for `longest`. `None`: nothing is held. `off`: the
    /// endpoint is turned off.
    pub fn hold_expires_at(&self, off: bool, due_at: Timestamp, longest: Duration) -> Option<Timestamp> {
        self.holds(off).then(|| self.changed_at.map_or(due_at, |since| since.max(due_at)) + longest)
    }

    /// The health after a delivery ended without success under blocking ordering. An endpoint that already
    /// waits for its owner stays unchanged.
    #[must_use]
    pub fn blocked(&self, now: Timestamp) -> Self {
        if self.needs_resume() {
            return self.clone();
        }
        Self { status: HealthStatus::Blocked, changed_at: Some(now), next_probe_at: None, ..self.clone() }
    }

    /// A success counts as recovery only if the policy probes. Otherwise the request was already in flight, and
    /// the endpoint still waits for its owner.
    fn after_success(&self, policy: &Policy, now: Timestamp) -> Self {
        let recovers = match self.status {
            HealthStatus::Active => true,
            HealthStatus::Failed => policy.probe.is_some(),
            HealthStatus::Gone | HealthStatus::Blocked => false,
        };
        let status = if recovers { HealthStatus::Active } else { self.status };
        let (released_at, released_by_person) = if status == self.status {
            (self.released_at, self.released_by_person)
        } else {
            (Some(now), false)
        };
        let failing_since = if recovers { None } else { self.failing_since };
        let (changed_at, epoch) = (self.changed_at, self.epoch);
        Self { status, failing_since, changed_at, released_at, released_by_person, epoch, ..Self::default() }
    }

    fn after_failure(&self, policy: &Policy, transition: &Transition, now: Timestamp) -> Self {
        let used_up = transition.ending().is_some();
        let failing_since = self.failing_since.unwrap_or(now);
        let fails = match policy.endpoint_fails {
            EndpointFails::Never => false,
            EndpointFails::WhenExhausted => used_up,
            EndpointFails::WithoutSuccessFor(span) => now.since(failing_since) >= span,
        };
        let next = Self {
            failure_count: self.failure_count.saturating_add(u32::from(!used_up)),
            failing_since: Some(failing_since),
            ..self.clone()
        };
        match (self.status, fails) {
            (HealthStatus::Active, true) => next.failed(policy, now),
            _ => next.after_probe(policy, now),
        }
    }

    fn failed(self, policy: &Policy, now: Timestamp) -> Self {
        let gap = policy.probe.map(|probe| probe.first_gap);
        Self {
            status: HealthStatus::Failed,
            next_probe_at: gap.map(|gap| now + gap),
            probe_gap: gap.unwrap_or_default(),
            ..self
        }
    }

    /// While failed, an unsuccessful attempt was a probe, and the next one comes later. Attempts already in
    /// flight when the endpoint failed end before the probe is due and do not move it.
    fn after_probe(&self, policy: &Policy, now: Timestamp) -> Self {
        let mut next = self.clone();
        let (HealthStatus::Failed, Some(at)) = (self.status, self.next_probe_at) else { return next };
        match policy.probe {
            Some(probe) if self.probe_due(at, now) => {
                next.probe_gap = self.probe_gap.saturating_mul(2).clamp(probe.first_gap, probe.longest_gap);
                next.next_probe_at = Some(now + next.probe_gap);
            }
            Some(_) => {}
            // The endpoint's new policy has no probes: recovery is up to its owner.
            None => next.next_probe_at = None,
        }
        next
    }
}
