//! From a policy to JSON.

use super::UNTIL_REMOVED;
use crate::policy::{
    EndpointFails, GateRule, Jitter, Keep, PolicySpec, Probe, Redirects, RetryAfterUse, Schedule, StatusSet,
    Timeouts,
};
use crate::write_span;
use serde_json::{Value, json};

impl PolicySpec {
    pub fn to_json(&self) -> Value {
        let Timeouts { connect, answer, total } = self.timeouts;
        json!({
            "name": self.name,
            "schedule": match &self.schedule {
                Schedule::Exponential { base, factor, cap } => json!({
                    "type": "exponential",
                    "base": write_span(*base),
                    "factor": factor,
                    "cap": write_span(*cap),
                }),
                Schedule::List(delays) => json!({
                    "type": "list",
                    "delays": delays.iter().map(|delay| write_span(*delay)).collect::<Vec<_>>(),
                }),
            },
            "jitter": match self.jitter {
                Jitter::None => json!({ "type": "none" }),
                Jitter::AddUpTo(most) => json!({ "type": "addUpTo", "most": write_span(most) }),
                Jitter::AddPercent(percent) => json!({ "type": "addPercent", "percent": percent }),
                Jitter::AroundPercent(percent) => json!({ "type": "aroundPercent", "percent": percent }),
                Jitter::Full => json!({ "type": "full" }),
            },
            "limit": { "attempts": self.limit.attempts, "stopAfter": self.limit.stop_after.map(write_span) },
            "timeouts": {
                "connect": write_span(connect),
                "answer": write_span(answer),
                "total": write_span(total),
            },
            "success": statuses(&self.success),
            "redirects": match self.redirects {
                Redirects::Fail => json!({ "type": "fail" }),
                Redirects::Follow { hops } => json!({ "type": "follow", "hops": hops }),
                Redirects::TakeAsSuccess => json!({ "type": "success" }),
            },
            "rejects": statuses(&self.rejects),
            "malformedRejects": self.malformed_rejects,
            "goneDisables": self.gone_disables,
            "retryAfter": {
                "statuses": statuses(&self.retry_after.statuses),
                "use": match self.retry_after.use_ {
                    RetryAfterUse::Lengthen => "lengthen",
                    RetryAfterUse::Replace => "replace",
                },
                "shortest": write_span(self.retry_after.shortest),
                "longest": write_span(self.retry_after.longest),
            },
            "gate": match self.gate {
                GateRule::Apart => json!({ "type": "apart" }),
                GateRule::HostFailures { in_a_row, first, longest } => json!({
                    "type": "hostFailures",
                    "inARow": in_a_row,
                    "first": write_span(first),
                    "longest": write_span(longest),
                }),
                GateRule::DelayOver { threshold, longest } => json!({
                    "type": "delayOver",
                    "threshold": write_span(threshold),
                    "longest": write_span(longest),
                }),
            },
            "endpointFails": match self.endpoint_fails {
                EndpointFails::Never => json!({ "type": "never" }),
                EndpointFails::WhenExhausted => json!({ "type": "whenExhausted" }),
                EndpointFails::WithoutSuccessFor(span) => {
                    json!({ "type": "withoutSuccessFor", "span": write_span(span) })
                }
            },
            "probe": self.probe.map(|Probe { first_gap, longest_gap }| json!({
                "firstGap": write_span(first_gap),
                "longestGap": write_span(longest_gap),
            })),
            "retention": {
                "delivered": { "for": kept(self.retention.delivered), "newest": self.retention.newest },
                "dead": { "for": kept(self.retention.dead) },
            },
        })
    }
}

fn kept(keep: Keep) -> Value {
    match keep {
        Keep::AsSet => Value::Null,
        Keep::For(span) => write_span(span).into(),
        Keep::UntilRemoved => UNTIL_REMOVED.into(),
    }
}

/// `200-299`, or a single `429`.
fn statuses(set: &StatusSet) -> Vec<String> {
    let range = |(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    set.as_ranges().iter().map(range).collect()
}
