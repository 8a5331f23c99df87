//! Caches the sources in use by their tokens.

use super::{LoadedSource, token_digest};
use crate::{Clock, ClockTrust, Vault};
use aldaba_delivery::SourceId;
use aldaba_store::{Error, Store};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Sources in the cache. Past it the cache is cleared.
const MAX_CACHED_SOURCES: usize = 1024;
/// Concurrent reads for unknown tokens, so that guessing tokens cannot overload the store.
const MAX_CONCURRENT_READS: usize = 2;
/// The longest token in characters.
const MAX_TOKEN_CHARS: usize = 128;

/// Clones share the cache.
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
    /// Changes so far. A read that began before the last one may be stale.
    changes: u64,
}

impl SourceCache {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, trust: ClockTrust, vault: Vault) -> Self {
        let (memory, reads) = (RwLock::default(), Semaphore::new(MAX_CONCURRENT_READS));
        Self(Arc::new(SourceCacheState { store, clock, trust, vault, memory, reads }))
    }

    /// Finds the source of a token. The lookup by digest leaks no timing about tokens.
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
                tracing::error!(source = %id, %error, "cannot load a source");
                return Err(Error::Failed("a source cannot be loaded".into()));
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

    /// Drops a source that was changed or deleted.
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
