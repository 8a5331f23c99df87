//! A running engine: the handle that programs hold.

mod data_folder;
mod installation;
mod mails;
mod pause;
mod questions;
mod sessions;
mod start;
mod stop;

pub use data_folder::{DataFolder, ENCRYPTION_FILE, FolderError, key_from_hex};
pub use installation::{DEFAULT_ORGANIZATION, Installation, Setup, SetupError, default_organization};
pub(crate) use pause::Pause;
pub use pause::{PAUSE_SETTING, PauseRecord};
pub use start::ENCRYPTION_CHECK;
pub use start::{Parts, StartError};

use crate::Statistics;
use crate::alerting::{AlertBoard, AlertSettings, EngineMeasurements, FiringCount};
use crate::blocking_pool::BlockingPool;
use crate::configuration::DirectoryAccess;
use crate::configuration::Entries;
use crate::configuration::{Credentials, KeyUseWriter};
use crate::delivering::ContentBudget;
use crate::delivering::Target;
use crate::housekeeping::ClockWatch;
use crate::housekeeping::background::Background;
use crate::inbound::SourceServices;
use crate::intake::{Intake, NewEvent, SendError, SendReceipt};
use crate::mailing::MailQueue;
use crate::replaying::Replays;
use crate::replaying::{ManualAttempt, NewResend, ResendError, Resender};
use crate::scheduling::{HeldList, Inbox};
use crate::traces::TraceExport;
use crate::{
    CertificateExpiries, Clock, ClockState, EventTypes, MailOptions, NewApplication, Policies, Profiles,
    Tracer, Vault,
};
use aldaba_delivery::AppId;
use aldaba_delivery::alert::AlertRule;
use aldaba_store::{Actor, ApplicationRef, AuditAction, AuditEntry, Done, Endpoint, Error, Seq, Store};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine(Arc<EngineParts>);

struct EngineParts {
    intake: Arc<Intake>,
    sources: SourceServices,
    directory: DirectoryAccess,
    credentials: Credentials,
    uses: KeyUseWriter,
    store: Arc<dyn Store>,
    policies: Policies,
    replays: Replays,
    resender: Resender,
    profiles: Profiles,
    event_types: EventTypes,
    clock: Arc<dyn Clock>,
    entries: Entries,
    inbox: Inbox,
    held: HeldList,
    failed: watch::Sender<bool>,
    explaining: BlockingPool,
    commit_timeout: Option<Duration>,
    clock_watch: ClockWatch,
    background: Background,
    tracer: Tracer,
    /// `None`: no spans are exported.
    trace_export: Option<TraceExport>,
    alert_settings: watch::Sender<AlertSettings>,
    /// `None`: no mail is sent.
    mail_options: Option<watch::Sender<MailOptions>>,
    alert_board: AlertBoard,
    statistics: Statistics,
    measurements: Arc<EngineMeasurements>,
    certificates: CertificateExpiries,
    mail_queue: MailQueue,
    pause: Pause,
}

impl Engine {
    /// Accepts an event. When this returns [`SendReceipt`], it is on disk and will be delivered. [`SendError::Late`]: it may
    /// still be accepted.
    pub async fn send(&self, which: &ApplicationRef, event: NewEvent) -> Result<SendReceipt, SendError> {
        self.0.intake.send(which, event, self.commit_timeout()).await
    }

    /// Accepts several events of one application, in one commit, with a result for each. [`SendError::Late`]: any of them may
    /// still be accepted.
    pub async fn send_many(
        &self,
        which: &ApplicationRef,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Result<SendReceipt, SendError>>, SendError> {
        self.0.intake.send_many(which, events, self.commit_timeout()).await
    }

    /// Accepts an event and creates its application in one commit: a refused event creates nothing. [`SendError::Late`]: both
    /// may still be stored.
    pub async fn send_with_application(
        &self,
        actor: &Actor,
        new: NewApplication,
        event: NewEvent,
    ) -> Result<SendReceipt, SendError> {
        self.0.intake.send_with_application(actor, new, event, self.commit_timeout()).await
    }

    /// Applications, endpoints and their configuration. A change names its actor.
    pub fn directory(&self) -> &DirectoryAccess {
        &self.0.directory
    }

    pub fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    /// An entry for the audit log. All writes with the same entry share one row.
    pub fn entry(&self, actor: &Actor, action: AuditAction) -> Arc<AuditEntry> {
        self.0.entries.entry(actor, action)
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

    /// Makes a manual attempt, whatever the delivery's state.
    pub async fn resend(&self, asked: NewResend) -> Result<ManualAttempt, ResendError> {
        self.0.resender.clone().resend(asked).await
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.0.resender.vault
    }

    pub(crate) fn sources(&self) -> &SourceServices {
        &self.0.sources
    }

    pub(crate) fn intake(&self) -> &Intake {
        &self.0.intake
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    pub(crate) fn commit_timeout(&self) -> Option<Duration> {
        self.0.commit_timeout
    }

    pub(crate) fn contents(&self) -> &ContentBudget {
        &self.0.intake.contents
    }

    /// What an attempt for an endpoint would use.
    pub(crate) fn target(&self, endpoint: &Endpoint) -> Target {
        self.0.resender.target(endpoint)
    }

    pub fn replays(&self) -> &Replays {
        &self.0.replays
    }

    /// The alert rules in force, and how often they are judged.
    pub fn alert_settings(&self) -> AlertSettings {
        self.0.alert_settings.borrow().clone()
    }

    /// Judges alerts by other rules from the next round on. The rule about single endpoints stays as it was, because the store
    /// judges it.
    pub fn set_alert_settings(&self, new: &AlertSettings) {
        self.0.alert_settings.send_modify(|settings| {
            let rules = new.rules.with_rule_of(AlertRule::EndpointFailing, &settings.rules);
            *settings = AlertSettings { rules: Arc::new(rules), interval: new.interval };
        });
    }

    /// Sends mails in another way from the next one on; how long they wait for others stays as it was. `false`: the engine was
    /// started without mails.
    pub fn set_mail_options(&self, new: MailOptions) -> bool {
        let Some(options) = &self.0.mail_options else { return false };
        options.send_modify(|options| *options = MailOptions { delay: options.delay, ..new });
        true
    }

    /// How often each rule fires now, those of endpoints apart.
    pub fn firing_alerts(&self) -> Vec<FiringCount> {
        self.0.alert_board.counts()
    }

    /// What each alert rule about the whole server compares now, over the window of its metric. What is not known, or has nothing
    /// to be of, has no entry.
    pub fn rule_values(&self) -> BTreeMap<AlertRule, f64> {
        self.0.measurements.of_server(self.0.clock.now())
    }

    /// When certificates expire. Programs add those that they use themselves.
    pub fn certificates(&self) -> &CertificateExpiries {
        &self.0.certificates
    }

    /// What happens, in numbers.
    pub fn statistics(&self) -> &Statistics {
        &self.0.statistics
    }

    /// The background tasks. Programs may add their own, so that all are visible in one place.
    pub fn background(&self) -> &Background {
        &self.0.background
    }

    pub fn tracer(&self) -> &Tracer {
        &self.0.tracer
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// The state of the machine's clock.
    pub fn clock_state(&self) -> Option<ClockState> {
        self.0.clock_watch.trust.state()
    }

    /// Trusts the machine's clock as it is now. The decision is on disk when this returns.
    pub async fn trust_clock(&self) -> Result<(), Error> {
        self.0.clock_watch.trust.trust();
        self.0.clock_watch.write().await
    }

    /// Why nothing is sent, where the data was restored from a backup and sending was not resumed yet.
    pub fn pause(&self) -> Option<PauseRecord> {
        self.0.pause.record()
    }

    /// Sends what waits after a restore. `false`: nothing was paused. The decision is on disk when this returns.
    pub async fn resume(&self) -> Result<bool, Error> {
        self.0.pause.resume(&self.0.clock_watch.trust, &self.0.inbox).await
    }

    /// Discards deliveries from the dead letter of an application. Returns how many there were.
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
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}
