//! The suite on leases in a key-value store, in memory and in Redis.

use crate::stores::{InRedis, Shelf};
use crate::suite::Stage;
use aldaba_receiver::lease::{KeyValueLeases, KeyValueOptions, KeyValueStore, OwnedLease};
use aldaba_receiver::{Event, Failure};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use test_servers::Redis;

struct Leases<S, D> {
    store: S,
    leases: KeyValueLeases<S>,
    down: D,
    effects: Mutex<HashMap<String, u64>>,
}

/// What makes a store fail, and work again.
trait Switch: Send + Sync + 'static {
    fn down(&self);
    fn up(&self);
}

impl Switch for Shelf {
    fn down(&self) {
        self.set_down(true);
    }

    fn up(&self) {
        self.set_down(false);
    }
}

impl Switch for Redis {
    fn down(&self) {
        self.kill();
    }

    fn up(&self) {
        self.restart();
    }
}

fn stage<S: KeyValueStore + Clone, D>(store: S, down: D) -> Leases<S, D> {
    let leases = KeyValueLeases::new(store.clone(), KeyValueOptions::default()).unwrap();
    Leases { store, leases, down, effects: Mutex::default() }
}

async fn in_memory() -> Leases<Shelf, Shelf> {
    let shelf = Shelf::default();
    stage(shelf.clone(), shelf)
}

async fn in_redis() -> Leases<InRedis, Redis> {
    let server = Redis::start();
    stage(InRedis::at(&server.url()).await, server)
}

impl<S: KeyValueStore + Clone, D: Switch> Stage for Leases<S, D> {
    type Ledger = KeyValueLeases<S>;

    // The store forgets marks by itself.
    const CLEANS: bool = false;

    fn ledger(&self) -> KeyValueLeases<S> {
        self.leases.clone()
    }

    async fn work(&self, event: &Event, lease: &mut OwnedLease) -> Result<(), Failure> {
        assert!(!lease.is_lost());
        *self.effects.lock().unwrap().entry(event.id.clone()).or_default() += 1;
        Ok(())
    }

    async fn effects(&self, event_id: &str) -> u64 {
        self.effects.lock().unwrap().get(event_id).copied().unwrap_or_default()
    }

    async fn marks(&self, event_id: &str) -> u64 {
        let key = format!("event:{event_id}");
        // The first request after a restart may find a closed connection.
        let record = loop {
            match self.store.get(&key).await {
                Ok(record) => break record,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        u64::from(record.is_some_and(|record| record.contains(r#""status":"processed""#)))
    }

    async fn take_down(&self) {
        self.down.down();
    }

    async fn bring_back(&self) {
        self.down.up();
    }
}

mod memory {
    crate::suite::suite!(super::in_memory());
}

mod redis {
    crate::suite::suite!(super::in_redis());
}
