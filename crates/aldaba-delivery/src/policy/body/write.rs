//! Converts a policy to a body.

use crate::format_duration;
use crate::policy::{
    EndpointFails, GateRule, Jitter, Keep, PolicySpec, Redirects, RetryAfterUse, Schedule, StatusSet,
};
use aldaba_api::{
    PolicyEndpointFails, PolicyGate, PolicyJitter, PolicyLimit, PolicyProbe, PolicyRedirects,
    PolicyRetention, PolicyRetryAfter, PolicySchedule, PolicyTimeouts, PolicyUpdate, RetentionOfDead,
    RetentionOfDelivered, Set, UNTIL_REMOVED, format_status_range,
};

impl PolicySpec {
    /// All but its name.
    pub fn to_body(&self) -> PolicyUpdate {
        PolicyUpdate {
            schedule: match &self.schedule {
                Schedule::Exponential { base, factor, cap } => PolicySchedule::Exponential {
                    base: format_duration(*base),
                    factor: Some(*factor),
                    cap: format_duration(*cap),
                },
                Schedule::List(delays) => {
                    PolicySchedule::List { delays: delays.iter().copied().map(format_duration).collect() }
                }
            },
            jitter: Some(match self.jitter {
                Jitter::None => PolicyJitter::None {},
                Jitter::AddUpTo(most) => PolicyJitter::AddUpTo { most: format_duration(most) },
                Jitter::AddPercent(percent) => PolicyJitter::AddPercent { percent },
                Jitter::AroundPercent(percent) => PolicyJitter::AroundPercent { percent },
                Jitter::Full => PolicyJitter::Full {},
            }),
            limit: Some(PolicyLimit {
                attempts: self.limit.attempts,
                stop_after: self.limit.stop_after.map(format_duration),
            }),
            timeouts: Some(PolicyTimeouts {
                connect: Some(format_duration(self.timeouts.connect)),
                answer: Some(format_duration(self.timeouts.answer)),
                total: Some(format_duration(self.timeouts.total)),
            }),
            success: Some(statuses(&self.success)),
            redirects: Some(match self.redirects {
                Redirects::Fail => PolicyRedirects::Fail {},
                Redirects::Follow { hops } => PolicyRedirects::Follow { hops: Some(hops) },
                Redirects::TakeAsSuccess => PolicyRedirects::Success {},
            }),
            rejects: Some(statuses(&self.rejects)),
            malformed_rejects: Some(self.malformed_rejects),
            gone_disables: Some(self.gone_disables),
            retry_after: Set::To(PolicyRetryAfter {
                statuses: Some(statuses(&self.retry_after.statuses)),
                r#use: Some(match self.retry_after.use_ {
                    RetryAfterUse::Lengthen => "lengthen".into(),
                    RetryAfterUse::Replace => "replace".into(),
                }),
                shortest: Some(format_duration(self.retry_after.shortest)),
                longest: Some(format_duration(self.retry_after.longest)),
            }),
            gate: Some(match self.gate {
                GateRule::Apart => PolicyGate::Apart {},
                GateRule::HostFailures { in_a_row, first, longest } => PolicyGate::HostFailures {
                    in_a_row,
                    first: format_duration(first),
                    longest: format_duration(longest),
                },
                GateRule::DelayOver { threshold, longest } => PolicyGate::DelayOver {
                    threshold: format_duration(threshold),
                    longest: format_duration(longest),
                },
            }),
            endpoint_fails: Some(match self.endpoint_fails {
                EndpointFails::Never => PolicyEndpointFails::Never {},
                EndpointFails::WhenExhausted => PolicyEndpointFails::WhenExhausted {},
                EndpointFails::WithoutSuccessFor(span) => {
                    PolicyEndpointFails::WithoutSuccessFor { span: format_duration(span) }
                }
            }),
            probe: self.probe.map_or(Set::Clear, |probe| {
                Set::To(PolicyProbe {
                    first_gap: format_duration(probe.first_gap),
                    longest_gap: format_duration(probe.longest_gap),
                })
            }),
            retention: Some(PolicyRetention {
                delivered: Some(RetentionOfDelivered {
                    r#for: kept(self.retention.delivered),
                    newest: self.retention.newest,
                }),
                dead: Some(RetentionOfDead { r#for: kept(self.retention.dead) }),
            }),
        }
    }
}

fn kept(keep: Keep) -> Option<String> {
    match keep {
        Keep::AsSet => None,
        Keep::For(span) => Some(format_duration(span)),
        Keep::UntilRemoved => Some(UNTIL_REMOVED.into()),
    }
}

/// `200-299`, or a single `429`.
fn statuses(set: &StatusSet) -> Vec<String> {
    set.as_ranges().iter().copied().map(format_status_range).collect()
}
