//! Event types: what an organization says about the kinds of events that it sends.

use crate::{AuditAction, IdempotencyKey};
use aldaba_delivery::{EventTypeId, OrgId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    pub id: EventTypeId,
    pub org: OrgId,
    pub name: String,
    pub description: String,
    /// No longer offered. Endpoints that ask for it still get it.
    pub archived: bool,
    pub deprecated: bool,
    /// Payloads are checked against its schemas.
    pub validate: bool,
    /// A JSON object of JSON Schemas by their versions. The store never looks inside.
    pub schemas: Option<String>,
    /// Sorted, without repeats; empty: everybody sees it.
    pub feature_flags: Vec<String>,
    pub group_name: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Writes of event types of one organization: all of them or none.
#[derive(Clone, Debug)]
pub struct EventTypeChange {
    pub org: OrgId,
    pub writes: Vec<EventTypeWrite>,
    /// What a repeat under the idempotency key is told was made.
    pub resource: EventTypeId,
    pub idempotency: Option<IdempotencyKey>,
    pub at: Timestamp,
}

impl EventTypeChange {
    /// What the audit log says about it.
    pub fn audit_action(&self) -> AuditAction {
        match &self.writes[..] {
            [EventTypeWrite { name, now: None, .. }] => AuditAction::new("event_type.delete", name),
            [EventTypeWrite { name, was: None, .. }] => AuditAction::new("event_type.create", name),
            [EventTypeWrite { name, .. }] => AuditAction::new("event_type.update", name),
            // A caller that writes several at once names its own action.
            _ => AuditAction::new("event_type.import", ""),
        }
    }

    /// What it keeps in memory, to speak of.
    pub fn bytes(&self) -> usize {
        let written = self.writes.iter().filter_map(|write| write.now.as_ref());
        written.map(|now| now.description.len() + now.schemas.as_ref().map_or(0, String::len)).sum()
    }
}

/// One event type, as the caller has read it and as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTypeWrite {
    pub name: String,
    /// When it was last changed; `None`: there was none of this name. It keeps two callers from undoing
    /// each other's change.
    pub was: Option<Timestamp>,
    /// `None`: it is removed.
    pub now: Option<EventType>,
}

impl EventTypeWrite {
    /// Puts one in the place of what was there.
    pub fn put(before: Option<&EventType>, now: &EventType) -> Self {
        Self { name: now.name.clone(), was: before.map(|before| before.updated_at), now: Some(now.clone()) }
    }
}
