//! Event types reach the disk.

use super::disk::Disk;
use aldaba_store::{Changed, EventTypeChange, EventTypeWrite};

impl Disk {
    pub(super) fn write_event_types(&mut self, change: &EventTypeChange) -> Changed {
        let key = |write: &EventTypeWrite| (change.org, write.name.clone());
        let as_read =
            |write: &EventTypeWrite| self.event_types.get(&key(write)).map(|row| row.updated_at) == write.was;
        if !change.writes.iter().all(as_read) {
            return Changed::Stale;
        }
        for write in &change.writes {
            match &write.now {
                Some(event_type) => self.event_types.insert(key(write), event_type.clone()),
                None => self.event_types.remove(&key(write)),
            };
        }
        Changed::Done { removed: Vec::new() }
    }
}
