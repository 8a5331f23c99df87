//! Walks a delivery through a policy: every attempt ends at once, and the next begins when it is due.

#![allow(dead_code, reason = "every test file uses its own part of this")]

use aldaba_delivery::policy::{self, Overrides};
use aldaba_delivery::{
    Chance, Class, Delivery, Ending, FailureKind, Outcome, Policy, Reason, ResponseHead, RetryAfter,
    Timestamp, Transition,
};
use std::time::Duration;

pub(crate) const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

pub(crate) const NETWORK_FAILURES: [FailureKind; 6] = [
    FailureKind::Dns,
    FailureKind::Connect,
    FailureKind::ConnectTimeout,
    FailureKind::Tls,
    FailureKind::Timeout,
    FailureKind::Broken,
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// When each attempt was made, from the start on.
    pub(crate) attempts: Vec<Duration>,
    pub(crate) ending: Ending,
}

impl Walk {
    /// The waits between the attempts.
    pub(crate) fn delays(&self) -> Vec<Duration> {
        self.attempts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

/// `outcome` is asked for each attempt, with its number (1 for the first) and its moment.
pub(crate) fn walk(policy: &Policy, chance: Chance, outcome: impl FnMut(u32, Timestamp) -> Outcome) -> Walk {
    walk_by_chance(policy, |_| chance, outcome)
}

/// As [`walk`], with a chance of its own for each attempt.
pub(crate) fn walk_by_chance(
    policy: &Policy,
    mut chance: impl FnMut(u32) -> Chance,
    mut outcome: impl FnMut(u32, Timestamp) -> Outcome,
) -> Walk {
    let mut delivery = Delivery { attempts: 0, clock_start: START };
    let mut attempts = Vec::new();
    let mut now = START;
    loop {
        attempts.push(now.since(START));
        assert!(attempts.len() <= 100_000, "this delivery would never end");
        delivery.attempts += 1;
        let class = Class::of(policy, &outcome(delivery.attempts, now));
        match Transition::after_attempt(policy, &delivery, &class, now, chance(delivery.attempts)) {
            Transition::Retry { due_at } => now = due_at,
            Transition::Settle(ending) => return Walk { attempts, ending },
            Transition::Stop { reason, .. } => return Walk { attempts, ending: Ending::Dead(reason) },
        }
    }
}

/// What one attempt alone, the first, leads to.
pub(crate) fn first_attempt(policy: &Policy, outcome: &Outcome) -> Transition {
    after(policy, 1, outcome, Chance::LOWEST)
}

/// What the n-th attempt leads to.
pub(crate) fn after(policy: &Policy, attempts: u32, outcome: &Outcome, chance: Chance) -> Transition {
    let delivery = Delivery { attempts, clock_start: START };
    Transition::after_attempt(policy, &delivery, &Class::of(policy, outcome), START, chance)
}

pub(crate) fn builtin(name: &str) -> Policy {
    builtin_with(name, &Overrides::default())
}

pub(crate) fn builtin_with(name: &str, overrides: &Overrides) -> Policy {
    policy::builtin(name, overrides).expect("a built-in name").expect("a valid policy")
}

pub(crate) fn answer(status: u16) -> Outcome {
    Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: None })
}

pub(crate) fn answer_with(status: u16, retry_after: RetryAfter) -> Outcome {
    Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: Some(retry_after) })
}

pub(crate) fn failure(kind: FailureKind) -> Outcome {
    Outcome::failed(kind, "it did not work")
}

pub(crate) fn retry_in(delay: Duration) -> Transition {
    Transition::Retry { due_at: START + delay }
}

pub(crate) fn dead(reason: Reason) -> Transition {
    Transition::Settle(Ending::Dead(reason))
}

pub(crate) const DELIVERED: Transition = Transition::Settle(Ending::Delivered);

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn all_secs(seconds: impl IntoIterator<Item = u64>) -> Vec<Duration> {
    seconds.into_iter().map(secs).collect()
}
