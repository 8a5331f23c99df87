//! Document A, policy `quick`.

mod walk;

use aldaba_delivery::policy::{Redirects, RetentionDefaults};
use aldaba_delivery::{Chance, Ending, FailureKind, Reason, RetryAfter, Timestamp};
use std::time::Duration;
use walk::*;

const BACKOFF: [u64; 5] = [1, 2, 4, 8, 16];

#[test]
fn a1_attempts_come_after_1_2_4_8_16_s_plus_up_to_a_second() {
    let quick = builtin("quick");
    let earliest = walk(&quick, Chance::LOWEST, |_, _| answer(500));
    assert_eq!(earliest.delays(), all_secs(BACKOFF));
    let latest = walk(&quick, Chance::HIGHEST, |_, _| answer(500));
    assert_eq!(latest.delays(), all_secs(BACKOFF.map(|s| s + 1)), "the jitter comes on top of the cap");
    let middle = walk(&quick, Chance(u64::MAX / 2), |_, _| answer(500));
    assert_eq!(middle.delays(), BACKOFF.map(|s| Duration::from_millis(s * 1000 + 500)));
}

#[test]
fn a1_the_first_attempt_is_made_at_once_and_the_sixth_is_the_last() {
    let walk = walk(&builtin("quick"), Chance::LOWEST, |_, _| answer(503));
    assert_eq!(walk.attempts, all_secs([0, 1, 3, 7, 15, 31]));
    assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted));
}

#[test]
fn a1_a_success_on_the_sixth_attempt_still_counts() {
    let walk = walk(&builtin("quick"), Chance::LOWEST, |n, _| answer(if n < 6 { 500 } else { 200 }));
    assert_eq!(walk.attempts.len(), 6);
    assert_eq!(walk.ending, Ending::Delivered);
}

#[test]
fn a2_a_request_has_30_s_in_all() {
    assert_eq!(builtin("quick").timeouts.total, secs(30));
}

#[test]
fn a3_every_2xx_is_delivered() {
    for status in 200..300 {
        assert_eq!(first_attempt(&builtin("quick"), &answer(status)), DELIVERED, "{status}");
    }
}

#[test]
fn a3_redirects_are_followed_for_at_most_5_hops() {
    assert_eq!(builtin("quick").redirects, Redirects::Follow { hops: 5 });
    let too_many = first_attempt(&builtin("quick"), &failure(FailureKind::TooManyRedirects));
    assert_eq!(too_many, retry_in(secs(1)));
}

#[test]
fn a3_a_429_is_retried_by_the_same_backoff() {
    let walk = walk(&builtin("quick"), Chance::LOWEST, |_, _| answer(429));
    assert_eq!(walk.delays(), all_secs(BACKOFF));
    assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted));
}

#[test]
fn a3_a_retry_after_on_429_lengthens_the_delay_and_never_shortens_it() {
    let quick = builtin("quick");
    let longer = answer_with(429, RetryAfter::Seconds(90));
    assert_eq!(first_attempt(&quick, &longer), retry_in(secs(90)));
    let shorter = answer_with(429, RetryAfter::Seconds(2));
    assert_eq!(after(&quick, 4, &shorter, Chance::LOWEST), retry_in(secs(8)));
    let endless = answer_with(429, RetryAfter::Seconds(u64::MAX));
    assert_eq!(first_attempt(&quick, &endless), retry_in(secs(3600)), "an hour at most");
}

#[test]
fn a3_a_retry_after_on_another_answer_is_not_heard() {
    let asks = answer_with(503, RetryAfter::Seconds(90));
    assert_eq!(first_attempt(&builtin("quick"), &asks), retry_in(secs(1)));
}

#[test]
fn a3_every_4xx_but_429_fails_at_once() {
    for status in (400..500).filter(|status| *status != 429) {
        assert_eq!(first_attempt(&builtin("quick"), &answer(status)), dead(Reason::Rejected), "{status}");
    }
}

#[test]
fn a3_every_5xx_is_retried() {
    for status in 500..600 {
        assert_eq!(first_attempt(&builtin("quick"), &answer(status)), retry_in(secs(1)), "{status}");
    }
}

#[test]
fn a3_timeouts_refused_connections_and_network_errors_are_retried() {
    for kind in NETWORK_FAILURES {
        assert_eq!(first_attempt(&builtin("quick"), &failure(kind)), retry_in(secs(1)), "{kind:?}");
    }
}

#[test]
fn a3_what_the_table_does_not_name_is_retried() {
    // A 3xx that reaches the policy is one that could not be followed: 300, or one without Location.
    for status in (100..200).chain(300..400).chain(600..1000) {
        assert_eq!(first_attempt(&builtin("quick"), &answer(status)), retry_in(secs(1)), "{status}");
    }
    assert_eq!(first_attempt(&builtin("quick"), &failure(FailureKind::Malformed)), retry_in(secs(1)));
}

#[test]
fn a5_delivered_ones_are_kept_for_24_hours_among_the_newest_1000_and_failed_ones_until_removed() {
    let retention = builtin("quick").retention;
    assert_eq!(retention.newest, Some(1000));
    let defaults = RetentionDefaults { delivered: Some(secs(1)), dead: Some(secs(1)) };
    let now = Timestamp::from_millis(1_800_000_000_000);
    let cutoffs = retention.cutoffs(&defaults, false, now);
    let day_ago = Timestamp::from_millis(1_800_000_000_000 - 24 * 3_600_000);
    assert_eq!(cutoffs.delivered, Some(day_ago + Duration::from_millis(1)), "younger than 24 h, or it goes");
    assert_eq!(cutoffs.dead, None);
}
