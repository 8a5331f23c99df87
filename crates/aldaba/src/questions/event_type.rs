//! Event types: those of the organization, and the server's own.

use super::{Error, Missing, Questions};
use crate::token::Caller;
use aldaba_delivery::{EventTypeId, Timestamp};
use aldaba_engine::{OPERATIONAL_EVENTS, management};
use aldaba_store::EventType;
use std::sync::Arc;

impl Questions<'_> {
    /// The event types that the caller sees, by name. The server's own are among them unless the management
    /// organization has described them.
    pub(crate) fn event_types(&self) -> Vec<Arc<EventType>> {
        let mut types = self.engine.event_types().of_organization(self.caller.org());
        if self.caller.org() == management() {
            let missing = OPERATIONAL_EVENTS.iter().filter(|name| types.iter().all(|one| one.name != **name));
            let missing: Vec<_> = missing.map(|name| operational(name)).collect();
            types.extend(missing);
            types.sort_by(|one, other| one.name.cmp(&other.name));
        }
        types.retain(|event_type| self.caller.sees(event_type));
        types
    }

    /// An event type that somebody has described, and that can be changed.
    pub(crate) fn described_event_type(&self, name: &str) -> Result<Arc<EventType>, Error> {
        let found = self.engine.event_types().get(self.caller.org(), name);
        found.filter(|found| self.caller.sees(found)).ok_or_else(|| Missing::EventType.into())
    }

    pub(crate) fn event_type(&self, name: &str) -> Result<Arc<EventType>, Error> {
        match self.described_event_type(name) {
            Err(_) if is_operational(self.caller, name) => Ok(operational(name)),
            found => found,
        }
    }
}

/// Whether the caller's organization has the server's own event type of this name.
pub(crate) fn is_operational(caller: &Caller, name: &str) -> bool {
    caller.org() == management() && OPERATIONAL_EVENTS.contains(&name)
}

/// An event type of the server itself, which exists without being described.
fn operational(name: &str) -> Arc<EventType> {
    let (id, at) = (EventTypeId::from_bytes([0; 20]), Timestamp::from_millis(0));
    Arc::new(EventType {
        id,
        org: management(),
        name: name.to_owned(),
        description: "An operational webhook of the server".to_owned(),
        archived: false,
        deprecated: false,
        validate: false,
        schemas: None,
        feature_flags: Vec::new(),
        group_name: None,
        created_at: at,
        updated_at: at,
    })
}
