//! The audit log: who changed what.

use crate::Client;
use crate::listing::{Listing, Order};
use aldaba_api::{AuditEntry, Timestamp, input};

input! {
    /// Which changes.
    AuditFilter {
        /// In this application.
        #[serde(rename = "app_id")]
        app_id: Option<String>,
        /// About this endpoint, by its id.
        #[serde(rename = "endpoint_id")]
        endpoint_id: Option<String>,
        /// Of this kind of thing, such as `endpoint`.
        #[serde(rename = "resource_type")]
        resource_type: Option<String>,
        /// Of the thing with this id or name.
        #[serde(rename = "resource_id")]
        resource_id: Option<String>,
        /// Of this field.
        field: Option<String>,
        /// Of this action.
        action: Option<String>,
        /// By this one.
        actor: Option<String>,
        /// Made before.
        before: Option<Timestamp>,
        /// Made after.
        after: Option<Timestamp>,
        /// Which come first.
        order: Option<Order>,
    }
}

impl Client {
    /// Who changed what, newest first.
    pub fn audit(&self) -> Listing<AuditEntry, AuditFilter> {
        Listing::new(self, &["audit"])
    }
}
