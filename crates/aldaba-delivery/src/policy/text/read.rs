//! Parses a policy from JSON and reports every error.

use super::UNTIL_REMOVED;
use crate::duration_text::is_duration;
use crate::nearest::{nearest, unknown_field};
use crate::policy::validate::MAX_DELAY;
use crate::policy::{
    EndpointFails, GateRule, Jitter, Keep, Limit, Overrides, PolicyError, PolicySpec, Probe, Redirects,
    RetentionRule, RetryAfterRule, RetryAfterUse, Schedule, StatusSet, Timeouts, builtin,
};
use crate::{format_duration, parse_duration};
use serde_json::{Map, Value};
use std::time::Duration;

const SPAN: &str = "expected a duration such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\"";
const REQUIRED: &str = "this field is required";

/// Fields that are often written one level too high, and their paths.
const NESTED: [(&str, &str); 10] = [
    ("attempts", "limit.attempts"),
    ("maxAttempts", "limit.attempts"),
    ("stopAfter", "limit.stopAfter"),
    ("delays", "schedule.delays"),
    ("base", "schedule.base"),
    ("factor", "schedule.factor"),
    ("cap", "schedule.cap"),
    ("connect", "timeouts.connect"),
    ("answer", "timeouts.answer"),
    ("total", "timeouts.total"),
];

/// Parses JSON values and collects errors with their fields.
#[derive(Default)]
pub(super) struct PolicyReader {
    pub(super) errors: Vec<PolicyError>,
}

type Object = Map<String, Value>;

impl PolicyReader {
    pub(super) fn policy(&mut self, value: &Value) -> Option<PolicySpec> {
        const KNOWN: [&str; 15] = [
            "name",
            "schedule",
            "jitter",
            "limit",
            "timeouts",
            "success",
            "redirects",
            "rejects",
            "malformedRejects",
            "goneDisables",
            "retryAfter",
            "gate",
            "endpointFails",
            "probe",
            "retention",
        ];
        let fields = self.object("policy", value, &KNOWN)?;
        let mut spec = (*builtin("standard", &Overrides::default())?.ok()?).clone();
        match fields.get("name") {
            Some(Value::String(name)) => spec.name.clone_from(name),
            None => self.wrong("name", REQUIRED),
            Some(_) => self.wrong("name", "expected a string"),
        }
        match fields.get("schedule") {
            Some(value) => spec.schedule = self.schedule(value)?,
            None => self.wrong("schedule", REQUIRED),
        }
        if let Schedule::List(delays) = &spec.schedule {
            let attempts = u32::try_from(delays.len() + 1).unwrap_or(u32::MAX);
            spec.limit = Limit { attempts: Some(attempts), stop_after: None };
        }
        let given = |name: &str| fields.get(name);
        if let Some(value) = given("jitter") {
            spec.jitter = self.jitter(value).unwrap_or(spec.jitter);
        }
        if let Some(value) = given("limit") {
            spec.limit = self.limit(value).unwrap_or(spec.limit);
        }
        if let Some(value) = given("timeouts") {
            spec.timeouts = self.timeouts(value, spec.timeouts).unwrap_or(spec.timeouts);
        }
        if let Some(value) = given("success") {
            spec.success = self.status_set("success", value);
        }
        if let Some(value) = given("redirects") {
            spec.redirects = self.redirects(value).unwrap_or(spec.redirects);
        }
        if let Some(value) = given("rejects") {
            spec.rejects = self.status_set("rejects", value);
        }
        spec.malformed_rejects =
            self.flag("malformedRejects", given("malformedRejects"), spec.malformed_rejects);
        spec.gone_disables = self.flag("goneDisables", given("goneDisables"), spec.gone_disables);
        if let Some(value) = given("retryAfter") {
            spec.retry_after = self.retry_after(value, spec.retry_after.clone()).unwrap_or(spec.retry_after);
        }
        if let Some(value) = given("gate") {
            spec.gate = self.gate(value).unwrap_or(spec.gate);
        }
        if let Some(value) = given("endpointFails") {
            spec.endpoint_fails = self.endpoint_fails(value).unwrap_or(spec.endpoint_fails);
        }
        match given("probe") {
            None => {}
            Some(Value::Null) => spec.probe = None,
            Some(value) => spec.probe = self.probe(value).or(spec.probe),
        }
        if let Some(value) = given("retention").filter(|value| !value.is_null()) {
            spec.retention = self.retention(value).unwrap_or(spec.retention);
        }
        Some(spec)
    }

    fn schedule(&mut self, value: &Value) -> Option<Schedule> {
        match self.kind("schedule", value, &["exponential", "list"])? {
            "exponential" => {
                let fields = self.object("schedule", value, &["type", "base", "factor", "cap"])?;
                let base = self.span("schedule.base", fields.get("base"))?;
                let factor = match fields.get("factor") {
                    None => 2,
                    Some(value) => self.number("schedule.factor", Some(value))?,
                };
                Some(Schedule::Exponential {
                    base,
                    factor,
                    cap: self.span("schedule.cap", fields.get("cap"))?,
                })
            }
            _ => {
                let fields = self.object("schedule", value, &["type", "delays"])?;
                let Some(Value::Array(delays)) = fields.get("delays") else {
                    self.wrong("schedule.delays", "expected a list of durations such as \"5s\"");
                    return None;
                };
                let delays = delays.iter().enumerate();
                let spans = delays.map(|(n, delay)| self.span(&format!("schedule.delays[{n}]"), Some(delay)));
                spans.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Schedule::List)
            }
        }
    }

    fn jitter(&mut self, value: &Value) -> Option<Jitter> {
        let kinds = ["none", "addUpTo", "addPercent", "aroundPercent", "full"];
        let kind = self.kind("jitter", value, &kinds)?;
        let mut percent = || -> Option<u8> {
            let fields = self.object("jitter", value, &["type", "percent"])?;
            let percent: u64 = self.number("jitter.percent", fields.get("percent"))?;
            let share = u8::try_from(percent).ok().filter(|share| *share <= 100);
            if share.is_none() {
                self.wrong("jitter.percent", format!("{percent} % is more than 100 %"));
            }
            share
        };
        match kind {
            "addPercent" => percent().map(Jitter::AddPercent),
            "aroundPercent" => percent().map(Jitter::AroundPercent),
            "addUpTo" => {
                let fields = self.object("jitter", value, &["type", "most"])?;
                self.span("jitter.most", fields.get("most")).map(Jitter::AddUpTo)
            }
            "full" => self.object("jitter", value, &["type"]).map(|_| Jitter::Full),
            _ => self.object("jitter", value, &["type"]).map(|_| Jitter::None),
        }
    }

    fn limit(&mut self, value: &Value) -> Option<Limit> {
        let fields = self.object("limit", value, &["attempts", "stopAfter"])?;
        let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let attempts = match given("attempts") {
            None => None,
            Some(value) => Some(self.number("limit.attempts", Some(value))?),
        };
        let stop_after = match given("stopAfter") {
            None => None,
            Some(value) => Some(self.span("limit.stopAfter", Some(value))?),
        };
        Some(Limit { attempts, stop_after })
    }

    fn timeouts(&mut self, value: &Value, default: Timeouts) -> Option<Timeouts> {
        let fields = self.object("timeouts", value, &["connect", "answer", "total"])?;
        let mut span = |name: &str, default| match fields.get(name) {
            None => Some(default),
            value => self.span(&format!("timeouts.{name}"), value),
        };
        Some(Timeouts {
            connect: span("connect", default.connect)?,
            answer: span("answer", default.answer)?,
            total: span("total", default.total)?,
        })
    }

    fn redirects(&mut self, value: &Value) -> Option<Redirects> {
        match self.kind("redirects", value, &["fail", "follow", "success"])? {
            "follow" => {
                let fields = self.object("redirects", value, &["type", "hops"])?;
                let hops = match fields.get("hops") {
                    None => 5,
                    value => self.number("redirects.hops", value)?,
                };
                Some(Redirects::Follow { hops })
            }
            "success" => self.object("redirects", value, &["type"]).map(|_| Redirects::TakeAsSuccess),
            _ => self.object("redirects", value, &["type"]).map(|_| Redirects::Fail),
        }
    }

    fn retry_after(&mut self, value: &Value, default: RetryAfterRule) -> Option<RetryAfterRule> {
        if value.is_null() {
            return Some(RetryAfterRule::ignored());
        }
        let fields = self.object("retryAfter", value, &["statuses", "use", "shortest", "longest"])?;
        let statuses = match fields.get("statuses") {
            None => default.statuses,
            Some(value) => self.status_set("retryAfter.statuses", value),
        };
        let use_ = match fields.get("use").map(Value::as_str) {
            None => default.use_,
            Some(Some("lengthen")) => RetryAfterUse::Lengthen,
            Some(Some("replace")) => RetryAfterUse::Replace,
            Some(_) => {
                self.wrong("retryAfter.use", "expected \"lengthen\" or \"replace\"");
                return None;
            }
        };
        let mut span = |name: &str, default| match fields.get(name) {
            None => Some(default),
            value => self.span(&format!("retryAfter.{name}"), value),
        };
        let (shortest, longest) = (span("shortest", default.shortest)?, span("longest", default.longest)?);
        Some(RetryAfterRule { statuses, use_, shortest, longest })
    }

    fn gate(&mut self, value: &Value) -> Option<GateRule> {
        match self.kind("gate", value, &["apart", "hostFailures", "delayOver"])? {
            "hostFailures" => {
                let fields = self.object("gate", value, &["type", "inARow", "first", "longest"])?;
                Some(GateRule::HostFailures {
                    in_a_row: self.number("gate.inARow", fields.get("inARow"))?,
                    first: self.span("gate.first", fields.get("first"))?,
                    longest: self.span("gate.longest", fields.get("longest"))?,
                })
            }
            "delayOver" => {
                let fields = self.object("gate", value, &["type", "threshold", "longest"])?;
                Some(GateRule::DelayOver {
                    threshold: self.span("gate.threshold", fields.get("threshold"))?,
                    longest: self.span("gate.longest", fields.get("longest"))?,
                })
            }
            _ => self.object("gate", value, &["type"]).map(|_| GateRule::Apart),
        }
    }

    fn endpoint_fails(&mut self, value: &Value) -> Option<EndpointFails> {
        match self.kind("endpointFails", value, &["never", "whenExhausted", "withoutSuccessFor"])? {
            "withoutSuccessFor" => {
                let fields = self.object("endpointFails", value, &["type", "span"])?;
                self.span("endpointFails.span", fields.get("span")).map(EndpointFails::WithoutSuccessFor)
            }
            "whenExhausted" => {
                self.object("endpointFails", value, &["type"]).map(|_| EndpointFails::WhenExhausted)
            }
            _ => self.object("endpointFails", value, &["type"]).map(|_| EndpointFails::Never),
        }
    }

    fn probe(&mut self, value: &Value) -> Option<Probe> {
        let fields = self.object("probe", value, &["firstGap", "longestGap"])?;
        Some(Probe {
            first_gap: self.span("probe.firstGap", fields.get("firstGap"))?,
            longest_gap: self.span("probe.longestGap", fields.get("longestGap"))?,
        })
    }

    fn retention(&mut self, value: &Value) -> Option<RetentionRule> {
        let parts = self.object("retention", value, &["delivered", "dead"])?;
        let part = |name: &str| parts.get(name).filter(|value| !value.is_null());
        let mut rule = RetentionRule::default();
        if let Some(value) = part("delivered") {
            let fields = self.object("retention.delivered", value, &["for", "newest"])?;
            rule.delivered = self.keep("retention.delivered.for", fields.get("for"));
            if let Some(newest) = fields.get("newest").filter(|value| !value.is_null()) {
                rule.newest = self.number("retention.delivered.newest", Some(newest));
            }
        }
        if let Some(value) = part("dead") {
            let fields = self.object("retention.dead", value, &["for"])?;
            rule.dead = self.keep("retention.dead.for", fields.get("for"));
        }
        Some(rule)
    }

    fn keep(&mut self, field: &str, value: Option<&Value>) -> Keep {
        match value {
            None | Some(Value::Null) => Keep::AsSet,
            Some(Value::String(text)) if text == UNTIL_REMOVED => Keep::UntilRemoved,
            Some(value) => match value.as_str().and_then(parse_duration) {
                Some(span) => Keep::For(span),
                None => {
                    let expected = "expected a duration such as \"24h\" or \"90d\", or \"untilRemoved\"";
                    self.wrong(field, expected);
                    Keep::AsSet
                }
            },
        }
    }

    fn wrong(&mut self, field: &str, why: impl Into<String>) {
        self.errors.push(PolicyError { field: field.to_owned().into(), why: why.into() });
    }

    /// An object with no fields but these.
    fn object<'v>(&mut self, place: &str, value: &'v Value, known: &[&str]) -> Option<&'v Object> {
        let Value::Object(fields) = value else {
            self.wrong(place, "expected an object");
            return None;
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            if place == "policy" {
                self.wrong(name, unknown_in_policy(name, known));
            } else {
                self.wrong(&format!("{place}.{name}"), unknown_field(name, known));
            }
        }
        Some(fields)
    }

    /// The `type` of an object.
    fn kind<'v>(&mut self, place: &str, value: &'v Value, kinds: &[&str]) -> Option<&'v str> {
        let kind = value.get("type").and_then(Value::as_str);
        if let Some(kind) = kind.filter(|kind| kinds.contains(kind)) {
            return Some(kind);
        }
        self.wrong(&format!("{place}.type"), format!("expected one of {}", kinds.join(", ")));
        None
    }

    fn span(&mut self, field: &str, value: Option<&Value>) -> Option<Duration> {
        let text = value.and_then(Value::as_str);
        let span = text.and_then(parse_duration);
        match (value, text) {
            _ if span.is_some() => {}
            (None, _) => self.wrong(field, format!("{REQUIRED}: {SPAN}")),
            (_, Some(text)) if is_duration(text) => {
                self.wrong(field, format!("is too long: at most {} is allowed", format_duration(MAX_DELAY)));
            }
            _ => self.wrong(field, SPAN),
        }
        span
    }

    fn number<N: TryFrom<u64>>(&mut self, field: &str, value: Option<&Value>) -> Option<N> {
        let whole = value.and_then(Value::as_u64);
        let number = whole.and_then(|number| N::try_from(number).ok());
        match (value, whole) {
            _ if number.is_some() => {}
            (None, _) => self.wrong(field, format!("{REQUIRED}: a whole number")),
            (_, Some(whole)) => self.wrong(field, format!("{whole} is too large")),
            (_, None) => self.wrong(field, "expected a whole number, neither negative nor too large"),
        }
        number
    }

    fn flag(&mut self, field: &str, value: Option<&Value>, default: bool) -> bool {
        match value {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong(field, "expected true or false");
                default
            }
        }
    }

    fn status_set(&mut self, field: &str, value: &Value) -> StatusSet {
        let Value::Array(items) = value else {
            self.wrong(field, "expected a list of statuses such as \"200-299\" or \"429\"");
            return StatusSet::default();
        };
        let mut ranges = Vec::with_capacity(items.len());
        for (number, item) in items.iter().enumerate() {
            match status_range(item) {
                Some(range) => ranges.push(range),
                None => self
                    .wrong(&format!("{field}[{number}]"), "expected a status such as \"429\" or \"200-299\""),
            }
        }
        StatusSet::ranges(ranges)
    }
}

/// The error text for an unknown top-level field.
fn unknown_in_policy(name: &str, known: &[&str]) -> String {
    let leaves = NESTED.map(|(leaf, _)| leaf);
    let meant = nearest(name, &leaves).and_then(|near| NESTED.iter().find(|(leaf, _)| *leaf == near));
    match meant {
        Some((_, place)) if nearest(name, known).is_none() => {
            format!("unknown field; did you mean \"{place}\"?")
        }
        _ => unknown_field(name, known),
    }
}

fn status_range(item: &Value) -> Option<(u16, u16)> {
    if let Some(status) = item.as_u64() {
        let status = u16::try_from(status).ok()?;
        return Some((status, status));
    }
    let text = item.as_str()?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}
