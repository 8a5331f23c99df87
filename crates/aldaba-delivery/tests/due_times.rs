//! How far ahead a due time can be.

mod walk;

use aldaba_delivery::policy::BUILTIN_NAMES;
use aldaba_delivery::{Chance, Delivery, Timestamp};
use walk::*;

const NOW: Timestamp = Timestamp::from_millis(1_780_000_000_000);

#[test]
fn no_policy_makes_a_delivery_wait_for_longer_than_its_longest_delay() {
    for name in BUILTIN_NAMES {
        let policy = builtin(name);
        for chance in [Chance::LOWEST, Chance(1 << 63), Chance::HIGHEST] {
            let delays = walk(&policy, chance, |_, _| answer(500)).delays();
            assert!(delays.iter().all(|delay| *delay <= policy.longest_delay()), "{name}: {delays:?}");
        }
    }
}

#[test]
fn what_was_never_tried_is_due_at_once_unless_its_sender_asked_for_later() {
    let policy = builtin("persistent");
    let ahead = NOW + secs(400 * 24 * 3600);
    let fresh = Delivery { attempts: 0, clock_start: ahead };
    assert_eq!(fresh.latest_due(&policy, None, NOW), NOW);
    assert_eq!(fresh.latest_due(&policy, Some(ahead), NOW), ahead);
    assert_eq!(fresh.latest_due(&policy, Some(NOW.before(secs(9))), NOW), NOW);
}

#[test]
fn a_retry_is_due_within_the_longest_delay_of_its_policy() {
    let policy = builtin("standard");
    let tried = Delivery { attempts: 3, clock_start: NOW };
    assert_eq!(tried.latest_due(&policy, None, NOW), NOW + policy.longest_delay());
    let later = Some(NOW + secs(90 * 24 * 3600));
    assert_eq!(tried.latest_due(&policy, later, NOW), NOW + policy.longest_delay(), "it has begun");
}
