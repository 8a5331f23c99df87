//! What the operator may change of the rules: `queue-length > 500 for 5m; retry-rate off`.

use super::AlertScope;
use super::rule::{AlertRule, Comparison};
use crate::{format_duration, nearest, parse_duration};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time that a rule may wait before it fires.
const MAX_HOLD: Duration = Duration::from_secs(24 * 3600);
/// The alert about the disk comes while there are so many times the bytes with which messages are refused.
const LOW_SPACE_FACTOR: f64 = 2.0;
/// The shortest and the longest window.
const WINDOWS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(24 * 3600));

/// The limits of one rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlertLimits {
    /// A value beyond it is bad.
    pub threshold: f64,
    /// An alert ends when the value is no longer beyond this one.
    pub resolve: f64,
    /// For how long the value must be bad.
    pub hold: Duration,
    /// What a rate is over; `None`: the rule is about now.
    pub window: Option<Duration>,
}

impl AlertLimits {
    /// The limit that keeps an alert firing: never on the bad side of the threshold.
    pub(super) fn resolve_of(&self, rule: AlertRule) -> f64 {
        match rule.comparison() {
            Comparison::Above => self.resolve.min(self.threshold),
            Comparison::Below => self.resolve.max(self.threshold),
        }
    }
}

/// Where the limits of a rule come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSource {
    BuiltIn,
    Configuration,
}

impl RuleSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Configuration => "configuration",
        }
    }
}

/// The rules in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertRules {
    /// What the operator has changed; `None`: turned off.
    changed: BTreeMap<AlertRule, Option<AlertLimits>>,
    /// With fewer free bytes, no messages are accepted. 0: so few that the built-in limit is well before.
    low_space: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertRulesError {
    #[error("unknown rule \"{0}\"{1}")]
    UnknownRule(String, String),
    #[error("{0}: named twice; name each rule once")]
    Repeated(AlertRule),
    #[error("{0}: expected `{1}` and a number, or `off`, such as `{0} {1} {2}` or `{0} off`")]
    Form(AlertRule, &'static str, String),
    #[error("{0}: bad is what is `{1}` its threshold, so write `{0} {1} {2}`")]
    WrongSide(AlertRule, &'static str, String),
    #[error("{rule}: the threshold {given} is out of range; expected {least} to {most}")]
    Threshold { rule: AlertRule, given: String, least: String, most: String },
    #[error(
        "{rule}: `resolve {given}` must be on the good side of the threshold {threshold}, and from {least} to {most}"
    )]
    Resolve { rule: AlertRule, given: String, threshold: String, least: String, most: String },
    #[error(
        "{0}: `{1} {2}` is no duration; expected a number with its unit, such as `{1} 5m`, from {3} to {4}"
    )]
    Duration(AlertRule, &'static str, String, String, String),
    #[error("{0}: is not about a window; leave `over` out")]
    NoWindow(AlertRule),
    #[error("{0}: fires at once; leave `for` out")]
    NoHold(AlertRule),
    #[error("{0}: `{1}` is not understood; expected `for`, `over` or `resolve`")]
    Word(AlertRule, String),
    #[error("{0}: has no other threshold; write `{0} {1} {2}` with `for`, or `{0} off`")]
    Switch(AlertRule, &'static str, String),
}

impl AlertRules {
    /// Reads changes of the rules, separated by `;`, `,` or line ends.
    pub fn parse(text: &str) -> Result<Self, AlertRulesError> {
        let mut rules = Self::default();
        for part in text.split([';', ',', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
            let (rule, limits) = parse_one(part)?;
            if rules.changed.insert(rule, limits).is_some() {
                return Err(AlertRulesError::Repeated(rule));
            }
        }
        Ok(rules)
    }

    /// The same rules where messages are refused with fewer free bytes than these: unless the operator has set it, the alert about
    /// the disk comes well before.
    #[must_use]
    pub fn with_low_space(self, bytes: u64) -> Self {
        let matters = LOW_SPACE_FACTOR * bytes as f64 > AlertRule::DiskSpace.default_limits().threshold;
        Self { low_space: if matters { bytes } else { 0 }, ..self }
    }

    /// The same rules, with one of them as others have it.
    #[must_use]
    pub fn with_rule_of(&self, rule: AlertRule, others: &Self) -> Self {
        let mut rules = self.clone();
        match others.changed.get(&rule) {
            Some(limits) => rules.changed.insert(rule, *limits),
            None => rules.changed.remove(&rule),
        };
        rules
    }

    /// The limits of a rule; `None`: it is turned off.
    pub fn limits(&self, rule: AlertRule) -> Option<AlertLimits> {
        self.changed.get(&rule).copied().unwrap_or_else(|| Some(self.limits_unchanged(rule)))
    }

    fn limits_unchanged(&self, rule: AlertRule) -> AlertLimits {
        let built_in = rule.default_limits();
        if rule != AlertRule::DiskSpace || self.low_space == 0 {
            return built_in;
        }
        let least = LOW_SPACE_FACTOR * self.low_space as f64;
        let resolve = least * (built_in.resolve / built_in.threshold);
        AlertLimits { threshold: least, resolve, ..built_in }
    }

    pub fn source(&self, rule: AlertRule) -> RuleSource {
        if self.changed.contains_key(&rule) { RuleSource::Configuration } else { RuleSource::BuiltIn }
    }

    /// The rules that are judged for a scope, with their limits.
    pub fn of(&self, scope: AlertScope) -> impl Iterator<Item = (AlertRule, AlertLimits)> + '_ {
        let rules = AlertRule::ALL.into_iter().filter(move |rule| rule.scopes().contains(&scope));
        rules.filter_map(|rule| Some((rule, self.limits(rule)?)))
    }

    /// The number of failures in a row that an endpoint may have without an alert. `None`: there are no such alerts.
    pub fn endpoint_failures(&self) -> Option<u32> {
        // The range of the threshold ends far below the largest number.
        self.limits(AlertRule::EndpointFailing).map(|limits| limits.threshold as u32)
    }
}

fn parse_one(part: &str) -> Result<(AlertRule, Option<AlertLimits>), AlertRulesError> {
    // `queue-length>500` is as good as with blanks.
    let spaced = part.replace('>', " > ").replace('<', " < ");
    let mut words = spaced.split_whitespace();
    let name = words.next().unwrap_or_default();
    let rule = AlertRule::from_name(name).ok_or_else(|| unknown(name))?;
    let defaults = rule.default_limits();
    let (sign, usual) = (rule.comparison().sign(), defaults.threshold.to_string());
    let form = || AlertRulesError::Form(rule, sign, usual.clone());
    let threshold = match (words.next(), words.next()) {
        (Some("off"), None) => return Ok((rule, None)),
        (Some(given @ (">" | "<")), Some(_)) if given != sign => {
            return Err(AlertRulesError::WrongSide(rule, sign, usual));
        }
        (Some(given), Some(number)) if given == sign => number.parse::<f64>().map_err(|_| form())?,
        _ => return Err(form()),
    };
    if rule.is_switch() && threshold.to_bits() != defaults.threshold.to_bits() {
        return Err(AlertRulesError::Switch(rule, sign, usual));
    }
    let (least, most) = rule.threshold_range();
    if !(least..=most).contains(&threshold) {
        let (given, least, most) = (threshold.to_string(), least.to_string(), most.to_string());
        return Err(AlertRulesError::Threshold { rule, given, least, most });
    }
    let mut limits =
        AlertLimits { threshold, resolve: scaled_resolve(&defaults, threshold, (least, most)), ..defaults };
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let span = |name: &'static str, (from, until): (Duration, Duration)| {
            let span = parse_duration(value).filter(|span| (from..=until).contains(span));
            let (from, until) = (format_duration(from), format_duration(until));
            span.ok_or_else(|| AlertRulesError::Duration(rule, name, value.to_owned(), from, until))
        };
        match word {
            "for" if rule == AlertRule::EndpointFailing => return Err(AlertRulesError::NoHold(rule)),
            "for" => limits.hold = span("for", (Duration::ZERO, MAX_HOLD))?,
            "over" if rule.metric_window().is_none() => return Err(AlertRulesError::NoWindow(rule)),
            "over" => limits.window = Some(span("over", WINDOWS)?),
            "resolve" => {
                let given = value.parse().ok().filter(|resolve| (least..=most).contains(resolve));
                let is_good = |resolve: &f64| !rule.comparison().breaches(*resolve, threshold);
                limits.resolve = given.filter(is_good).ok_or_else(|| AlertRulesError::Resolve {
                    rule,
                    given: value.to_owned(),
                    threshold: threshold.to_string(),
                    least: least.to_string(),
                    most: most.to_string(),
                })?;
            }
            other => return Err(AlertRulesError::Word(rule, other.to_owned())),
        }
    }
    Ok((rule, Some(limits)))
}

/// The same distance from the threshold, in proportion, as built in.
fn scaled_resolve(defaults: &AlertLimits, threshold: f64, (least, most): (f64, f64)) -> f64 {
    if defaults.threshold == 0.0 {
        return threshold;
    }
    (threshold * (defaults.resolve / defaults.threshold)).clamp(least, most)
}

fn unknown(name: &str) -> AlertRulesError {
    let instead = match nearest::nearest(name, &AlertRule::NAMES) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => format!("; there are: {}", AlertRule::NAMES.join(", ")),
    };
    AlertRulesError::UnknownRule(name.to_owned(), instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        AlertRules::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn rules_are_changed_and_turned_off() {
        let rules = AlertRules::parse(
            "queue-length > 500 for 5m; delivery-failure-rate off,\n delivery-success-rate<0.9 over 1h resolve 0.92;",
        )
        .unwrap();
        let queue = rules.limits(AlertRule::QueueLength).unwrap();
        assert_eq!(
            queue,
            AlertLimits { threshold: 500.0, resolve: 400.0, hold: Duration::from_secs(300), window: None }
        );
        assert_eq!(rules.limits(AlertRule::DeliveryFailureRate), None);
        let success = rules.limits(AlertRule::DeliverySuccessRate).unwrap();
        assert_eq!((success.threshold, success.resolve), (0.9, 0.92));
        assert_eq!(success.window, Some(Duration::from_secs(3600)));
        assert_eq!(rules.limits(AlertRule::RetryRate), Some(AlertRule::RetryRate.default_limits()));
        assert_eq!(rules.source(AlertRule::QueueLength), RuleSource::Configuration);
        assert_eq!(rules.source(AlertRule::RetryRate), RuleSource::BuiltIn);
        let judged: Vec<_> = rules.of(AlertScope::Organization).map(|(rule, _)| rule).collect();
        assert!(
            judged.contains(&AlertRule::QueueLength) && !judged.contains(&AlertRule::DeliveryFailureRate)
        );
        assert!(!judged.contains(&AlertRule::DiskSpace));
    }

    #[test]
    fn the_failures_of_an_endpoint_have_a_limit_of_their_own() {
        assert_eq!(AlertRules::default().endpoint_failures(), Some(2));
        assert_eq!(AlertRules::parse("endpoint-failing > 5").unwrap().endpoint_failures(), Some(5));
        assert_eq!(AlertRules::parse("endpoint-failing off").unwrap().endpoint_failures(), None);
    }

    #[test]
    fn a_higher_threshold_resolves_in_proportion_and_within_the_range() {
        let resolve = |text: &str, rule| AlertRules::parse(text).unwrap().limits(rule).unwrap().resolve;
        assert_eq!(resolve("queue-length > 1000", AlertRule::QueueLength), 800.0);
        assert_eq!(resolve("delivery-success-rate < 0.999", AlertRule::DeliverySuccessRate), 1.0);
        assert_eq!(resolve("task-restarting > 2", AlertRule::TaskRestarting), 2.0);
    }

    #[test]
    fn a_rule_with_two_states_takes_another_time_before_it_fires() {
        let limits = |text: &str, rule| AlertRules::parse(text).unwrap().limits(rule);
        let waits = limits("not-accepting < 1 for 5s", AlertRule::NotAccepting).unwrap();
        assert_eq!((waits.threshold, waits.resolve, waits.hold), (1.0, 1.0, Duration::from_secs(5)));
        assert_eq!(limits("clock-not-trusted off", AlertRule::ClockNotTrusted), None);
    }

    #[test]
    fn the_alert_about_the_disk_comes_before_messages_are_refused() {
        let disk = |text: &str, low: u64| {
            let rules = AlertRules::parse(text).unwrap().with_low_space(low << 30);
            rules.limits(AlertRule::DiskSpace).map(|limits| (limits.threshold, limits.resolve))
        };
        let gib = f64::from(1 << 30);
        assert_eq!(disk("", 0), Some((gib, 1.25 * gib)));
        assert_eq!(disk("", 10), Some((20.0 * gib, 25.0 * gib)));
        assert_eq!(disk("disk-space < 1000", 10), Some((1000.0, 1250.0)));
        assert_eq!(disk("disk-space off", 10), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        assert_eq!(
            refusal("queue-lenght > 5"),
            "unknown rule \"queue-lenght\"; did you mean \"queue-length\"?"
        );
        assert!(refusal("nonsense off").contains("there are: delivery-failure-rate, "));
        assert_eq!(
            refusal("queue-length"),
            "queue-length: expected `>` and a number, or `off`, such as `queue-length > 100` or `queue-length off`"
        );
        assert!(refusal("queue-length > many").starts_with("queue-length: expected `>` and a number"));
        assert!(refusal("queue-length off now").starts_with("queue-length: expected"));
        assert!(refusal("queue-length < 5").contains("write `queue-length > 100`"));
        assert_eq!(
            refusal("retry-rate > 20"),
            "retry-rate: the threshold 20 is out of range; expected 0 to 1"
        );
        assert!(refusal("retry-rate > NaN").contains("out of range"));
        assert!(refusal("queue-length > -1").contains("out of range"));
        assert_eq!(
            refusal("queue-length > 5 for soon"),
            "queue-length: `for soon` is no duration; expected a number with its unit, such as `for 5m`, from 0s to 1d"
        );
        assert!(refusal("queue-length > 5 for").contains("`for ` is no duration"));
        assert!(refusal("retry-rate > 0.3 over 1s").contains("from 1m to 1d"));
        assert!(refusal("queue-length > 5 over 5m").contains("leave `over` out"));
        assert!(refusal("endpoint-failing > 5 for 5m").contains("leave `for` out"));
        assert!(refusal("queue-length > 5 resolve 6").contains("good side of the threshold 5"));
        assert!(refusal("delivery-success-rate < 0.9 resolve 0.8").contains("good side"));
        assert!(refusal("queue-length > 5 until 6").contains("expected `for`, `over` or `resolve`"));
        assert_eq!(
            refusal("clock-not-trusted < 5"),
            "clock-not-trusted: has no other threshold; write `clock-not-trusted < 1` with `for`, or `clock-not-trusted off`"
        );
        assert!(refusal("not-accepting").contains("such as `not-accepting < 1` or `not-accepting off`"));
        assert!(refusal("queue-length > 5; queue-length > 6").contains("name each rule once"));
    }
}
