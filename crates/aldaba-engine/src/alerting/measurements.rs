//! What the rules are judged by.

use aldaba_delivery::alert::{AlertLimits, AlertRule, Measured};
use aldaba_delivery::{OrgId, Timestamp};

/// What a measurement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredScope {
    Server,
    Organization(OrgId),
}

/// Reads nothing from the store: a round asks for every organization.
pub(crate) trait Measurements: Send + Sync + 'static {
    /// Those of which anything has happened within the longest window, or for which deliveries wait.
    fn organizations(&self) -> Vec<OrgId>;

    /// What was measured for each of the rules, in their order.
    fn measure(
        &self,
        scope: MeasuredScope,
        rules: &[(AlertRule, AlertLimits)],
        now: Timestamp,
    ) -> Vec<Measured>;
}
