//! The suite with leases in memory, and tests that are the same for every ledger.

#![cfg(feature = "axum")]

mod actions;
mod begun;
mod challenges;
mod extremes;
mod handlers;
mod leases;
#[path = "../suite/mod.rs"]
mod suite;

use aldaba_receiver::lease::{MemoryLease, MemoryLeases};
use aldaba_receiver::{Event, Failure};
use std::collections::HashMap;
use std::sync::Mutex;
use suite::Stage;

#[derive(Default)]
struct Memory {
    leases: MemoryLeases,
    effects: Mutex<HashMap<String, u64>>,
}

impl Memory {
    async fn set() -> Self {
        Self::default()
    }
}

impl Stage for Memory {
    type Ledger = MemoryLeases;

    fn ledger(&self) -> MemoryLeases {
        self.leases.clone()
    }

    async fn work(&self, event: &Event, lease: &mut MemoryLease) -> Result<(), Failure> {
        assert!(lease.is_held());
        *self.effects.lock().unwrap().entry(event.id.clone()).or_default() += 1;
        Ok(())
    }

    async fn effects(&self, event_id: &str) -> u64 {
        self.effects.lock().unwrap().get(event_id).copied().unwrap_or_default()
    }

    async fn marks(&self, event_id: &str) -> u64 {
        u64::from(self.leases.is_marked(event_id))
    }

    async fn take_down(&self) {
        self.leases.set_down(true);
    }

    async fn bring_back(&self) {
        self.leases.set_down(false);
    }
}

suite::suite!(Memory::set());
