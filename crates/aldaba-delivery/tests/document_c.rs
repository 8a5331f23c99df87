//! Document C, policy `job-status`.

mod walk;

use aldaba_delivery::policy::{Overrides, Redirects};
use aldaba_delivery::{
    Chance, Ending, FailureKind, Outcome, Reason, ResponseHead, RetryAfter, split_timeout,
};
use std::time::Duration;
use walk::*;

#[test]
fn c3_an_attempt_has_10_s_and_there_are_3() {
    let policy = builtin("job-status");
    assert_eq!(policy.timeouts.total, secs(10));
    let walk = walk(&policy, Chance::LOWEST, |_, _| answer(500));
    assert_eq!((walk.attempts.len(), walk.ending), (3, Ending::Dead(Reason::Exhausted)));
}

#[test]
fn c3_the_three_variables_override_the_defaults() {
    let read = Overrides::read(|name| match name {
        "WEBHOOK_TIMEOUT_MS" => Some("2500".into()),
        "WEBHOOK_MAX_ATTEMPTS" => Some("5".into()),
        "WEBHOOK_RETRY_INTERVAL_MS" => Some("1000".into()),
        _ => None,
    });
    let overrides = read.unwrap();
    assert_eq!(overrides.sweep_interval, secs(1));
    let policy = builtin_with("job-status", &overrides);
    assert_eq!(policy.timeouts.total, Duration::from_millis(2500));
    let walk = walk(&policy, Chance::LOWEST, |_, _| answer(500));
    assert_eq!(walk.attempts, all_secs([0, 1, 3, 7, 15]), "the sweep's interval does not delay a retry");
}

#[test]
fn c3_the_delays_are_settings_and_no_longest_delay_is_below_the_first() {
    let read = |base: Option<&str>, longest: Option<&str>| {
        Overrides::read(|name| match name {
            "WEBHOOK_BASE_DELAY_MS" => base.map(Into::into),
            "WEBHOOK_MAX_DELAY_MS" => longest.map(Into::into),
            "WEBHOOK_MAX_ATTEMPTS" => Some("6".into()),
            _ => None,
        })
    };
    let gaps = |base, longest| {
        let policy = builtin_with("job-status", &read(base, longest).unwrap());
        let walk = walk(&policy, Chance::LOWEST, |_, _| answer(500));
        walk.attempts.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect::<Vec<_>>()
    };
    assert_eq!(gaps(None, None), [1000, 2000, 4000, 8000, 16_000]);
    assert_eq!(gaps(Some("250"), Some("1500")), [250, 500, 1000, 1500, 1500]);
    assert_eq!(gaps(None, Some("1000")), [1000; 5]);
    assert_eq!(gaps(Some("300000"), None), [300_000; 5]);
    for (base, longest, why) in [
        (
            Some("2000"),
            Some("1999"),
            "WEBHOOK_MAX_DELAY_MS=1999: expected a whole number from 2000 to 2592000000 (it must not be below \
             WEBHOOK_BASE_DELAY_MS)",
        ),
        (
            None,
            Some("999"),
            "WEBHOOK_MAX_DELAY_MS=999: expected a whole number from 1000 to 2592000000 (it must not be below \
             WEBHOOK_BASE_DELAY_MS)",
        ),
        (
            Some("300001"),
            None,
            "WEBHOOK_BASE_DELAY_MS=300001: expected a whole number from 1 to 300000 (it must not be above \
             WEBHOOK_MAX_DELAY_MS; set that as well)",
        ),
    ] {
        assert_eq!(read(base, longest).unwrap_err().to_string(), why);
    }
}

#[test]
fn c3_without_variables_the_defaults_hold() {
    let defaults = Overrides::read(|_| None).unwrap();
    assert_eq!(defaults, Overrides::default());
    assert_eq!(defaults.sweep_interval, Duration::from_millis(30_000));
}

#[test]
fn c3_a_variable_that_is_no_number_in_its_bounds_is_refused_by_name() {
    let refused = [
        ("WEBHOOK_TIMEOUT_MS", "0", 120_000_u64),
        ("WEBHOOK_TIMEOUT_MS", "120001", 120_000),
        ("WEBHOOK_MAX_ATTEMPTS", "-1", 10_000),
        ("WEBHOOK_MAX_ATTEMPTS", "10001", 10_000),
        ("WEBHOOK_RETRY_INTERVAL_MS", "", 2_592_000_000),
        ("WEBHOOK_BASE_DELAY_MS", "0", 2_592_000_000),
        ("WEBHOOK_BASE_DELAY_MS", "1s", 2_592_000_000),
        ("WEBHOOK_MAX_DELAY_MS", "2592000001", 2_592_000_000),
        ("RETRY_STOP_DATE_AFTER_MINUTES", "1e3", 43_200),
        ("RETRY_STOP_DATE_AFTER_MINUTES", "99999999999999999999", 43_200),
    ];
    for (name, value, most) in refused {
        let error = Overrides::read(|asked| (asked == name).then(|| value.into())).unwrap_err();
        let expected = format!("{name}={value}: expected a whole number from 1 to {most}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn c5_the_first_attempt_is_made_at_once() {
    let walk = walk(&builtin("job-status"), Chance::HIGHEST, |_, _| answer(204));
    assert_eq!((walk.attempts, walk.ending), (all_secs([0]), Ending::Delivered));
}

#[test]
fn c5_a_timeout_reads_request_timeout() {
    for kind in [FailureKind::Timeout, FailureKind::ConnectTimeout] {
        let outcome = Outcome::failed(kind, "deadline has elapsed");
        assert_eq!((outcome.to_string().as_str(), outcome.status()), ("Request timeout", None));
    }
}

#[test]
fn the_history_of_a_timeout_names_the_phase() {
    for kind in [FailureKind::Timeout, FailureKind::ConnectTimeout] {
        let recorded = Outcome::failed(kind, "the TLS handshake took too long").recorded_error();
        assert_eq!(recorded, "Request timeout: the TLS handshake took too long");
        assert_eq!(split_timeout(&recorded), ("Request timeout", Some("the TLS handshake took too long")));
    }
    // As former versions recorded it.
    assert_eq!(split_timeout("Request timeout"), ("Request timeout", None));
    let refused = Outcome::failed(FailureKind::Connect, "connection refused");
    for (outcome, text) in [(refused, "connection refused"), (answer(599), "HTTP 599")] {
        assert_eq!(outcome.recorded_error(), text);
        assert_eq!(split_timeout(text), (text, None));
    }
}

#[test]
fn c5_a_bad_answer_reads_its_status_and_phrase() {
    let phrase = "Service Unavailable".into();
    let outcome = Outcome::Response(ResponseHead { status: 503, phrase, retry_after: None });
    assert_eq!(outcome.to_string(), "HTTP 503: Service Unavailable");
    assert_eq!(outcome.status(), Some(503));
    assert_eq!(answer(599).to_string(), "HTTP 599", "without a phrase there is nothing to add");
}

#[test]
fn c5_a_network_error_keeps_its_own_words_and_has_no_status() {
    let outcome = Outcome::failed(FailureKind::Connect, "connection refused");
    assert_eq!((outcome.to_string().as_str(), outcome.status()), ("connection refused", None));
}

#[test]
fn c6_delays_double_from_1_s_up_to_300_s_without_jitter() {
    let many = Overrides { job_attempts: 12, ..Overrides::default() };
    let walk = walk(&builtin_with("job-status", &many), Chance::HIGHEST, |_, _| answer(500));
    assert_eq!(walk.delays(), all_secs([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]));
}

#[test]
fn c8_every_2xx_is_success() {
    for status in 200..300 {
        assert_eq!(first_attempt(&builtin("job-status"), &answer(status)), DELIVERED, "{status}");
    }
}

#[test]
fn c8_every_other_answer_is_retried() {
    for status in (100..200).chain(300..1000) {
        assert_eq!(first_attempt(&builtin("job-status"), &answer(status)), retry_in(secs(1)), "{status}");
    }
    let asks = answer_with(429, RetryAfter::Seconds(600));
    assert_eq!(first_attempt(&builtin("job-status"), &asks), retry_in(secs(1)));
}

#[test]
fn c8_every_error_is_retried_until_the_attempts_are_used_up() {
    for kind in NETWORK_FAILURES.into_iter().chain([FailureKind::Malformed, FailureKind::TooManyRedirects]) {
        let walk = walk(&builtin("job-status"), Chance::LOWEST, |_, _| failure(kind));
        assert_eq!(walk.attempts, all_secs([0, 1, 3]), "{kind:?}");
        assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted), "{kind:?}");
    }
}

#[test]
fn c8_redirects_are_followed() {
    assert!(matches!(builtin("job-status").redirects, Redirects::Follow { .. }));
}

#[test]
fn c8_an_address_that_the_guard_refuses_is_resolved_again_and_is_the_reason_in_the_end() {
    let walk = walk(&builtin("job-status"), Chance::LOWEST, |_, _| failure(FailureKind::TargetForbidden));
    assert_eq!(walk.attempts, all_secs([0, 1, 3]));
    assert_eq!(walk.ending, Ending::Dead(Reason::TargetForbidden));
}
