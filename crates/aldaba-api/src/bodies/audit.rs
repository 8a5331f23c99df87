//! The audit log: who changed what.

#[cfg(feature = "server")]
use crate::read::moment;
use crate::{Timestamp, response};
use serde_json::Value;

response! {
    /// A change that somebody made.
    AuditEntry "AuditOut" of AuditEntryView {
        /// Its id.
        required id: String;
        /// When.
        required timestamp: Timestamp = moment();
        /// Who.
        required actor: Actor;
        /// What.
        required action: String;
        /// The kind of thing that was changed: what the action begins with.
        required resource_type: String;
        /// In which application.
        nullable app_id: String;
        /// At which endpoint.
        nullable endpoint_id: String;
        /// The id or the name of what was changed; null where it was several things.
        nullable resource_id: String;
        /// The fields that have another value now, where that is known.
        required fields: Vec<String>;
        /// Their values before and after. Empty for changes from before this was kept, and where nothing has values.
        required changes: Vec<FieldChange>;
        /// How many things were changed.
        required count: u32;
    }
}

response! {
    /// A field that has another value now.
    FieldChange "FieldChangeOut" of FieldChangeView {
        /// Its name.
        required field: String;
        /// Null: there was none. Secrets are `***`.
        required before: Value;
        /// Null: there is none. Secrets are `***`.
        required after: Value;
        /// A value was too long to be kept: the beginning of its text stands for it.
        omitted cut: bool;
    }
}

response! {
    /// Who changed something.
    Actor "ActorOut" of ActorView {
        /// `api_key`, `organization_token`, `portal_token`, `command_line` or `program`
        required kind: String;
        /// Of the key, of the organization, or of the application.
        required id: String;
        /// Of a key.
        omitted prefix: String;
        /// Of a key, as it was at the time; of an organization's token, if it was given one.
        omitted name: String;
        /// Of a portal token.
        omitted session_id: String;
    }
}
