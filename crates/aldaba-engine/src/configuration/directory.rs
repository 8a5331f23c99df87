//! Applications and endpoints: changes go to the store, configurations are kept for matching.
//!
//! A kept configuration may be old for a moment. That is safe: an accept names the version it was
//! matched by, and the store refuses it if that is no longer the one.

mod applications;
mod change;
mod credentials;
mod endpoints;
mod error;
mod event_types;
mod expunge;
mod hands;
mod loads;
mod news;
mod policies;
mod profiles;
mod secrets;
mod sources;
mod tenants;

pub use applications::NewApplication;
pub use endpoints::NewEndpoint;
pub use error::ChangeError;
pub use event_types::{NewEventType, Put};
pub use hands::Outage;
pub(crate) use loads::Loads;
pub use secrets::{PublicKey, Rotation};
pub(crate) use tenants::Tenants;

use crate::configuration::audit_entries::Entries;
use crate::configuration::credentials::Credentials;
use crate::configuration::vault::Vault;
use crate::conflict_retry::Tries;
use crate::housekeeping::Listeners;
use crate::replaying::Replays;
use crate::scheduling::Inbox;
use crate::{Clock, ClockTrust, Doors, Entropy, EventTypes, Policies, Profiles, Tally};
use aldaba_delivery::AppId;
use aldaba_store::{Actor, ApplicationRef, Error, RequestDigest, Store, Tenant};
use change::Repeat;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a request is known by that must have its effect once.
pub type Once = Option<RequestDigest>;

/// What was made, or what a former request with the same key had made.
#[derive(Clone, Debug)]
pub enum Made<T> {
    New(T),
    Before(T),
}

/// The directory, before it is known who is at it.
#[derive(Clone)]
pub struct DirectoryAccess(Arc<Core>);

/// Looking needs no name.
impl Deref for DirectoryAccess {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.0
    }
}

impl DirectoryAccess {
    /// The directory in somebody's hands.
    pub fn by(&self, actor: &Arc<Actor>) -> Directory {
        Directory { core: self.0.clone(), actor: actor.clone() }
    }

    pub(crate) fn new(core: Core) -> Self {
        Self(Arc::new(core))
    }

    /// The configuration of an application, from memory where possible.
    pub(crate) async fn tenant(&self, which: &ApplicationRef) -> Result<Option<Arc<Tenant>>, Error> {
        self.0.tenants.get(which, || self.0.store.tenant(which.clone())).await
    }

    /// The store has said that a configuration is old.
    pub(crate) fn forget(&self, which: &ApplicationRef, old: &Arc<Tenant>) {
        self.0.tenants.forget(which, old);
    }
}

/// The engine's side of the directory, in somebody's hands: what is changed has a row in the audit log that says
/// whose.
#[derive(Clone)]
pub struct Directory {
    core: Arc<Core>,
    actor: Arc<Actor>,
}

impl Deref for Directory {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

/// What the directory works with, whoever is at it.
pub struct Core {
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
    pub(crate) listeners: Listeners,
    pub(crate) credentials: Credentials,
    pub(crate) entries: Entries,
    /// Who ends what waits for a deleted application.
    pub(crate) orphans: mpsc::UnboundedSender<AppId>,
    pub(crate) idempotency_kept: Duration,
    pub(crate) loads: Loads,
    pub(crate) doors: Doors,
    pub(crate) tally: Tally,
}

impl Core {
    /// For a change that may have to be made again because another one came first.
    pub fn tries(&self) -> Tries {
        Tries::new(self.clock.clone(), self.entropy.clone())
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("actor", &self.actor).finish_non_exhaustive()
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Core")
    }
}

impl fmt::Debug for DirectoryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryAccess")
    }
}
