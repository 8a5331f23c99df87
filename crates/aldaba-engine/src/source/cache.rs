//! Sources by their tokens, in memory as far as they are in use.

use super::{LoadedSource, token_digest};
use crate::{Clock, ClockTrust, Vault};
use aldaba_delivery::SourceId;
use aldaba_store::{Error, Store};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many are remembered. When more are in use, all are forgotten and read again.
const MAX_CACHED_SOURCES: usize = 1024;
/// Reads for tokens that memory does not know, at once: whoever guesses tokens takes no more of the store.
const MAX_CONCURRENT_READS: usize = 2;
/// Characters. What is longer is no token of ours.
const MAX_TOKEN_CHARS: usize = 128;

/// Clones share what they hold.
#[derive(Clone)]
pub struct SourceCache(Arc<SourceCacheState>);

struct SourceCacheState {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    trust: ClockTrust,
    vault: Vault,
    memory: RwLock<CacheState>,
    reads: Semaphore,
}

#[derive(Default)]
struct CacheState {
    sources: HashMap<[u8; 32], Arc<LoadedSource>>,
    /// How often one has changed. What was read before the last time may be old.
    changes: u64,
}

impl SourceCache {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, trust: ClockTrust, vault: Vault) -> Self {
        let (memory, reads) = (RwLock::default(), Semaphore::new(MAX_CONCURRENT_READS));
        Self(Arc::new(SourceCacheState { store, clock, trust, vault, memory, reads }))
    }

    /// The door that a token opens. Tokens are told apart by their digests, so that how long a look takes says nothing
    /// about them.
    pub async fn find(&self, token: &str) -> Result<Option<Arc<LoadedSource>>, Error> {
        if token.len() > MAX_TOKEN_CHARS {
            return Ok(None);
        }
        let digest = token_digest(token);
        let known = self.0.memory.read().sources.get(&digest).cloned();
        let source = match known {
            Some(source) => Some(source),
            None => self.read(digest).await?,
        };
        let now = self.0.trust.believed(self.0.clock.now());
        Ok(source.filter(|source| source.accepts_token(&digest, now)))
    }

    async fn read(&self, digest: [u8; 32]) -> Result<Option<Arc<LoadedSource>>, Error> {
        let _turn = self.0.reads.acquire().await.map_err(|_| Error::Closed)?;
        let begun = self.0.memory.read().changes;
        let Some(source) = self.0.store.source_of_token(digest).await? else { return Ok(None) };
        let id = source.id;
        let source = match LoadedSource::new(source, &self.0.vault) {
            Ok(source) => Arc::new(source),
            Err(error) => {
                tracing::error!(source = %id, %error, "a source cannot be opened");
                return Err(Error::Failed("a source cannot be opened".into()));
            }
        };
        let mut memory = self.0.memory.write();
        if memory.changes == begun {
            if memory.sources.len() >= MAX_CACHED_SOURCES {
                memory.sources.clear();
            }
            memory.sources.insert(digest, source.clone());
        }
        Ok(Some(source))
    }

    /// It has changed, or is gone.
    pub(crate) fn forget(&self, source: SourceId) {
        let mut memory = self.0.memory.write();
        memory.sources.retain(|_, loaded| loaded.id != source);
        memory.changes += 1;
    }
}

impl fmt::Debug for SourceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doors")
    }
}
