//! The configuration of organizations: changes are written to the store, and configurations are cached for
//! matching.
//!
//! A cached configuration may briefly be stale. That is safe: an accept names the version it was matched
//! against, and the store refuses an old version.

mod alerts;
mod applications;
mod change;
mod credentials;
mod endpoints;
mod erasing;
mod error;
mod event_types;
mod expunge;
mod filter_budgets;
mod invalidation;
mod policies;
mod profiles;
mod resume;
mod secrets;
mod sources;
mod tenants;

pub use applications::NewApplication;
pub use endpoints::NewEndpoint;
pub use error::ChangeError;
pub use event_types::{NewEventType, PutOutcome};
pub(crate) use filter_budgets::FilterBudgets;
use filter_budgets::FilterReservation;
pub use resume::Outage;
pub use secrets::{KeyRotation, PublicKey};
pub(crate) use tenants::Tenants;

use crate::configuration::audit_entries::Entries;
use crate::configuration::credentials::Credentials;
use crate::configuration::vault::Vault;
use crate::conflict_retry::ConflictRetry;
use crate::housekeeping::OperationalListeners;
use crate::replaying::Replays;
use crate::scheduling::Inbox;
use crate::{Clock, ClockTrust, Entropy, EventTypes, Policies, Profiles, SourceCache, SourceCounters};
use aldaba_delivery::{AppId, Timestamp};
use aldaba_store::{Actor, ApplicationRef, Erasure, Error, RequestDigest, Store, Tenant};
use change::ChangeOutcome;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The digest that identifies a request with an idempotency key.
pub type IdempotencyDigest = Option<RequestDigest>;

/// What a request created, or what an earlier request with the same key had created.
#[derive(Clone, Debug)]
pub enum CreateOutcome<T> {
    Created(T),
    Existing(T),
}

/// The directory without an actor: read-only.
#[derive(Clone)]
pub struct DirectoryAccess(Arc<DirectoryCore>);

/// Reads need no actor.
impl Deref for DirectoryAccess {
    type Target = DirectoryCore;

    fn deref(&self) -> &DirectoryCore {
        &self.0
    }
}

impl DirectoryAccess {
    /// The directory for changes by this actor.
    pub fn by(&self, actor: &Arc<Actor>) -> Directory {
        Directory { core: self.0.clone(), actor: actor.clone() }
    }

    pub(crate) fn new(core: DirectoryCore) -> Self {
        Self(Arc::new(core))
    }

    /// The configuration of an application, from the cache where possible.
    pub(crate) async fn tenant(&self, which: &ApplicationRef) -> Result<Option<Arc<Tenant>>, Error> {
        self.0.tenants.get(which, || self.0.store.tenant(which.clone())).await
    }

    /// Drops a configuration that the store reported as stale.
    pub(crate) fn forget(&self, which: &ApplicationRef, old: &Arc<Tenant>) {
        self.0.tenants.forget(which, old);
    }
}

/// The directory for changes by one actor. Every change writes a row with the actor to the audit log.
#[derive(Clone)]
pub struct Directory {
    core: Arc<DirectoryCore>,
    actor: Arc<Actor>,
}

impl Deref for Directory {
    type Target = DirectoryCore;

    fn deref(&self) -> &DirectoryCore {
        &self.core
    }
}

/// The parts of the directory, independent of the actor.
pub struct DirectoryCore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trust: ClockTrust,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) vault: Vault,
    pub(crate) policies: Policies,
    pub(crate) profiles: Profiles,
    pub(crate) event_types: EventTypes,
    pub(crate) inbox: Inbox,
    pub(crate) replays: Replays,
    pub(crate) tenants: Tenants,
    pub(crate) listeners: OperationalListeners,
    pub(crate) credentials: Credentials,
    pub(crate) entries: Entries,
    /// Receives deleted applications, whose pending deliveries are ended.
    pub(crate) orphans: mpsc::UnboundedSender<AppId>,
    /// Receives erasures that were started.
    pub(crate) erasures: mpsc::UnboundedSender<Erasure>,
    pub(crate) idempotency_kept: Duration,
    pub(crate) filter_budgets: FilterBudgets,
    pub(crate) source_cache: SourceCache,
    pub(crate) source_counters: SourceCounters,
}

impl DirectoryCore {
    /// The time of a change after the version of `last`. Two versions never have the same time, so it identifies one.
    pub(crate) fn time_after(&self, last: Timestamp) -> Timestamp {
        self.clock.now().max(last + Duration::from_millis(1))
    }

    /// Retries a change that conflicts with a concurrent one.
    pub fn conflict_retry(&self) -> ConflictRetry {
        ConflictRetry::new(self.clock.clone(), self.entropy.clone())
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("actor", &self.actor).finish_non_exhaustive()
    }
}

impl fmt::Debug for DirectoryCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Core")
    }
}

impl fmt::Debug for DirectoryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryAccess")
    }
}
