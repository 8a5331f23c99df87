//! The audit log.

use super::SimStore;
use super::disk::Disk;
use aldaba_delivery::{AuditId, Timestamp};
use aldaba_store::{AuditEntry, AuditPage, AuditQuery, Audits, Order, Read, Stale};
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

    /// Everything that is in the log.
    pub fn audited(&self) -> impl Iterator<Item = &AuditEntry> {
        self.audit.values()
    }

    fn audit_page(&self, query: &AuditQuery) -> AuditPage {
        let (from, until) = query.bounds();
        let beyond = |id: Option<AuditId>| id.map_or(Bound::Unbounded, Bound::Excluded);
        let empty = matches!((from, until), (Some(from), Some(until)) if from >= until);
        let of = |entry: &&AuditEntry| {
            entry.actor.org == query.org && query.app.is_none_or(|app| entry.deed.app == Some(app))
        };
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
            if number + 1 == query.walk && page.found.len() < query.page.limit {
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
