//! The audit log: who changed what.

use crate::Client;
use crate::listing::{Listing, Order};
use aldaba_api::{Timestamp, answer, input};
use serde_json::Value;

answer! {
    /// A change that somebody made.
    AuditEntry {
        /// Its id.
        id: String,
        /// When.
        timestamp: Timestamp,
        /// What.
        action: String,
        /// The kind of thing that was changed: what the action begins with.
        resource_type: String,
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
        /// The fields that have another value now, where that is known.
        fields: Vec<String>,
        /// Their values before and after, where they are kept.
        changes: Vec<FieldChange>,
    }
}

answer! {
    /// A field that has another value now.
    FieldChange {
        /// Its name.
        field: String,
        /// Null: there was none. Secrets are `***`.
        before: Value,
        /// Null: there is none. Secrets are `***`.
        after: Value,
        /// A value was too long to be kept: the beginning of its text stands for it.
        cut: Option<bool>,
    }
}

answer! {
    /// Who changed something.
    Actor {
        /// `api_key`, `organization_token`, `portal_token` or `command_line`.
        kind: String,
        /// Of the key, of the organization, or of the application.
        id: String,
        /// Of a key, as it was at the time; of an organization's token, if it was given one.
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
