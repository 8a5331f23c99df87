//! Builds an engine and starts it.

use super::{Engine, EngineParts, Pause};
use crate::alerting::{AlertBoard, AlertMemory, AlertSettings, Alerting, EngineMeasurements};
use crate::blocking_pool::BlockingPool;
use crate::configuration::Entries;
use crate::configuration::{Credentials, KeyUseWriter};
use crate::configuration::{DirectoryAccess, DirectoryCore, FilterBudgets, Tenants};
use crate::delivering::ContentBudget;
use crate::delivering::Sender;
use crate::housekeeping::DueTimes;
use crate::housekeeping::Erasures;
use crate::housekeeping::Orphans;
use crate::housekeeping::Retention;
use crate::housekeeping::background::Background;
use crate::housekeeping::sequencing;
use crate::housekeeping::{ClockWatch, TrustedClock};
use crate::housekeeping::{OperationalListeners, OperationalSender};

use crate::inbound::{InspectionQueue, SourceServices};
use crate::intake::Intake;
use crate::mailing::{MailQueue, MailSender, ServerState};
use crate::observing::{Statistics, StoreWatch};
use crate::recording::Recorder;
use crate::replaying::Replays;
use crate::replaying::{ManualPermits, Resender};
use crate::scheduling::Expirer;
use crate::scheduling::Gates;
use crate::scheduling::Scheduler;
use crate::scheduling::Sweep;
use crate::scheduling::{Dispatcher, Inbox};
use crate::{
    Clock, ClockTrust, Entropy, EventTypes, Options, Policies, Profiles, ProfilesError, SourceCache,
    SourceCounters, Tracer, Transport, Vault,
};
use aldaba_delivery::CLOCK_TOLERANCE;
use aldaba_store::{Done, Error, RetentionWalk, Store};
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// The setting that identifies the key by which the secrets of a store are encrypted.
pub const ENCRYPTION_CHECK: &str = "encryption-check";

/// The parts that the caller provides: everything that touches the outside world.
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

impl Engine {
    /// Starts to deliver what is pending in the store, and to accept more.
    pub async fn start(parts: Parts, options: Options) -> Result<Self, StartError> {
        let Parts { store, transport, clock, entropy, vault, policies } = parts;
        check_key(&*store, &vault, &*entropy).await?;
        let clock_record = ClockWatch::read(&*store).await?;
        let newest = store.newest_moment().await?;
        let trust = ClockTrust::starting(clock.clone(), clock_record, newest, options.clock_trusted_after);
        let clock: Arc<dyn Clock> = Arc::new(TrustedClock(trust.clone(), clock));
        let pause = Pause::read(&store, options.resume).await?;
        trust.pause(pause.is_on());
        let shown_before = clock_record.map(|record| record.shown).max(newest);
        let clock_was_ahead = shown_before.is_some_and(|shown| shown > clock.now() + CLOCK_TOLERANCE);
        let (gates, surplus_gates) = Gates::restore(options.gate_limits(), store.gates().await?);
        for own in store.policies().await? {
            policies.put(own);
        }
        let profiles = Profiles::new(&options.profile, &options.brand)?;
        for own in store.profiles().await? {
            profiles.put(own.org, Profiles::read(&own)?);
        }
        let listeners = OperationalListeners::read(&*store).await?;
        let credentials = Credentials::read(&*store).await?;
        let event_types = EventTypes::default();
        for event_type in store.event_types().await? {
            event_types.put(Arc::new(event_type));
        }
        // The last step that can fail: from here on the engine runs.
        let running = store.running_replays().await?;
        let (inbox, inputs) = Inbox::new();
        let background = Background::new(clock.clone());
        let kept = options.idempotency_kept;
        let (orphaned, deleted) = mpsc::unbounded_channel();
        let (erasing, started) = mpsc::unbounded_channel();
        let entries = Entries::new(clock.clone(), entropy.clone());
        let replays = Replays::new(
            store.clone(),
            clock.clone(),
            entropy.clone(),
            inbox.clone(),
            entries.clone(),
            kept,
            background.clone(),
        );
        let sources = SourceServices {
            source_cache: SourceCache::new(store.clone(), clock.clone(), trust.clone(), vault.clone()),
            counters: SourceCounters::default(),
            inspections: InspectionQueue::new(BlockingPool::new()),
        };
        let directory = DirectoryAccess::new(DirectoryCore {
            store: store.clone(),
            clock: clock.clone(),
            trust: trust.clone(),
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
            orphans: orphaned.clone(),
            erasures: erasing,
            idempotency_kept: kept,
            filter_budgets: FilterBudgets::default(),
            source_cache: sources.source_cache.clone(),
            source_counters: sources.counters.clone(),
        });
        let contents = ContentBudget::new(options.content_bytes);
        let (tracer, trace_export) = Tracer::start(options.traces.clone(), &clock, &entropy);
        let sender = Sender {
            store: store.clone(),
            transport,
            clock: clock.clone(),
            trust: trust.clone(),
            entropy: entropy.clone(),
            inbox: inbox.clone(),
            contents: contents.clone(),
            vault: vault.clone(),
            tracer: tracer.clone(),
        };
        let (mail_trust, mail_entropy) = (trust.clone(), entropy.clone());
        let mail_queue = MailQueue::new(options.mail.as_ref().map(|mail| mail.delay));
        let recorder = Recorder {
            store: store.clone(),
            inbox: inbox.clone(),
            listeners: listeners.clone(),
            mail_queue: mail_queue.clone(),
        };
        let resender = Resender {
            store: store.clone(),
            clock: clock.clone(),
            sender: sender.clone(),
            inbox: inbox.clone(),
            policies: policies.clone(),
            profiles: profiles.clone(),
            vault: vault.clone(),
            permits: ManualPermits::new(),
            idempotency_kept: options.idempotency_kept,
        };
        let clock_went_back = Arc::new(Notify::new());
        let due_times = DueTimes {
            store: store.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            trust: trust.clone(),
            policies: policies.clone(),
            inbox: inbox.clone(),
            clock_went_back: clock_went_back.clone(),
            clock_was_ahead,
        };
        let sequencing_needed = Arc::new(Notify::new());
        let sequencer = sequencing::Sequencer {
            store: store.clone(),
            clock: clock.clone(),
            inbox: inbox.clone(),
            sequencing_needed: sequencing_needed.clone(),
            max_sleep: options.max_sleep,
        };
        let held = gates.held();
        let mut scheduler = Scheduler::new(options.clone(), gates);
        scheduler.trust = trust.clone();
        scheduler.halted = pause.is_on();
        let expirer = Expirer {
            store: store.clone(),
            clock: clock.clone(),
            trust: trust.clone(),
            policies: policies.clone(),
            inbox: inbox.clone(),
            listeners: listeners.clone(),
            background: background.clone(),
            policy_changed: Arc::default(),
        };
        let dispatcher = Dispatcher {
            expirer: expirer.clone(),
            store: store.clone(),
            clock: clock.clone(),
            vault,
            policies: policies.clone(),
            profiles: profiles.clone(),
            sender,
            recorder,
            inbox: inbox.clone(),
            background: background.clone(),
            inputs,
            sweep: Sweep::new(options.sweep_interval, clock.now()),
            failed_records: Vec::new(),
            halted_for_good: false,
            pause: pause.clone(),
            stopping: None,
            max_sleep: options.max_sleep,
            last_now: clock.now(),
            clock_went_back,
            sequencing_needed,
            scheduler,
        };
        // Not restarted: its knowledge of requests in flight is lost with it, and only a start reads everything again.
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
            trust: trust.clone(),
            walk: RetentionWalk::new(&surplus_gates),
        };
        let uses = KeyUseWriter { keys: credentials.keys.clone(), store: store.clone() };
        let intake = Arc::new(Intake {
            store: store.clone(),
            directory: directory.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            inbox: inbox.clone(),
            contents,
            event_types: event_types.clone(),
            idempotency_kept: options.idempotency_kept,
            quotas: options.quotas,
            matching: BlockingPool::new(),
            checking: BlockingPool::new(),
            tracer: tracer.clone(),
        });
        let alert_listeners = listeners.clone();
        let operational = OperationalSender {
            store: store.clone(),
            intake: intake.clone(),
            listeners,
            background: background.clone(),
        };
        let erasures = Erasures {
            store: store.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            credentials: credentials.clone(),
            orphans: orphaned,
            started,
        };
        let orphans = Orphans { store: store.clone(), clock: clock.clone(), inbox: inbox.clone(), deleted };
        let clock_watch = ClockWatch { store: store.clone(), trust, interval: options.clock_record_interval };
        let statistics = Statistics::new(store.live_counts(), clock.clone());
        if let Some(interval) = options.store_watch_interval {
            let (store, inbox, statistics) = (store.clone(), inbox.clone(), statistics.clone());
            let certificates = options.certificates.clone();
            let vault = resender.vault.clone();
            background.start(StoreWatch { store, inbox, statistics, certificates, vault, interval });
        }
        let measurements = Arc::new(EngineMeasurements {
            statistics: statistics.clone(),
            background: background.clone(),
            store: store.clone(),
            trust: clock_watch.trust.clone(),
            certificates: options.certificates.clone(),
        });
        let alert_board = AlertBoard::default();
        let alert_settings = watch::Sender::new(AlertSettings {
            rules: options.alert_rules.clone(),
            interval: options.alert_interval,
        });
        background.start(Alerting {
            store: store.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            listeners: alert_listeners,
            mail_queue: mail_queue.clone(),
            measurements: measurements.clone(),
            settings: alert_settings.subscribe(),
            rules: options.alert_rules.clone(),
            board: alert_board.clone(),
            memory: AlertMemory::default(),
        });
        background.start(retention);
        background.start(orphans);
        background.start(erasures);
        background.start(expirer);
        background.start(uses.clone());
        background.start(operational);
        background.start(clock_watch.clone());
        background.start(due_times);
        background.start(sequencer);
        if let Some(export) = trace_export.clone() {
            background.start(export);
        }
        let mail_options = options.mail.clone().map(watch::Sender::new);
        if let (Some(mail), Some(renewed)) = (&options.mail, &mail_options) {
            background.start(MailSender {
                store: store.clone(),
                clock: clock.clone(),
                trust: mail_trust,
                entropy: mail_entropy,
                vault: resender.vault.clone(),
                options: mail.clone(),
                renewed: renewed.subscribe(),
                queue: mail_queue.clone(),
                server: ServerState::default(),
                last: None,
                pause: pause.clone(),
            });
        }
        let inner = EngineParts {
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
            held,
            failed,
            explaining: BlockingPool::new(),
            commit_timeout: options.commit_timeout,
            clock_watch,
            background,
            tracer,
            trace_export,
            alert_settings,
            mail_options,
            alert_board,
            statistics,
            measurements,
            certificates: options.certificates.clone(),
            mail_queue,
            pause,
        };
        Ok(Self(Arc::new(inner)))
    }
}

/// Stops a start with another encryption key before it writes anything.
async fn check_key(store: &dyn Store, vault: &Vault, entropy: &dyn Entropy) -> Result<(), StartError> {
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result| drop(answer.send(result)));
    store.settle_setting(ENCRYPTION_CHECK, vault.check_value(entropy), done);
    let settled = answered.await.map_err(|_| Error::Closed)??;
    if vault.matches_check_value(&settled) { Ok(()) } else { Err(StartError::OtherKey) }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}
