//! Changes event types. The writes are derived from the cache; the store refuses them if it is stale, and
//! they are derived again.

use super::{ChangeError, ChangeOutcome, Directory, IdempotencyDigest};
use crate::EventTypes;
use aldaba_delivery::{EventTypeId, OrgId};
use aldaba_store::{AuditAction, Change, EventType, EventTypeChange, EventTypeWrite};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The properties of a new event type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEventType {
    pub name: String,
    pub description: String,
    pub archived: bool,
    pub deprecated: bool,
    pub validate: bool,
    /// A JSON object of checked JSON Schemas, by version.
    pub schemas: Option<String>,
    /// Sorted, without repeats.
    pub feature_flags: Vec<String>,
    pub group_name: Option<String>,
}

/// The result of a PUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    Created(Arc<EventType>),
    Replaced(Arc<EventType>),
}

impl Directory {
    /// Creates an event type. An archived one of that name is overwritten; any other is a conflict.
    pub async fn create_event_type(
        &self,
        org: OrgId,
        new: NewEventType,
        once: IdempotencyDigest,
    ) -> Result<Arc<EventType>, ChangeError> {
        let mut retry = self.conflict_retry();
        loop {
            let existing = self.event_types.get(org, &new.name);
            let archived = existing.as_deref().filter(|existing| existing.archived);
            // With a reused idempotency key it exists because of the first request: the store knows.
            let made = self.event_type(org, &new, archived);
            let write = EventTypeWrite::put(archived, &made);
            match self.write_event_types(org, vec![write], made.id, once).await {
                Ok(ChangeOutcome::RepeatOf(id)) => {
                    let before = self.event_types.by_id(org, EventTypeId::from_bytes(id));
                    return before
                        .ok_or_else(|| ChangeError::MadeAndGone(format!("the event type `{}`", new.name)));
                }
                Ok(_) => return Ok(made),
                Err(ChangeError::Unsettled) if existing.is_some_and(|existing| !existing.archived) => {
                    return Err(ChangeError::UidTaken);
                }
                Err(ChangeError::Unsettled) => retry.wait().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates or replaces the event type of that name.
    pub async fn put_event_type(&self, org: OrgId, new: NewEventType) -> Result<PutOutcome, ChangeError> {
        let mut retry = self.conflict_retry();
        loop {
            let before = self.event_types.get(org, &new.name);
            let made = self.event_type(org, &new, before.as_deref());
            if let Some(before) = before.as_ref().filter(|before| made.changed_since(before).is_empty()) {
                return Ok(PutOutcome::Replaced(before.clone()));
            }
            let write = EventTypeWrite::put(before.as_deref(), &made);
            match self.write_event_types(org, vec![write], made.id, None).await {
                Err(ChangeError::Unsettled) => retry.wait().await?,
                Err(error) => return Err(error),
                Ok(_) if before.is_some() => return Ok(PutOutcome::Replaced(made)),
                Ok(_) => return Ok(PutOutcome::Created(made)),
            }
        }
    }

    /// Replaces the values that `current` has. [`ChangeError::Unsettled`]: the event type changed meanwhile.
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

    /// Archives an event type. Endpoints that use it keep doing so; others cannot choose it. Idempotent.
    pub async fn archive_event_type(&self, org: OrgId, name: &str) -> Result<(), ChangeError> {
        let mut retry = self.conflict_retry();
        loop {
            let current = self.event_types.get(org, name).ok_or(ChangeError::NotFound)?;
            if current.archived {
                return Ok(());
            }
            let archived = self.archived(&current);
            let write = EventTypeWrite::put(Some(&current), &archived);
            match self.write_event_types(org, vec![write], current.id, None).await {
                Err(ChangeError::Unsettled) => retry.wait().await?,
                changed => return changed.map(drop),
            }
        }
    }

    /// Removes an event type for good.
    pub async fn expunge_event_type(&self, org: OrgId, name: &str) -> Result<(), ChangeError> {
        let mut retry = self.conflict_retry();
        loop {
            let current = self.event_types.get(org, name).ok_or(ChangeError::NotFound)?;
            let write = EventTypeWrite { name: name.to_owned(), was: Some(current.updated_at), now: None };
            match self.write_event_types(org, vec![write], current.id, None).await {
                Err(ChangeError::Unsettled) => retry.wait().await?,
                changed => return changed.map(drop),
            }
        }
    }

    /// Creates or replaces many event types, all or none. Existing ones keep their validation setting. With
    /// `only`, all others are archived; their names are returned.
    pub async fn import_event_types(
        &self,
        org: OrgId,
        new: &[NewEventType],
        only: bool,
        once: IdempotencyDigest,
    ) -> Result<Vec<String>, ChangeError> {
        let mut retry = self.conflict_retry();
        loop {
            let (writes, archived) = self.import(org, new, only);
            self.check_limits(org, &writes)?;
            if writes.is_empty() {
                return Ok(archived);
            }
            let count = u32::try_from(writes.len()).unwrap_or(u32::MAX);
            let resource = EventTypeId::new(self.clock.now(), self.entropy.bytes());
            let (idempotency, at) = (self.idempotency(once), self.clock.now());
            let change = Change::WriteEventTypes(EventTypeChange { org, writes, resource, idempotency, at });
            match self.change_about(count, AuditAction::new("event_type.import", ""), change).await {
                Err(ChangeError::Unsettled) => retry.wait().await?,
                changed => return changed.map(|_| archived),
            }
        }
    }

    /// Dry run of an import: the names that would be archived, or why it would be refused.
    pub fn try_import(
        &self,
        org: OrgId,
        new: &[NewEventType],
        only: bool,
    ) -> Result<Vec<String>, ChangeError> {
        let (writes, archived) = self.import(org, new, only);
        self.check_limits(org, &writes)?;
        Ok(archived)
    }

    /// The writes of an import (only what differs), and the names that it archives.
    fn import(&self, org: OrgId, new: &[NewEventType], only: bool) -> (Vec<EventTypeWrite>, Vec<String>) {
        let existing = self.event_types.of_organization(org);
        let by_name: BTreeMap<_, _> = existing.iter().map(|one| (one.name.as_str(), &**one)).collect();
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
        let left_out: Vec<_> = existing.iter().filter(left_out).collect();
        writes.extend(left_out.iter().map(|one| EventTypeWrite::put(Some(one), &self.archived(one))));
        (writes, left_out.iter().map(|one| one.name.clone()).collect())
    }

    /// The new version of an event type.
    fn event_type(&self, org: OrgId, new: &NewEventType, before: Option<&EventType>) -> Arc<EventType> {
        let now = self.clock.now();
        let updated_at = before.map_or(now, |before| self.time_after(before.updated_at));
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
        EventType { archived: true, updated_at: self.time_after(current.updated_at), ..current.clone() }
    }

    async fn write_event_types(
        &self,
        org: OrgId,
        writes: Vec<EventTypeWrite>,
        resource: EventTypeId,
        once: IdempotencyDigest,
    ) -> Result<ChangeOutcome, ChangeError> {
        self.check_limits(org, &writes)?;
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

    fn check_limits(&self, org: OrgId, writes: &[EventTypeWrite]) -> Result<(), ChangeError> {
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
        if sizes.len() > EventTypes::MAX_PER_ORGANIZATION.max(before) {
            return Err(ChangeError::TooManyEventTypes);
        }
        if sizes.values().sum::<usize>() > EventTypes::MAX_SCHEMA_BYTES.max(bytes_before) {
            return Err(ChangeError::SchemasTooLarge);
        }
        Ok(())
    }
}

/// Updates the cache after a change of event types was committed.
pub(super) struct EventTypeInvalidation {
    event_types: EventTypes,
    org: OrgId,
    writes: Vec<(String, Option<Arc<EventType>>)>,
}

impl EventTypeInvalidation {
    pub(super) fn of(change: &Change, event_types: &EventTypes) -> Option<Self> {
        let Change::WriteEventTypes(change) = change else { return None };
        let write = |write: &EventTypeWrite| (write.name.clone(), write.now.clone().map(Arc::new));
        let writes = change.writes.iter().map(write).collect();
        Some(Self { event_types: event_types.clone(), org: change.org, writes })
    }

    pub(super) fn apply(self) {
        for (name, now) in self.writes {
            match now {
                Some(event_type) => self.event_types.put(event_type),
                None => self.event_types.remove(self.org, &name),
            }
        }
    }
}
