//! Converts a policy to JSON.

use super::UNTIL_REMOVED;
use crate::format_duration;
use crate::policy::{
    EndpointFails, GateRule, Jitter, Keep, PolicySpec, Probe, Redirects, RetryAfterUse, Schedule, StatusSet,
    Timeouts,
};
use serde_json::{Value, json};

impl PolicySpec {
    pub fn to_json(&self) -> Value {
        let Timeouts { connect, answer, total } = self.timeouts;
        json!({
            "name": self.name,
            "schedule": match &self.schedule {
                Schedule::Exponential { base, factor, cap } => json!({
                    "type": "exponential",
                    "base": format_duration(*base),
                    "factor": factor,
                    "cap": format_duration(*cap),
                }),
                Schedule::List(delays) => json!({
                    "type": "list",
                    "delays": delays.iter().map(|delay| format_duration(*delay)).collect::<Vec<_>>(),
                }),
            },
            "jitter": match self.jitter {
                Jitter::None => json!({ "type": "none" }),
                Jitter::AddUpTo(most) => json!({ "type": "addUpTo", "most": format_duration(most) }),
                Jitter::AddPercent(percent) => json!({ "type": "addPercent", "percent": percent }),
                Jitter::AroundPercent(percent) => json!({ "type": "aroundPercent", "percent": percent }),
                Jitter::Full => json!({ "type": "full" }),
            },
            "limit": { "attempts": self.limit.attempts, "stopAfter": self.limit.stop_after.map(format_duration) },
            "timeouts": {
                "connect": format_duration(connect),
                "answer": format_duration(answer),
                "total": format_duration(total),
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
                "shortest": format_duration(self.retry_after.shortest),
                "longest": format_duration(self.retry_after.longest),
            },
            "gate": match self.gate {
                GateRule::Apart => json!({ "type": "apart" }),
                GateRule::HostFailures { in_a_row, first, longest } => json!({
                    "type": "hostFailures",
                    "inARow": in_a_row,
                    "first": format_duration(first),
                    "longest": format_duration(longest),
                }),
                GateRule::DelayOver { threshold, longest } => json!({
                    "type": "delayOver",
                    "threshold": format_duration(threshold),
                    "longest": format_duration(longest),
                }),
            },
            "endpointFails": match self.endpoint_fails {
                EndpointFails::Never => json!({ "type": "never" }),
                EndpointFails::WhenExhausted => json!({ "type": "whenExhausted" }),
                EndpointFails::WithoutSuccessFor(span) => {
                    json!({ "type": "withoutSuccessFor", "span": format_duration(span) })
                }
            },
            "probe": self.probe.map(|Probe { first_gap, longest_gap }| json!({
                "firstGap": format_duration(first_gap),
                "longestGap": format_duration(longest_gap),
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
        Keep::For(span) => format_duration(span).into(),
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
