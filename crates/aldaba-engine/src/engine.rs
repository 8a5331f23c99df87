use crate::aside::Aside;
use crate::attempt::Sender;
use crate::cancel::{Cancel, Cancelled};
use crate::content::Contents;
use crate::credentials::{Credentials, Uses};
use crate::directory::{Core, DirectoryAccess, Loads, Tenants};
use crate::dispatcher::{Dispatcher, Event, Inbox};
use crate::entries::Entries;
use crate::gates::Gates;
use crate::hosts::HeldHost;
use crate::intake::{Intake, NewEvent, SendError, Sent};
use crate::matching::{self, Mismatch};
use crate::operational::{Listeners, Operational};
use crate::orphans::Orphans;
use crate::outlook::{Outlook, Question};
use crate::recorder::Recorder;
use crate::replay::Replays;
use crate::resend::{ByHand, NewResend, Places, ResendError, Resender};
use crate::retention::{Retention, Walks};
use crate::source::{Looking, Sources};
use crate::sweep::Sweep;
use crate::target::Target;
use crate::turns::Turns;
use crate::{
    Clock, Doors, Entropy, EventTypes, Options, Policies, Profiles, ProfilesError, Tally, Transport, Vault,
};
use aldaba_delivery::{AppId, EndpointId, OrgId, Reason, Timestamp};
use aldaba_store::{
    Actor, AuditEntry, Deed, Done, Endpoint, Error, Message, Seq, Store, Subscription, WhichApplication,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// What an engine is made of. Everything that touches the world is brought by the caller.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub transport: Arc<dyn Transport>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub vault: Vault,
    pub policies: Policies,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(
        "the data was encrypted with another key: set ALDABA_ENCRYPTION_KEY or ALDABA_JWT_SECRET to what it was, \
         or restore the key file of the data folder"
    )]
    OtherKey,
    #[error(transparent)]
    Profiles(#[from] ProfilesError),
    #[error(transparent)]
    Store(#[from] Error),
}

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    intake: Arc<Intake>,
    sources: Sources,
    directory: DirectoryAccess,
    credentials: Credentials,
    uses: Uses,
    store: Arc<dyn Store>,
    policies: Policies,
    replays: Replays,
    resender: Resender,
    profiles: Profiles,
    event_types: EventTypes,
    clock: Arc<dyn Clock>,
    entries: Entries,
    inbox: Inbox,
    failed: watch::Sender<bool>,
    explaining: Aside,
    patience: Option<Duration>,
    /// What goes on until the end.
    background: [AbortHandle; 4],
}

impl Engine {
    /// Starts delivering what waits in the store, and accepting more.
    pub async fn start(parts: Parts, options: Options) -> Result<Self, StartError> {
        let Parts { store, transport, clock, entropy, vault, policies } = parts;
        check_key(&*store, &vault, &*entropy).await?;
        let gates = Gates::restore(store.gates().await?);
        for own in store.policies().await? {
            policies.put(own);
        }
        let profiles = Profiles::new(&options.profile, &options.brand)?;
        for own in store.profiles().await? {
            profiles.put(own.org, Profiles::read(&own)?);
        }
        let listeners = Listeners::read(&*store).await?;
        let credentials = Credentials::read(&*store).await?;
        let event_types = EventTypes::default();
        for event_type in store.event_types().await? {
            event_types.put(Arc::new(event_type));
        }
        // The last that can fail: from here on the engine runs.
        let running = store.running_replays().await?;
        let (inbox, news) = Inbox::new();
        let kept = options.idempotency_kept;
        let (orphaned, deleted) = mpsc::unbounded_channel();
        let entries = Entries::new(clock.clone(), entropy.clone());
        let replays =
            Replays::new(store.clone(), clock.clone(), entropy.clone(), inbox.clone(), entries.clone(), kept);
        let sources = Sources {
            doors: Doors::new(store.clone(), clock.clone(), vault.clone()),
            tally: Tally::default(),
            looking: Looking::new(Aside::new()),
        };
        let directory = DirectoryAccess::new(Core {
            store: store.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            vault: vault.clone(),
            policies: policies.clone(),
            profiles: profiles.clone(),
            event_types: event_types.clone(),
            inbox: inbox.clone(),
            replays: replays.clone(),
            tenants: Tenants::new(options.tenants, options.tenant_endpoints),
            listeners: listeners.clone(),
            credentials: credentials.clone(),
            entries: entries.clone(),
            orphans: orphaned,
            idempotency_kept: kept,
            loads: Loads::default(),
            doors: sources.doors.clone(),
            tally: sources.tally.clone(),
        });
        let contents = Contents::new(options.content_bytes);
        let sender = Sender {
            store: store.clone(),
            transport,
            clock: clock.clone(),
            entropy: entropy.clone(),
            inbox: inbox.clone(),
            contents: contents.clone(),
            vault: vault.clone(),
        };
        let recorder = Recorder { store: store.clone(), inbox: inbox.clone(), listeners: listeners.clone() };
        let resender = Resender {
            store: store.clone(),
            clock: clock.clone(),
            sender: sender.clone(),
            inbox: inbox.clone(),
            policies: policies.clone(),
            profiles: profiles.clone(),
            vault: vault.clone(),
            places: Places::new(),
            idempotency_kept: options.idempotency_kept,
        };
        let dispatcher = Dispatcher {
            store: store.clone(),
            clock: clock.clone(),
            vault,
            policies: policies.clone(),
            profiles: profiles.clone(),
            sender,
            recorder,
            inbox: inbox.clone(),
            news,
            sweep: Sweep::new(options.sweep_interval, clock.now()),
            unwritten: Vec::new(),
            halting: false,
            stopping: None,
            longest_nap: options.longest_nap,
            turns: Turns::new(options.clone(), gates),
        };
        let failed = watch::Sender::new(false);
        let dispatching = tokio::spawn(dispatcher.run());
        tokio::spawn({
            let failed = failed.clone();
            async move {
                if dispatching.await.is_err_and(|error| error.is_panic()) {
                    failed.send_replace(true);
                }
            }
        });
        replays.resume(&running);
        let retention = Retention {
            store: store.clone(),
            clock: clock.clone(),
            policies: policies.clone(),
            credentials: credentials.clone(),
            options: options.retention,
            idempotency_kept: options.idempotency_kept,
            walks: Walks::default(),
        };
        let uses = Uses { keys: credentials.keys.clone(), store: store.clone() };
        let intake = Arc::new(Intake {
            store: store.clone(),
            directory: directory.clone(),
            clock: clock.clone(),
            entropy,
            inbox: inbox.clone(),
            contents,
            event_types: event_types.clone(),
            idempotency_kept: options.idempotency_kept,
            quotas: options.quotas,
            matching: Aside::new(),
            checking: Aside::new(),
        });
        let operational = Operational { store: store.clone(), intake: intake.clone(), listeners };
        let orphans = Orphans { store: store.clone(), clock: clock.clone(), inbox: inbox.clone(), deleted };
        let background = [
            tokio::spawn(retention.run()).abort_handle(),
            tokio::spawn(orphans.run()).abort_handle(),
            tokio::spawn(uses.clone().run()).abort_handle(),
            tokio::spawn(operational.run()).abort_handle(),
        ];
        let inner = Inner {
            intake,
            sources,
            directory,
            credentials,
            uses,
            store,
            policies,
            profiles,
            event_types,
            replays,
            resender,
            clock,
            entries,
            inbox,
            failed,
            explaining: Aside::new(),
            patience: options.patience,
            background,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Accepts an event. When this returns [`Sent`], it is on disk and will be delivered. [`SendError::Late`]: it may yet
    /// be.
    pub async fn send(&self, which: &WhichApplication, event: NewEvent) -> Result<Sent, SendError> {
        self.0.intake.send(which, event, self.patience()).await
    }

    /// Why an event would be refused, whatever its application is.
    pub async fn refusal(&self, which: &WhichApplication, event: &NewEvent) -> Option<SendError> {
        self.0.intake.refusal(which, event).await
    }

    /// Applications, endpoints and all that belongs to them. Whoever changes any of it says who they are.
    pub fn directory(&self) -> &DirectoryAccess {
        &self.0.directory
    }

    pub fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    /// An entry for the audit log. The writes that it is handed to leave one row together.
    pub fn entry(&self, actor: &Actor, deed: Deed) -> Arc<AuditEntry> {
        self.0.entries.entry(actor, deed)
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }

    pub fn profiles(&self) -> &Profiles {
        &self.0.profiles
    }

    pub fn event_types(&self) -> &EventTypes {
        &self.0.event_types
    }

    /// One attempt by hand, whatever the delivery's state.
    pub async fn resend(&self, asked: NewResend) -> Result<ByHand, ResendError> {
        self.0.resender.clone().resend(asked).await
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.0.resender.vault
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.0.sources
    }

    pub(crate) fn intake(&self) -> &Intake {
        &self.0.intake
    }

    #[cfg(test)]
    pub(crate) fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    pub(crate) fn patience(&self) -> Option<Duration> {
        self.0.patience
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.0.intake.contents
    }

    /// What an attempt at an endpoint would be made with.
    pub(crate) fn target(&self, endpoint: &Endpoint) -> Target {
        self.0.resender.target(endpoint)
    }

    pub fn replays(&self) -> &Replays {
        &self.0.replays
    }

    /// For each of some endpoints why a message does not go to it, by what both are now; `None`: it would.
    pub async fn mismatches(&self, endpoints: Vec<Subscription>, message: &Message) -> Vec<Option<Mismatch>> {
        matching::mismatches_of(&self.0.explaining, endpoints, message).await
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// The origins that are held back, by origin and scope.
    pub async fn held_hosts(&self) -> Vec<HeldHost> {
        let (answer, answered) = oneshot::channel();
        self.0.inbox.send(Event::Held(answer));
        answered.await.unwrap_or_default()
    }

    /// Resolves if delivering has ended by a bug. What was accepted is safe on disk; only a fresh start
    /// delivers it.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut failed = self.0.failed.subscribe();
        async move {
            if failed.wait_for(|failed| *failed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends deliveries that wait, before they are sent. When this returns, nothing more leaves for
    /// those that are [`Cancelled::Done`].
    pub async fn cancel(
        &self,
        audit: Arc<AuditEntry>,
        deliveries: Vec<Cancel>,
    ) -> Result<Vec<Cancelled>, Error> {
        self.cancel_as(Some(audit), deliveries, Reason::Cancelled).await
    }

    /// The same with another reason.
    pub(crate) async fn cancel_as(
        &self,
        audit: Option<Arc<AuditEntry>>,
        deliveries: Vec<Cancel>,
        reason: Reason,
    ) -> Result<Vec<Cancelled>, Error> {
        let (answer, answered) = oneshot::channel();
        self.0.inbox.send(Event::Cancel(audit, deliveries, reason, answer));
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Takes deliveries out of the dead letter of an application. How many there were.
    pub async fn discard(
        &self,
        audit: Arc<AuditEntry>,
        app: AppId,
        deliveries: Vec<Seq>,
    ) -> Result<usize, Error> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.0.store.discard(app, deliveries, Some(audit), done);
        answered.await.map_err(|_| Error::Closed)?
    }

    /// What deliveries that wait for these endpoints wait for, as far as only memory knows.
    pub async fn outlooks(&self, deliveries: &[(&Endpoint, Seq)]) -> Vec<Outlook> {
        let question = |(endpoint, seq): &(&Endpoint, Seq)| Question::new(endpoint, *seq, &self.0.policies);
        let (answer, answered) = oneshot::channel();
        self.0.inbox.send(Event::Ask(deliveries.iter().map(question).collect(), answer));
        // Without a dispatcher nothing is sent.
        let nothing = || vec![Outlook { paused: true, ..Outlook::default() }; deliveries.len()];
        answered.await.unwrap_or_else(|_| nothing())
    }

    /// Hands in several events of one application, in one commit, with a result for each. [`SendError::Late`]: any of them
    /// may yet be accepted.
    pub async fn send_many(
        &self,
        which: &WhichApplication,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Result<Sent, SendError>>, SendError> {
        self.0.intake.send_many(which, events, self.patience()).await
    }

    /// Whether an endpoint of the application would get such a message, or might: what a filter says of it is
    /// not known before. `None`: there is no such application.
    pub async fn has_subscriber(
        &self,
        which: &WhichApplication,
        event_type: &str,
        channels: &[String],
    ) -> Result<Option<bool>, Error> {
        // Not from memory: there, what is old is noticed only when something is written.
        let tenant = self.0.store.tenant(which.clone()).await?;
        let takes = |endpoint: &Subscription| {
            (!endpoint.disabled || endpoint.holds) && endpoint.lists(event_type, channels)
        };
        Ok(tenant.map(|tenant| tenant.endpoints.iter().any(takes)))
    }

    /// Whether an application is there, and the organization's; from memory where possible.
    pub async fn has_application(&self, org: OrgId, app: AppId) -> Result<bool, Error> {
        let applications = &self.0.credentials.applications;
        if applications.is_there(org, app) {
            return Ok(true);
        }
        let begun = applications.begin();
        let there = self.0.store.are_of(org, vec![app]).await? == [true];
        if there {
            applications.found(begun, org, app);
        }
        Ok(there)
    }

    /// Which application a caller's name for it means; from memory where possible.
    pub async fn application_id(&self, which: &WhichApplication) -> Result<Option<AppId>, Error> {
        let tenant = self.0.directory.tenant(which).await?;
        Ok(tenant.map(|tenant| tenant.application.id))
    }

    /// Since when deliveries that are due have had to wait for the rate of an endpoint, or of its application;
    /// `None`: none has to.
    pub async fn throttled_since(&self, endpoint: EndpointId) -> Option<Timestamp> {
        let (answer, answered) = oneshot::channel();
        self.0.inbox.send(Event::Throttled(endpoint, answer));
        answered.await.unwrap_or_default()
    }

    /// How many deliveries are on the wire or not yet recorded.
    pub async fn in_flight(&self) -> usize {
        let (answer, answered) = oneshot::channel();
        self.0.inbox.send(Event::Count(answer));
        answered.await.unwrap_or(0)
    }

    /// Starts no more requests, from now on. Events are still accepted, and wait on disk for the next
    /// start.
    pub fn stop_sending(&self) {
        self.0.inbox.send(Event::Halt);
    }

    /// Starts nothing more, waits for the requests in flight as long as `limit`, and closes the
    /// store. Returns how many were still in flight: their deliveries are tried again after the
    /// next start.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        let left = self.land(limit).await;
        self.close().await;
        left
    }

    /// The first half of a shutdown: nothing more is started, and requests in flight may end.
    pub async fn land(&self, limit: Duration) -> usize {
        self.0.background.iter().for_each(AbortHandle::abort);
        let (stopped, all_landed) = oneshot::channel();
        self.0.inbox.send(Event::Stop(stopped));
        // Those made by hand are in no lane.
        let by_hand = tokio::time::timeout(limit, self.0.resender.ended());
        let (landed, _) = tokio::join!(tokio::time::timeout(limit, all_landed), by_hand);
        let in_lanes = if landed.is_ok() { 0 } else { self.in_flight().await };
        in_lanes + self.0.resender.places.taken()
    }

    /// The second half: what was handed to the store is written, for as long as the disk takes, and its folder is
    /// free.
    pub async fn close(&self) {
        if let Err(error) = self.0.uses.write(true).await {
            tracing::debug!(%error, "cannot note when keys were last used");
        }
        if let Err(error) = self.0.store.close().await {
            tracing::error!(%error, "the store did not close cleanly");
        }
    }
}

/// A start with another encryption key must stop before it writes anything with it.
async fn check_key(store: &dyn Store, vault: &Vault, entropy: &dyn Entropy) -> Result<(), StartError> {
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result| drop(answer.send(result)));
    store.settle_setting("encryption-check", vault.check_value(entropy), done);
    let settled = answered.await.map_err(|_| Error::Closed)??;
    if vault.made(&settled) { Ok(()) } else { Err(StartError::OtherKey) }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}
