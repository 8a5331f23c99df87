//! The suite on leases in Redis.

use crate::suite::Stage;
use crate::{scene, suite};
use aldaba_receiver::lease::{OwnedLease, RedisLeases, RedisOptions};
use aldaba_receiver::{Event, Failure};
use redis::AsyncTypedCommands;
use std::collections::HashMap;
use std::sync::Mutex;
use test_servers::Redis;

struct Leases {
    server: Redis,
    leases: RedisLeases,
    effects: Mutex<HashMap<String, u64>>,
}

impl Leases {
    async fn set() -> Self {
        let server = Redis::start();
        let leases = RedisLeases::open(server.url(), RedisOptions::default()).unwrap();
        Self { server, leases, effects: Mutex::default() }
    }
}

impl Stage for Leases {
    type Ledger = RedisLeases;

    // Redis forgets marks by itself.
    const CLEANS: bool = false;

    fn ledger(&self) -> RedisLeases {
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
        let mark = scene::look(&self.server).await.exists(format!("webhook:processed:{event_id}")).await;
        u64::from(mark.unwrap())
    }

    async fn take_down(&self) {
        self.server.kill();
    }

    async fn bring_back(&self) {
        self.server.restart();
    }
}

suite::suite!(Leases::set());
