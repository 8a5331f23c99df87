use super::RedisLeases;
use super::scripts::{self, Scripts};
use super::wire::Wire;
use crate::Event;
use crate::clock::timestamp;
use crate::lease::digest::{hex, is_digest};
use crate::lease::stored_lease::{Acquisition, LeaseState, StoreError, StoredLease};
use futures_util::future::{BoxFuture, FutureExt};
use redis::{Script, ScriptInvocation};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The lease of one owner on one event.
pub(super) struct RedisLease {
    wire: Arc<Wire>,
    scripts: Arc<Scripts>,
    life: Duration,
    marks: Duration,
    event_id: String,
    lock_key: String,
    mark_key: String,
    owner: String,
    digest: String,
    event_type: String,
    // Always the same text, so that a mark that is already written is recognized.
    mark: OnceLock<String>,
}

/// The part of a mark that is read. Other programs omit it.
#[derive(Deserialize)]
struct Mark {
    digest: String,
}

impl RedisLease {
    pub(super) fn new(ledger: &RedisLeases, event: &Event, owner: u128) -> Self {
        let options = &ledger.options;
        Self {
            wire: Arc::clone(&ledger.wire),
            scripts: Arc::clone(&ledger.scripts),
            life: options.times.life,
            marks: options.times.marks,
            event_id: event.id.clone(),
            lock_key: options.key("lock", &event.id),
            mark_key: options.key("processed", &event.id),
            owner: format!("{owner:032x}"),
            digest: hex(event.digest()),
            event_type: event.event_type.clone(),
            mark: OnceLock::new(),
        }
    }

    /// The value of the lock.
    fn lock(&self) -> String {
        format!("{}:{}", self.owner, self.digest)
    }

    fn mark(&self) -> &str {
        self.mark.get_or_init(|| {
            let Self { event_type, digest, owner, .. } = self;
            json!({ "processedAt": timestamp(), "type": event_type, "digest": digest, "owner": owner })
                .to_string()
        })
    }

    fn invoke<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let mut invocation = script.key(&self.lock_key);
        invocation.key(&self.mark_key).arg(self.lock());
        invocation
    }

    async fn lease_state(&self, invocation: &ScriptInvocation<'_>) -> Result<LeaseState, StoreError> {
        let answer: String = self.wire.run(invocation).await?;
        match answer.as_str() {
            scripts::OURS => Ok(LeaseState::Ours),
            scripts::LAPSED => Ok(LeaseState::Lapsed),
            scripts::TAKEN => Ok(LeaseState::Taken),
            other => Err(format!("unexpected answer of Redis: `{other}`").into()),
        }
    }

    fn marked(&self, mark: &[u8]) -> Acquisition {
        let mark = serde_json::from_slice::<Mark>(mark).ok();
        self.same_body(mark.as_ref().map(|mark| mark.digest.as_str()), Acquisition::Duplicate)
    }

    fn held(&self, lock: &[u8]) -> Acquisition {
        let lock = std::str::from_utf8(lock).ok().and_then(|lock| lock.split_once(':'));
        self.same_body(lock.map(|(_owner, digest)| digest), Acquisition::InProgress)
    }

    /// Compares digests. Other programs write none; then the ids decide.
    fn same_body(&self, digest: Option<&str>, then: Acquisition) -> Acquisition {
        match digest {
            Some(digest) if is_digest(digest) && digest != self.digest => Acquisition::OtherBody,
            _ => then,
        }
    }
}

impl StoredLease for RedisLease {
    fn event_id(&self) -> &str {
        &self.event_id
    }

    fn acquire(&self) -> BoxFuture<'_, Result<Acquisition, StoreError>> {
        async move {
            let mut invocation = self.invoke(&self.scripts.ask);
            invocation.arg(millis(self.life));
            let answer: Vec<Vec<u8>> = self.wire.run(&invocation).await?;
            let word = answer.first().map_or(&b""[..], Vec::as_slice);
            let said = answer.get(1).map_or(&b""[..], Vec::as_slice);
            match std::str::from_utf8(word) {
                Ok(scripts::GRANTED) => Ok(Acquisition::Granted),
                Ok(scripts::MARKED) => Ok(self.marked(said)),
                Ok(scripts::HELD) => Ok(self.held(said)),
                _ => Err("unexpected answer of Redis".into()),
            }
        }
        .boxed()
    }

    fn renew(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>> {
        async move {
            let mut invocation = self.invoke(&self.scripts.renew);
            self.lease_state(invocation.arg(millis(self.life))).await
        }
        .boxed()
    }

    fn complete(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>> {
        async move {
            let mut invocation = self.invoke(&self.scripts.complete);
            self.lease_state(invocation.arg(self.mark()).arg(millis(self.marks))).await
        }
        .boxed()
    }

    fn release(&self) -> BoxFuture<'_, Result<LeaseState, StoreError>> {
        async move { self.lease_state(&self.invoke(&self.scripts.release)).await }.boxed()
    }
}

/// Milliseconds for Redis. The bounds of the options exclude zero and overflow.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
