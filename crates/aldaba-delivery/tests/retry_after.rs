//! `Retry-After` as receivers write it.

mod walk;

use aldaba_delivery::{Chance, RetryAfter, Timestamp, Transition};
use walk::*;

fn parse(values: &[&str]) -> Option<RetryAfter> {
    RetryAfter::parse(values.iter().map(|value| value.as_bytes()))
}

/// What the header leads to after the first attempt, under a policy that does as it is told.
fn public_api_after(values: &[&str]) -> Transition {
    let policy = builtin("public-api");
    match parse(values) {
        Some(wish) => first_attempt(&policy, &answer_with(429, wish)),
        None => first_attempt(&policy, &answer(429)),
    }
}

#[test]
fn whole_seconds_are_accepted() {
    assert_eq!(parse(&["120"]), Some(RetryAfter::Seconds(120)));
    assert_eq!(parse(&["0"]), Some(RetryAfter::Seconds(0)));
    assert_eq!(parse(&[" 007 "]), Some(RetryAfter::Seconds(7)));
}

#[test]
fn an_http_date_is_taken_in_all_three_spellings() {
    let date = Some(RetryAfter::At(Timestamp::from_millis(784_111_777_000)));
    assert_eq!(parse(&["Sun, 06 Nov 1994 08:49:37 GMT"]), date);
    assert_eq!(parse(&["Sunday, 06-Nov-94 08:49:37 GMT"]), date);
    assert_eq!(parse(&["Sun Nov  6 08:49:37 1994"]), date);
}

#[test]
fn ten_years_are_clamped_to_the_policys_longest() {
    assert_eq!(public_api_after(&["315360000"]), retry_in(secs(24 * 3600)));
    assert_eq!(public_api_after(&["Tue, 01 Jan 2036 00:00:00 GMT"]), retry_in(secs(24 * 3600)));
}

#[test]
fn more_digits_than_any_number_holds_are_clamped_too() {
    assert_eq!(parse(&["99999999999999999999999999"]), Some(RetryAfter::Seconds(u64::MAX)));
    assert_eq!(public_api_after(&["99999999999999999999999999"]), retry_in(secs(24 * 3600)));
}

#[test]
fn a_date_that_has_passed_means_as_soon_as_the_policy_allows() {
    assert_eq!(public_api_after(&["Sun, 06 Nov 1994 08:49:37 GMT"]), retry_in(secs(1)));
    let under_quick = answer_with(429, RetryAfter::At(Timestamp::MIN));
    assert_eq!(after(&builtin("quick"), 3, &under_quick, Chance::LOWEST), retry_in(secs(4)));
}

#[test]
fn garbage_is_no_wish_and_the_planned_delay_stands() {
    let garbage = [
        "-5",
        "+5",
        "1e300",
        "1.5",
        "inf",
        "NaN",
        "",
        " ",
        "\0",
        "5 s",
        "5,5",
        "0x10",
        "soon",
        "٣",
        "Sun, 06 Nov 1994",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Thu, 31 Feb 2036 00:00:00 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
    ];
    for text in garbage {
        assert_eq!(parse(&[text]), None, "{text:?}");
        assert_eq!(public_api_after(&[text]), retry_in(secs(5)), "{text:?}");
    }
    assert_eq!(RetryAfter::parse([&b"\xff\xfe"[..]]), None);
}

#[test]
fn two_headers_count_only_if_they_are_equal() {
    assert_eq!(parse(&["60", "60"]), Some(RetryAfter::Seconds(60)));
    for differing in [["60", "61"], ["60", "soon"], ["soon", "60"]] {
        assert_eq!(parse(&differing), None, "{differing:?}");
    }
    assert_eq!(parse(&[]), None);
}
