//! What tests of leases have in common.

use crate::suite::polling::wait_until;
use aldaba_receiver::lease::{LeaseTimes, OwnedLease, RedisLeases, RedisOptions};
use aldaba_receiver::{Claim, Event, Ledger};
use http::HeaderMap;
use redis::aio::MultiplexedConnection;
use redis::{AsyncTypedCommands, FromRedisValue};
use std::time::Duration;
use test_servers::Redis;

pub(crate) const NO_TIME: Duration = Duration::ZERO;

/// How long a test waits for something that must come.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);

pub(crate) const LOCK: &str = "webhook:lock:a";
pub(crate) const MARK: &str = "webhook:processed:a";

pub(crate) fn event(id: &str) -> Event {
    event_of(id, "{}")
}

pub(crate) fn event_of(id: &str, body: &'static str) -> Event {
    Event::new(id, "payment.success", body, HeaderMap::new())
}

/// Leases that expire while a test waits for it.
pub(crate) fn short(life: Duration) -> RedisOptions {
    let answer = (life / 3).min(LeaseTimes::ANSWER);
    RedisOptions { times: LeaseTimes { life, answer, ..LeaseTimes::default() }, ..RedisOptions::default() }
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A server, leases in it, and a look into it.
pub(crate) struct Scene {
    pub(crate) server: Redis,
    pub(crate) leases: RedisLeases,
    pub(crate) look: MultiplexedConnection,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        Self::set_with(RedisOptions::default()).await
    }

    pub(crate) async fn set_with(options: RedisOptions) -> Self {
        let server = Redis::start();
        let leases = RedisLeases::open(server.url(), options).unwrap();
        let look = look(&server).await;
        Self { server, leases, look }
    }

    pub(crate) async fn get(&mut self, key: &str) -> Option<String> {
        self.look.get(key).await.unwrap()
    }

    pub(crate) async fn command<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(word);
        }
        command.query_async(&mut self.look).await.unwrap()
    }

    /// Waits until a value is as wanted.
    pub(crate) async fn until(&mut self, key: &str, is: impl Fn(Option<&str>) -> bool) {
        wait_until(key, async || is(self.get(key).await.as_deref())).await;
    }
}

pub(crate) async fn look(server: &Redis) -> MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

pub(crate) async fn claimed<L: Ledger<Work = OwnedLease>>(leases: &L, id: &str) -> OwnedLease {
    claimed_within(leases, id, NO_TIME).await
}

pub(crate) async fn claimed_within<L: Ledger<Work = OwnedLease>>(
    leases: &L,
    id: &str,
    wait_timeout: Duration,
) -> OwnedLease {
    match leases.claim(&event(id), wait_timeout).await.unwrap() {
        Claim::New(lease) => lease,
        other => panic!("it should be new: {other:?}"),
    }
}

/// What a claim comes to, without its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    New,
    Duplicate,
    OtherBody,
    InProgress,
    Unavailable,
}

pub(crate) async fn verdict<L: Ledger>(leases: &L, event: &Event) -> Verdict {
    match leases.claim(event, NO_TIME).await {
        Ok(Claim::New(_)) => Verdict::New,
        Ok(Claim::Duplicate) => Verdict::Duplicate,
        Ok(Claim::OtherBody) => Verdict::OtherBody,
        Ok(Claim::InProgress) => Verdict::InProgress,
        Err(_) => Verdict::Unavailable,
    }
}
