//! Alerts: what fires, what has been resolved, and the rules.

#[cfg(feature = "server")]
use crate::read::{moment, size};
use crate::{Timestamp, response};

response! {
    /// An alert, from when it fires until it is resolved.
    Alert "AlertOut" of AlertView {
        /// Its id.
        required id: String;
        /// `firing` or `resolved`.
        required state: String;
        /// Which rule.
        required rule: String;
        /// `server`, `organization` or `endpoint`.
        required scope: String;
        /// `warning` or `critical`.
        required severity: String;
        /// What is wrong, in a few words.
        required title: String;
        /// What to do.
        required what_to_do: String;
        /// What was measured when it fired.
        required value: f64;
        /// What the limit was then.
        required threshold: f64;
        /// `>` or `<`: on which side of the threshold a value is bad.
        required comparison: String;
        /// The application of the endpoint that it is about.
        nullable app_id: String;
        /// The endpoint that it is about.
        nullable endpoint_id: String;
        /// When it fired.
        required fired_at: Timestamp = moment();
        /// When it was resolved.
        nullable resolved_at: Timestamp = moment();
        /// When somebody has taken note of it.
        nullable acknowledged_at: Timestamp = moment();
        /// Who has taken note of it, as the audit log names them.
        nullable acknowledged_by: String;
    }
}

response! {
    /// The rules in force.
    AlertRules "AlertRulesOut" of AlertRulesView {
        /// The rules.
        required data: Vec<AlertRule>;
        /// How often they are judged.
        required interval_seconds: u64 = size();
    }
}

response! {
    /// A rule with its limits.
    AlertRule "AlertRuleOut" of AlertRuleView {
        /// Its name.
        required rule: String;
        /// `false`: the configuration turns it off.
        required enabled: bool;
        /// `built-in` or `configuration`: where its limits come from.
        required source: String;
        /// What it is judged for: `server`, `organization`, `endpoint`.
        required scopes: Vec<String>;
        /// `warning` or `critical`.
        required severity: String;
        /// What is wrong, in a few words.
        required title: String;
        /// What is measured.
        required meaning: String;
        /// What to do.
        required what_to_do: String;
        /// The metric that has the value for the whole server; null where none has it.
        nullable metric: String;
        /// `ratio`, `number`, `seconds` or `bytes`.
        required unit: String;
        /// `>` or `<`: on which side of the threshold a value is bad.
        required comparison: String;
        /// The limit.
        nullable threshold: f64;
        /// An alert ends when the value is no longer beyond this one.
        nullable resolve: f64;
        /// For how long the value must be bad before the rule fires, such as `1m`.
        nullable r#for: String;
        /// What a rate is over, such as `5m`.
        nullable window: String;
    }
}
