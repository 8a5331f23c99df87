//! Document B, policy `persistent`. Host control (B2) is in `gate.rs`.

mod walk;

use aldaba_delivery::policy::{Overrides, Redirects};
use aldaba_delivery::{
    Chance, Class, Delivery, Ending, FailureKind, Reason, RetryAfter, Timestamp, Transition,
};
use std::time::Duration;
use walk::*;

const WEEK: u64 = 7 * 24 * 3600;

#[test]
fn b1_the_nth_failure_is_followed_by_2_to_the_n_seconds_up_to_4096() {
    let walk = walk(&builtin("persistent"), Chance::HIGHEST, |_, _| answer(500));
    let first: Vec<_> = walk.delays().into_iter().take(15).collect();
    assert_eq!(
        first,
        all_secs([2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096, 4096]),
        "and no jitter is added"
    );
}

#[test]
fn b1_nothing_but_the_stop_date_limits_the_attempts() {
    let persistent = builtin("persistent");
    assert_eq!(persistent.limit.attempts, None);
    let longest = Overrides { stop_after: secs(30 * 24 * 3600), ..Overrides::default() };
    let walk = walk(&builtin_with("persistent", &longest), Chance::LOWEST, |_, _| answer(500));
    assert_eq!((walk.attempts.len(), walk.ending), (643, Ending::Dead(Reason::StopDate)));
}

#[test]
fn b3_the_stop_date_lies_10080_minutes_after_the_start() {
    let delivery = Delivery { attempts: 0, clock_start: START };
    assert_eq!(delivery.stop_at(&builtin("persistent")), Some(START + secs(10_080 * 60)));
}

#[test]
fn b3_retry_stop_date_after_minutes_moves_it() {
    let read = Overrides::read(|name| (name == "RETRY_STOP_DATE_AFTER_MINUTES").then(|| "1".into()));
    let persistent = builtin_with("persistent", &read.unwrap());
    let delivery = Delivery { attempts: 0, clock_start: START };
    assert_eq!(delivery.stop_at(&persistent), Some(START + secs(60)));
    let walk = walk(&persistent, Chance::LOWEST, |_, _| answer(500));
    assert_eq!(walk.attempts, all_secs([0, 2, 6, 14, 30]));
}

#[test]
fn b4_a_week_holds_158_attempts_the_last_at_602110_s() {
    let walk = walk(&builtin("persistent"), Chance::HIGHEST, |_, _| answer(500));
    assert_eq!(walk.attempts.len(), 158);
    assert_eq!(walk.attempts.last(), Some(&secs(602_110)));
    assert_eq!(walk.ending, Ending::Dead(Reason::StopDate));
}

#[test]
fn b4_an_attempt_exactly_at_the_stop_date_is_still_made() {
    let fits = Overrides { stop_after: secs(2 + 4), ..Overrides::default() };
    let walk_that_fits = walk(&builtin_with("persistent", &fits), Chance::LOWEST, |_, _| answer(500));
    assert_eq!(walk_that_fits.attempts, all_secs([0, 2, 6]));
    let misses = Overrides { stop_after: secs(6) - Duration::from_millis(1), ..fits };
    let walk_that_misses = walk(&builtin_with("persistent", &misses), Chance::LOWEST, |_, _| answer(500));
    assert_eq!(walk_that_misses.attempts, all_secs([0, 2]));
}

#[test]
fn b4_a_delivery_that_a_hold_moves_past_its_stop_date_ends() {
    let persistent = builtin("persistent");
    let delivery = Delivery { attempts: 5, clock_start: START };
    assert!(!delivery.overdue(&persistent, START + secs(WEEK)));
    assert!(delivery.overdue(&persistent, START + secs(WEEK) + Duration::from_millis(1)));
}

#[test]
fn b4_a_delivery_that_was_never_tried_ends_at_its_stop_date_too() {
    let untried = Delivery { attempts: 0, clock_start: START };
    assert!(!untried.overdue(&builtin("persistent"), START + secs(WEEK)));
    assert!(untried.overdue(&builtin("persistent"), START + secs(WEEK) + Duration::from_millis(1)));
}

#[test]
fn b4_the_end_by_the_stop_date_carries_the_delay_that_would_have_followed() {
    let persistent = builtin("persistent");
    let delivery = Delivery { attempts: 158, clock_start: START };
    let class = Class::of(&persistent, &answer(500));
    let now = START + secs(602_110);
    let stopped = Transition::after_attempt(&persistent, &delivery, &class, now, Chance::LOWEST);
    assert_eq!(stopped, Transition::Stop { reason: Reason::StopDate, delay: secs(4096) });
    assert_eq!(stopped.ending(), Some(Ending::Dead(Reason::StopDate)));
}

#[test]
fn b4_a_policy_without_a_stop_date_never_calls_a_delivery_overdue() {
    let delivery = Delivery { attempts: 3, clock_start: START };
    assert_eq!(delivery.stop_at(&builtin("quick")), None);
    assert!(!delivery.overdue(&builtin("quick"), Timestamp::MAX));
}

#[test]
fn b5_only_200_is_success() {
    assert_eq!(first_attempt(&builtin("persistent"), &answer(200)), DELIVERED);
}

#[test]
fn b7_every_other_answer_is_a_failed_attempt_and_is_retried() {
    for status in (100..1000).filter(|status| *status != 200) {
        assert_eq!(first_attempt(&builtin("persistent"), &answer(status)), retry_in(secs(2)), "{status}");
    }
}

#[test]
fn b7_every_network_error_is_retried() {
    for kind in NETWORK_FAILURES.into_iter().chain([FailureKind::Malformed]) {
        assert_eq!(first_attempt(&builtin("persistent"), &failure(kind)), retry_in(secs(2)), "{kind:?}");
    }
}

#[test]
fn b7_redirects_are_not_followed() {
    assert_eq!(builtin("persistent").redirects, Redirects::Fail);
}

#[test]
fn b7_a_request_has_30_s_and_5_of_them_to_connect() {
    let timeouts = builtin("persistent").timeouts;
    assert_eq!((timeouts.total, timeouts.connect), (secs(30), secs(5)));
}

#[test]
fn b7_a_retry_after_changes_nothing() {
    for status in [429, 503] {
        let asks = answer_with(status, RetryAfter::Seconds(600));
        assert_eq!(first_attempt(&builtin("persistent"), &asks), retry_in(secs(2)), "{status}");
    }
}
