//! Changes of event types. What is to be written is decided by what is in memory; the store refuses it where
//! that is old, and it is decided anew.

use super::{ChangeError, Directory, Once, Repeat};
use crate::EventTypes;
use aldaba_delivery::{EventTypeId, OrgId};
use aldaba_store::{AuditAction, Change, EventType, EventTypeChange, EventTypeWrite};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What an event type is asked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEventType {
    pub name: String,
    pub description: String,
    pub archived: bool,
    pub deprecated: bool,
    pub validate: bool,
    /// A JSON object of JSON Schemas that have been checked, by their versions.
    pub schemas: Option<String>,
    /// Sorted, without repeats.
    pub feature_flags: Vec<String>,
    pub group_name: Option<String>,
}

/// An event type that was put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    Created(Arc<EventType>),
    Replaced(Arc<EventType>),
}

impl Directory {
    /// Endpoints can ask for it from now on. One that is archived is overwritten; any other is in the way.
    pub async fn create_event_type(
        &self,
        org: OrgId,
        new: NewEventType,
        once: Once,
    ) -> Result<Arc<EventType>, ChangeError> {
        let mut tries = self.tries();
        loop {
            let there = self.event_types.get(org, &new.name);
            let archived = there.as_deref().filter(|there| there.archived);
            // With a key that was used before it is there because of that: the store knows.
            let made = self.event_type(org, &new, archived);
            let write = EventTypeWrite::put(archived, &made);
            match self.write_event_types(org, vec![write], made.id, once).await {
                Ok(Repeat::Of(id)) => {
                    let before = self.event_types.by_id(org, EventTypeId::from_bytes(id));
                    return before
                        .ok_or_else(|| ChangeError::MadeAndGone(format!("the event type `{}`", new.name)));
                }
                Ok(_) => return Ok(made),
                Err(ChangeError::Unsettled) if there.is_some_and(|there| !there.archived) => {
                    return Err(ChangeError::UidTaken);
                }
                Err(ChangeError::Unsettled) => tries.again().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts it in the place of the one with its name, or makes it.
    pub async fn put_event_type(&self, org: OrgId, new: NewEventType) -> Result<Put, ChangeError> {
        let mut tries = self.tries();
        loop {
            let before = self.event_types.get(org, &new.name);
            let made = self.event_type(org, &new, before.as_deref());
            if let Some(before) = before.as_ref().filter(|before| made.changed_since(before).is_empty()) {
                return Ok(Put::Replaced(before.clone()));
            }
            let write = EventTypeWrite::put(before.as_deref(), &made);
            match self.write_event_types(org, vec![write], made.id, None).await {
                Err(ChangeError::Unsettled) => tries.again().await?,
                Err(error) => return Err(error),
                Ok(_) if before.is_some() => return Ok(Put::Replaced(made)),
                Ok(_) => return Ok(Put::Created(made)),
            }
        }
    }

    /// Changes it from what `current` is. [`ChangeError::Unsettled`]: it is no longer that.
    pub async fn change_event_type(
        &self,
        current: &EventType,
        new: &NewEventType,
    ) -> Result<Arc<EventType>, ChangeError> {
        let made = self.event_type(current.org, new, Some(current));
        if made.changed_since(current).is_empty() {
            return Ok(Arc::new(current.clone()));
        }
        let write = EventTypeWrite::put(Some(current), &made);
        self.write_event_types(current.org, vec![write], made.id, None).await?;
        Ok(made)
    }

    /// Endpoints that ask for it keep doing so; others cannot any more. Once is enough.
    pub async fn archive_event_type(&self, org: OrgId, name: &str) -> Result<(), ChangeError> {
        let mut tries = self.tries();
        loop {
            let current = self.event_types.get(org, name).ok_or(ChangeError::NotFound)?;
            if current.archived {
                return Ok(());
            }
            let archived = self.archived(&current);
            let write = EventTypeWrite::put(Some(&current), &archived);
            match self.write_event_types(org, vec![write], current.id, None).await {
                Err(ChangeError::Unsettled) => tries.again().await?,
                changed => return changed.map(drop),
            }
        }
    }

    /// As if it had never been.
    pub async fn expunge_event_type(&self, org: OrgId, name: &str) -> Result<(), ChangeError> {
        let mut tries = self.tries();
        loop {
            let current = self.event_types.get(org, name).ok_or(ChangeError::NotFound)?;
            let write = EventTypeWrite { name: name.to_owned(), was: Some(current.updated_at), now: None };
            match self.write_event_types(org, vec![write], current.id, None).await {
                Err(ChangeError::Unsettled) => tries.again().await?,
                changed => return changed.map(drop),
            }
        }
    }

    /// Puts many in their places at once, all or none: those that are there keep whether they are checked. With
    /// `only`, all others are archived; their names.
    pub async fn import_event_types(
        &self,
        org: OrgId,
        new: &[NewEventType],
        only: bool,
        once: Once,
    ) -> Result<Vec<String>, ChangeError> {
        let mut tries = self.tries();
        loop {
            let (writes, archived) = self.import(org, new, only);
            self.there_is_room(org, &writes)?;
            if writes.is_empty() {
                return Ok(archived);
            }
            let count = u32::try_from(writes.len()).unwrap_or(u32::MAX);
            let resource = EventTypeId::new(self.clock.now(), self.entropy.bytes());
            let (idempotency, at) = (self.idempotency(once), self.clock.now());
            let change = Change::WriteEventTypes(EventTypeChange { org, writes, resource, idempotency, at });
            match self.change_about(count, AuditAction::new("event_type.import", ""), change).await {
                Err(ChangeError::Unsettled) => tries.again().await?,
                changed => return changed.map(|_| archived),
            }
        }
    }

    /// What would become of the same: the names that would be archived, or why it would be refused.
    pub fn try_import(
        &self,
        org: OrgId,
        new: &[NewEventType],
        only: bool,
    ) -> Result<Vec<String>, ChangeError> {
        let (writes, archived) = self.import(org, new, only);
        self.there_is_room(org, &writes)?;
        Ok(archived)
    }

    /// What is to be written: whatever is not as it should be already. And what is archived by that.
    fn import(&self, org: OrgId, new: &[NewEventType], only: bool) -> (Vec<EventTypeWrite>, Vec<String>) {
        let there = self.event_types.of_organization(org);
        let by_name: BTreeMap<_, _> = there.iter().map(|one| (one.name.as_str(), &**one)).collect();
        let put = |new: &NewEventType| {
            let before = by_name.get(new.name.as_str()).copied();
            let validate = before.is_some_and(|before| before.validate) && new.schemas.is_some();
            let made = self.event_type(org, &NewEventType { validate, ..new.clone() }, before);
            let same = before.is_some_and(|before| made.changed_since(before).is_empty());
            (!same).then(|| EventTypeWrite::put(before, &made))
        };
        let mut writes: Vec<_> = new.iter().filter_map(put).collect();
        let named: BTreeSet<_> = new.iter().map(|new| new.name.as_str()).collect();
        let left_out = |one: &&Arc<EventType>| only && !one.archived && !named.contains(one.name.as_str());
        let left_out: Vec<_> = there.iter().filter(left_out).collect();
        writes.extend(left_out.iter().map(|one| EventTypeWrite::put(Some(one), &self.archived(one))));
        (writes, left_out.iter().map(|one| one.name.clone()).collect())
    }

    /// What is to be written in the place of what was there.
    fn event_type(&self, org: OrgId, new: &NewEventType, before: Option<&EventType>) -> Arc<EventType> {
        let now = self.clock.now();
        // Two changes never have the same moment: it tells one from the other.
        let updated_at = before.map_or(now, |before| now.max(before.updated_at + Duration::from_millis(1)));
        let NewEventType { name, description, archived, deprecated, validate, .. } = new.clone();
        Arc::new(EventType {
            id: EventTypeId::new(now, self.entropy.bytes()),
            org,
            name,
            description,
            archived,
            deprecated,
            validate,
            schemas: new.schemas.clone(),
            feature_flags: new.feature_flags.clone(),
            group_name: new.group_name.clone(),
            created_at: before.map_or(now, |before| before.created_at),
            updated_at,
        })
    }

    fn archived(&self, current: &EventType) -> EventType {
        let updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        EventType { archived: true, updated_at, ..current.clone() }
    }

    async fn write_event_types(
        &self,
        org: OrgId,
        writes: Vec<EventTypeWrite>,
        resource: EventTypeId,
        once: Once,
    ) -> Result<Repeat, ChangeError> {
        self.there_is_room(org, &writes)?;
        let (idempotency, at) = (self.idempotency(once), self.clock.now());
        let changed = match &writes[..] {
            [EventTypeWrite { name, now: Some(now), .. }] => {
                self.event_types.get(org, name).map(|before| now.changed_since(&before))
            }
            _ => None,
        };
        let change = EventTypeChange { org, writes, resource, idempotency, at };
        let action = change.audit_action().with_fields(&changed.unwrap_or_default());
        self.change_as(action, Change::WriteEventTypes(change)).await
    }

    fn there_is_room(&self, org: OrgId, writes: &[EventTypeWrite]) -> Result<(), ChangeError> {
        let bytes = |schemas: &Option<String>| schemas.as_ref().map_or(0, String::len);
        let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
        for one in self.event_types.of_organization(org) {
            sizes.insert(one.name.clone(), bytes(&one.schemas));
        }
        let (before, bytes_before) = (sizes.len(), sizes.values().sum::<usize>());
        for write in writes {
            match &write.now {
                Some(now) => sizes.insert(write.name.clone(), bytes(&now.schemas)),
                None => sizes.remove(&write.name),
            };
        }
        if sizes.len() > EventTypes::MOST.max(before) {
            return Err(ChangeError::TooManyEventTypes);
        }
        if sizes.values().sum::<usize>() > EventTypes::SCHEMA_BYTES.max(bytes_before) {
            return Err(ChangeError::SchemasTooLarge);
        }
        Ok(())
    }
}

/// What a change of event types means for the memory, once it is on disk.
pub(super) struct EventTypeNews {
    event_types: EventTypes,
    org: OrgId,
    writes: Vec<(String, Option<Arc<EventType>>)>,
}

impl EventTypeNews {
    pub(super) fn of(change: &Change, event_types: &EventTypes) -> Option<Self> {
        let Change::WriteEventTypes(change) = change else { return None };
        let write = |write: &EventTypeWrite| (write.name.clone(), write.now.clone().map(Arc::new));
        let writes = change.writes.iter().map(write).collect();
        Some(Self { event_types: event_types.clone(), org: change.org, writes })
    }

    pub(super) fn take_effect(self) {
        for (name, now) in self.writes {
            match now {
                Some(event_type) => self.event_types.put(event_type),
                None => self.event_types.remove(self.org, &name),
            }
        }
    }
}
