//! The default policy, and what all built-in policies have in common.

mod walk;

use aldaba_delivery::policy::{self, BUILTIN_NAMES, GateRule, Overrides, Redirects};
use aldaba_delivery::{Chance, Ending, FailureKind, Reason, RetryAfter};
use walk::*;

const DELAYS: [u64; 7] = [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600];

#[test]
fn eight_attempts_come_after_the_listed_delays() {
    let walk = walk(&builtin("standard"), Chance(1 << 63), |_, _| answer(500));
    assert_eq!(walk.delays(), all_secs(DELAYS));
    assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted));
}

#[test]
fn jitter_stays_within_a_fifth_around_the_delay() {
    let earliest = walk(&builtin("standard"), Chance::LOWEST, |_, _| answer(500));
    assert_eq!(earliest.delays(), DELAYS.map(|s| secs(s) * 4 / 5));
    let latest = walk(&builtin("standard"), Chance::HIGHEST, |_, _| answer(500));
    assert_eq!(latest.delays(), DELAYS.map(|s| secs(s) * 6 / 5));
}

#[test]
fn a_request_has_30_s_and_5_of_them_to_connect() {
    let timeouts = builtin("standard").timeouts;
    assert_eq!((timeouts.total, timeouts.connect), (secs(30), secs(5)));
}

#[test]
fn every_2xx_is_success() {
    for status in 200..300 {
        assert_eq!(first_attempt(&builtin("standard"), &answer(status)), DELIVERED, "{status}");
    }
}

#[test]
fn a_410_ends_the_delivery_because_the_endpoint_is_gone() {
    assert_eq!(first_attempt(&builtin("standard"), &answer(410)), dead(Reason::EndpointGone));
}

#[test]
fn at_an_address_that_is_nobodys_a_410_ends_the_delivery_and_nothing_else() {
    let policy = builtin("standard").without_owner();
    assert_eq!(first_attempt(&policy, &answer(410)), dead(Reason::Rejected));
    assert!(!policy.gone_disables);
    assert_eq!(first_attempt(&policy, &answer(404)), retry_in(secs(4)));
    let retried = builtin("job-status").without_owner();
    assert_eq!(first_attempt(&retried, &answer(410)), retry_in(secs(1)));
}

#[test]
fn redirects_and_other_4xx_and_5xx_are_retried() {
    assert_eq!(builtin("standard").redirects, Redirects::Fail);
    for status in (300..600).filter(|status| *status != 410) {
        assert_eq!(first_attempt(&builtin("standard"), &answer(status)), retry_in(secs(4)), "{status}");
    }
}

#[test]
fn every_network_error_is_retried() {
    for kind in NETWORK_FAILURES.into_iter().chain([FailureKind::Malformed, FailureKind::Internal]) {
        assert_eq!(first_attempt(&builtin("standard"), &failure(kind)), retry_in(secs(4)), "{kind:?}");
    }
}

#[test]
fn one_forbidden_answer_of_a_name_server_does_not_end_a_delivery() {
    let refused = first_attempt(&builtin("standard"), &failure(FailureKind::TargetForbidden));
    assert_eq!(refused, retry_in(secs(4)));
}

#[test]
fn a_retry_after_on_429_and_503_lengthens_the_delay_up_to_a_day() {
    for status in [429, 503] {
        for (wish, granted) in [(1, 4), (3600, 3600), (315_360_000, 24 * 3600), (u64::MAX, 24 * 3600)] {
            let asks = answer_with(status, RetryAfter::Seconds(wish));
            let transition = first_attempt(&builtin("standard"), &asks);
            assert_eq!(transition, retry_in(secs(granted)), "{status}: {wish}");
        }
    }
}

#[test]
fn a_retry_after_on_another_answer_is_not_heard() {
    for status in [302, 404, 500, 502] {
        let asks = answer_with(status, RetryAfter::Seconds(3600));
        assert_eq!(first_attempt(&builtin("standard"), &asks), retry_in(secs(4)), "{status}");
    }
}

#[test]
fn five_host_failures_in_a_row_hold_the_host_for_1_up_to_60_s() {
    let rule = GateRule::HostFailures { in_a_row: 5, first: secs(1), longest: secs(60) };
    assert_eq!(builtin("standard").gate, rule);
}

#[test]
fn every_built_in_policy_is_valid_and_carries_its_name() {
    for name in BUILTIN_NAMES {
        assert_eq!(builtin(name).name, name);
    }
    assert_eq!(policy::builtin("nobody", &Overrides::default()), None);
}

#[test]
fn overrides_that_no_policy_may_have_are_refused_not_taken() {
    let overrides = Overrides { job_attempts: 0, stop_after: secs(0), ..Overrides::default() };
    for (name, field) in [("job-status", "limit.attempts"), ("persistent", "limit.stopAfter")] {
        let refused = policy::builtin(name, &overrides).unwrap().unwrap_err();
        assert_eq!(refused.field, field);
    }
}
