use crate::policy::{MAX_ATTEMPTS, Policy, RetryAfterUse};
use crate::{Chance, Class, Fault, Timestamp, Verdict, WhenDisabled};
use std::time::Duration;

/// The part of a delivery that decides what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Attempts made in this round.
    pub attempts: u32,
    /// The start of the stop date: the latest of creation, `deliverAt`, release and replay.
    pub clock_start: Timestamp,
}

/// The next state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Retry {
        due_at: Timestamp,
    },
    Settle(Ending),
    /// Into the dead letter: the next attempt would come after `delay`, past the stop date. The host is no
    /// healthier for that, so its gate counts with the delay.
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
    /// Its payload was deleted.
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

    /// The reason for deliveries of a deleted endpoint or application.
    pub const OF_DELETION: Self = Self::Cancelled;

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

    /// The reason as text.
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

    /// Whether an operator ended it on purpose, so that it needs no attention.
    pub fn is_manual(self) -> bool {
        matches!(self, Self::Cancelled | Self::PayloadDeleted)
    }

    /// The reason with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// Why a message is not sent to an endpoint that subscribes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// The endpoint was turned off.
    EndpointDisabled,
}

impl SkipReason {
    /// Decides at acceptance whether a message is skipped. `None`: it is sent, or it waits.
    pub fn at_acceptance(disabled: bool, then: WhenDisabled) -> Option<Self> {
        (disabled && then == WhenDisabled::Skip).then_some(Self::EndpointDisabled)
    }

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

    /// Whether a delivery that can go out at `at` must end instead: now, or when a hold ends. A hold, a rate
    /// limit, an ordered head or downtime can carry it past its stop date. Manual releases are checked before.
    pub fn overdue(&self, policy: &Policy, at: Timestamp) -> bool {
        self.stop_at(policy).is_some_and(|stop| at > stop)
    }

    /// The corrected due time and clock start of a delivery, if a clock that was ahead may have stored later
    /// moments. `None`: unchanged. `trusted`: whether the clock may say when something began.
    pub fn corrected(
        &self,
        policy: &Policy,
        stored: &StoredDue,
        trusted: bool,
        now: Timestamp,
        chance: Chance,
    ) -> Option<(Timestamp, Timestamp)> {
        let due_at = self.corrected_due(policy, stored, now, chance).unwrap_or(stored.due_at);
        // An attempted delivery has begun.
        let begun = if self.attempts == 0 { due_at.max(now) } else { now };
        let clock_start = if trusted { self.clock_start.min(begun) } else { self.clock_start };
        ((due_at, clock_start) != (stored.due_at, self.clock_start)).then_some((due_at, clock_start))
    }

    /// The corrected due time, if a clock that was ahead stored a later one. `None`: unchanged. A delivery
    /// without attempts is due at once or at its `deliverAt`. A retry keeps its delay, up to the policy's
    /// longest; `Retry-After` is kept by the endpoint's health.
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
            // By this clock the attempt is in the future: another clock planned its retry.
            Some(tried_at) if tried_at > now + CLOCK_TOLERANCE => now + due_at.since(tried_at).min(longest),
            // The clock may have jumped during the attempt.
            _ if clock_was_ahead && due_at > now + longest => {
                now + policy.jitter.apply(policy.schedule.delay(self.attempts), chance)
            }
            _ => due_at,
        };
        (corrected < due_at).then_some(corrected)
    }
}

/// The stored times of a pending delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredDue {
    pub due_at: Timestamp,
    /// The `deliverAt` of its message.
    pub deliver_at: Option<Timestamp>,
    /// When its last scheduled attempt began, by the clock of that time.
    pub tried_at: Option<Timestamp>,
    /// The clock has gone back since some of these times were stored.
    pub clock_was_ahead: bool,
}

/// Clock steps too small to correct due times.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

impl Transition {
    /// The transition after an attempt. `delivery.attempts` already counts it.
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

    /// The ending of the delivery; `None`: it waits for another attempt.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Overrides, builtin};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn corrected(attempts: u32, clock_start: Timestamp, trusted: bool) -> Option<(Timestamp, Timestamp)> {
        let policy = builtin("quick", &Overrides::default()).expect("it is built in").expect("it is valid");
        let stored = StoredDue {
            due_at: NOW + Duration::from_secs(1),
            deliver_at: Some(NOW + Duration::from_secs(1)),
            tried_at: None,
            clock_was_ahead: false,
        };
        Delivery { attempts, clock_start }.corrected(&policy, &stored, trusted, NOW, Chance(0))
    }

    #[test]
    fn a_stop_date_counts_at_the_latest_from_the_start_of_the_delivery() {
        let due_at = NOW + Duration::from_secs(1);
        assert_eq!(corrected(0, NOW + DAY, true), Some((due_at, due_at)), "it begins when it is due");
        assert_eq!(corrected(1, NOW + DAY, true), Some((due_at, NOW)), "what was tried has begun");
        assert_eq!(corrected(1, NOW.before(DAY), true), None);
        assert_eq!(
            corrected(1, NOW + DAY, false),
            None,
            "a clock that is not trusted says nothing about when"
        );
    }

    #[test]
    fn a_disabled_endpoint_skips_or_holds_messages() {
        let skipped = Some(SkipReason::EndpointDisabled);
        assert_eq!(SkipReason::at_acceptance(true, WhenDisabled::Skip), skipped);
        assert_eq!(SkipReason::at_acceptance(true, WhenDisabled::Hold), None);
        assert_eq!(SkipReason::at_acceptance(false, WhenDisabled::Skip), None);
    }
}
