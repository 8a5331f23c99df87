//! How far ahead a due time can be.

mod walk;

use aldaba_delivery::policy::BUILTIN_NAMES;
use aldaba_delivery::{Chance, Delivery, StoredDue, Timestamp};
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

fn stored(due_at: Timestamp) -> StoredDue {
    StoredDue { due_at, deliver_at: None, tried_at: None, clock_was_ahead: false }
}

#[test]
fn an_untried_delivery_is_due_immediately_unless_it_was_delayed() {
    let policy = builtin("persistent");
    let ahead = NOW + secs(400 * 24 * 3600);
    let fresh = Delivery { attempts: 0, clock_start: ahead };
    let due = |stored| fresh.corrected_due(&policy, &stored, NOW, Chance::LOWEST);
    assert_eq!(due(stored(ahead)), Some(NOW));
    let asked = |deliver_at| StoredDue { deliver_at: Some(deliver_at), ..stored(ahead) };
    assert_eq!(due(asked(ahead)), None);
    assert_eq!(due(asked(NOW.before(secs(9)))), Some(NOW));
}

#[test]
fn a_retry_that_a_clock_ahead_has_planned_keeps_its_delay_up_to_the_longest_of_its_policy() {
    for name in BUILTIN_NAMES {
        let policy = builtin(name);
        let tried = Delivery { attempts: 1, clock_start: NOW };
        for ahead in [secs(3600), secs(25 * 3600), secs(400 * 24 * 3600)] {
            let tried_at = NOW + ahead;
            let planned = |delay| StoredDue { tried_at: Some(tried_at), ..stored(tried_at + delay) };
            let due = |stored| tried.corrected_due(&policy, &stored, NOW, Chance::HIGHEST);
            assert_eq!(due(planned(secs(7))), Some(NOW + secs(7).min(policy.longest_delay())), "{name}");
            let day = due(planned(secs(24 * 3600)));
            assert_eq!(day, Some(NOW + policy.longest_delay().min(secs(24 * 3600))), "{name}: a Retry-After");
        }
    }
}

#[test]
fn a_planned_retry_keeps_its_time_after_a_policy_change() {
    let policy = builtin("quick");
    let tried = Delivery { attempts: 1, clock_start: NOW };
    let planned = StoredDue { tried_at: Some(NOW.before(secs(1))), ..stored(NOW + secs(5 * 3600)) };
    assert_eq!(tried.corrected_due(&policy, &planned, NOW, Chance::LOWEST), None);
    let a_little_ahead = StoredDue { tried_at: Some(NOW + secs(59)), ..planned };
    assert_eq!(tried.corrected_due(&policy, &a_little_ahead, NOW, Chance::LOWEST), None);
}

#[test]
fn after_a_clock_that_was_ahead_no_retry_is_due_later_than_its_schedule_allows() {
    let policy = builtin("standard");
    let tried = Delivery { attempts: 3, clock_start: NOW };
    // It leapt while the attempt was made.
    let leapt = StoredDue {
        tried_at: Some(NOW.before(secs(1))),
        clock_was_ahead: true,
        ..stored(NOW + secs(400 * 24 * 3600))
    };
    let due = |chance| tried.corrected_due(&policy, &leapt, NOW, chance).unwrap();
    assert!(due(Chance::HIGHEST) <= NOW + policy.longest_delay());
    assert!(due(Chance::LOWEST) < due(Chance::HIGHEST), "they do not all come at one moment");
    let within = StoredDue { due_at: NOW + policy.longest_delay(), ..leapt };
    assert_eq!(tried.corrected_due(&policy, &within, NOW, Chance::LOWEST), None);
}
