//! The audit log.

use super::SimStore;
use super::disk::Disk;
use aldaba_delivery::{AuditId, Timestamp};
use aldaba_store::{AuditEntry, AuditPage, AuditQuery, Audits, Order, Read, Stale, Subject, Values};
use std::ops::Bound;

impl Audits for SimStore {
    fn audit(&self, query: AuditQuery) -> Read<AuditPage> {
        self.read(move |disk| disk.audit_page(&query))
    }
}

impl Disk {
    /// A second part of the same entry adds to its count.
    pub(super) fn note_deed(&mut self, entry: Option<&AuditEntry>, things: u32) {
        let Some(entry) = entry else { return };
        let row = self.audit.entry(entry.id).or_insert_with(|| AuditEntry { count: 0, ..entry.clone() });
        row.count += things;
    }

    /// What a thing is before a change of it.
    pub(super) fn values_of(&self, subject: Subject<'_>) -> Option<Values> {
        Some(match subject {
            Subject::Application(app) => (&self.applications.get(&app)?.application).into(),
            Subject::Endpoint(app, id) => {
                let endpoint = self.endpoints.get(&id).filter(|endpoint| endpoint.app == app)?;
                (&endpoint.config).into()
            }
            Subject::EventType(org, name) => self.event_types.get(&(org, name.to_owned()))?.into(),
            Subject::Policy(org, name) => self.policies.get(&(org, name.to_owned()))?.into(),
            Subject::Profile(org, name) => self.profiles.get(&(org, name.to_owned()))?.into(),
            Subject::ApiKey(org, id) => self.api_keys.get(&id).filter(|key| key.org == org)?.into(),
            Subject::Source(id) => self.sources.get(&id)?.into(),
        })
    }

    /// Everything that is in the log.
    pub fn audited(&self) -> impl Iterator<Item = &AuditEntry> {
        self.audit.values()
    }

    fn audit_page(&self, query: &AuditQuery) -> AuditPage {
        let (from, until) = query.bounds();
        let beyond = |id: Option<AuditId>| id.map_or(Bound::Unbounded, Bound::Excluded);
        let empty = matches!((from, until), (Some(from), Some(until)) if from >= until);
        let of = |entry: &&AuditEntry| entry.actor.org == query.org && query.walk().looks_at(&entry.deed);
        let mut rows: Vec<_> = match empty {
            true => Vec::new(),
            false => self.audit.range((beyond(from), beyond(until))).map(|(_, row)| row).filter(of).collect(),
        };
        if query.order == Order::Descending {
            rows.reverse();
        }
        let mut page = AuditPage::default();
        for (number, row) in rows.into_iter().enumerate() {
            if page.found.len() == query.page.limit {
                break;
            }
            if query.takes(row) {
                page.found.push(row.clone());
            }
            if number + 1 == query.most && page.found.len() < query.page.limit {
                page.stopped = Some(row.id);
                break;
            }
        }
        page
    }

    pub(super) fn old_audit(&self, before: Timestamp, limit: usize) -> Vec<Stale> {
        let old = self.audit.range(..AuditId::first_at(before)).take(limit);
        old.map(|(id, _)| Stale::Audit(*id)).collect()
    }
}
