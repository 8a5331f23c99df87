//! Entries for the audit log.

use crate::{Clock, Entropy};
use aldaba_delivery::AuditId;
use aldaba_store::{Actor, AuditAction, AuditEntry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes them. Clones count together.
#[derive(Clone)]
pub(crate) struct Entries {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    made: Arc<AtomicU32>,
}

impl Entries {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy, made: Arc::default() }
    }

    pub(crate) fn entry(&self, actor: &Actor, action: AuditAction) -> Arc<AuditEntry> {
        self.entry_about(actor, action, 1)
    }

    /// One that is about so many things.
    pub(crate) fn entry_about(&self, actor: &Actor, action: AuditAction, count: u32) -> Arc<AuditEntry> {
        // Ids know time to 4 ms. The number keeps those of one moment in the order in which they were made.
        let number = self.made.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut random: [u8; 15] = self.entropy.bytes();
        random[..number.len()].copy_from_slice(&number);
        let id = AuditId::new(self.clock.now(), random);
        Arc::new(AuditEntry { id, actor: actor.clone(), action, count })
    }
}
