//! Previews a policy: its attempts for a receiver that is down for a while.

use super::{MAX_ATTEMPTS, Policy};
use crate::{Chance, Class, Delivery, Ending, FailureKind, Outcome, Timestamp, Transition};
use std::time::Duration;

/// The attempts of one delivery, each with an immediate response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The time of each attempt after the first.
    pub attempts: Vec<Duration>,
    pub ending: Ending,
}

impl Preview {
    /// Simulates a delivery whose receiver refuses connections for the `outage`; `None`: for ever. `chances`
    /// supplies the jitter.
    pub fn of(policy: &Policy, outage: Option<Duration>, mut chances: impl FnMut() -> Chance) -> Self {
        let start = Timestamp::from_millis(0);
        let (mut now, mut attempts) = (start, Vec::new());
        loop {
            let elapsed = now.since(start);
            attempts.push(elapsed);
            let up = outage.is_some_and(|outage| elapsed >= outage);
            let transition = match up {
                true => Transition::Settle(Ending::Delivered),
                false => {
                    let outcome = Outcome::failed(FailureKind::Connect, "connection refused");
                    let made = u32::try_from(attempts.len()).unwrap_or(MAX_ATTEMPTS);
                    let delivery = Delivery { attempts: made, clock_start: start };
                    Transition::after_attempt(policy, &delivery, &Class::of(policy, &outcome), now, chances())
                }
            };
            match transition {
                Transition::Retry { due_at } => now = due_at,
                Transition::Settle(ending) => return Self { attempts, ending },
                Transition::Stop { reason, .. } => return Self { attempts, ending: Ending::Dead(reason) },
            }
        }
    }

    /// The time of the successful attempt.
    pub fn arrival(&self) -> Option<Duration> {
        let delivered = self.ending == Ending::Delivered;
        self.attempts.last().copied().filter(|_| delivered)
    }
}

/// Pseudo-random numbers from a seed.
#[derive(Clone, Debug)]
pub struct SeededChances(u64);

impl SeededChances {
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    pub fn draw(&mut self) -> Chance {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Chance(z ^ (z >> 31))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::policy::{BUILTIN_NAMES, Overrides, builtin};

    fn policy(name: &str) -> Policy {
        builtin(name, &Overrides::default()).expect("a built-in name").expect("a valid policy")
    }

    fn seconds(preview: &Preview) -> Vec<u64> {
        preview.attempts.iter().map(Duration::as_secs).collect()
    }

    #[test]
    fn d1_the_schedule_of_public_api_without_jitter() {
        let preview = Preview::of(&policy("public-api"), None, || Chance::LOWEST);
        assert_eq!(seconds(&preview), [0, 5, 30, 155, 780, 3905]);
        assert_eq!((preview.ending, preview.arrival()), (Ending::Dead(Reason::Exhausted), None));
    }

    #[test]
    fn b4_persistent_makes_158_attempts_the_last_at_602110_s() {
        let preview = Preview::of(&policy("persistent"), None, || Chance::LOWEST);
        assert_eq!(preview.attempts.len(), 158);
        assert_eq!(preview.attempts.last(), Some(&Duration::from_secs(602_110)));
        assert_eq!(preview.ending, Ending::Dead(Reason::StopDate));
    }

    #[test]
    fn a_delivery_arrives_with_the_first_attempt_after_the_outage() {
        let preview = Preview::of(&policy("persistent"), Some(Duration::from_secs(90)), || Chance::LOWEST);
        assert_eq!(seconds(&preview), [0, 2, 6, 14, 30, 62, 126]);
        assert_eq!(preview.arrival(), Some(Duration::from_secs(126)));
        let at_once = Preview::of(&policy("quick"), Some(Duration::ZERO), || Chance::LOWEST);
        assert_eq!((seconds(&at_once), at_once.arrival()), (vec![0], Some(Duration::ZERO)));
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let plan = |name: &str, seed| {
            let mut chances = SeededChances::seeded(seed);
            Preview::of(&policy(name), None, || chances.draw())
        };
        for name in BUILTIN_NAMES {
            assert_eq!(plan(name, 7), plan(name, 7));
        }
        assert_ne!(plan("standard", 7), plan("standard", 8));
    }
}
