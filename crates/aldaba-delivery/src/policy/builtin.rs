//! The built-in policies, documented in `docs/policies.md`.

use super::{
    EndpointFails, GateRule, Jitter, Keep, Limit, Overrides, Policy, PolicyError, PolicySpec, Probe,
    Redirects, RetentionRule, RetryAfterRule, RetryAfterUse, Schedule, StatusSet, Timeouts,
};
use std::time::Duration;

pub const BUILTIN_NAMES: [&str; 5] = ["standard", "quick", "persistent", "job-status", "public-api"];

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The built-in policy of that name, with the operator's overrides applied.
pub fn builtin(name: &str, overrides: &Overrides) -> Option<Result<Policy, PolicyError>> {
    let spec = match name {
        "standard" => standard(),
        "quick" => quick(),
        "persistent" => persistent(overrides),
        "job-status" => job_status(overrides),
        "public-api" => public_api(),
        _ => return None,
    };
    Some(Policy::new(spec))
}

/// A careful default.
fn standard() -> PolicySpec {
    PolicySpec {
        name: "standard".into(),
        schedule: Schedule::List(vec![
            secs(5),
            secs(5 * 60),
            secs(30 * 60),
            secs(2 * 3600),
            secs(5 * 3600),
            secs(10 * 3600),
            secs(10 * 3600),
        ]),
        jitter: Jitter::AroundPercent(20),
        limit: Limit { attempts: Some(8), stop_after: None },
        timeouts: Timeouts { connect: secs(5), answer: secs(30), total: secs(30) },
        success: StatusSet::ranges([(200, 299)]),
        redirects: Redirects::Fail,
        rejects: StatusSet::default(),
        malformed_rejects: false,
        gone_disables: true,
        retry_after: RetryAfterRule {
            statuses: StatusSet::ranges([(429, 429), (503, 503)]),
            use_: RetryAfterUse::Lengthen,
            shortest: Duration::ZERO,
            longest: secs(24 * 3600),
        },
        gate: GateRule::HostFailures { in_a_row: 5, first: secs(1), longest: secs(60) },
        endpoint_fails: EndpointFails::WithoutSuccessFor(secs(5 * 24 * 3600)),
        probe: Some(Probe { first_gap: secs(15 * 60), longest_gap: secs(12 * 3600) }),
        retention: RetentionRule::default(),
    }
}

/// Six quick attempts within about half a minute.
fn quick() -> PolicySpec {
    PolicySpec {
        name: "quick".into(),
        schedule: Schedule::Exponential { base: secs(1), factor: 2, cap: secs(16) },
        jitter: Jitter::AddUpTo(secs(1)),
        limit: Limit { attempts: Some(6), stop_after: None },
        timeouts: Timeouts { connect: secs(30), answer: secs(30), total: secs(30) },
        success: StatusSet::ranges([(200, 299)]),
        redirects: Redirects::Follow { hops: 5 },
        rejects: StatusSet::ranges([(400, 428), (430, 499)]),
        malformed_rejects: false,
        gone_disables: false,
        retry_after: RetryAfterRule {
            statuses: StatusSet::ranges([(429, 429)]),
            use_: RetryAfterUse::Lengthen,
            shortest: Duration::ZERO,
            longest: secs(3600),
        },
        gate: GateRule::Apart,
        endpoint_fails: EndpointFails::Never,
        probe: None,
        retention: RetentionRule {
            delivered: Keep::For(secs(24 * 3600)),
            newest: Some(1000),
            dead: Keep::UntilRemoved,
        },
    }
}

/// Retries for a week, and holds the host back while it looks down.
fn persistent(overrides: &Overrides) -> PolicySpec {
    PolicySpec {
        name: "persistent".into(),
        schedule: Schedule::Exponential { base: secs(2), factor: 2, cap: secs(4096) },
        jitter: Jitter::None,
        limit: Limit { attempts: None, stop_after: Some(overrides.stop_after) },
        timeouts: Timeouts { connect: secs(5), answer: secs(30), total: secs(30) },
        success: StatusSet::ranges([(200, 200)]),
        redirects: Redirects::Fail,
        rejects: StatusSet::default(),
        malformed_rejects: false,
        gone_disables: false,
        retry_after: RetryAfterRule::ignored(),
        gate: GateRule::DelayOver { threshold: secs(16), longest: secs(4096) },
        endpoint_fails: EndpointFails::Never,
        probe: None,
        retention: RetentionRule::default(),
    }
}

/// A few attempts to report the end of a job.
fn job_status(overrides: &Overrides) -> PolicySpec {
    let timeout = overrides.job_timeout;
    PolicySpec {
        name: "job-status".into(),
        schedule: Schedule::Exponential {
            base: overrides.job_base_delay,
            factor: 2,
            cap: overrides.job_max_delay,
        },
        jitter: Jitter::None,
        limit: Limit { attempts: Some(overrides.job_attempts), stop_after: None },
        timeouts: Timeouts { connect: timeout, answer: timeout, total: timeout },
        success: StatusSet::ranges([(200, 299)]),
        redirects: Redirects::Follow { hops: 5 },
        rejects: StatusSet::default(),
        malformed_rejects: false,
        gone_disables: false,
        retry_after: RetryAfterRule::ignored(),
        gate: GateRule::Apart,
        endpoint_fails: EndpointFails::Never,
        probe: None,
        retention: RetentionRule::default(),
    }
}

/// Five retries over an hour; an endpoint that uses them up waits for its owner.
fn public_api() -> PolicySpec {
    PolicySpec {
        name: "public-api".into(),
        schedule: Schedule::Exponential { base: secs(5), factor: 5, cap: secs(3125) },
        jitter: Jitter::AddPercent(10),
        limit: Limit { attempts: Some(6), stop_after: None },
        timeouts: Timeouts { connect: secs(5), answer: secs(10), total: secs(15) },
        success: StatusSet::ranges([(200, 299)]),
        redirects: Redirects::TakeAsSuccess,
        rejects: StatusSet::ranges([(400, 428), (430, 499)]),
        malformed_rejects: true,
        gone_disables: false,
        retry_after: RetryAfterRule {
            statuses: StatusSet::ranges([(429, 429)]),
            use_: RetryAfterUse::Replace,
            shortest: secs(1),
            longest: secs(24 * 3600),
        },
        gate: GateRule::Apart,
        endpoint_fails: EndpointFails::WhenExhausted,
        probe: None,
        retention: RetentionRule::default(),
    }
}
