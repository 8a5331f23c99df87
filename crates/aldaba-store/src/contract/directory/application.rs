//! An application: a customer of the organization that has it.

use aldaba_delivery::{AppId, OrgId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    pub id: AppId,
    pub org: OrgId,
    pub uid: Option<String>,
    pub name: String,
    pub throttle_rate: Option<u16>,
    /// Where its people want to be told when something is wrong.
    pub alert_email: Option<String>,
    /// A JSON object of strings.
    pub metadata: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Application {
    /// Bytes.
    pub const MAX_NAME_BYTES: usize = 4096;

    /// The names, as callers know them, of what is not as it was `before`.
    pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        let fields = [
            ("uid", self.uid != before.uid),
            ("name", self.name != before.name),
            ("throttleRate", self.throttle_rate != before.throttle_rate),
            ("alertEmail", self.alert_email != before.alert_email),
            ("metadata", self.metadata != before.metadata),
        ];
        fields.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect()
    }
}
