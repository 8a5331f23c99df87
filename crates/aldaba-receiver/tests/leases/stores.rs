//! Key-value stores: one in memory, one in Redis.

#![allow(dead_code, reason = "the trials of faults take one of them")]

use aldaba_receiver::lease::{Atomicity, KeyValueStore, PlainStore, PutIfAbsentStore};
use redis::aio::ConnectionManager;
use redis::{RedisError, Script};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// In memory. Copies of it are handles on the same one.
#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Inner>);

#[derive(Default)]
struct Inner {
    values: Mutex<HashMap<String, (String, Instant)>>,
    down: AtomicBool,
    broken: AtomicBool,
    /// How many writes do what they should and then say that they have failed.
    lost_answers: AtomicU64,
    /// How long a look and the write that follows lie apart.
    gap: Mutex<Duration>,
}

#[derive(Debug, thiserror::Error)]
#[error("the shelf is down")]
pub(crate) struct Down;

#[expect(clippy::disallowed_methods, reason = "a store has a clock of its own")]
fn now() -> Instant {
    Instant::now()
}

impl Shelf {
    pub(crate) fn set_down(&self, down: bool) {
        self.0.down.store(down, Relaxed);
    }

    /// From now on it panics.
    pub(crate) fn break_down(&self) {
        self.0.broken.store(true, Relaxed);
    }

    pub(crate) fn lose_answers(&self, count: u64) {
        self.0.lost_answers.store(count, Relaxed);
    }

    pub(crate) fn set_gap(&self, gap: Duration) {
        *self.0.gap.lock().unwrap() = gap;
    }

    pub(crate) fn peek(&self, key: &str) -> Option<String> {
        let values = self.0.values.lock().unwrap();
        values.get(key).filter(|(_, end)| *end > now()).map(|(value, _)| value.clone())
    }

    pub(crate) fn life(&self, key: &str) -> Duration {
        self.0.values.lock().unwrap()[key].1 - now()
    }

    pub(crate) fn overwrite(&self, key: &str, value: &str, life: Duration) {
        self.0.values.lock().unwrap().insert(key.into(), (value.into(), now() + life));
    }

    pub(crate) fn remove(&self, key: &str) {
        self.0.values.lock().unwrap().remove(key);
    }

    fn available(&self) -> Result<(), Down> {
        assert!(!self.0.broken.load(Relaxed), "the shelf has broken down");
        if self.0.down.load(Relaxed) { Err(Down) } else { Ok(()) }
    }

    fn answered(&self) -> Result<(), Down> {
        let lost = &self.0.lost_answers;
        if lost.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() { Err(Down) } else { Ok(()) }
    }

    fn write_where(
        &self,
        key: &str,
        new: &str,
        life: Duration,
        may: impl Fn(Option<&str>) -> bool,
    ) -> Result<bool, Down> {
        self.available()?;
        let mut values = self.0.values.lock().unwrap();
        values.retain(|_, (_, end)| *end > now());
        let written = may(values.get(key).map(|(value, _)| value.as_str()));
        if written {
            values.insert(key.into(), (new.into(), now() + life));
        }
        self.answered().map(|()| written)
    }
}

impl KeyValueStore for Shelf {
    type Error = Down;

    const ATOMICITY: Atomicity = Atomicity::CompareAndSwap;

    async fn get(&self, key: &str) -> Result<Option<String>, Down> {
        self.available()?;
        Ok(self.peek(key))
    }

    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, Down> {
        self.write_where(key, value, life, |there| there.is_none())
    }

    async fn replace_if(&self, key: &str, old: &str, new: &str, life: Duration) -> Result<bool, Down> {
        self.write_where(key, new, life, |there| there == Some(old))
    }
}

/// A store behind a network: a sent operation is executed even if its caller is gone.
#[derive(Clone, Default)]
pub(crate) struct Distant {
    pub(crate) shelf: Shelf,
    delay: Arc<Mutex<Duration>>,
}

impl Distant {
    pub(crate) fn set_delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    async fn sent<T: Send + 'static>(&self, step: impl Future<Output = T> + Send + 'static) -> T {
        let delay = *self.delay.lock().unwrap();
        let sent = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            step.await
        });
        sent.await.unwrap()
    }
}

impl KeyValueStore for Distant {
    type Error = Down;

    const ATOMICITY: Atomicity = Atomicity::CompareAndSwap;

    async fn get(&self, key: &str) -> Result<Option<String>, Down> {
        let (shelf, key) = (self.shelf.clone(), key.to_owned());
        self.sent(async move { KeyValueStore::get(&shelf, &key).await }).await
    }

    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, Down> {
        let (shelf, key, value) = (self.shelf.clone(), key.to_owned(), value.to_owned());
        self.sent(async move { KeyValueStore::put_if_absent(&shelf, &key, &value, life).await }).await
    }

    async fn replace_if(&self, key: &str, old: &str, new: &str, life: Duration) -> Result<bool, Down> {
        let (shelf, key, old, new) = (self.shelf.clone(), key.to_owned(), old.to_owned(), new.to_owned());
        self.sent(async move { shelf.replace_if(&key, &old, &new, life).await }).await
    }
}

/// The same, as it would be at the edge.
#[derive(Clone, Default)]
pub(crate) struct Edge(pub(crate) Shelf);

impl PlainStore for Edge {
    type Error = Down;

    async fn get(&self, key: &str) -> Result<Option<String>, Down> {
        let seen = KeyValueStore::get(&self.0, key).await;
        let gap = *self.0.0.gap.lock().unwrap();
        tokio::time::sleep(gap).await;
        seen
    }

    async fn put(&self, key: &str, value: &str, life: Duration) -> Result<(), Down> {
        self.0.write_where(key, value, life, |_| true).map(drop)
    }
}

impl PutIfAbsentStore for Edge {
    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, Down> {
        KeyValueStore::put_if_absent(&self.0, key, value, life).await
    }
}

/// In Redis, as a store like any other.
#[derive(Clone)]
pub(crate) struct InRedis(ConnectionManager);

impl InRedis {
    pub(crate) async fn at(address: &str) -> Self {
        let client = redis::Client::open(address).unwrap();
        Self(client.get_connection_manager().await.unwrap())
    }
}

impl KeyValueStore for InRedis {
    type Error = RedisError;

    const ATOMICITY: Atomicity = Atomicity::CompareAndSwap;

    async fn get(&self, key: &str) -> Result<Option<String>, RedisError> {
        redis::cmd("GET").arg(key).query_async(&mut self.0.clone()).await
    }

    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, RedisError> {
        let mut put = redis::cmd("SET");
        put.arg(key).arg(value).arg("NX").arg("PX").arg(life.as_millis() as u64);
        let put: Option<String> = put.query_async(&mut self.0.clone()).await?;
        Ok(put.is_some())
    }

    async fn replace_if(&self, key: &str, old: &str, new: &str, life: Duration) -> Result<bool, RedisError> {
        let script = Script::new(
            "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
             redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
             return 1",
        );
        let mut replace = script.key(key);
        replace.arg(old).arg(new).arg(life.as_millis() as u64);
        replace.invoke_async(&mut self.0.clone()).await
    }
}
