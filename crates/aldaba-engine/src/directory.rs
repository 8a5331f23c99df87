//! Applications and endpoints: changes go to the store, configurations are kept for matching.
//!
//! A kept configuration may be old for a moment. That is safe: an accept names the version it was
//! matched by, and the store refuses it if that is no longer the one.

mod expunge;
mod hands;
mod profiles;
mod secrets;
mod tenants;

pub use hands::Outage;
pub use secrets::Rotation;
pub(crate) use tenants::Tenants;

use crate::dispatcher::{Event, Inbox};
use crate::replay::Replays;
use crate::vault::{Secrets, Vault, VaultError};
use crate::{Clock, EndpointHeaders, Entropy, Policies, Profiles};
use aldaba_delivery::{AppId, EndpointId, Health, OrgId, Policy, Timestamp};
use aldaba_signature::SigningKey;
use aldaba_store::{
    Application, Change, Changed, Done, Endpoint, EndpointConfig, Error, Fence, IdempotencyKey, Obstacle,
    OwnPolicy, Replay, Store, Tenant, WhichApplication,
};
use profiles::ProfileNews;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A request that must have its effect once: a digest over the caller, the key and the path.
pub type Once = Option<[u8; 16]>;

#[derive(Clone, Debug)]
pub struct NewApplication {
    pub org: OrgId,
    pub uid: Option<String>,
    pub name: String,
    pub throttle_rate: Option<u16>,
    /// A JSON object of strings.
    pub metadata: String,
}

#[derive(Debug)]
pub struct NewEndpoint {
    /// The URL is vetted.
    pub config: EndpointConfig,
    pub credentials: Option<(String, String)>,
    pub headers: EndpointHeaders,
    /// `None`: one is made.
    pub key: Option<SigningKey>,
}

impl From<EndpointConfig> for NewEndpoint {
    fn from(config: EndpointConfig) -> Self {
        Self { config, credentials: None, headers: EndpointHeaders::default(), key: None }
    }
}

/// What was made, or what a former request with the same key had made.
#[derive(Clone, Debug)]
pub enum Made<T> {
    New(T),
    Before(T),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no such application or endpoint")]
    NotFound,
    #[error("the uid is taken")]
    UidTaken,
    #[error("the application has as many endpoints as it may have")]
    TooMany,
    #[error("the application has as many running replays as it may have")]
    TooManyReplays,
    #[error("the endpoint has as many former keys as it may have")]
    TooManyKeys,
    #[error("it keeps being changed by others")]
    Unsettled,
    #[error("an endpoint uses it")]
    InUse,
    #[error("what waits for the endpoint cannot be put in order now")]
    NotOrderable(Obstacle),
    #[error("`{0}` is no policy")]
    UnknownPolicy(String),
    #[error("`{0}` is no wire profile")]
    UnknownProfile(String),
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] Error),
}

/// The engine's side of the directory.
pub struct Directory {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    vault: Vault,
    policies: Policies,
    profiles: Profiles,
    inbox: Inbox,
    replays: Replays,
    tenants: Tenants,
    idempotency_kept: Duration,
}

impl Directory {
    #[expect(clippy::too_many_arguments, reason = "called once, by the engine that owns all of these")]
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        vault: Vault,
        policies: Policies,
        profiles: Profiles,
        inbox: Inbox,
        replays: Replays,
        tenants: Tenants,
        idempotency_kept: Duration,
    ) -> Self {
        Self { store, clock, entropy, vault, policies, profiles, inbox, replays, tenants, idempotency_kept }
    }

    pub async fn create_application(
        &self,
        new: NewApplication,
        once: Once,
    ) -> Result<Made<Application>, ChangeError> {
        let now = self.clock.now();
        let application = Application {
            id: AppId::new(now, self.entropy.bytes()),
            org: new.org,
            uid: new.uid,
            name: new.name,
            throttle_rate: new.throttle_rate,
            metadata: new.metadata,
            created_at: now,
            updated_at: now,
        };
        let change = Change::CreateApplication {
            application: application.clone(),
            idempotency: self.idempotency(once),
        };
        match self.change(change).await? {
            Repeat::No | Repeat::Resumed { .. } | Repeat::Unchanged => Ok(Made::New(application)),
            Repeat::Of(bytes) => {
                let which =
                    WhichApplication { org: application.org, key: AppId::from_bytes(bytes).to_string() };
                let before = self.store.application(which).await?;
                before.map(Made::Before).ok_or(ChangeError::NotFound)
            }
        }
    }

    /// Gives an application other values, in the place of those that `current` has.
    /// [`ChangeError::Unsettled`]: it is no longer what `current` is.
    pub async fn update_application(
        &self,
        current: &Application,
        new: NewApplication,
    ) -> Result<Application, ChangeError> {
        // Two changes never have the same moment: it tells one from the other.
        let updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        let NewApplication { org, uid, name, throttle_rate, metadata } = new;
        let (id, created_at) = (current.id, current.created_at);
        let application = Application { id, org, uid, name, throttle_rate, metadata, created_at, updated_at };
        let change = Change::UpdateApplication { application: application.clone(), was: current.updated_at };
        self.change(change).await?;
        Ok(application)
    }

    pub async fn delete_application(&self, which: WhichApplication) -> Result<(), ChangeError> {
        let application = self.store.application(which).await?.ok_or(ChangeError::NotFound)?;
        let change = Change::DeleteApplication { app: application.id, at: self.clock.now() };
        self.change(change).await.map(drop)
    }

    pub async fn create_endpoint(
        &self,
        which: WhichApplication,
        new: NewEndpoint,
        once: Once,
    ) -> Result<Made<Endpoint>, ChangeError> {
        let application = self.store.application(which).await?.ok_or(ChangeError::NotFound)?;
        if self.policies.get(application.org, &new.config.policy).is_none() {
            return Err(ChangeError::UnknownPolicy(new.config.policy));
        }
        if let Some(name) =
            new.config.profile.as_ref().filter(|name| self.profiles.get(application.org, name).is_none())
        {
            return Err(ChangeError::UnknownProfile(name.clone()));
        }
        let (app, now) = (application.id, self.clock.now());
        let id = EndpointId::new(now, self.entropy.bytes());
        let key = new.key.unwrap_or_else(|| SigningKey::generate_hmac(self.entropy.bytes()));
        let secrets = Secrets { credentials: new.credentials, headers: new.headers, ..Secrets::new(key) };
        let endpoint = Endpoint {
            id,
            app,
            org: application.org,
            config: new.config,
            sealed: self.vault.seal(app, id, &secrets, &*self.entropy),
            created_at: now,
            updated_at: now,
            deleted: false,
            health: Health::default(),
            last_error: None,
        };
        let change =
            Change::CreateEndpoint { endpoint: endpoint.clone(), idempotency: self.idempotency(once) };
        match self.change(change).await {
            Err(error) => Err(name_missing(error, endpoint)),
            Ok(Repeat::No | Repeat::Resumed { .. } | Repeat::Unchanged) => Ok(Made::New(endpoint)),
            Ok(Repeat::Of(bytes)) => {
                let before = self.store.endpoint(app, EndpointId::from_bytes(bytes).to_string()).await?;
                before.map(Made::Before).ok_or(ChangeError::NotFound)
            }
        }
    }

    /// Gives an endpoint another configuration, in the place of the one that `current` is. What waits for
    /// it goes out under the new one from the next attempt on. `credentials`: `None` leaves them alone.
    /// `resume`: one that is not active becomes so. [`ChangeError::Unsettled`]: it is no longer what `current`
    /// is.
    pub async fn update_endpoint(
        &self,
        current: &Endpoint,
        new: NewEndpoint,
        credentials: Option<Option<(String, String)>>,
        resume: bool,
    ) -> Result<Endpoint, ChangeError> {
        let mut sealed = current.sealed.clone();
        if let Some(credentials) = credentials {
            let mut secrets = self.vault.open(current.app, current.id, &sealed)?;
            if secrets.credentials != credentials {
                secrets.credentials = credentials;
                sealed = self.vault.seal(current.app, current.id, &secrets, &*self.entropy);
            }
        }
        // Two changes never have the same moment: it tells one from the other.
        let updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        let mut endpoint = Endpoint { config: new.config, sealed, updated_at, ..current.clone() };
        let change = Change::UpdateEndpoint { endpoint: endpoint.clone(), was: Fence::from(current), resume };
        match self.change(change).await {
            Ok(_) => {
                if let Some((health, _)) = endpoint.switched(current, resume) {
                    endpoint.health = health;
                }
                Ok(endpoint)
            }
            Err(error) => Err(name_missing(error, endpoint)),
        }
    }

    pub async fn delete_endpoint(&self, app: AppId, endpoint: EndpointId) -> Result<(), ChangeError> {
        let change = Change::DeleteEndpoint { app, endpoint, at: self.clock.now() };
        self.change(change).await.map(drop)
    }

    /// Endpoints can name it from now on.
    pub async fn create_policy(&self, org: OrgId, policy: Policy) -> Result<(), ChangeError> {
        self.change(Change::CreatePolicy { policy: self.own(org, policy) }).await.map(drop)
    }

    /// It holds from the next attempt of every delivery on.
    pub async fn replace_policy(&self, org: OrgId, policy: Policy) -> Result<(), ChangeError> {
        self.change(Change::ReplacePolicy { policy: self.own(org, policy) }).await.map(drop)
    }

    pub async fn delete_policy(&self, org: OrgId, name: String) -> Result<(), ChangeError> {
        self.change(Change::DeletePolicy { org, name }).await.map(drop)
    }

    fn own(&self, org: OrgId, policy: Policy) -> OwnPolicy {
        let now = self.clock.now();
        OwnPolicy { org, policy, created_at: now, updated_at: now }
    }

    /// The configuration of an application, from memory where possible.
    pub(crate) async fn tenant(&self, which: &WhichApplication) -> Result<Option<Arc<Tenant>>, Error> {
        self.tenants.get(which, || self.store.tenant(which.clone())).await
    }

    /// The store has said that a configuration is old.
    pub(crate) fn forget(&self, which: &WhichApplication, old: &Arc<Tenant>) {
        self.tenants.forget(which, old);
    }

    fn idempotency(&self, once: Once) -> Option<IdempotencyKey> {
        once.map(|digest| IdempotencyKey { digest, expires_at: self.clock.now() + self.idempotency_kept })
    }

    async fn change(&self, change: Change) -> Result<Repeat, ChangeError> {
        let (answer, answered) = oneshot::channel();
        let (inbox, replays) = (self.inbox.clone(), self.replays.clone());
        let altered = match &change {
            Change::ReplaceSecrets { endpoint, .. } => Some(*endpoint),
            Change::UpdateEndpoint { endpoint, .. } => Some(endpoint.id),
            _ => None,
        };
        let emptied = match &change {
            Change::DeleteEndpoint { app, .. } | Change::DeleteApplication { app, .. } => Some(*app),
            _ => None,
        };
        let resumed = match &change {
            Change::ResumeEndpoint { app, endpoint, .. } => Some((*app, *endpoint)),
            _ => None,
        };
        let released = match &change {
            Change::ReleaseGates { gates } => Some(gates.clone()),
            _ => None,
        };
        let policies = PolicyNews::of(&change, &self.policies);
        let profiles = ProfileNews::of(&change, &self.profiles);
        let concerns_lanes = altered.is_some()
            || emptied.is_some()
            || resumed.is_some()
            || released.is_some()
            || profiles.is_some()
            || policies.is_some();
        let done = Done::new(move |result: Result<Changed, Error>| {
            if let Ok(Changed::Done { removed }) = &result {
                if let Some(news) = policies {
                    news.take_effect(&inbox);
                }
                if let Some(news) = profiles {
                    news.take_effect(&inbox);
                }
                // Lanes hear of it in the order of the commits, before anything that follows.
                if let Some(app) = emptied {
                    inbox.send(Event::Removed(app, removed.clone()));
                }
                if let Some(endpoint) = altered {
                    inbox.send(Event::Altered(endpoint));
                }
                if let Some(gates) = released {
                    inbox.send(Event::Released(gates));
                }
            }
            if let (Ok(Changed::Resumed { recovery, .. }), Some((app, endpoint))) = (&result, resumed) {
                inbox.send(Event::Resumed(app, endpoint));
                if let Some(replay) = recovery {
                    replays.run(replay);
                }
            }
            let _ = answer.send(result);
        });
        self.store.change(change, done);
        let changed = answered.await.map_err(|_| Error::Closed)??;
        if concerns_lanes {
            self.lanes_have_heard().await;
        }
        match changed {
            Changed::Done { .. } => Ok(Repeat::No),
            Changed::Repeated { resource } => Ok(Repeat::Of(resource)),
            Changed::UidTaken => Err(ChangeError::UidTaken),
            Changed::NotFound => Err(ChangeError::NotFound),
            Changed::Stale => Err(ChangeError::Unsettled),
            Changed::TooMany => Err(ChangeError::TooMany),
            Changed::NoSuchPolicy => Err(ChangeError::UnknownPolicy(String::new())),
            Changed::NoSuchProfile => Err(ChangeError::UnknownProfile(String::new())),
            Changed::InUse => Err(ChangeError::InUse),
            Changed::NotOrderable(obstacle) => Err(ChangeError::NotOrderable(obstacle)),
            Changed::Resumed { failing_since, recovery } => {
                Ok(Repeat::Resumed { failing_since, recovery: recovery.map(|replay| *replay) })
            }
            Changed::Unchanged => Ok(Repeat::Unchanged),
        }
    }

    /// A change is answered once it holds: no request leaves any more that goes against it.
    async fn lanes_have_heard(&self) {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(Event::Heard(answer));
        // Nobody answers after the lanes have stopped; nothing is sent then either.
        let _ = answered.await;
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Directory")
    }
}

/// What a change of policies means for the memory, once it is on disk.
struct PolicyNews {
    policies: Policies,
    org: OrgId,
    name: String,
    /// `None`: it is gone.
    now: Option<OwnPolicy>,
}

impl PolicyNews {
    fn of(change: &Change, policies: &Policies) -> Option<Self> {
        let (org, name, now) = match change {
            Change::CreatePolicy { policy } | Change::ReplacePolicy { policy } => {
                (policy.org, policy.policy.name.clone(), Some(policy.clone()))
            }
            Change::DeletePolicy { org, name } => (*org, name.clone(), None),
            _ => return None,
        };
        Some(Self { policies: policies.clone(), org, name, now })
    }

    /// The memory first: lanes that hear of it look there.
    fn take_effect(self, inbox: &Inbox) {
        match self.now {
            Some(own) => self.policies.put(own),
            None => self.policies.remove(self.org, &self.name),
        }
        inbox.send(Event::PolicyChanged(self.org, self.name));
    }
}

/// What the endpoint names was there a moment ago; the store does not say its name again.
fn name_missing(error: ChangeError, endpoint: Endpoint) -> ChangeError {
    match error {
        ChangeError::UnknownPolicy(_) => ChangeError::UnknownPolicy(endpoint.config.policy),
        ChangeError::UnknownProfile(_) => {
            ChangeError::UnknownProfile(endpoint.config.profile.unwrap_or_default())
        }
        other => other,
    }
}

enum Repeat {
    No,
    Of([u8; 20]),
    Resumed { failing_since: Option<Timestamp>, recovery: Option<Replay> },
    Unchanged,
}
