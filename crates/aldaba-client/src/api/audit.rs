//! The audit log: who changed what.

use crate::Client;
use crate::listing::{Listing, Order};
use crate::shape::{Timestamp, answer, input};

answer! {
    /// A change that somebody made.
    AuditEntry {
        /// Its id.
        id: String,
        /// When.
        timestamp: Timestamp,
        /// What.
        action: String,
        /// Who.
        actor: Actor,
        /// In which application.
        app_id: Option<String>,
        /// At which endpoint.
        endpoint_id: Option<String>,
        /// The id or the name of what was changed; `None` where it was several things.
        resource_id: Option<String>,
        /// How many things were changed.
        count: u32,
        /// The fields that have another value now, where that is known. Values are not kept.
        fields: Vec<String>,
    }
}

answer! {
    /// Who changed something.
    Actor {
        /// `api_key`, `organization_token`, `portal_token` or `command_line`.
        kind: String,
        /// Of the key, of the organization, or of the application.
        id: String,
        /// Of a key, as it was at the time.
        name: Option<String>,
        /// Of a key.
        prefix: Option<String>,
        /// Of a portal token.
        session_id: Option<String>,
    }
}

input! {
    /// Which changes.
    AuditFilter {
        /// In this application.
        #[serde(rename = "app_id")]
        app_id: Option<String>,
        /// Of this kind.
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
