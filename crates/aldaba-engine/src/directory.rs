//! Applications and endpoints: changes go to the store, configurations are kept for matching.
//!
//! A kept configuration may be old for a moment. That is safe: an accept names the version it was
//! matched by, and the store refuses it if that is no longer the one.

mod credentials;
mod event_types;
mod expunge;
mod hands;
mod loads;
mod profiles;
mod secrets;
mod sources;
mod tenants;

pub use event_types::{NewEventType, Put};
pub use hands::Outage;
pub use secrets::{PublicKey, Rotation};
pub(crate) use tenants::Tenants;

use crate::credentials::{Credentials, News};
use crate::dispatcher::{Event, Inbox};
use crate::entries::Entries;
use crate::operational::Listeners;
use crate::replay::Replays;
use crate::tries::Tries;
use crate::vault::{Secrets, Vault, VaultError};
use crate::{Clock, Doors, EndpointHeaders, Entropy, EventTypes, Policies, Profiles, Tally};
use aldaba_delivery::{AppId, ConditionCause, EndpointId, Health, OrgId, Policy, SourceId, Timestamp};
use aldaba_signature::SigningKey;
use aldaba_store::{
    Actor, Application, Change, Changed, Deed, Done, Endpoint, EndpointConfig, Error, Fence, IdempotencyKey,
    Notice, Obstacle, OwnPolicy, Replay, Store, Tenant, WhichApplication,
};
use event_types::EventTypeNews;
use loads::Loads;
use profiles::ProfileNews;
use serde_json::json;
use sources::SourceNews;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

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
    #[error("the organization has as many API keys as it may have")]
    TooManyApiKeys,
    #[error("the organization has as many sources as it may have")]
    TooManySources,
    /// Until this moment.
    #[error("the source has as many former tokens as it may have")]
    TooManyTokens { now: Timestamp, until: Timestamp },
    #[error("the application belongs to the source {0}")]
    OfSource(SourceId),
    #[error("{0} tokens or sessions have been ended, as many as are remembered")]
    TooManyRevocations(usize),
    #[error("the request has been made before, and its answer cannot be given again")]
    Repeated,
    #[error("the request has been made before, and what it made has been deleted since")]
    MadeAndGone,
    #[error("the organization has as many event types as it may have")]
    TooManyEventTypes,
    #[error("the schemas of the organization are larger than they may be together")]
    SchemasTooLarge,
    #[error("the filter takes {work} looks; it may take {most}")]
    FilterTooCostly { work: u64, most: u64 },
    #[error("the filters of the application take {work} looks together; they may take {most}")]
    FiltersTooCostly { work: u64, most: u64 },
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
    pub(crate) async fn tenant(&self, which: &WhichApplication) -> Result<Option<Arc<Tenant>>, Error> {
        self.0.tenants.get(which, || self.0.store.tenant(which.clone())).await
    }

    /// The store has said that a configuration is old.
    pub(crate) fn forget(&self, which: &WhichApplication, old: &Arc<Tenant>) {
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
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    vault: Vault,
    policies: Policies,
    profiles: Profiles,
    event_types: EventTypes,
    inbox: Inbox,
    replays: Replays,
    tenants: Tenants,
    listeners: Listeners,
    credentials: Credentials,
    entries: Entries,
    /// Who ends what waits for a deleted application.
    orphans: mpsc::UnboundedSender<AppId>,
    idempotency_kept: Duration,
    loads: Loads,
    doors: Doors,
    tally: Tally,
}

impl Core {
    #[expect(clippy::too_many_arguments, reason = "called once, by the engine that owns all of these")]
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        vault: Vault,
        policies: Policies,
        profiles: Profiles,
        event_types: EventTypes,
        inbox: Inbox,
        replays: Replays,
        tenants: Tenants,
        listeners: Listeners,
        credentials: Credentials,
        entries: Entries,
        orphans: mpsc::UnboundedSender<AppId>,
        idempotency_kept: Duration,
        (doors, tally): (Doors, Tally),
    ) -> Self {
        Self {
            store,
            clock,
            entropy,
            vault,
            policies,
            profiles,
            event_types,
            inbox,
            replays,
            tenants,
            listeners,
            credentials,
            entries,
            orphans,
            idempotency_kept,
            loads: Loads::default(),
            doors,
            tally,
        }
    }

    /// For a change that may have to be made again because another one came first.
    pub fn tries(&self) -> Tries {
        Tries::new(self.clock.clone(), self.entropy.clone())
    }
}

impl Directory {
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
            alert_email: None,
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
                before.map(Made::Before).ok_or(ChangeError::MadeAndGone)
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
        let NewApplication { org, uid, name, throttle_rate, metadata } = new;
        let application = Application { org, uid, name, throttle_rate, metadata, ..current.clone() };
        self.replace_application(current, application).await
    }

    /// Where the people of an application want to be told when something is wrong.
    pub async fn set_alert_email(
        &self,
        current: &Application,
        alert_email: Option<String>,
    ) -> Result<Application, ChangeError> {
        self.replace_application(current, Application { alert_email, ..current.clone() }).await
    }

    async fn replace_application(
        &self,
        current: &Application,
        mut application: Application,
    ) -> Result<Application, ChangeError> {
        let fields = application.changed_since(current);
        if fields.is_empty() {
            return Ok(application);
        }
        // Two changes never have the same moment: it tells one from the other.
        application.updated_at = self.clock.now().max(current.updated_at + Duration::from_millis(1));
        let change = Change::UpdateApplication { application: application.clone(), was: current.updated_at };
        let deed = change.deed().with_fields(&fields);
        self.change_as(deed, change).await?;
        Ok(application)
    }

    pub async fn delete_application(&self, which: WhichApplication) -> Result<(), ChangeError> {
        let application = self.store.application(which).await?.ok_or(ChangeError::NotFound)?;
        let app = application.id;
        let change = Change::DeleteApplication { app, at: self.clock.now() };
        match self.change(change).await {
            Err(ChangeError::InUse) => {
                let owner = self.store.source_of_application(app).await?;
                Err(owner.map_or(ChangeError::Unsettled, ChangeError::OfSource))
            }
            changed => changed.map(drop),
        }
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
            direct: false,
            health: Health::default(),
            last_error: None,
        };
        let change = Change::CreateEndpoint {
            endpoint: endpoint.clone(),
            idempotency: self.idempotency(once),
            notices: self.listeners.of_endpoint(&endpoint, "endpoint.created", json!({})),
        };
        let loads = self.filter_change(&endpoint, None).await?;
        match self.change_with(1, change.deed(), change, loads).await {
            Err(error) => Err(name_missing(error, endpoint)),
            Ok(Repeat::No | Repeat::Resumed { .. } | Repeat::Unchanged) => Ok(Made::New(endpoint)),
            Ok(Repeat::Of(bytes)) => {
                let before = self.store.endpoint(app, EndpointId::from_bytes(bytes).to_string()).await?;
                before.map(Made::Before).ok_or(ChangeError::MadeAndGone)
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
        let mut fields = endpoint.config.changed_since(&current.config);
        // Credentials are given with it, and are no part of the configuration.
        if endpoint.sealed != current.sealed && !fields.contains(&"url") {
            fields.push("url");
        }
        if fields.is_empty() && endpoint.switched(current, resume).is_none() {
            return Ok(current.clone());
        }
        let change = Change::UpdateEndpoint {
            endpoint: endpoint.clone(),
            was: Fence::from(current),
            resume,
            notices: self.notices_of_update(current, &endpoint, resume),
        };
        let deed = change.deed().with_fields(&fields);
        let loads = self.filter_change(&endpoint, Some(current)).await?;
        match self.change_with(1, deed, change, loads).await {
            Ok(_) => {
                if let Some((health, _)) = endpoint.switched(current, resume) {
                    endpoint.health = health;
                }
                Ok(endpoint)
            }
            Err(error) => Err(name_missing(error, endpoint)),
        }
    }

    pub async fn delete_endpoint(&self, endpoint: &Endpoint) -> Result<(), ChangeError> {
        let notices = self.listeners.of_endpoint(endpoint, "endpoint.deleted", json!({}));
        let filtered = endpoint.config.filter.is_some();
        let (app, endpoint, at) = (endpoint.app, endpoint.id, self.clock.now());
        let change = Change::DeleteEndpoint { app, endpoint, at, notices };
        let loads = if filtered { Some(self.loads.remove(app).await) } else { None };
        self.change_with(1, change.deed(), change, loads).await.map(drop)
    }

    /// What a change of an endpoint means for the filters of its application. Refused where they would be too much.
    async fn filter_change(
        &self,
        now: &Endpoint,
        before: Option<&Endpoint>,
    ) -> Result<Option<loads::Change>, ChangeError> {
        let filters = (now.config.filter.clone(), before.and_then(|before| before.config.filter.clone()));
        let which = WhichApplication { org: now.org, key: now.app.to_string() };
        self.loads.replace(now.app, filters, async { self.store.tenant(which).await }).await
    }

    fn notices_of_update(&self, before: &Endpoint, after: &Endpoint, resume: bool) -> Vec<Notice> {
        let mut notices = self.listeners.of_endpoint(after, "endpoint.updated", json!({}));
        let became = match after.switched(before, resume) {
            Some((_, ConditionCause::TurnedOff)) => {
                self.listeners.of_endpoint(after, "endpoint.disabled", json!({"trigger": "manual"}))
            }
            Some(_) => self.listeners.of_endpoint(after, "endpoint.enabled", json!({})),
            None => Vec::new(),
        };
        notices.extend(became);
        notices
    }

    /// Endpoints can name it from now on.
    pub async fn create_policy(&self, org: OrgId, policy: Policy) -> Result<(), ChangeError> {
        self.change(Change::CreatePolicy { policy: self.own(org, policy) }).await.map(drop)
    }

    /// It holds from the next attempt of every delivery on.
    pub async fn replace_policy(&self, org: OrgId, policy: Policy) -> Result<(), ChangeError> {
        if self.policies.get(org, &policy.name).as_ref() == Some(&policy) {
            return Ok(());
        }
        self.change(Change::ReplacePolicy { policy: self.own(org, policy) }).await.map(drop)
    }

    pub async fn delete_policy(&self, org: OrgId, name: String) -> Result<(), ChangeError> {
        self.change(Change::DeletePolicy { org, name }).await.map(drop)
    }

    fn own(&self, org: OrgId, policy: Policy) -> OwnPolicy {
        let now = self.clock.now();
        OwnPolicy { org, policy, created_at: now, updated_at: now }
    }

    fn idempotency(&self, once: Once) -> Option<IdempotencyKey> {
        once.map(|digest| IdempotencyKey { digest, expires_at: self.clock.now() + self.idempotency_kept })
    }

    async fn change(&self, change: Change) -> Result<Repeat, ChangeError> {
        let deed = change.deed();
        self.change_as(deed, change).await
    }

    /// The same, where the audit log should say more than the change itself can.
    async fn change_as(&self, deed: Deed, change: Change) -> Result<Repeat, ChangeError> {
        self.change_with(1, deed, change, None).await
    }

    /// The same for one that is about several things at once.
    async fn change_about(&self, count: u32, deed: Deed, change: Change) -> Result<Repeat, ChangeError> {
        self.change_with(count, deed, change, None).await
    }

    /// The same, with what it means for the filters of an application. Others who change those wait until it is on disk.
    async fn change_with(
        &self,
        count: u32,
        deed: Deed,
        change: Change,
        loads: Option<loads::Change>,
    ) -> Result<Repeat, ChangeError> {
        let entry = self.entries.entry_about(&self.actor, deed, count);
        let (answer, answered) = oneshot::channel();
        let (inbox, replays) = (self.inbox.clone(), self.replays.clone());
        let altered = match &change {
            Change::ReplaceSecrets { endpoint, .. } => Some(*endpoint),
            Change::UpdateEndpoint { endpoint, .. } => Some(endpoint.id),
            _ => None,
        };
        let emptied = match &change {
            Change::DeleteEndpoint { app, .. } => Some(*app),
            _ => None,
        };
        let deleted = match &change {
            Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } => Some(*app),
            _ => None,
        };
        let orphans = self.orphans.clone();
        let resumed = match &change {
            Change::ResumeEndpoint { app, endpoint, .. } => Some((*app, *endpoint)),
            _ => None,
        };
        let released = match &change {
            Change::ReleaseGates { gates } => Some(gates.clone()),
            _ => None,
        };
        let listening = match &change {
            Change::CreateApplication { application, .. } | Change::UpdateApplication { application, .. } => {
                Some((application.id, Some(application.clone())))
            }
            Change::DeleteApplication { app, .. } => Some((*app, None)),
            _ => None,
        };
        let sources = SourceNews::of(&change, &self.doors, &self.tally);
        let (listeners, noticed) = (self.listeners.clone(), !change.notices().is_empty());
        let application = match &change {
            Change::UpdateApplication { application, .. } => Some(application.id),
            _ => None,
        };
        let policies = PolicyNews::of(&change, &self.policies);
        let profiles = ProfileNews::of(&change, &self.profiles);
        let credentials = News::of(&change, &self.credentials);
        let event_types = EventTypeNews::of(&change, &self.event_types);
        let concerns_lanes = altered.is_some()
            || emptied.is_some()
            || deleted.is_some()
            || resumed.is_some()
            || released.is_some()
            || application.is_some()
            || profiles.is_some()
            || policies.is_some();
        let done = Done::new(move |result: Result<Changed, Error>| {
            if let (Some(loads), Ok(changed)) = (loads, &result) {
                loads.settle(matches!(changed, Changed::Done { .. }));
            }
            if noticed && result.as_ref().is_ok_and(Changed::is_change) {
                listeners.news.notify_one();
            }
            if let Ok(Changed::Done { removed }) = &result {
                match listening {
                    Some((_, Some(application))) => listeners.put(&application),
                    Some((app, None)) => listeners.remove(app),
                    None => {}
                }
                if let Some(news) = policies {
                    news.take_effect(&inbox);
                }
                if let Some(news) = profiles {
                    news.take_effect(&inbox);
                }
                if let Some(news) = event_types {
                    news.take_effect();
                }
                if let Some(news) = credentials {
                    news.take_effect();
                }
                if let Some(news) = sources {
                    news.take_effect();
                }
                // Lanes hear of it in the order of the commits, before anything that follows.
                if let Some(app) = emptied {
                    inbox.send(Event::Removed(app, removed.clone()));
                }
                if let Some(app) = deleted {
                    inbox.send(Event::ApplicationRemoved(app));
                    let _ = orphans.send(app);
                }
                if let Some(app) = application {
                    inbox.send(Event::ApplicationChanged(app));
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
        self.store.change(change, Some(entry), done);
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
