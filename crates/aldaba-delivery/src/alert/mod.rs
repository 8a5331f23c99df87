//! Alerts: the built-in rules, their limits, and what a measured value means under them.
//!
//! Each rule is defined once, here: the engine judges by it, the API and `docs/alerts.md` show it, and the Prometheus rules and the
//! Grafana dashboard in `contrib/` are generated from it.

mod judge;
mod limits;
mod prometheus;
mod rule;
mod text;

pub use judge::{AlertState, AlertTransition, MAX_JUDGING_GAP, Measured};
pub use limits::{AlertLimits, AlertRules, AlertRulesError, RuleSource};
pub use rule::{ATTEMPT_WINDOW, AlertRule, AlertScope, Comparison, DELIVERY_WINDOW, Sample, Severity, Unit};
pub use text::AlertTexts;
