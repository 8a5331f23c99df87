//! What a database has to bring along. The whole contract follows from it: a write goes to the backend's writer as an [`Op`], a
//! read runs an operation on a snapshot.

use crate::operations::{
    Monotonic, Op, Reading, Reply, Result, Slice, api_key, application, attempt, audit, delivery,
    delivery_list, dispatch, endpoint, event_type, gate, health, keys, message, notice, policy, profile,
    replay, retention, setting, source, statistics, token,
};
use crate::*;
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId, OrgId, ReplayId, SourceId, Timestamp};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a list is walked in one read, so that others have their turn. The next read goes on from there.
const WALK_TIME: Duration = Duration::from_millis(4);

/// A database with one writer and snapshots.
pub trait Backend: Send + Sync + 'static {
    /// Hands an operation to the writer, or answers at once that it is refused.
    fn write(&self, op: Op, reply: Reply);

    /// Runs a read on a snapshot of one moment.
    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn HotReads) -> Result<T> + Send + 'static;

    /// The same for reads that only background tasks make.
    fn background_read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn HotReads) -> Result<T> + Send + 'static,
    {
        self.read(read)
    }

    fn clock(&self) -> &Monotonic;

    /// How long a count of a replay may take.
    fn count_time(&self) -> Duration;

    /// A read that ends by the clock, with what it has found by then.
    fn walk<T, F>(&self, walk: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn HotReads, &Slice<'_>) -> Result<T> + Send + 'static,
    {
        let clock = self.clock().clone();
        self.read(move |reading| walk(reading, &Slice::begin(&clock, WALK_TIME)))
    }
}

/// The reads that a backend has statements of its own for: those of the lanes, and those that depend on how it counts.
pub trait HotReads: Reading {
    fn due(&self, query: DueQuery) -> Result<Vec<PendingDelivery>>;

    fn lanes(&self, query: LanesQuery) -> Result<LanesPage>;

    fn started_before(&self, query: StartedQuery) -> Result<StartedPage>;

    fn have_started_before(&self, endpoints: &[(EndpointId, Timestamp)]) -> Result<Vec<EndpointId>>;

    fn contents(&self, messages: &[(AppId, MessageId)]) -> Result<Vec<Option<Content>>>;

    fn has_payload(&self, app: AppId, message: MessageId, payload: &[u8]) -> Result<Option<bool>>;

    fn lane_targets(&self, endpoints: &[EndpointId]) -> Result<Vec<LaneTarget>>;

    fn orphans(&self, query: OrphansQuery) -> Result<OrphansPage>;

    fn future_deliveries(&self, after: LanePosition, limit: usize) -> Result<Vec<FutureDelivery>>;

    fn newest_moment(&self) -> Result<Option<Timestamp>>;

    fn application_attempts(
        &self,
        query: &ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>>;
}

impl<B: Backend> Accepts for B {
    fn accept(&self, batch: Vec<Accept>, done: Done<Vec<Accepted>>) {
        self.write(Op::Accept(batch), Reply::Accept(done));
    }
}

impl<B: Backend> Records for B {
    fn record(&self, batch: Vec<Record>, done: Done<Vec<Recorded>>) {
        self.write(Op::Record(batch), Reply::Record(done));
    }

    fn record_manual(&self, resent: ManualRecord, done: Done<()>) {
        self.write(Op::RecordManual(Box::new(resent)), Reply::RecordManual(done));
    }

    fn attempt_of_key(&self, app: AppId, digest: RequestDigest) -> Read<Option<AttemptId>> {
        self.read(move |reading| attempt::of_key(reading, app, &digest))
    }
}

impl<B: Backend> Lanes for B {
    fn due(&self, query: DueQuery) -> Read<Vec<PendingDelivery>> {
        self.read(move |reading| reading.due(query))
    }

    fn lanes(&self, query: LanesQuery) -> Read<LanesPage> {
        self.background_read(move |reading| reading.lanes(query))
    }

    fn started_before(&self, query: StartedQuery) -> Read<StartedPage> {
        self.read(move |reading| reading.started_before(query))
    }

    fn have_started_before(&self, endpoints: Vec<(EndpointId, Timestamp)>) -> Read<Vec<EndpointId>> {
        self.read(move |reading| reading.have_started_before(&endpoints))
    }

    fn contents(&self, messages: Vec<(AppId, MessageId)>) -> Read<Vec<Option<Content>>> {
        self.read(move |reading| reading.contents(&messages))
    }

    fn has_payload(&self, app: AppId, message: MessageId, payload: Bytes) -> Read<Option<bool>> {
        self.read(move |reading| reading.has_payload(app, message, &payload))
    }

    fn lane_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Endpoint>> {
        self.read(move |reading| {
            let targets = reading.lane_targets(&endpoints)?;
            Ok(targets.into_iter().map(|target| target.endpoint).collect())
        })
    }

    fn lane_targets(&self, endpoints: Vec<EndpointId>) -> Read<Vec<LaneTarget>> {
        self.read(move |reading| reading.lane_targets(&endpoints))
    }

    fn deleted_applications(&self, after: Option<AppId>, limit: usize) -> Read<Vec<AppId>> {
        self.background_read(move |reading| retention::deleted_applications(reading, after, limit))
    }

    fn orphans(&self, query: OrphansQuery) -> Read<OrphansPage> {
        self.background_read(move |reading| reading.orphans(query))
    }

    fn gates(&self) -> Read<Vec<GateRecord>> {
        self.read(|reading| gate::all(reading))
    }

    fn future_deliveries(&self, after: LanePosition, limit: usize) -> Read<Vec<FutureDelivery>> {
        self.read(move |reading| reading.future_deliveries(after, limit))
    }

    fn next_sequencing_at(&self) -> Read<Option<Timestamp>> {
        self.background_read(|reading| delivery::next_sequencing_at(reading))
    }

    fn newest_moment(&self) -> Read<Option<Timestamp>> {
        self.read(|reading| reading.newest_moment())
    }
}

impl<B: Backend> Directory for B {
    fn change(&self, change: Change, audit: Option<Arc<AuditEntry>>, done: Done<Changed>) {
        self.write(Op::Change(Box::new(change), audit), Reply::Change(done));
    }

    fn tenant(&self, which: ApplicationRef) -> Read<Option<Tenant>> {
        self.read(move |reading| application::tenant(reading, &which))
    }

    fn application(&self, which: ApplicationRef) -> Read<Option<Application>> {
        self.read(move |reading| application::find(reading, &which))
    }

    fn application_version(&self, app: AppId) -> Read<Option<u64>> {
        self.read(move |reading| application::version(reading, app))
    }

    fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Read<Vec<Application>> {
        self.read(move |reading| application::list(reading, org, page, order))
    }

    fn endpoint(&self, app: AppId, key: ResourceKey) -> Read<Option<Endpoint>> {
        self.read(move |reading| endpoint::find(reading, app, &key))
    }

    fn endpoints(&self, app: AppId, page: Page<EndpointId>, order: Order) -> Read<Vec<Endpoint>> {
        self.read(move |reading| endpoint::list(reading, app, page, order))
    }

    fn health_changes(
        &self,
        endpoint: EndpointId,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Read<Vec<HealthChange>> {
        self.read(move |reading| health::changes(reading, endpoint, page, order))
    }

    fn has_endpoints_at(&self, org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Read<Vec<bool>> {
        self.read(move |reading| endpoint::has_endpoints_at(reading, org, app, &starts))
    }

    fn are_of(&self, org: OrgId, apps: Vec<AppId>) -> Read<Vec<bool>> {
        self.read(move |reading| application::are_of(reading, org, &apps))
    }

    fn policies(&self) -> Read<Vec<OwnPolicy>> {
        self.read(|reading| policy::all(reading))
    }

    fn profiles(&self) -> Read<Vec<OwnProfile>> {
        self.read(|reading| profile::all(reading))
    }

    fn notice_organizations(&self, after: Option<OrgId>, limit: usize) -> Read<Vec<OrgId>> {
        self.background_read(move |reading| notice::organizations(reading, after, limit))
    }

    fn notices(&self, org: OrgId, limit: usize) -> Read<Vec<(NoticeNumber, Notice)>> {
        self.background_read(move |reading| notice::oldest(reading, org, limit))
    }

    fn event_types(&self) -> Read<Vec<EventType>> {
        self.read(|reading| event_type::all(reading))
    }

    fn setting(&self, name: &'static str) -> Read<Option<Vec<u8>>> {
        self.read(move |reading| setting::read(reading, name))
    }

    fn settle_setting(&self, name: &'static str, value: Vec<u8>, done: Done<Vec<u8>>) {
        self.write(Op::SettleSetting(name, value), Reply::SettleSetting(done));
    }
}

impl<B: Backend> Credentials for B {
    fn api_keys(&self) -> Read<Vec<ApiKey>> {
        self.read(|reading| api_key::all(reading))
    }

    fn revoked_tokens(&self) -> Read<Vec<RevokedToken>> {
        self.read(|reading| token::revoked(reading))
    }

    fn portal_expiries(&self) -> Read<Vec<PortalExpiry>> {
        self.read(|reading| token::cuts(reading))
    }
}

impl<B: Backend> Audits for B {
    fn audit(&self, query: AuditQuery) -> Read<AuditPage> {
        self.walk(move |reading, slice| audit::list(reading, slice, &query))
    }
}

impl<B: Backend> History for B {
    fn message(&self, app: AppId, key: ResourceKey) -> Read<Option<Message>> {
        self.read(move |reading| message::find(reading, app, &key))
    }

    fn messages(&self, query: MessagesQuery) -> Read<ListPage<Message, MessageId>> {
        self.walk(move |reading, slice| message::list(reading, slice, &query))
    }

    fn bare_messages(&self, app: AppId, messages: Vec<MessageId>) -> Read<Vec<Message>> {
        self.read(move |reading| message::all_bare(reading, app, &messages))
    }

    fn attempts(&self, query: AttemptsQuery) -> Read<ListPage<Attempt, AttemptId>> {
        self.walk(move |reading, slice| attempt::list(reading, slice, &query))
    }

    fn count_attempts(&self, query: AttemptsQuery) -> Read<BoundedCount> {
        self.walk(move |reading, slice| attempt::count(reading, slice, &query))
    }

    fn attempt(&self, message: MessageId, attempt: AttemptId) -> Read<Option<Attempt>> {
        self.read(move |reading| attempt::one(reading, message, attempt))
    }

    fn endpoint_messages(&self, query: EndpointMessagesQuery) -> Read<ListPage<EndpointMessage, MessageId>> {
        self.walk(move |reading, slice| message::of_endpoint(reading, slice, &query))
    }

    fn deliveries(&self, message: MessageId) -> Read<Vec<DeliveryStatus>> {
        self.read(move |reading| delivery::of_message(reading, message))
    }

    fn waiting(&self) -> Read<u64> {
        self.read(|reading| delivery::total_waiting(reading))
    }
}

impl<B: Backend> Deliveries for B {
    fn delivery_views(&self, app: AppId, deliveries: Vec<Seq>) -> Read<Vec<DeliveryView>> {
        self.read(move |reading| delivery::views(reading, app, &deliveries))
    }

    fn delivery_list(&self, query: DeliveriesQuery) -> Read<DeliveriesPage> {
        self.read(move |reading| delivery_list::list(reading, &query))
    }

    fn discard(&self, app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>>, done: Done<usize>) {
        self.write(Op::Discard(app, deliveries, audit), Reply::Discard(done));
    }
}

impl<B: Backend> Dispatches for B {
    fn dispatches(&self, query: DispatchesQuery) -> Read<ListPage<Dispatch, MessageId>> {
        self.read(move |reading| dispatch::list(reading, &query))
    }

    fn dispatch(&self, app: AppId, message: MessageId) -> Read<Option<Dispatch>> {
        self.read(move |reading| dispatch::one(reading, app, message))
    }
}

impl<B: Backend> Sources for B {
    fn source(&self, org: OrgId, key: ResourceKey) -> Read<Option<Source>> {
        self.read(move |reading| source::find(reading, org, &key))
    }

    fn source_of_token(&self, digest: [u8; 32]) -> Read<Option<Source>> {
        self.read(move |reading| source::of_token(reading, &digest))
    }

    fn source_of_application(&self, app: AppId) -> Read<Option<SourceId>> {
        self.read(move |reading| source::of_application(reading, app))
    }

    fn sources(&self, org: OrgId, page: Page<SourceId>, order: Order) -> Read<Vec<Source>> {
        self.read(move |reading| source::list(reading, org, page, order))
    }

    fn source_events(&self, query: SourceEventsQuery) -> Read<ListPage<SourceEvent, MessageId>> {
        self.walk(move |reading, slice| message::of_source(reading, slice, &query))
    }

    fn reopen_event(&self, reopen: ReopenEvent, done: Done<Vec<(EndpointId, PendingDelivery)>>) {
        self.write(Op::Reopen(reopen), Reply::Reopen(done));
    }

    fn source_event(&self, app: AppId, key: ResourceKey) -> Read<Option<SourceEvent>> {
        self.read(move |reading| source::event(reading, app, &key))
    }
}

impl<B: Backend> Replays for B {
    fn step_replay(&self, step: ReplayStep, done: Done<ReplayStepped>) {
        self.write(Op::StepReplay(step), Reply::StepReplay(done));
    }

    fn replay(&self, org: OrgId, id: ReplayId) -> Read<Option<Replay>> {
        self.read(move |reading| replay::find(reading, org, id))
    }

    fn replays(&self, query: ReplaysQuery) -> Read<Vec<Replay>> {
        self.read(move |reading| replay::list(reading, query))
    }

    fn running_replays(&self) -> Read<Vec<Replay>> {
        self.read(|reading| replay::running(reading))
    }

    fn count_replay(&self, replay: Replay, after: Option<MessageId>, look: usize) -> Read<ReplayCount> {
        let (clock, time) = (self.clock().clone(), self.count_time());
        self.read(move |reading| {
            replay::count_matches(reading, &Slice::begin(&clock, time), &replay, after, look)
        })
    }
}

impl<B: Backend> Statistics for B {
    fn endpoint_attempts(
        &self,
        endpoint: EndpointId,
        since: Timestamp,
        until: Timestamp,
    ) -> Read<AttemptCounts> {
        self.read(move |reading| statistics::endpoint_attempts(reading, endpoint, since, until))
    }

    fn application_attempts(
        &self,
        query: ApplicationAttemptsQuery,
    ) -> Read<Option<BTreeMap<String, AttemptCounts>>> {
        self.read(move |reading| reading.application_attempts(&query))
    }

    fn summed_through(&self) -> Read<Hour> {
        self.background_read(|reading| statistics::hours_summed(reading))
    }

    fn unsummed(&self, endpoints: Vec<EndpointId>, through: Hour) -> Read<Vec<EndpointId>> {
        self.background_read(move |reading| statistics::unsummed(reading, &endpoints, through))
    }

    fn sum_up(&self, step: SumUp, done: Done<usize>) {
        self.write(Op::SumUp(step), Reply::SumUp(done));
    }
}

impl<B: Backend> Retention for B {
    fn kept_endpoints(&self, after: Option<(AppId, EndpointId)>, limit: usize) -> Read<Vec<KeptEndpoint>> {
        self.background_read(move |reading| retention::kept_endpoints(reading, after, limit))
    }

    fn newest_delivered(
        &self,
        endpoints: Vec<EndpointId>,
        after: Option<Settled>,
        limit: usize,
    ) -> Read<Vec<Settled>> {
        self.background_read(move |reading| retention::newest_delivered(reading, &endpoints, after, limit))
    }

    fn cut_off(&self, cuts: Vec<Cut>, limit: usize) -> Read<Vec<Stale>> {
        self.background_read(move |reading| retention::cut_off(reading, &cuts, limit))
    }

    fn old_counters(&self, endpoints: Vec<EndpointId>, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.background_read(move |reading| statistics::old_counters(reading, &endpoints, before, limit))
    }

    fn old_application_counters(
        &self,
        apps: Vec<AppId>,
        before: Timestamp,
        limit: usize,
    ) -> Read<Vec<Stale>> {
        self.background_read(move |reading| {
            statistics::old_application_counters(reading, &apps, before, limit)
        })
    }

    fn unused_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Stale>> {
        self.background_read(move |reading| retention::unused_endpoints(reading, &endpoints))
    }

    fn unused_applications(&self, after: Option<AppId>, limit: usize) -> Read<Walked<AppId>> {
        self.background_read(move |reading| retention::unused_applications(reading, after, limit))
    }

    fn lonely_messages(
        &self,
        after: Option<MessagesCursor>,
        created: (Timestamp, Timestamp),
        limit: usize,
    ) -> Read<Walked<MessagesCursor>> {
        self.background_read(move |reading| retention::lonely_messages(reading, after, created, limit))
    }

    fn old_payloads(
        &self,
        after: Option<PayloadsCursor>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<PayloadsCursor>> {
        self.background_read(move |reading| retention::old_payloads(reading, after, now, limit))
    }

    fn expired_keys(
        &self,
        after: Option<StoredKey>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<StoredKey>> {
        self.background_read(move |reading| keys::expired(reading, after.as_ref(), now, limit))
    }

    fn old_gates(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.background_read(move |reading| gate::old(reading, before, limit))
    }

    fn ended_replays(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.background_read(move |reading| replay::ended(reading, before, limit))
    }

    fn old_audit(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.background_read(move |reading| audit::old(reading, before, limit))
    }

    fn needless_revocations(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.background_read(move |reading| token::needless(reading, before, limit))
    }

    fn remove(&self, removal: Removal, done: Done<Removed>) {
        self.write(Op::Remove(removal), Reply::Remove(done));
    }
}
