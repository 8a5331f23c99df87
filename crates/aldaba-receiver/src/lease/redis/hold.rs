use super::RedisLeases;
use super::scripts::{self, Scripts};
use super::wire::Wire;
use crate::Event;
use crate::clock::timestamp;
use crate::lease::digest::{hex, is_digest};
use crate::lease::keep::{Asked, Keep, Standing, Trouble};
use futures_util::future::{BoxFuture, FutureExt};
use redis::{Script, ScriptInvocation};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// One owner's lease of one event.
pub(super) struct Hold {
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
    // Always the same text, by which a mark that was made already is known.
    mark: OnceLock<String>,
}

/// What matters of a mark here. Other programs leave it out.
#[derive(Deserialize)]
struct Mark {
    digest: String,
}

impl Hold {
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

    /// What the lock holds.
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

    async fn standing(&self, invocation: &ScriptInvocation<'_>) -> Result<Standing, Trouble> {
        let answer: String = self.wire.run(invocation).await?;
        match answer.as_str() {
            scripts::OURS => Ok(Standing::Ours),
            scripts::LAPSED => Ok(Standing::Lapsed),
            scripts::TAKEN => Ok(Standing::Taken),
            other => Err(format!("Redis answered `{other}`, which is none of the answers there are").into()),
        }
    }

    fn marked(&self, mark: &[u8]) -> Asked {
        let mark = serde_json::from_slice::<Mark>(mark).ok();
        self.same_body(mark.as_ref().map(|mark| mark.digest.as_str()), Asked::Duplicate)
    }

    fn held(&self, lock: &[u8]) -> Asked {
        let lock = std::str::from_utf8(lock).ok().and_then(|lock| lock.split_once(':'));
        self.same_body(lock.map(|(_owner, digest)| digest), Asked::InProgress)
    }

    /// Other programs write no digest: their word is all there is.
    fn same_body(&self, digest: Option<&str>, then: Asked) -> Asked {
        match digest {
            Some(digest) if is_digest(digest) && digest != self.digest => Asked::OtherBody,
            _ => then,
        }
    }
}

impl Keep for Hold {
    fn event_id(&self) -> &str {
        &self.event_id
    }

    fn ask(&self) -> BoxFuture<'_, Result<Asked, Trouble>> {
        async move {
            let mut invocation = self.invoke(&self.scripts.ask);
            invocation.arg(millis(self.life));
            let answer: Vec<Vec<u8>> = self.wire.run(&invocation).await?;
            let word = answer.first().map_or(&b""[..], Vec::as_slice);
            let said = answer.get(1).map_or(&b""[..], Vec::as_slice);
            match std::str::from_utf8(word) {
                Ok(scripts::GRANTED) => Ok(Asked::Granted),
                Ok(scripts::MARKED) => Ok(self.marked(said)),
                Ok(scripts::HELD) => Ok(self.held(said)),
                _ => Err("Redis answered with none of the answers there are".into()),
            }
        }
        .boxed()
    }

    fn renew(&self) -> BoxFuture<'_, Result<Standing, Trouble>> {
        async move {
            let mut invocation = self.invoke(&self.scripts.renew);
            self.standing(invocation.arg(millis(self.life))).await
        }
        .boxed()
    }

    fn complete(&self) -> BoxFuture<'_, Result<Standing, Trouble>> {
        async move {
            let mut invocation = self.invoke(&self.scripts.complete);
            self.standing(invocation.arg(self.mark()).arg(millis(self.marks))).await
        }
        .boxed()
    }

    fn release(&self) -> BoxFuture<'_, Result<Standing, Trouble>> {
        async move { self.standing(&self.invoke(&self.scripts.release)).await }.boxed()
    }
}

/// Never zero, which Redis refuses, and far from too much for it: both are bounded when they are given.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
