pub use aldaba_api::MAX_SCHEDULE_STEPS;

use super::{EndpointFails, GateRule, Jitter, PolicySpec, Redirects, Schedule, StatusSet, retention};
use crate::{format_duration, names};
use std::borrow::Cow;
use std::time::Duration;

/// The most ranges in a set of statuses.
pub const MAX_STATUS_RANGES: usize = 100;
/// The most attempts of a policy, and of any delivery in one round.
pub const MAX_ATTEMPTS: u32 = 10_000;
/// The longest delay between two attempts, and the longest lifetime of a delivery.
pub const MAX_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest delay that `Retry-After` may request.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The longest attempt.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest hold of a gate before the next probe.
pub const MAX_GATE_HOLD: Duration = Duration::from_secs(4096);
/// The shortest connect timeout for a policy that uses gates. With less, a healthy host would look down, and
/// its hold binds other tenants too.
pub const MIN_GATE_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

const MAX_HOPS: u8 = 10;
/// The resolution of timestamps; a shorter time would be zero.
const GRAIN: Duration = Duration::from_millis(1);

/// An invalid field of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct PolicyError {
    pub field: Cow<'static, str>,
    pub why: String,
}

pub(super) fn check(spec: &PolicySpec) -> Result<(), PolicyError> {
    name(&spec.name)?;
    schedule(&spec.schedule)?;
    jitter(spec.jitter)?;
    limit(spec)?;
    timeouts(spec)?;
    statuses(spec)?;
    retry_after(spec)?;
    gate(spec)?;
    health(spec)?;
    retention::check(&spec.retention)
}

fn name(name: &str) -> Result<(), PolicyError> {
    names::catalog_name(name).map_err(|why| PolicyError { field: "name".into(), why })
}

fn schedule(schedule: &Schedule) -> Result<(), PolicyError> {
    match schedule {
        Schedule::Exponential { base, factor, cap } => {
            ensure(*base >= GRAIN, "schedule.base", || "must be at least 1 ms".into())?;
            ensure(*factor >= 1, "schedule.factor", || "must be at least 1".into())?;
            ensure(cap >= base, "schedule.cap", || {
                format!(
                    "must not be below the base ({}); it is {}",
                    format_duration(*base),
                    format_duration(*cap)
                )
            })
        }
        Schedule::List(delays) => {
            ensure(!delays.is_empty(), "schedule.delays", || "needs at least one delay".into())?;
            ensure(delays.len() <= MAX_SCHEDULE_STEPS, "schedule.delays", || {
                format!("has {} steps; at most {MAX_SCHEDULE_STEPS} are allowed", delays.len())
            })?;
            let short = delays.iter().position(|delay| *delay < GRAIN);
            ensure(short.is_none(), "schedule.delays", || {
                format!(
                    "step {} is below {}; a retry needs a delay",
                    short.unwrap_or(0) + 1,
                    format_duration(GRAIN)
                )
            })
        }
    }?;
    ensure(schedule.longest() <= MAX_DELAY, "schedule", || {
        let longest = format_duration(schedule.longest());
        format!("the longest delay is {longest}; at most {} is allowed", format_duration(MAX_DELAY))
    })
}

fn jitter(jitter: Jitter) -> Result<(), PolicyError> {
    match jitter {
        Jitter::None | Jitter::Full => Ok(()),
        Jitter::AddUpTo(most) => ensure(most <= MAX_DELAY, "jitter", || {
            format!("at most {} is allowed", format_duration(MAX_DELAY))
        }),
        Jitter::AddPercent(share) | Jitter::AroundPercent(share) => {
            ensure(share <= 100, "jitter", || format!("{share} % is more than 100 %"))
        }
    }
}

fn limit(spec: &PolicySpec) -> Result<(), PolicyError> {
    let limit = spec.limit;
    ensure(limit.attempts.is_some() || limit.stop_after.is_some(), "limit", || {
        "set a number of attempts, a stop date, or both: without one a delivery would never end".into()
    })?;
    if let Some(attempts) = limit.attempts {
        ensure((1..=MAX_ATTEMPTS).contains(&attempts), "limit.attempts", || {
            format!("must be between 1 and {MAX_ATTEMPTS}; it is {attempts}")
        })?;
    }
    if let Some(stop) = limit.stop_after {
        ensure((GRAIN..=MAX_DELAY).contains(&stop), "limit.stopAfter", || between(GRAIN, MAX_DELAY, stop))?;
    }
    Ok(())
}

fn timeouts(spec: &PolicySpec) -> Result<(), PolicyError> {
    let t = spec.timeouts;
    for (field, value) in
        [("timeouts.connect", t.connect), ("timeouts.answer", t.answer), ("timeouts.total", t.total)]
    {
        ensure((GRAIN..=MAX_TIMEOUT).contains(&value), field, || between(GRAIN, MAX_TIMEOUT, value))?;
    }
    ensure(t.connect <= t.total && t.answer <= t.total, "timeouts.total", || {
        "must not be below the time to connect or the time to answer".into()
    })
}

fn statuses(spec: &PolicySpec) -> Result<(), PolicyError> {
    ensure(!spec.success.is_empty(), "success", || "needs at least one status".into())?;
    status_set("success", &spec.success)?;
    status_set("rejects", &spec.rejects)?;
    status_set("retryAfter.statuses", &spec.retry_after.statuses)?;
    let taken = |s| spec.redirects == Redirects::TakeAsSuccess && (300..400).contains(&s);
    let both = (100..=999).find(|&s| (spec.success.contains(s) || taken(s)) && spec.rejects.contains(s));
    ensure(both.is_none(), "rejects", || format!("{} is also a success", both.unwrap_or(0)))?;
    if let Redirects::Follow { hops } = spec.redirects {
        ensure((1..=MAX_HOPS).contains(&hops), "redirects.hops", || {
            format!("must be between 1 and {MAX_HOPS}; it is {hops}")
        })?;
    }
    Ok(())
}

/// The highest HTTP status.
const LAST_STATUS: u16 = 599;

/// Checks values that requests may not have, though former versions may have stored them.
pub(super) fn check_given(spec: &PolicySpec) -> Result<(), PolicyError> {
    let ranges = spec.success.as_ranges();
    let beyond = ranges.iter().find(|(_, last)| *last > LAST_STATUS);
    ensure(beyond.is_none(), "success", || {
        let (_, last) = beyond.copied().unwrap_or_default();
        format!("statuses lie between 100 and {LAST_STATUS}; {last} would never be a success")
    })
}

fn status_set(field: &'static str, set: &StatusSet) -> Result<(), PolicyError> {
    let ranges = set.as_ranges();
    ensure(ranges.len() <= MAX_STATUS_RANGES, field, || {
        format!("has {} ranges; at most {MAX_STATUS_RANGES} are allowed", ranges.len())
    })?;
    let valid = ranges.iter().all(|&(first, last)| 100 <= first && first <= last && last <= 999);
    ensure(valid, field, || "statuses lie between 100 and 999, low before high".into())
}

fn retry_after(spec: &PolicySpec) -> Result<(), PolicyError> {
    let rule = &spec.retry_after;
    let fits = rule.shortest <= rule.longest && rule.longest <= MAX_RETRY_AFTER;
    ensure(fits, "retryAfter", || {
        format!(
            "the shortest must not be above the longest, and that not above {}",
            format_duration(MAX_RETRY_AFTER)
        )
    })
}

fn gate(spec: &PolicySpec) -> Result<(), PolicyError> {
    let longest = match spec.gate {
        GateRule::Apart => return Ok(()),
        GateRule::HostFailures { in_a_row, first, longest } => {
            ensure(in_a_row >= 1, "gate.inARow", || "must be at least 1".into())?;
            ensure(first >= GRAIN && first <= longest, "gate.first", || {
                format!(
                    "must be between {} and the longest hold; it is {}",
                    format_duration(GRAIN),
                    format_duration(first)
                )
            })?;
            longest
        }
        GateRule::DelayOver { threshold, longest } => {
            ensure(threshold < longest, "gate.threshold", || "must be below the longest hold".into())?;
            longest
        }
    };
    ensure(longest <= MAX_GATE_HOLD, "gate.longest", || {
        format!("at most {} is allowed; it is {}", format_duration(MAX_GATE_HOLD), format_duration(longest))
    })?;
    ensure(spec.timeouts.connect >= MIN_GATE_CONNECT_TIMEOUT, "timeouts.connect", || {
        format!(
            "must be at least {} for a policy that takes part in host control",
            format_duration(MIN_GATE_CONNECT_TIMEOUT)
        )
    })
}

fn health(spec: &PolicySpec) -> Result<(), PolicyError> {
    if let EndpointFails::WithoutSuccessFor(span) = spec.endpoint_fails {
        ensure((GRAIN..=MAX_DELAY).contains(&span), "endpointFails", || between(GRAIN, MAX_DELAY, span))?;
    }
    let Some(probe) = spec.probe else { return Ok(()) };
    ensure(probe.first_gap >= Duration::from_secs(1), "probe.firstGap", || "must be at least 1 s".into())?;
    ensure((probe.first_gap..=MAX_DELAY).contains(&probe.longest_gap), "probe.longestGap", || {
        let (most, given) = (format_duration(MAX_DELAY), format_duration(probe.longest_gap));
        format!("must be between the first gap and {most}; it is {given}")
    })
}

pub(super) fn between(least: Duration, most: Duration, given: Duration) -> String {
    let [least, most, given] = [least, most, given].map(format_duration);
    format!("must be between {least} and {most}; it is {given}")
}

pub(super) fn ensure(
    fits: bool,
    field: &'static str,
    why: impl FnOnce() -> String,
) -> Result<(), PolicyError> {
    if fits { Ok(()) } else { Err(PolicyError { field: field.into(), why: why() }) }
}
