//! The event types of all organizations, as they are on disk.

use crate::configuration::schema::Schemas;
use aldaba_delivery::{EventTypeId, OrgId};
use aldaba_store::EventType;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Clones share what they hold.
#[derive(Clone, Debug, Default)]
pub struct EventTypes(Arc<RwLock<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    all: HashMap<OrgId, BTreeMap<String, Arc<EventType>>>,
    /// Those whose payloads are checked. Organizations without any are not in it, so that a message of theirs
    /// costs one look.
    checked: HashMap<OrgId, HashMap<String, Arc<Schemas>>>,
}

impl EventTypes {
    /// How many an organization may have, archived ones among them. All are in memory.
    pub const MOST: usize = 5_000;
    /// Bytes of all the schemas of an organization.
    pub const SCHEMA_BYTES: usize = 16 << 20;

    pub fn get(&self, org: OrgId, name: &str) -> Option<Arc<EventType>> {
        self.0.read().all.get(&org)?.get(name).cloned()
    }

    pub(crate) fn by_id(&self, org: OrgId, id: EventTypeId) -> Option<Arc<EventType>> {
        self.0.read().all.get(&org)?.values().find(|one| one.id == id).cloned()
    }

    /// All of an organization, by name, archived ones too.
    pub fn of_organization(&self, org: OrgId) -> Vec<Arc<EventType>> {
        self.0.read().all.get(&org).map_or_else(Vec::new, |types| types.values().cloned().collect())
    }

    /// The schemas that payloads of a type are checked against; `None`: they are not.
    pub(crate) fn checked(&self, org: OrgId, name: &str) -> Option<Arc<Schemas>> {
        self.0.read().checked.get(&org)?.get(name).cloned()
    }

    pub(crate) fn put(&self, event_type: Arc<EventType>) {
        let schemas = event_type.validate.then(|| readable(&event_type)).flatten();
        let (org, name) = (event_type.org, event_type.name.clone());
        let memory = &mut *self.0.write();
        memory.check_with(org, &name, schemas);
        memory.all.entry(org).or_default().insert(name, event_type);
    }

    pub(crate) fn remove(&self, org: OrgId, name: &str) {
        let memory = &mut *self.0.write();
        memory.check_with(org, name, None);
        if let Some(types) = memory.all.get_mut(&org) {
            types.remove(name);
            if types.is_empty() {
                memory.all.remove(&org);
            }
        }
    }
}

impl Memory {
    fn check_with(&mut self, org: OrgId, name: &str, schemas: Option<Schemas>) {
        if let Some(schemas) = schemas {
            self.checked.entry(org).or_default().insert(name.to_owned(), Arc::new(schemas));
        } else if let Some(types) = self.checked.get_mut(&org) {
            types.remove(name);
            if types.is_empty() {
                self.checked.remove(&org);
            }
        }
    }
}

/// What was written by this server can be read by it. If it cannot all the same, its payloads go unchecked rather
/// than nowhere.
fn readable(event_type: &EventType) -> Option<Schemas> {
    let schemas = Schemas::read(event_type.schemas.as_deref()?);
    schemas
        .inspect_err(|error| {
            tracing::error!(
                event_type = event_type.name,
                error,
                "the stored schemas of an event type cannot be read"
            );
        })
        .ok()
}
