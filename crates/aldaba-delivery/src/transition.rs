use crate::policy::{MAX_ATTEMPTS, Policy, RetryAfterUse};
use crate::{Chance, Class, Fault, Timestamp, Verdict};
use std::time::Duration;

/// The part of a delivery that decides what may still happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Attempts made in this round.
    pub attempts: u32,
    /// What the stop date counts from: the latest of creation, `deliverAt`, release and replay.
    pub clock_start: Timestamp,
}

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Retry {
        due_at: Timestamp,
    },
    Settle(Ending),
    /// Into the dead letter: the next attempt would have come after `delay`, past the stop date. The host is
    /// no healthier for that, so its gate counts with the delay.
    Stop {
        reason: Reason,
        delay: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Delivered,
    /// Into the dead letter.
    Dead(Reason),
}

/// Why a delivery ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Exhausted,
    Rejected,
    StopDate,
    EndpointGone,
    TargetForbidden,
    Cancelled,
    Expired,
    /// There was nothing left to send.
    PayloadDeleted,
}

impl Reason {
    pub const ALL: [Self; 8] = [
        Self::Exhausted,
        Self::Rejected,
        Self::StopDate,
        Self::EndpointGone,
        Self::TargetForbidden,
        Self::Cancelled,
        Self::Expired,
        Self::PayloadDeleted,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Rejected => "rejected",
            Self::StopDate => "stop_date",
            Self::EndpointGone => "endpoint_gone",
            Self::TargetForbidden => "target_forbidden",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::PayloadDeleted => "payload_deleted",
        }
    }

    /// The same for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Exhausted => "Max retries exhausted",
            Self::Rejected => "Non-retriable error",
            Self::StopDate => "Stop date reached",
            Self::EndpointGone => "Endpoint gone",
            Self::TargetForbidden => "Target address not allowed",
            Self::Cancelled => "Cancelled",
            Self::Expired => "Held for too long",
            Self::PayloadDeleted => "Payload deleted",
        }
    }

    /// Somebody has ended it, and need not look after it.
    pub fn is_by_hand(self) -> bool {
        matches!(self, Self::Cancelled | Self::PayloadDeleted)
    }

    /// The reason of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// Why a message that an endpoint subscribes to was never to be sent there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// Its operator had turned the endpoint off.
    EndpointDisabled,
}

impl SkipReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::EndpointDisabled => "endpoint_disabled",
        }
    }
}

impl Delivery {
    pub fn stop_at(&self, policy: &Policy) -> Option<Timestamp> {
        policy.limit.stop_after.map(|after| self.clock_start + after)
    }

    /// Whether a delivery that could go out at `turn` must end instead: now, or where a hold would
    /// move it to. A hold, a rate, an ordered head or a time without a running server can carry it past
    /// its stop date, tried before or not. Who was released by a person is asked before.
    pub fn overdue(&self, policy: &Policy, turn: Timestamp) -> bool {
        self.stop_at(policy).is_some_and(|stop| turn > stop)
    }

    /// When it is due, where a clock that was ahead may have stored a later moment than the delivery was to wait for. `None`:
    /// as stored. What was never tried is due at once, or when its sender asked for it. A retry keeps its delay, up to the
    /// longest one of the policy: what was asked for with `Retry-After` is kept by the endpoint's health.
    pub fn corrected_due(
        &self,
        policy: &Policy,
        stored: &StoredDue,
        now: Timestamp,
        chance: Chance,
    ) -> Option<Timestamp> {
        let StoredDue { due_at, deliver_at, tried_at, clock_was_ahead } = *stored;
        let longest = policy.longest_delay();
        let corrected = match tried_at {
            _ if self.attempts == 0 => deliver_at.map_or(now, |at| at.max(now)),
            // By this clock the attempt is still to come: another one has planned what follows it.
            Some(tried_at) if tried_at > now + CLOCK_TOLERANCE => now + due_at.since(tried_at).min(longest),
            // The clock may have leapt while the attempt was made.
            _ if clock_was_ahead && due_at > now + longest => {
                now + policy.jitter.apply(policy.schedule.delay(self.attempts), chance)
            }
            _ => due_at,
        };
        (corrected < due_at).then_some(corrected)
    }
}

/// What is stored of the time that a delivery waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredDue {
    pub due_at: Timestamp,
    /// The `deliverAt` of its message.
    pub deliver_at: Option<Timestamp>,
    /// When its last scheduled attempt began, by the clock of that time.
    pub tried_at: Option<Timestamp>,
    /// The clock is known to have gone back since some of what is stored.
    pub clock_was_ahead: bool,
}

/// Steps of the clock that are not worth a correction of due times.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

impl Transition {
    /// What follows an attempt. `delivery.attempts` counts it already.
    pub fn after_attempt(
        policy: &Policy,
        delivery: &Delivery,
        class: &Class,
        now: Timestamp,
        chance: Chance,
    ) -> Self {
        match class.verdict {
            Verdict::Delivered => Self::Settle(Ending::Delivered),
            Verdict::Final(reason) => Self::Settle(Ending::Dead(reason)),
            Verdict::Retriable => {
                let reason = |reason| match class.fault {
                    Fault::Forbidden => Reason::TargetForbidden,
                    _ => reason,
                };
                if delivery.attempts >= policy.limit.attempts.unwrap_or(MAX_ATTEMPTS) {
                    return Self::Settle(Ending::Dead(reason(Reason::Exhausted)));
                }
                let delay = delay(policy, delivery.attempts, class, now, chance);
                let due_at = now + delay;
                if delivery.overdue(policy, due_at) {
                    return Self::Stop { reason: reason(Reason::StopDate), delay };
                }
                Self::Retry { due_at }
            }
        }
    }

    /// How the delivery ends; `None`: it waits for another attempt.
    pub fn ending(&self) -> Option<Ending> {
        match *self {
            Self::Retry { .. } => None,
            Self::Settle(ending) => Some(ending),
            Self::Stop { reason, .. } => Some(Ending::Dead(reason)),
        }
    }
}

fn delay(policy: &Policy, failures: u32, class: &Class, now: Timestamp, chance: Chance) -> Duration {
    let planned = policy.jitter.apply(policy.schedule.delay(failures), chance);
    let rule = &policy.retry_after;
    match (class.retry_after, rule.use_) {
        (None, _) => planned,
        (Some(wish), RetryAfterUse::Lengthen) => planned.max(rule.grant(wish, now)),
        (Some(wish), RetryAfterUse::Replace) => rule.grant(wish, now),
    }
}
