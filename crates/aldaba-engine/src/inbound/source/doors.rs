//! Sources by their tokens, in memory as far as they are in use.

use super::{Door, token_digest};
use crate::{Clock, ClockTrust, Vault};
use aldaba_delivery::SourceId;
use aldaba_store::{Error, Store};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many are remembered. When more are in use, all are forgotten and read again.
const REMEMBERED: usize = 1024;
/// Reads for tokens that memory does not know, at once: whoever guesses tokens takes no more of the store.
const READS: usize = 2;
/// Characters. What is longer is no token of ours.
const LONGEST_TOKEN: usize = 128;

/// Clones share what they hold.
#[derive(Clone)]
pub struct Doors(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    trust: ClockTrust,
    vault: Vault,
    memory: RwLock<Memory>,
    reads: Semaphore,
}

#[derive(Default)]
struct Memory {
    doors: HashMap<[u8; 32], Arc<Door>>,
    /// How often one has changed. What was read before the last time may be old.
    changes: u64,
}

impl Doors {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, trust: ClockTrust, vault: Vault) -> Self {
        let (memory, reads) = (RwLock::default(), Semaphore::new(READS));
        Self(Arc::new(Inner { store, clock, trust, vault, memory, reads }))
    }

    /// The door that a token opens. Tokens are told apart by their digests, so that how long a look takes says nothing
    /// about them.
    pub async fn find(&self, token: &str) -> Result<Option<Arc<Door>>, Error> {
        if token.len() > LONGEST_TOKEN {
            return Ok(None);
        }
        let digest = token_digest(token);
        let known = self.0.memory.read().doors.get(&digest).cloned();
        let door = match known {
            Some(door) => Some(door),
            None => self.read(digest).await?,
        };
        let now = self.0.trust.believed(self.0.clock.now());
        Ok(door.filter(|door| door.counts(&digest, now)))
    }

    async fn read(&self, digest: [u8; 32]) -> Result<Option<Arc<Door>>, Error> {
        let _turn = self.0.reads.acquire().await.map_err(|_| Error::Closed)?;
        let begun = self.0.memory.read().changes;
        let Some(source) = self.0.store.source_of_token(digest).await? else { return Ok(None) };
        let id = source.id;
        let door = match Door::new(source, &self.0.vault) {
            Ok(door) => Arc::new(door),
            Err(error) => {
                tracing::error!(source = %id, %error, "a source cannot be opened");
                return Err(Error::Failed("a source cannot be opened".into()));
            }
        };
        let mut memory = self.0.memory.write();
        if memory.changes == begun {
            if memory.doors.len() >= REMEMBERED {
                memory.doors.clear();
            }
            memory.doors.insert(digest, door.clone());
        }
        Ok(Some(door))
    }

    /// It has changed, or is gone.
    pub(crate) fn forget(&self, source: SourceId) {
        let mut memory = self.0.memory.write();
        memory.doors.retain(|_, door| door.id != source);
        memory.changes += 1;
    }
}

impl fmt::Debug for Doors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doors")
    }
}
