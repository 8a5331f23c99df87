//! Converts a body to a policy.

use crate::parse_duration;
use crate::policy::{
    EndpointFails, GateRule, Jitter, Keep, Limit, Overrides, PolicyError, PolicySpec, Probe, Redirects,
    RetentionRule, RetryAfterRule, RetryAfterUse, Schedule, StatusSet, Timeouts, builtin,
};
use aldaba_api::{
    NewPolicy, PolicyEndpointFails, PolicyGate, PolicyJitter, PolicyLimit, PolicyRedirects, PolicyRetention,
    PolicyRetryAfter, PolicySchedule, PolicyTimeouts, Set, UNTIL_REMOVED, duration_text, parse_status_range,
    status_range,
};
use std::time::Duration;

type Read<T> = Result<T, PolicyError>;

impl PolicySpec {
    /// What is left out is as in `standard`.
    pub(super) fn from_body(body: NewPolicy) -> Read<Self> {
        let standard = builtin("standard", &Overrides::default()).expect("it is built in")?;
        let schedule = schedule(body.schedule)?;
        let limit = match (&schedule, body.limit) {
            (_, Some(given)) => limit(&given)?,
            (Schedule::List(delays), None) => {
                let attempts = u32::try_from(delays.len() + 1).unwrap_or(u32::MAX);
                Limit { attempts: Some(attempts), stop_after: None }
            }
            (Schedule::Exponential { .. }, None) => standard.limit,
        };
        Ok(Self {
            name: body.name,
            schedule,
            jitter: body.jitter.map_or(Ok(standard.jitter), jitter)?,
            limit,
            timeouts: body
                .timeouts
                .map_or(Ok(standard.timeouts), |given| timeouts(&given, standard.timeouts))?,
            success: or_else(body.success.as_deref(), "success", &standard.success)?,
            redirects: body.redirects.as_ref().map_or(Ok(standard.redirects), redirects)?,
            rejects: or_else(body.rejects.as_deref(), "rejects", &standard.rejects)?,
            malformed_rejects: body.malformed_rejects.unwrap_or(standard.malformed_rejects),
            gone_disables: body.gone_disables.unwrap_or(standard.gone_disables),
            retry_after: match body.retry_after {
                Set::Keep => standard.retry_after.clone(),
                Set::Clear => RetryAfterRule::ignored(),
                Set::To(given) => retry_after(&given, &standard.retry_after)?,
            },
            gate: body.gate.map_or(Ok(standard.gate), gate)?,
            endpoint_fails: body.endpoint_fails.map_or(Ok(standard.endpoint_fails), endpoint_fails)?,
            probe: match body.probe {
                Set::Keep => standard.probe,
                Set::Clear => None,
                Set::To(given) => Some(Probe {
                    first_gap: span(&given.first_gap, "probe.firstGap")?,
                    longest_gap: span(&given.longest_gap, "probe.longestGap")?,
                }),
            },
            retention: retention(body.retention.unwrap_or_default())?,
        })
    }
}

fn schedule(given: PolicySchedule) -> Read<Schedule> {
    match given {
        PolicySchedule::Exponential { base, factor, cap } => Ok(Schedule::Exponential {
            base: span(&base, "schedule.base")?,
            factor: factor.unwrap_or(2),
            cap: span(&cap, "schedule.cap")?,
        }),
        PolicySchedule::List { delays } => {
            let delays = delays.iter().map(|delay| span(delay, "schedule.delays"));
            Ok(Schedule::List(delays.collect::<Read<_>>()?))
        }
        _ => Err(unknown_form("schedule")),
    }
}

fn jitter(given: PolicyJitter) -> Read<Jitter> {
    match given {
        PolicyJitter::None {} => Ok(Jitter::None),
        PolicyJitter::Full {} => Ok(Jitter::Full),
        PolicyJitter::AddUpTo { most } => Ok(Jitter::AddUpTo(span(&most, "jitter.most")?)),
        PolicyJitter::AddPercent { percent } => Ok(Jitter::AddPercent(percent)),
        PolicyJitter::AroundPercent { percent } => Ok(Jitter::AroundPercent(percent)),
        _ => Err(unknown_form("jitter")),
    }
}

fn limit(given: &PolicyLimit) -> Read<Limit> {
    let stop_after = given.stop_after.as_ref().map(|stop_after| span(stop_after, "limit.stopAfter"));
    Ok(Limit { attempts: given.attempts, stop_after: stop_after.transpose()? })
}

fn timeouts(given: &PolicyTimeouts, default: Timeouts) -> Read<Timeouts> {
    Ok(Timeouts {
        connect: span_or(given.connect.as_ref(), "timeouts.connect", default.connect)?,
        answer: span_or(given.answer.as_ref(), "timeouts.answer", default.answer)?,
        total: span_or(given.total.as_ref(), "timeouts.total", default.total)?,
    })
}

fn redirects(given: &PolicyRedirects) -> Read<Redirects> {
    match given {
        PolicyRedirects::Fail {} => Ok(Redirects::Fail),
        PolicyRedirects::Follow { hops } => Ok(Redirects::Follow { hops: hops.unwrap_or(5) }),
        PolicyRedirects::Success {} => Ok(Redirects::TakeAsSuccess),
        _ => Err(unknown_form("redirects")),
    }
}

fn retry_after(given: &PolicyRetryAfter, default: &RetryAfterRule) -> Read<RetryAfterRule> {
    Ok(RetryAfterRule {
        statuses: or_else(given.statuses.as_deref(), "retryAfter.statuses", &default.statuses)?,
        use_: match given.r#use.as_deref() {
            None => default.use_,
            Some("replace") => RetryAfterUse::Replace,
            Some(_) => RetryAfterUse::Lengthen,
        },
        shortest: span_or(given.shortest.as_ref(), "retryAfter.shortest", default.shortest)?,
        longest: span_or(given.longest.as_ref(), "retryAfter.longest", default.longest)?,
    })
}

fn gate(given: PolicyGate) -> Read<GateRule> {
    match given {
        PolicyGate::Apart {} => Ok(GateRule::Apart),
        PolicyGate::HostFailures { in_a_row, first, longest } => Ok(GateRule::HostFailures {
            in_a_row,
            first: span(&first, "gate.first")?,
            longest: span(&longest, "gate.longest")?,
        }),
        PolicyGate::DelayOver { threshold, longest } => Ok(GateRule::DelayOver {
            threshold: span(&threshold, "gate.threshold")?,
            longest: span(&longest, "gate.longest")?,
        }),
        _ => Err(unknown_form("gate")),
    }
}

fn endpoint_fails(given: PolicyEndpointFails) -> Read<EndpointFails> {
    match given {
        PolicyEndpointFails::Never {} => Ok(EndpointFails::Never),
        PolicyEndpointFails::WhenExhausted {} => Ok(EndpointFails::WhenExhausted),
        PolicyEndpointFails::WithoutSuccessFor { span: given } => {
            Ok(EndpointFails::WithoutSuccessFor(span(&given, "endpointFails.span")?))
        }
        _ => Err(unknown_form("endpointFails")),
    }
}

fn retention(given: PolicyRetention) -> Read<RetentionRule> {
    let (delivered, dead) = (given.delivered.unwrap_or_default(), given.dead.unwrap_or_default());
    Ok(RetentionRule {
        delivered: keep(delivered.r#for.as_deref(), "retention.delivered.for")?,
        newest: delivered.newest,
        dead: keep(dead.r#for.as_deref(), "retention.dead.for")?,
    })
}

fn keep(given: Option<&str>, field: &'static str) -> Read<Keep> {
    match given {
        None => Ok(Keep::AsSet),
        Some(UNTIL_REMOVED) => Ok(Keep::UntilRemoved),
        Some(text) => span(text, field).map(Keep::For),
    }
}

fn span_or(given: Option<&String>, field: &'static str, default: Duration) -> Read<Duration> {
    given.map_or(Ok(default), |text| span(text, field))
}

/// The text may not have been read from JSON.
fn span(text: &str, field: &'static str) -> Read<Duration> {
    duration_text::check(text).map_err(|why| PolicyError { field: field.into(), why })?;
    Ok(parse_duration(text).unwrap_or_default())
}

fn or_else(given: Option<&[String]>, field: &'static str, default: &StatusSet) -> Read<StatusSet> {
    let Some(given) = given else { return Ok(default.clone()) };
    let range = |text: &String| {
        status_range::check(text).map_err(|why| PolicyError { field: field.into(), why })?;
        Ok(parse_status_range(text).unwrap_or_default())
    };
    Ok(StatusSet::ranges(given.iter().map(range).collect::<Read<Vec<_>>>()?))
}

fn unknown_form(field: &'static str) -> PolicyError {
    PolicyError { field: field.into(), why: "has a `type` that this version does not know".into() }
}
