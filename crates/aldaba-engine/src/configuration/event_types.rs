//! The event types of all organizations, cached as they are on disk.

use crate::configuration::schema::Schemas;
use aldaba_delivery::{EventTypeId, OrgId};
use aldaba_store::EventType;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Clones share the cache.
#[derive(Clone, Debug, Default)]
pub struct EventTypes(Arc<RwLock<EventTypeTable>>);

#[derive(Debug, Default)]
struct EventTypeTable {
    all: HashMap<OrgId, BTreeMap<String, Arc<EventType>>>,
    /// Schemas of the types whose payloads are checked. Organizations without any have no entry, so that
    /// their messages cost one lookup.
    checked: HashMap<OrgId, HashMap<String, Arc<Schemas>>>,
}

impl EventTypes {
    /// Event types per organization, archived ones included. All are in memory.
    pub const MAX_PER_ORGANIZATION: usize = 5_000;
    /// Bytes of all schemas of an organization.
    pub const MAX_SCHEMA_BYTES: usize = 16 << 20;

    pub fn get(&self, org: OrgId, name: &str) -> Option<Arc<EventType>> {
        self.0.read().all.get(&org)?.get(name).cloned()
    }

    pub(crate) fn by_id(&self, org: OrgId, id: EventTypeId) -> Option<Arc<EventType>> {
        self.0.read().all.get(&org)?.values().find(|one| one.id == id).cloned()
    }

    /// All event types of an organization by name, archived ones included.
    pub fn of_organization(&self, org: OrgId) -> Vec<Arc<EventType>> {
        self.0.read().all.get(&org).map_or_else(Vec::new, |types| types.values().cloned().collect())
    }

    /// The schemas for payloads of a type. `None`: they are not checked.
    pub(crate) fn checked(&self, org: OrgId, name: &str) -> Option<Arc<Schemas>> {
        self.0.read().checked.get(&org)?.get(name).cloned()
    }

    pub(crate) fn put(&self, event_type: Arc<EventType>) {
        let schemas = event_type.validate.then(|| read_schemas(&event_type)).flatten();
        let (org, name) = (event_type.org, event_type.name.clone());
        let table = &mut *self.0.write();
        table.set_schemas(org, &name, schemas);
        table.all.entry(org).or_default().insert(name, event_type);
    }

    pub(crate) fn remove(&self, org: OrgId, name: &str) {
        let table = &mut *self.0.write();
        table.set_schemas(org, name, None);
        if let Some(types) = table.all.get_mut(&org) {
            types.remove(name);
            if types.is_empty() {
                table.all.remove(&org);
            }
        }
    }
}

impl EventTypeTable {
    fn set_schemas(&mut self, org: OrgId, name: &str, schemas: Option<Schemas>) {
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

/// Parses stored schemas. If that fails, payloads of the type are not checked, rather than refused.
fn read_schemas(event_type: &EventType) -> Option<Schemas> {
    let schemas = Schemas::read(event_type.schemas.as_deref()?);
    schemas
        .inspect_err(|error| {
            tracing::error!(
                event_type = event_type.name,
                error,
                "cannot parse the stored schemas of an event type; its payloads are not checked"
            );
        })
        .ok()
}
