//! Any policy, any outcome, any state: what a hostile operator or receiver could come up with.

use aldaba_delivery::policy::{
    EndpointFails, GateRule, Jitter, Keep, Limit, Probe, Redirects, RetentionRule, RetryAfterRule,
    RetryAfterUse, Schedule, StatusSet, Timeouts,
};
use aldaba_delivery::{
    AppId, Chance, FailureKind, Gate, GateScope, Health, HealthStatus, Outcome, PolicySpec, ResponseHead,
    RetryAfter, Timestamp,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::time::Duration;

/// Spans at the edges of what is allowed and of what can be written, and everything between.
pub(crate) fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_secs(30 * 24 * 3600)),
        Just(Duration::from_millis(i64::MAX as u64)),
        Just(Duration::MAX),
        sensible(1, 120_000),
        any::<Duration>(),
    ]
}

/// From `least` to `most` milliseconds.
fn sensible(least: u64, most: u64) -> impl Strategy<Value = Duration> + Clone {
    (least..=most).prop_map(Duration::from_millis)
}

pub(crate) fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
        Just(Timestamp::from_millis(0)),
        any::<i64>().prop_map(Timestamp::from_millis),
        (1_700_000_000_000..1_900_000_000_000_i64).prop_map(Timestamp::from_millis),
    ]
}

pub(crate) fn chance() -> impl Strategy<Value = Chance> {
    prop_oneof![Just(Chance::LOWEST), Just(Chance::HIGHEST), any::<u64>().prop_map(Chance)]
}

pub(crate) fn schedule(span: impl Strategy<Value = Duration> + Clone) -> impl Strategy<Value = Schedule> {
    prop_oneof![
        (span.clone(), any::<u32>(), span.clone()).prop_map(|(a, factor, b)| Schedule::Exponential {
            base: a,
            factor,
            cap: b
        }),
        vec(span, 0..8).prop_map(Schedule::List),
    ]
}

pub(crate) fn jitter(span: impl Strategy<Value = Duration>) -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        span.prop_map(Jitter::AddUpTo),
        any::<u8>().prop_map(Jitter::AddPercent),
        any::<u8>().prop_map(Jitter::AroundPercent),
    ]
}

fn statuses() -> impl Strategy<Value = StatusSet> {
    vec((any::<u16>(), any::<u16>()), 0..4).prop_map(StatusSet::ranges)
}

fn redirects() -> impl Strategy<Value = Redirects> {
    prop_oneof![
        Just(Redirects::Fail),
        Just(Redirects::TakeAsSuccess),
        any::<u8>().prop_map(|hops| Redirects::Follow { hops }),
    ]
}

fn retry_after_use() -> impl Strategy<Value = RetryAfterUse> {
    prop_oneof![Just(RetryAfterUse::Lengthen), Just(RetryAfterUse::Replace)]
}

fn gate_rule() -> impl Strategy<Value = GateRule> {
    prop_oneof![
        Just(GateRule::Apart),
        (any::<u32>(), duration(), duration())
            .prop_map(|(in_a_row, first, longest)| GateRule::HostFailures { in_a_row, first, longest }),
        (duration(), duration()).prop_map(|(threshold, longest)| GateRule::DelayOver { threshold, longest }),
    ]
}

fn endpoint_fails() -> impl Strategy<Value = EndpointFails> {
    prop_oneof![
        Just(EndpointFails::Never),
        Just(EndpointFails::WhenExhausted),
        duration().prop_map(EndpointFails::WithoutSuccessFor),
    ]
}

fn retention(
    span: impl Strategy<Value = Duration> + Clone + 'static,
    newest: impl Strategy<Value = u32> + 'static,
) -> BoxedStrategy<RetentionRule> {
    let keep = || prop_oneof![Just(Keep::AsSet), Just(Keep::UntilRemoved), span.clone().prop_map(Keep::For)];
    let parts = (keep(), option::of(newest), keep());
    parts.prop_map(|(delivered, newest, dead)| RetentionRule { delivered, newest, dead }).boxed()
}

/// A policy as anyone might write it; nearly all are refused.
pub(crate) fn spec() -> impl Strategy<Value = PolicySpec> {
    let when =
        (schedule(duration().boxed()), jitter(duration()), option::of(any::<u32>()), option::of(duration()));
    let what = (statuses(), statuses(), redirects(), any::<[bool; 2]>());
    let wish = (statuses(), retry_after_use(), duration(), duration());
    let probe = option::of((duration(), duration()));
    let rest = (
        [duration(), duration(), duration()],
        gate_rule(),
        endpoint_fails(),
        probe,
        retention(duration().boxed(), any::<u32>()),
    );
    ("[a-z .]{0,70}", when, what, wish, rest).prop_map(|(name, when, what, wish, rest)| PolicySpec {
        name,
        schedule: when.0,
        jitter: when.1,
        limit: Limit { attempts: when.2, stop_after: when.3 },
        timeouts: Timeouts { connect: rest.0[0], answer: rest.0[1], total: rest.0[2] },
        success: what.0,
        redirects: what.2,
        rejects: what.1,
        malformed_rejects: what.3[0],
        gone_disables: what.3[1],
        retry_after: RetryAfterRule { statuses: wish.0, use_: wish.1, shortest: wish.2, longest: wish.3 },
        gate: rest.1,
        endpoint_fails: rest.2,
        probe: rest.3.map(|(first_gap, longest_gap)| Probe { first_gap, longest_gap }),
        retention: rest.4,
    })
}

/// A policy that is accepted.
pub(crate) fn valid_spec() -> impl Strategy<Value = PolicySpec> {
    let attempts = prop_oneof![Just(None), (1..40_u32).prop_map(Some)];
    let when = (valid_schedule(), valid_jitter(), attempts, option::of(sensible(1, 600_000)));
    let wish = (retry_after_use(), pair(0, 24 * 3_600_000));
    let gone = any::<[bool; 2]>();
    let rest = (
        valid_gate_rule(),
        valid_endpoint_fails(),
        option::of(pair(1000, 90_000_000)),
        retention(sensible(1000, 90_000_000), 1..100_000_u32),
    );
    (when, wish, gone, rest).prop_map(|(when, wish, flags, rest)| PolicySpec {
        name: "any".into(),
        schedule: when.0,
        jitter: when.1,
        // A policy needs one limit at least.
        limit: Limit { attempts: when.2.or(when.3.is_none().then_some(7)), stop_after: when.3 },
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            total: Duration::from_secs(30),
        },
        success: StatusSet::ranges([(200, 299)]),
        redirects: if flags[0] { Redirects::TakeAsSuccess } else { Redirects::Fail },
        rejects: StatusSet::ranges([(400, 404)]),
        malformed_rejects: flags[0],
        gone_disables: flags[1],
        retry_after: RetryAfterRule {
            statuses: StatusSet::ranges([(429, 429), (500, 599)]),
            use_: wish.0,
            shortest: wish.1.0,
            longest: wish.1.1,
        },
        gate: rest.0,
        endpoint_fails: rest.1,
        probe: rest.2.map(|(first_gap, longest_gap)| Probe { first_gap, longest_gap }),
        retention: rest.3,
    })
}

/// Two spans, the shorter one first.
fn pair(least: u64, most: u64) -> impl Strategy<Value = (Duration, Duration)> {
    (sensible(least, most), sensible(least, most)).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn valid_schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        (pair(1, 100_000), 1..6_u32).prop_map(|((base, cap), factor)| Schedule::Exponential {
            base,
            factor,
            cap
        }),
        vec(sensible(1, 100_000), 1..10).prop_map(Schedule::List),
    ]
}

fn valid_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        sensible(0, 10_000).prop_map(Jitter::AddUpTo),
        (0..=100_u8).prop_map(Jitter::AddPercent),
        (0..=100_u8).prop_map(Jitter::AroundPercent),
    ]
}

fn valid_gate_rule() -> impl Strategy<Value = GateRule> {
    prop_oneof![
        Just(GateRule::Apart),
        (1..9_u32, pair(1, 4_096_000)).prop_map(|(in_a_row, (first, longest))| GateRule::HostFailures {
            in_a_row,
            first,
            longest
        }),
        (sensible(0, 20_000), sensible(20_001, 4_096_000))
            .prop_map(|(threshold, longest)| GateRule::DelayOver { threshold, longest }),
    ]
}

fn valid_endpoint_fails() -> impl Strategy<Value = EndpointFails> {
    prop_oneof![
        Just(EndpointFails::Never),
        Just(EndpointFails::WhenExhausted),
        sensible(1, 600_000_000).prop_map(EndpointFails::WithoutSuccessFor),
    ]
}

fn retry_after() -> impl Strategy<Value = RetryAfter> {
    prop_oneof![any::<u64>().prop_map(RetryAfter::Seconds), timestamp().prop_map(RetryAfter::At)]
}

pub(crate) fn failure_kind() -> impl Strategy<Value = FailureKind> {
    prop::sample::select(vec![
        FailureKind::Dns,
        FailureKind::Connect,
        FailureKind::ConnectTimeout,
        FailureKind::Tls,
        FailureKind::Timeout,
        FailureKind::Broken,
        FailureKind::Malformed,
        FailureKind::TooManyRedirects,
        FailureKind::TargetForbidden,
        FailureKind::Internal,
        FailureKind::Unsent,
    ])
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let status = prop_oneof![Just(429_u16), Just(410), 100..600_u16, any::<u16>()];
    prop_oneof![
        (status, option::of(retry_after())).prop_map(|(status, retry_after)| Outcome::Response(
            ResponseHead { status, phrase: "".into(), retry_after }
        )),
        failure_kind().prop_map(|kind| Outcome::failed(kind, "")),
    ]
}

pub(crate) fn health() -> impl Strategy<Value = Health> {
    let status = prop::sample::select(vec![HealthStatus::Active, HealthStatus::Failed, HealthStatus::Gone]);
    let moment = || option::of(timestamp());
    (status, any::<u32>(), [moment(), moment(), moment(), moment()], duration()).prop_map(
        |(status, failure_count, moments, probe_gap)| Health {
            status,
            failure_count,
            failing_since: moments[0],
            changed_at: moments[1],
            next_probe_at: moments[2],
            probe_gap,
            quiet_until: moments[3],
            released_at: moments[1],
            released_by_person: failure_count.is_multiple_of(2),
            epoch: failure_count,
        },
    )
}

pub(crate) fn gate() -> impl Strategy<Value = Gate> {
    (any::<u32>(), [option::of(timestamp()), option::of(timestamp())], duration(), any::<bool>()).prop_map(
        |(failures, [held_until, failed_at], hold, probing)| Gate {
            failures,
            held_until,
            hold,
            failed_at,
            since: held_until,
            probing,
        },
    )
}

pub(crate) fn scope() -> impl Strategy<Value = GateScope> {
    prop_oneof![
        Just(GateScope::Host),
        any::<[u8; 20]>().prop_map(|bytes| GateScope::Application(AppId::from_bytes(bytes))),
    ]
}
