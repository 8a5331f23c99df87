//! Document D, policy `public-api`. What its attempts mean for the endpoint is in `health.rs`.

mod walk;

use aldaba_delivery::policy::{EndpointFails, Redirects};
use aldaba_delivery::{Chance, Ending, FailureKind, Reason, RetryAfter};
use std::time::Duration;
use walk::*;

#[test]
fn d1_five_retries_come_at_5_30_155_780_and_3905_s() {
    let walk = walk(&builtin("public-api"), Chance::LOWEST, |_, _| answer(500));
    assert_eq!(walk.attempts, all_secs([0, 5, 30, 155, 780, 3905]));
    assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted));
}

#[test]
fn d1_jitter_adds_up_to_a_tenth_and_takes_nothing_off() {
    let walk = walk(&builtin("public-api"), Chance::HIGHEST, |_, _| answer(500));
    let with_a_tenth = [5, 25, 125, 625, 3125].map(|s| Duration::from_millis(s * 1100));
    assert_eq!(walk.delays(), with_a_tenth);
}

#[test]
fn d2_every_5xx_and_429_are_retried() {
    for status in (500..600).chain([429]) {
        assert_eq!(first_attempt(&builtin("public-api"), &answer(status)), retry_in(secs(5)), "{status}");
    }
}

#[test]
fn d2_timeouts_dns_refused_connections_and_other_network_errors_are_retried() {
    for kind in NETWORK_FAILURES {
        assert_eq!(first_attempt(&builtin("public-api"), &failure(kind)), retry_in(secs(5)), "{kind:?}");
    }
}

#[test]
fn d2_a_retry_after_on_429_replaces_the_delay_shorter_or_longer() {
    let policy = builtin("public-api");
    for (attempts, wish) in [(1, 60), (5, 60), (3, 2)] {
        let asks = answer_with(429, RetryAfter::Seconds(wish));
        assert_eq!(after(&policy, attempts, &asks, Chance::HIGHEST), retry_in(secs(wish)));
    }
}

#[test]
fn d2_a_retry_that_the_receiver_timed_still_counts() {
    let asks = || answer_with(429, RetryAfter::Seconds(60));
    let walk = walk(&builtin("public-api"), Chance::LOWEST, |_, _| asks());
    assert_eq!(walk.attempts, all_secs([0, 60, 120, 180, 240, 300]));
    assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted));
}

#[test]
fn d2_a_retry_after_on_503_is_not_heard() {
    let asks = answer_with(503, RetryAfter::Seconds(60));
    assert_eq!(first_attempt(&builtin("public-api"), &asks), retry_in(secs(5)));
}

#[test]
fn d3_every_4xx_but_429_fails_at_once() {
    for status in (400..500).filter(|status| *status != 429) {
        let transition = first_attempt(&builtin("public-api"), &answer(status));
        assert_eq!(transition, dead(Reason::Rejected), "{status}");
    }
}

#[test]
fn d3_a_malformed_response_fails_at_once() {
    let malformed = first_attempt(&builtin("public-api"), &failure(FailureKind::Malformed));
    assert_eq!(malformed, dead(Reason::Rejected));
}

#[test]
fn d3_every_2xx_and_3xx_is_success_and_redirects_are_not_followed() {
    let policy = builtin("public-api");
    assert_eq!(policy.redirects, Redirects::TakeAsSuccess);
    for status in 200..400 {
        assert_eq!(first_attempt(&policy, &answer(status)), DELIVERED, "{status}");
    }
}

#[test]
fn d4_the_endpoint_fails_when_a_delivery_has_used_up_its_retries_and_nothing_probes_it() {
    let policy = builtin("public-api");
    assert_eq!((policy.endpoint_fails, policy.probe), (EndpointFails::WhenExhausted, None));
}

#[test]
fn d5_a_released_delivery_keeps_its_count_of_retries() {
    // It was waiting for its fifth attempt when the endpoint failed; after the resume two are left.
    let policy = builtin("public-api");
    assert_eq!(after(&policy, 5, &answer(500), Chance::LOWEST), retry_in(secs(3125)));
    assert_eq!(after(&policy, 6, &answer(500), Chance::LOWEST), dead(Reason::Exhausted));
}

#[test]
fn d6_5_s_to_connect_then_10_s_for_the_request_and_its_answer() {
    let timeouts = builtin("public-api").timeouts;
    assert_eq!((timeouts.connect, timeouts.answer), (secs(5), secs(10)));
    assert_eq!(timeouts.total, secs(15), "the total leaves room for both");
}

#[test]
fn d11_final_reasons_have_the_words_of_the_document() {
    assert_eq!(Reason::Rejected.text(), "Non-retriable error");
    assert_eq!(Reason::Exhausted.text(), "Max retries exhausted");
    for reason in Reason::ALL {
        assert_eq!(Reason::named(reason.name()), Some(reason));
    }
    assert_eq!(Reason::named("delivered"), None);
}
