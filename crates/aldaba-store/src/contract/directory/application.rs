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
}
