//! The embedded backend: SQLite in one folder.
//!
//! One thread writes ([`run_batch`] in a loop), a few read. Everything that arrives while a commit
//! is syncing goes into the next one, so the disk decides how many operations share an fsync.

mod accept;
mod attempt_list;
mod audit;
mod batch;
mod change;
mod checkpoint;
mod codes;
mod connect;
mod cost;
mod counters;
mod credentials;
mod deliveries;
mod delivery_list;
mod directory;
mod dispatch;
mod event_type;
mod expunge;
mod failure;
mod filters;
mod health;
mod history;
mod keys;
mod lanes;
mod lock;
mod message_list;
mod migrations;
mod monotonic;
mod names;
mod notice;
mod op;
mod open;
mod options;
mod ordering;
mod pace;
#[cfg(test)]
mod plan;
mod policy;
mod profile;
mod queue;
mod quota;
mod readers;
mod record;
mod remove;
mod replay;
mod retention;
mod rows;
mod setting;
mod source;
mod source_states;
mod space;
mod statistics;
mod types;
mod used;
mod walk;
mod watchdog;
mod writer;

pub use batch::{Rules, run_batch};
pub use monotonic::Monotonic;
pub use op::{Op, Outcome};
pub use open::{OpenError, in_memory};
pub use options::Options;
pub use types::Types;

use crate::{
    Accept, Accepted, Accepts, ApiKey, Application, ApplicationAttemptsQuery, Attempt, AttemptCounts,
    AttemptsQuery, AuditEntry, AuditPage, AuditQuery, Audits, Change, Changed, Content, Count, Credentials,
    Cut, Deliveries, DeliveriesPage, DeliveriesQuery, DeliveryStatus, DeliveryView, Directory, Dispatch,
    Dispatches, DispatchesQuery, Done, DueQuery, Endpoint, EndpointMessage, EndpointMessagesQuery, EventType,
    Found, GateRecord, HealthChange, HealthChangeNumber, History, Hour, KeptEndpoint, Key, LaneTarget, Lanes,
    LanesPage, LanesQuery, Message, MessagesCursor, MessagesQuery, Notice, NoticeNumber, Order, OrphansPage,
    OrphansQuery, OwnPolicy, OwnProfile, Page, PortalCut, Read, Record, Recorded, Records, Removal, Removed,
    Replay, ReplayCount, ReplayStep, ReplayStepped, Replays, ReplaysQuery, Resent, Retention, RevokedToken,
    Seq, Settled, Source, SourceEvent, SourceEventsQuery, Sources, Stale, Statistics, Store, StoredKey,
    SumUp, Tenant, Waiting, Walked, WhichApplication,
};
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId, OrgId, ReplayId, SourceId, Timestamp};
use bytes::Bytes;
use failure::Failure;
use monotonic::Slice;
use op::Reply;
use parking_lot::Mutex;
use queue::Queue;
use readers::Readers;
use rusqlite::Connection;
use space::Space;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// A store in one folder. Dropping it closes it, and waits until everything handed over is written.
#[derive(Debug)]
pub struct SqliteStore {
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    failure: Arc<Failure>,
    log_pages: Arc<AtomicU32>,
    clock: Monotonic,
    types: Arc<Types>,
    /// How much of the time of a read a count takes before it hands back what it has.
    count_slice: Duration,
    closed: watch::Sender<bool>,
    space: Space,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Takes the folder for this store alone, and brings its database to the present schema.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        open::open(options)
    }

    /// Resolves once the store has failed for good, with the reason. The process should end with it:
    /// what the disk holds is uncertain, and only a fresh start reads it again.
    pub fn failed(&self) -> impl Future<Output = String> + Send + 'static {
        self.failure.wait()
    }

    /// How many pages the write-ahead log had after the last commit.
    pub fn log_pages(&self) -> u32 {
        self.log_pages.load(Ordering::Relaxed)
    }

    fn write(&self, op: Op, reply: Reply) {
        self.queue.put(op, reply, &self.failure);
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.readers.read(&self.failure, read)
    }

    /// A read that ends by the clock, with what it has found by then.
    fn walk<T, F>(&self, walk: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Slice<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let clock = self.clock.clone();
        self.read(move |connection| walk(connection, &Slice::begin(&clock, WALK)))
    }
}

/// How long a list is walked in one read, so that others have their turn; the next read goes on from there.
const WALK: Duration = Duration::from_millis(4);

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.queue.close();
        // The last owner may have been a `Done`: the writer's thread can not wait for itself.
        if let Some(thread) = self.thread.get_mut().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Store for SqliteStore {
    fn check(&self) -> Read<()> {
        if let Some(error) = self.failure.get() {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM setting LIMIT 1")?.exists(()).map(drop)
        })
    }

    fn close(&self) -> Read<()> {
        self.queue.close();
        // Handles of a closed store may be kept for long.
        self.space.stop();
        let mut closed = self.closed.subscribe();
        let failure = Arc::clone(&self.failure);
        Box::pin(async move {
            // The sender lives in the store and in the thread; if both are gone it is closed too.
            let _ = closed.wait_for(|closed| *closed).await;
            failure.get().map_or(Ok(()), Err)
        })
    }
}

impl Accepts for SqliteStore {
    fn accept(&self, batch: Vec<Accept>, done: Done<Vec<Accepted>>) {
        if self.space.is_low() {
            return done.call(Err(crate::Error::Full));
        }
        self.write(Op::Accept(batch), Reply::Accept(done));
    }
}

impl Records for SqliteStore {
    fn record(&self, batch: Vec<Record>, done: Done<Vec<Recorded>>) {
        self.write(Op::Record(batch), Reply::Record(done));
    }

    fn resent(&self, resent: Resent, done: Done<()>) {
        self.write(Op::Resent(Box::new(resent)), Reply::Resent(done));
    }

    fn attempt_of_key(&self, app: AppId, digest: [u8; 16], now: Timestamp) -> Read<Option<AttemptId>> {
        self.read(move |connection| record::attempt_of_key(connection, app, &digest, now))
    }
}

impl Lanes for SqliteStore {
    fn due(&self, query: DueQuery) -> Read<Vec<Waiting>> {
        self.read(move |connection| lanes::due(connection, query))
    }

    fn lanes(&self, query: LanesQuery) -> Read<LanesPage> {
        self.read(move |connection| lanes::lanes(connection, query))
    }

    fn contents(&self, messages: Vec<(AppId, MessageId)>) -> Read<Vec<Option<Content>>> {
        self.read(move |connection| lanes::contents(connection, &messages))
    }

    fn has_payload(&self, app: AppId, message: MessageId, payload: Bytes) -> Read<Option<bool>> {
        self.read(move |connection| lanes::has_payload(connection, app, message, &payload))
    }

    fn lane_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Endpoint>> {
        self.read(move |connection| lanes::lane_endpoints(connection, &endpoints))
    }

    fn lane_targets(&self, endpoints: Vec<EndpointId>) -> Read<Vec<LaneTarget>> {
        self.read(move |connection| lanes::lane_targets(connection, &endpoints))
    }

    fn deleted_applications(&self, after: Option<AppId>, limit: usize) -> Read<Vec<AppId>> {
        self.read(move |connection| lanes::deleted_applications(connection, after, limit))
    }

    fn orphans(&self, query: OrphansQuery) -> Read<OrphansPage> {
        self.read(move |connection| lanes::orphans(connection, query))
    }

    fn gates(&self) -> Read<Vec<GateRecord>> {
        self.read(lanes::gates)
    }
}

impl Directory for SqliteStore {
    fn change(&self, change: Change, audit: Option<Arc<AuditEntry>>, done: Done<Changed>) {
        self.write(Op::Change(Box::new(change), audit), Reply::Change(done));
    }

    fn tenant(&self, which: WhichApplication) -> Read<Option<Tenant>> {
        self.read(move |connection| directory::tenant(connection, &which))
    }

    fn application(&self, which: WhichApplication) -> Read<Option<Application>> {
        self.read(move |connection| directory::application(connection, &which))
    }

    fn application_version(&self, app: AppId) -> Read<Option<u64>> {
        self.read(move |connection| directory::application_version(connection, app))
    }

    fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Read<Vec<Application>> {
        self.read(move |connection| directory::applications(connection, org, page, order))
    }

    fn endpoint(&self, app: AppId, key: Key) -> Read<Option<Endpoint>> {
        self.read(move |connection| directory::endpoint(connection, app, &key))
    }

    fn endpoints(&self, app: AppId, page: Page<EndpointId>, order: Order) -> Read<Vec<Endpoint>> {
        self.read(move |connection| directory::endpoints(connection, app, page, order))
    }

    fn health_changes(
        &self,
        endpoint: EndpointId,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Read<Vec<HealthChange>> {
        self.read(move |connection| health::changes(connection, endpoint, page, order))
    }

    fn has_endpoints_at(&self, org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Read<Vec<bool>> {
        self.read(move |connection| health::has_endpoints_at(connection, org, app, &starts))
    }

    fn others_have_endpoints_at(&self, org: OrgId, start: String) -> Read<bool> {
        self.read(move |connection| health::others_have_endpoints_at(connection, org, &start))
    }

    fn are_of(&self, org: OrgId, apps: Vec<AppId>) -> Read<Vec<bool>> {
        self.read(move |connection| health::are_of(connection, org, &apps))
    }

    fn policies(&self) -> Read<Vec<OwnPolicy>> {
        self.read(policy::all)
    }

    fn profiles(&self) -> Read<Vec<OwnProfile>> {
        self.read(profile::all)
    }

    fn notice_organizations(&self, after: Option<OrgId>, limit: usize) -> Read<Vec<OrgId>> {
        self.read(move |connection| notice::organizations(connection, after, limit))
    }

    fn notices(&self, org: OrgId, limit: usize) -> Read<Vec<(NoticeNumber, Notice)>> {
        self.read(move |connection| notice::oldest(connection, org, limit))
    }

    fn event_types(&self) -> Read<Vec<EventType>> {
        self.read(event_type::all)
    }

    fn setting(&self, name: &'static str) -> Read<Option<Vec<u8>>> {
        self.read(move |connection| setting::read(connection, name))
    }

    fn settle_setting(&self, name: &'static str, value: Vec<u8>, done: Done<Vec<u8>>) {
        self.write(Op::SettleSetting { name, value }, Reply::SettleSetting(done));
    }
}

impl Credentials for SqliteStore {
    fn api_keys(&self) -> Read<Vec<ApiKey>> {
        self.read(credentials::all)
    }

    fn revoked_tokens(&self) -> Read<Vec<RevokedToken>> {
        self.read(credentials::revoked)
    }

    fn portal_cuts(&self) -> Read<Vec<PortalCut>> {
        self.read(credentials::cuts)
    }
}

impl Audits for SqliteStore {
    fn audit(&self, query: AuditQuery) -> Read<AuditPage> {
        self.read(move |connection| audit::list(connection, &query))
    }
}

impl History for SqliteStore {
    fn message(&self, app: AppId, key: Key) -> Read<Option<Message>> {
        self.read(move |connection| history::message(connection, app, &key))
    }

    fn messages(&self, query: MessagesQuery) -> Read<Found<Message, MessageId>> {
        self.walk(move |connection, slice| message_list::messages(connection, slice, &query))
    }

    fn bare_messages(&self, app: AppId, messages: Vec<MessageId>) -> Read<Vec<Message>> {
        self.read(move |connection| message_list::bare(connection, app, &messages))
    }

    fn attempts(&self, query: AttemptsQuery) -> Read<Found<Attempt, AttemptId>> {
        self.walk(move |connection, slice| attempt_list::attempts(connection, slice, &query))
    }

    fn count_attempts(&self, query: AttemptsQuery) -> Read<Count> {
        self.walk(move |connection, slice| attempt_list::count(connection, slice, &query))
    }

    fn attempt(&self, message: MessageId, attempt: AttemptId) -> Read<Option<Attempt>> {
        self.read(move |connection| attempt_list::one(connection, message, attempt))
    }

    fn endpoint_messages(&self, query: EndpointMessagesQuery) -> Read<Found<EndpointMessage, MessageId>> {
        self.walk(move |connection, slice| message_list::of_endpoint(connection, slice, &query))
    }

    fn deliveries(&self, message: MessageId) -> Read<Vec<DeliveryStatus>> {
        self.read(move |connection| history::deliveries(connection, message))
    }

    fn waiting(&self) -> Read<u64> {
        self.read(history::waiting)
    }
}

impl Deliveries for SqliteStore {
    fn delivery_views(&self, app: AppId, seqs: Vec<Seq>) -> Read<Vec<DeliveryView>> {
        self.read(move |connection| deliveries::views(connection, app, &seqs))
    }

    fn delivery_list(&self, query: DeliveriesQuery) -> Read<DeliveriesPage> {
        self.read(move |connection| delivery_list::list(connection, &query))
    }

    fn discard(&self, app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>>, done: Done<usize>) {
        self.write(Op::Discard { app, deliveries, audit }, Reply::Discard(done));
    }
}

impl Dispatches for SqliteStore {
    fn dispatches(&self, query: DispatchesQuery) -> Read<Found<Dispatch, MessageId>> {
        self.read(move |connection| dispatch::list(connection, &query))
    }

    fn dispatch(&self, app: AppId, message: MessageId) -> Read<Option<Dispatch>> {
        self.read(move |connection| dispatch::one(connection, app, message))
    }
}

impl Sources for SqliteStore {
    fn source(&self, org: OrgId, key: Key) -> Read<Option<Source>> {
        self.read(move |connection| source::one(connection, org, &key))
    }

    fn source_of_token(&self, digest: [u8; 32]) -> Read<Option<Source>> {
        self.read(move |connection| source::of_token(connection, &digest))
    }

    fn source_of_application(&self, app: AppId) -> Read<Option<SourceId>> {
        self.read(move |connection| source::of_application(connection, app))
    }

    fn sources(&self, org: OrgId, page: Page<SourceId>, order: Order) -> Read<Vec<Source>> {
        self.read(move |connection| source::all(connection, org, page, order))
    }

    fn source_events(&self, query: SourceEventsQuery) -> Read<Found<SourceEvent, MessageId>> {
        self.walk(move |connection, slice| message_list::of_source(connection, slice, &query))
    }

    fn source_event(&self, app: AppId, key: Key) -> Read<Option<SourceEvent>> {
        self.read(move |connection| source::event(connection, app, &key))
    }
}

impl Replays for SqliteStore {
    fn step_replay(&self, step: ReplayStep, done: Done<ReplayStepped>) {
        // What it opens makes results, which need room too.
        if self.space.is_low() {
            return done.call(Err(crate::Error::Full));
        }
        self.write(Op::StepReplay(step), Reply::StepReplay(done));
    }

    fn replay(&self, org: OrgId, id: ReplayId) -> Read<Option<Replay>> {
        self.read(move |connection| replay::one(connection, org, id))
    }

    fn replays(&self, query: ReplaysQuery) -> Read<Vec<Replay>> {
        self.read(move |connection| replay::list(connection, query))
    }

    fn running_replays(&self) -> Read<Vec<Replay>> {
        self.read(replay::running)
    }

    fn count_replay(&self, replay: Replay, after: Option<MessageId>, look: usize) -> Read<ReplayCount> {
        let (clock, length) = (self.clock.clone(), self.count_slice);
        self.read(move |connection| {
            let slice = Slice::begin(&clock, length);
            replay::count_matches(connection, &slice, &replay, after, look)
        })
    }
}

impl Statistics for SqliteStore {
    fn endpoint_attempts(
        &self,
        endpoint: EndpointId,
        since: Timestamp,
        until: Timestamp,
    ) -> Read<AttemptCounts> {
        self.read(move |connection| statistics::endpoint_attempts(connection, endpoint, since, until))
    }

    fn application_attempts(
        &self,
        query: ApplicationAttemptsQuery,
    ) -> Read<Option<BTreeMap<String, AttemptCounts>>> {
        let types = Arc::clone(&self.types);
        self.read(move |connection| types.read(connection, &query))
    }

    fn summed_through(&self) -> Read<Hour> {
        self.read(statistics::hours_summed)
    }

    fn unsummed(&self, endpoints: Vec<EndpointId>, through: Hour) -> Read<Vec<EndpointId>> {
        self.read(move |connection| statistics::unsummed(connection, &endpoints, through))
    }

    fn sum_up(&self, step: SumUp, done: Done<usize>) {
        self.write(Op::SumUp(step), Reply::SumUp(done));
    }
}

impl Retention for SqliteStore {
    fn kept_endpoints(&self, after: Option<(AppId, EndpointId)>, limit: usize) -> Read<Vec<KeptEndpoint>> {
        self.read(move |connection| retention::kept_endpoints(connection, after, limit))
    }

    fn newest_delivered(
        &self,
        endpoints: Vec<EndpointId>,
        after: Option<Settled>,
        limit: usize,
    ) -> Read<Vec<Settled>> {
        self.read(move |connection| retention::newest_delivered(connection, &endpoints, after, limit))
    }

    fn cut_off(&self, cuts: Vec<Cut>, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::cut_off(connection, &cuts, limit))
    }

    fn old_counters(&self, endpoints: Vec<EndpointId>, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::old_counters(connection, &endpoints, before, limit))
    }

    fn old_application_counters(
        &self,
        apps: Vec<AppId>,
        before: Timestamp,
        limit: usize,
    ) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::old_application_counters(connection, &apps, before, limit))
    }

    fn unused_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::unused_endpoints(connection, &endpoints))
    }

    fn unused_applications(&self, after: Option<AppId>, limit: usize) -> Read<Walked<AppId>> {
        self.read(move |connection| retention::unused_applications(connection, after, limit))
    }

    fn lonely_messages(
        &self,
        after: Option<MessagesCursor>,
        before: Timestamp,
        limit: usize,
    ) -> Read<Walked<MessagesCursor>> {
        self.read(move |connection| retention::lonely_messages(connection, after, before, limit))
    }

    fn expired_keys(
        &self,
        after: Option<StoredKey>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<StoredKey>> {
        self.read(move |connection| retention::expired_keys(connection, after.as_ref(), now, limit))
    }

    fn old_gates(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::old_gates(connection, before, limit))
    }

    fn ended_replays(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::ended_replays(connection, before, limit))
    }

    fn old_audit(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| audit::old(connection, before, limit))
    }

    fn needless_revocations(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| credentials::needless(connection, before, limit))
    }

    fn remove(&self, removal: Removal, done: Done<Removed>) {
        self.write(Op::Remove(removal), Reply::Remove(done));
    }
}
