//! Alerts: what fires, since when, and who has taken note of it.

use crate::operations::alert;
use crate::{ListPage, ListRange};
use aldaba_delivery::alert::AlertRule;
use aldaba_delivery::{AlertId, AppId, EndpointId, OrgId, Timestamp};
use std::time::Duration;

/// One alert, from when it fires until it is resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// It has the time at which the rule fired.
    pub id: AlertId,
    /// The management organization for those of the whole server.
    pub org: OrgId,
    /// The application of its endpoint.
    pub app: Option<AppId>,
    /// `None`: it is about the organization, or about the server.
    pub endpoint: Option<EndpointId>,
    pub rule: AlertRule,
    /// What was measured when it fired.
    pub value: f64,
    /// What the limit was then.
    pub threshold: f64,
    pub fired_at: Timestamp,
    /// `None`: it fires.
    pub resolved_at: Option<Timestamp>,
    /// When somebody has taken note of it.
    pub acknowledged_at: Option<Timestamp>,
    /// Who that was, as the audit log names them.
    pub acknowledged_by: Option<String>,
}

impl Alert {
    /// How many resolved alerts of one organization are kept. The oldest go first.
    pub const MAX_RESOLVED: usize = 1000;
    /// An endpoint that fails again so soon continues the alert that was resolved: one that fails by turns has one alert.
    pub const REOPENED_WITHIN: Duration = Duration::from_secs(10 * 60);

    pub fn is_firing(&self) -> bool {
        self.resolved_at.is_none()
    }
}

/// A rule that is beyond its threshold, and not for long enough to fire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PendingAlert {
    /// The management organization for the whole server.
    pub org: OrgId,
    pub rule: AlertRule,
    /// Under another one, nobody knows since when it is beyond.
    pub threshold: f64,
    pub since: Timestamp,
}

impl PendingAlert {
    /// The setting with the moment at which the rules were judged last while one of them was pending.
    pub const JUDGED_SETTING: &str = "alerts-judged";
}

#[derive(Clone, Debug)]
pub struct AlertsQuery {
    pub org: OrgId,
    /// Only those of the endpoints of this application.
    pub app: Option<AppId>,
    pub rule: Option<AlertRule>,
    /// Those that fire, or those that are resolved.
    pub firing: Option<bool>,
    pub part: ListRange<AlertId>,
}

impl AlertsQuery {
    pub fn takes(&self, alert: &Alert) -> bool {
        alert.org == self.org
            && self.app.is_none_or(|app| alert.app == Some(app))
            && self.rule.is_none_or(|rule| alert.rule == rule)
            && self.firing.is_none_or(|firing| alert.is_firing() == firing)
    }
}

contract! {
    pub trait Alerts {
        reads {
            walk alerts(query: AlertsQuery) -> ListPage<Alert, AlertId>
                = |reading, slice| alert::list(reading, slice, &query);

            read alert(org: OrgId, id: AlertId) -> Option<Alert> = |reading| alert::one(reading, org, id);

            /// What fires of organizations and of the server, without endpoints, by id.
            read judged_alerts(after: Option<AlertId>, limit: usize) -> Vec<Alert>
                = |reading| alert::judged(reading, after, limit);

            /// All rules that are beyond their thresholds and do not fire.
            background_read pending_alerts() -> Vec<PendingAlert> = |reading| alert::pending(reading);

            /// The endpoints of which an alert fires, by id.
            background_read alerting_endpoints(after: Option<EndpointId>, limit: usize) -> Vec<EndpointId>
                = |reading| alert::alerting_endpoints(reading, after, limit);
        }
    }
}
