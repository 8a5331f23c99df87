//! What a policy may not be, and what its author is told.

mod walk;

use aldaba_delivery::policy::{
    EndpointFails, GateRule, Jitter, Limit, MAX_ATTEMPTS, Probe, Redirects, RetryAfterUse, Schedule,
    StatusSet, Timeouts,
};
use aldaba_delivery::{Chance, Ending, Policy, PolicySpec, Reason, RetryAfter};
use std::time::Duration;
use walk::*;

const MONTH: Duration = secs(30 * 24 * 3600);
const TICK: Duration = Duration::from_nanos(1);

/// What `standard` is told after this change.
fn refusal(change: impl FnOnce(&mut PolicySpec)) -> String {
    match Policy::new(changed(change)) {
        Ok(policy) => panic!("accepted: {policy:?}"),
        Err(error) => error.to_string(),
    }
}

fn accepts(change: impl FnOnce(&mut PolicySpec)) {
    Policy::new(changed(change)).expect("at the bound, not beyond it");
}

fn changed(change: impl FnOnce(&mut PolicySpec)) -> PolicySpec {
    let mut spec = (*builtin("standard")).clone();
    change(&mut spec);
    spec
}

fn exponential(base: Duration, factor: u32, cap: Duration) -> impl FnOnce(&mut PolicySpec) {
    move |spec| spec.schedule = Schedule::Exponential { base, factor, cap }
}

fn list(delays: Vec<Duration>) -> impl FnOnce(&mut PolicySpec) {
    move |spec| spec.schedule = Schedule::List(delays)
}

#[test]
fn a_name_is_short_and_plain() {
    let why = "name: use 1 to 64 letters, digits, `-`, `_` or `.`";
    for name in ["", "with space", "ñ", "a/b", "line\nbreak", &"x".repeat(65)] {
        assert_eq!(refusal(|spec| spec.name = name.into()), why, "{name:?}");
    }
    accepts(|spec| spec.name = "My_policy-2.0".into());
    accepts(|spec| spec.name = "x".repeat(64));
}

#[test]
fn a_delay_is_never_zero() {
    assert_eq!(refusal(exponential(secs(0), 2, secs(10))), "schedule.base: must be at least 1 ms");
    let below = Duration::from_millis(1) - TICK;
    assert_eq!(refusal(exponential(below, 2, secs(10))), "schedule.base: must be at least 1 ms");
    for delay in [secs(0), below] {
        let why = "schedule.delays: step 2 is below 1ms; a retry needs a delay";
        assert_eq!(refusal(list(vec![secs(1), delay])), why);
    }
    accepts(exponential(Duration::from_millis(1), 1, Duration::from_millis(1)));
    accepts(list(vec![Duration::from_millis(1)]));
}

#[test]
fn a_schedule_that_shrinks_is_refused() {
    assert_eq!(refusal(exponential(secs(1), 0, secs(10))), "schedule.factor: must be at least 1");
}

#[test]
fn a_cap_is_not_below_its_base() {
    let why = "schedule.cap: must not be below the base (10s); it is 9s";
    assert_eq!(refusal(exponential(secs(10), 2, secs(9))), why);
    accepts(exponential(secs(10), 2, secs(10)));
}

#[test]
fn a_list_has_between_1_and_100_steps() {
    assert_eq!(refusal(list(vec![])), "schedule.delays: needs at least one delay");
    let why = "schedule.delays: has 10000 steps; at most 100 are allowed";
    assert_eq!(refusal(list(vec![secs(1); 10_000])), why);
    accepts(list(vec![secs(1); 100]));
}

#[test]
fn no_delay_is_longer_than_30_days() {
    let why = "schedule: the longest delay is 2592001s; at most 30d is allowed";
    assert_eq!(refusal(exponential(secs(1), 2, MONTH + secs(1))), why);
    assert_eq!(refusal(list(vec![secs(1), MONTH + secs(1), secs(1)])), why);
    accepts(exponential(secs(1), u32::MAX, MONTH));
}

#[test]
fn jitter_is_at_most_the_whole_delay_or_30_days() {
    assert_eq!(refusal(|spec| spec.jitter = Jitter::AddPercent(101)), "jitter: 101 % is more than 100 %");
    assert_eq!(refusal(|spec| spec.jitter = Jitter::AroundPercent(255)), "jitter: 255 % is more than 100 %");
    let why = "jitter: at most 30d is allowed";
    assert_eq!(refusal(|spec| spec.jitter = Jitter::AddUpTo(MONTH + TICK)), why);
    for jitter in [Jitter::AddPercent(100), Jitter::AroundPercent(100), Jitter::AddUpTo(MONTH), Jitter::Full]
    {
        accepts(|spec| spec.jitter = jitter);
    }
}

#[test]
fn a_delivery_must_end_one_day() {
    let why = "limit: set a number of attempts, a stop date, or both: without one a delivery would never end";
    assert_eq!(refusal(|spec| spec.limit = Limit { attempts: None, stop_after: None }), why);
}

#[test]
fn a_limit_of_attempts_lies_between_1_and_10000() {
    for attempts in [0, MAX_ATTEMPTS + 1] {
        let why = format!("limit.attempts: must be between 1 and 10000; it is {attempts}");
        assert_eq!(refusal(|spec| spec.limit.attempts = Some(attempts)), why);
    }
    accepts(|spec| spec.limit.attempts = Some(1));
    accepts(|spec| spec.limit.attempts = Some(MAX_ATTEMPTS));
}

#[test]
fn a_stop_date_lies_within_30_days() {
    for (stop, written) in [(secs(0), "0s"), (MONTH + secs(1), "2592001s")] {
        let why = format!("limit.stopAfter: must be between 1ms and 30d; it is {written}");
        assert_eq!(refusal(|spec| spec.limit.stop_after = Some(stop)), why);
    }
    accepts(|spec| spec.limit = Limit { attempts: None, stop_after: Some(MONTH) });
}

#[test]
fn every_timeout_lies_within_2_minutes() {
    let with = |connect, answer, total| refusal(|spec| spec.timeouts = Timeouts { connect, answer, total });
    let (zero, long, ten) = (secs(0), secs(121), secs(10));
    let why = "must be between 1ms and 2m; it is";
    assert_eq!(with(zero, ten, ten), format!("timeouts.connect: {why} 0s"));
    assert_eq!(with(ten, zero, ten), format!("timeouts.answer: {why} 0s"));
    assert_eq!(with(ten, ten, long), format!("timeouts.total: {why} 121s"));
}

#[test]
fn the_total_timeout_is_not_below_its_parts() {
    let why = "timeouts.total: must not be below the time to connect or the time to answer";
    for (connect, answer) in [(5, 11), (11, 5)] {
        let timeouts = Timeouts { connect: secs(connect), answer: secs(answer), total: secs(10) };
        assert_eq!(refusal(|spec| spec.timeouts = timeouts), why);
    }
}

#[test]
fn a_policy_without_any_success_is_rejected() {
    assert_eq!(refusal(|spec| spec.success = StatusSet::default()), "success: needs at least one status");
}

#[test]
fn statuses_are_http_statuses_in_order() {
    let why = "statuses lie between 100 and 999, low before high";
    for range in [(299, 200), (0, 200), (99, 99), (200, 1000), (u16::MAX, u16::MAX)] {
        let set = || StatusSet::ranges([range]);
        assert_eq!(refusal(|spec| spec.success = set()), format!("success: {why}"));
        assert_eq!(refusal(|spec| spec.rejects = set()), format!("rejects: {why}"));
        let listens = refusal(|spec| spec.retry_after.statuses = set());
        assert_eq!(listens, format!("retryAfter.statuses: {why}"));
    }
}

#[test]
fn a_set_of_statuses_has_at_most_100_ranges() {
    let ranges = |count| StatusSet::ranges(vec![(400, 400); count]);
    let why = "rejects: has 101 ranges; at most 100 are allowed";
    assert_eq!(refusal(|spec| spec.rejects = ranges(101)), why);
    accepts(|spec| spec.rejects = ranges(100));
}

#[test]
fn no_status_is_both_success_and_rejection() {
    let why = "rejects: 204 is also a success";
    assert_eq!(refusal(|spec| spec.rejects = StatusSet::ranges([(204, 204)])), why);
    let why = "rejects: 308 is also a success";
    let taken = refusal(|spec| {
        spec.redirects = Redirects::TakeAsSuccess;
        spec.rejects = StatusSet::ranges([(308, 308)]);
    });
    assert_eq!(taken, why);
}

#[test]
fn redirects_are_followed_for_1_to_10_hops() {
    for hops in [0, 11] {
        let why = format!("redirects.hops: must be between 1 and 10; it is {hops}");
        assert_eq!(refusal(|spec| spec.redirects = Redirects::Follow { hops }), why);
    }
}

#[test]
fn the_bounds_of_retry_after_are_in_order_and_within_a_day() {
    let why = "retryAfter: the shortest must not be above the longest, and that not above 1d";
    for (shortest, longest) in [(secs(2), secs(1)), (secs(1), secs(24 * 3600) + TICK)] {
        let told = refusal(|spec| {
            spec.retry_after.use_ = RetryAfterUse::Replace;
            spec.retry_after.shortest = shortest;
            spec.retry_after.longest = longest;
        });
        assert_eq!(told, why);
    }
}

#[test]
fn a_gate_that_counts_needs_a_count_and_holds_in_order() {
    let with = |in_a_row, first, longest| {
        refusal(|spec| spec.gate = GateRule::HostFailures { in_a_row, first, longest })
    };
    assert_eq!(with(0, secs(1), secs(60)), "gate.inARow: must be at least 1");
    let why = "gate.first: must be between 1ms and the longest hold; it is";
    assert_eq!(with(5, secs(0), secs(60)), format!("{why} 0s"));
    assert_eq!(with(5, secs(61), secs(60)), format!("{why} 61s"));
}

#[test]
fn a_gate_that_watches_delays_has_its_threshold_below_the_longest_hold() {
    let rule = GateRule::DelayOver { threshold: secs(60), longest: secs(60) };
    assert_eq!(refusal(|spec| spec.gate = rule), "gate.threshold: must be below the longest hold");
}

#[test]
fn no_hold_is_longer_than_4096_s() {
    let why = "gate.longest: at most 4096s is allowed; it is 4097s";
    let (longest, first) = (secs(4097), secs(1));
    let counts = GateRule::HostFailures { in_a_row: 1, first, longest };
    assert_eq!(refusal(|spec| spec.gate = counts), why);
    let watches = GateRule::DelayOver { threshold: secs(16), longest };
    assert_eq!(refusal(|spec| spec.gate = watches), why);
}

#[test]
fn a_policy_with_a_very_short_timeout_does_not_close_the_gate() {
    let why = "timeouts.connect: must be at least 1s for a policy that takes part in host control";
    let connect = Duration::from_millis(999);
    assert_eq!(refusal(|spec| spec.timeouts.connect = connect), why);
    accepts(|spec| {
        spec.timeouts.connect = connect;
        spec.gate = GateRule::Apart;
    });
}

#[test]
fn an_endpoint_is_given_up_within_30_days_or_never() {
    for (span, written) in [(secs(0), "0s"), (MONTH + secs(1), "2592001s")] {
        let why = format!("endpointFails: must be between 1ms and 30d; it is {written}");
        assert_eq!(refusal(|spec| spec.endpoint_fails = EndpointFails::WithoutSuccessFor(span)), why);
    }
    accepts(|spec| spec.endpoint_fails = EndpointFails::Never);
}

#[test]
fn probes_are_at_least_a_second_and_at_most_30_days_apart() {
    let with = |first_gap, longest_gap| refusal(|spec| spec.probe = Some(Probe { first_gap, longest_gap }));
    assert_eq!(with(secs(1) - TICK, secs(60)), "probe.firstGap: must be at least 1 s");
    let why = "probe.longestGap: must be between the first gap and 30d; it is";
    assert_eq!(with(secs(60), secs(59)), format!("{why} 59s"));
    assert_eq!(with(secs(60), MONTH + secs(1)), format!("{why} 2592001s"));
}

#[test]
fn without_a_limit_of_its_own_a_delivery_still_ends_after_10000_attempts() {
    // A receiver that answers `Retry-After: 0` must not be able to cause a flood until the stop date.
    let policy = Policy::new(changed(|spec| {
        spec.limit = Limit { attempts: None, stop_after: Some(MONTH) };
        spec.retry_after.use_ = RetryAfterUse::Replace;
    }))
    .unwrap();
    let asks = || answer_with(429, RetryAfter::Seconds(0));
    let walk = walk(&policy, Chance::LOWEST, |_, _| asks());
    assert_eq!(walk.attempts.len(), 10_000);
    assert_eq!(walk.ending, Ending::Dead(Reason::Exhausted));
}
