//! What a database has to bring along. The whole contract follows from it: a write goes to the backend's writer as an [`Op`], a
//! read runs an operation on a snapshot.

use crate::operations::{
    Monotonic, Op, Reading, Reply, Result, Slice, api_key, application, attempt, audit, delivery,
    delivery_list, dispatch, endpoint, event_type, gate, health, message, notice, policy, profile, replay,
    retention, setting, source, statistics, token,
};
use crate::*;
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId, OrgId, ReplayId, SourceId, Timestamp};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a list is walked in one read, so that others have their turn. The next read goes on from there.
const WALK_TIME: Duration = Duration::from_millis(4);

/// A database with one writer and snapshots.
pub trait Backend: Send + Sync + 'static {
    /// Queues an operation for the writer, or refuses it at once.
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

/// Reads of the contract: of each how it is run, what it takes and answers, and the operation that finds the answer.
macro_rules! reads {
    ($($how:ident $name:ident($($taken:ident: $type:ty),*) -> $answer:ty = |$($scope:ident),+| $find:expr;)+) => {$(
        fn $name(&self, $($taken: $type),*) -> Read<$answer> {
            self.$how(move |$($scope),+| $find)
        }
    )+};
}

/// Writes of the contract: of each what it takes, what comes of it, and the operation that the writer is handed.
macro_rules! writes {
    ($($name:ident($($taken:ident: $type:ty),+) -> $outcome:ty = $op:ident($($operand:expr),+);)+) => {$(
        fn $name(&self, $($taken: $type,)+ done: Done<$outcome>) {
            self.write(Op::$op($($operand),+), Reply::$op(done));
        }
    )+};
}

impl<B: Backend> Accepts for B {
    writes! {
        accept(batch: Vec<Accept>) -> Vec<Accepted> = Accept(batch);
        find_accepted(app: AppId, digest: RequestDigest) -> Option<MessageId> = FindAccepted(app, digest);
    }
}

impl<B: Backend> Records for B {
    writes! {
        record(batch: Vec<Record>) -> Vec<Recorded> = Record(batch);
        record_manual(resent: ManualRecord) -> () = RecordManual(Box::new(resent));
    }

    reads! {
        read attempt_of_key(app: AppId, digest: RequestDigest) -> Option<AttemptId>
            = |reading| attempt::of_key(reading, app, &digest);
    }
}

impl<B: Backend> Lanes for B {
    reads! {
        read due(query: DueQuery) -> Vec<PendingDelivery> = |reading| reading.due(query);
        background_read lanes(query: LanesQuery) -> LanesPage = |reading| reading.lanes(query);
        read started_before(query: StartedQuery) -> StartedPage = |reading| reading.started_before(query);
        read have_started_before(endpoints: Vec<(EndpointId, Timestamp)>) -> Vec<EndpointId>
            = |reading| reading.have_started_before(&endpoints);
        read contents(messages: Vec<(AppId, MessageId)>) -> Vec<Option<Content>>
            = |reading| reading.contents(&messages);
        read has_payload(app: AppId, message: MessageId, payload: Bytes) -> Option<bool>
            = |reading| reading.has_payload(app, message, &payload);
        read lane_targets(endpoints: Vec<EndpointId>) -> Vec<LaneTarget>
            = |reading| reading.lane_targets(&endpoints);
        background_read kept_endpoints(after: Option<(AppId, EndpointId)>, limit: usize) -> Vec<KeptEndpoint>
            = |reading| retention::kept_endpoints(reading, after, limit);
        background_read deleted_applications(after: Option<AppId>, limit: usize) -> Vec<AppId>
            = |reading| retention::deleted_applications(reading, after, limit);
        background_read orphans(query: OrphansQuery) -> OrphansPage = |reading| reading.orphans(query);
        read gates() -> Vec<GateRecord> = |reading| gate::all(reading);
        read future_deliveries(after: LanePosition, limit: usize) -> Vec<FutureDelivery>
            = |reading| reading.future_deliveries(after, limit);
        background_read next_sequencing_at() -> Option<Timestamp>
            = |reading| delivery::next_sequencing_at(reading);
        read newest_moment() -> Option<Timestamp> = |reading| reading.newest_moment();
    }

    fn lane_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Endpoint>> {
        self.read(move |reading| {
            let targets = reading.lane_targets(&endpoints)?;
            Ok(targets.into_iter().map(|target| target.endpoint).collect())
        })
    }
}

impl<B: Backend> Directory for B {
    writes! {
        change(change: Change, audit: Option<Arc<AuditEntry>>) -> Changed = Change(Box::new(change), audit);
        settle_setting(name: &'static str, value: Vec<u8>) -> Vec<u8> = SettleSetting(name, value);
    }

    reads! {
        read tenant(which: ApplicationRef) -> Option<Tenant> = |reading| application::tenant(reading, &which);
        read application(which: ApplicationRef) -> Option<Application>
            = |reading| application::find(reading, &which);
        read application_version(app: AppId) -> Option<u64> = |reading| application::version(reading, app);
        read applications(org: OrgId, page: Page<AppId>, order: Order) -> Vec<Application>
            = |reading| application::list(reading, org, page, order);
        read endpoint(app: AppId, key: ResourceKey) -> Option<Endpoint>
            = |reading| endpoint::find(reading, app, &key);
        read endpoints(app: AppId, page: Page<EndpointId>, order: Order) -> Vec<Endpoint>
            = |reading| endpoint::list(reading, app, page, order);
        read health_changes(endpoint: EndpointId, page: Page<HealthChangeNumber>, order: Order) -> Vec<HealthChange>
            = |reading| health::changes(reading, endpoint, page, order);
        read has_endpoints_at(org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Vec<bool>
            = |reading| endpoint::has_endpoints_at(reading, org, app, &starts);
        read are_of(org: OrgId, apps: Vec<AppId>) -> Vec<bool>
            = |reading| application::are_of(reading, org, &apps);
        read policies() -> Vec<OwnPolicy> = |reading| policy::all(reading);
        read profiles() -> Vec<OwnProfile> = |reading| profile::all(reading);
        background_read notice_organizations(after: Option<OrgId>, limit: usize) -> Vec<OrgId>
            = |reading| notice::organizations(reading, after, limit);
        background_read notices(org: OrgId, limit: usize) -> Vec<(NoticeNumber, Notice)>
            = |reading| notice::oldest(reading, org, limit);
        read event_types() -> Vec<EventType> = |reading| event_type::all(reading);
        read setting(name: &'static str) -> Option<Vec<u8>> = |reading| setting::read(reading, name);
    }
}

impl<B: Backend> Credentials for B {
    reads! {
        read api_keys() -> Vec<ApiKey> = |reading| api_key::all(reading);
        read revoked_tokens() -> Vec<RevokedToken> = |reading| token::revoked(reading);
        read portal_expiries() -> Vec<PortalExpiry> = |reading| token::cuts(reading);
    }
}

impl<B: Backend> Audits for B {
    reads! {
        walk audit(query: AuditQuery) -> AuditPage = |reading, slice| audit::list(reading, slice, &query);
    }
}

impl<B: Backend> History for B {
    reads! {
        read message(app: AppId, key: ResourceKey) -> Option<Message>
            = |reading| message::find(reading, app, &key);
        walk messages(query: MessagesQuery) -> ListPage<Message, MessageId>
            = |reading, slice| message::list(reading, slice, &query);
        read bare_messages(app: AppId, messages: Vec<MessageId>) -> Vec<Message>
            = |reading| message::all_bare(reading, app, &messages);
        walk attempts(query: AttemptsQuery) -> ListPage<Attempt, AttemptId>
            = |reading, slice| attempt::list(reading, slice, &query);
        walk count_attempts(query: AttemptsQuery) -> BoundedCount
            = |reading, slice| attempt::count(reading, slice, &query);
        read attempt(message: MessageId, attempt: AttemptId) -> Option<Attempt>
            = |reading| attempt::one(reading, message, attempt);
        walk endpoint_messages(query: EndpointMessagesQuery) -> ListPage<EndpointMessage, MessageId>
            = |reading, slice| message::of_endpoint(reading, slice, &query);
        read deliveries(message: MessageId) -> Vec<DeliveryStatus>
            = |reading| delivery::of_message(reading, message);
        read waiting() -> u64 = |reading| delivery::total_waiting(reading);
    }
}

impl<B: Backend> Deliveries for B {
    writes! {
        discard(app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>>) -> usize
            = Discard(app, deliveries, audit);
    }

    reads! {
        read delivery_views(app: AppId, deliveries: Vec<Seq>) -> Vec<DeliveryView>
            = |reading| delivery::views(reading, app, &deliveries);
        read delivery_list(query: DeliveriesQuery) -> DeliveriesPage
            = |reading| delivery_list::list(reading, &query);
    }
}

impl<B: Backend> Dispatches for B {
    reads! {
        read dispatches(query: DispatchesQuery) -> ListPage<Dispatch, MessageId>
            = |reading| dispatch::list(reading, &query);
        read dispatch(app: AppId, message: MessageId) -> Option<Dispatch>
            = |reading| dispatch::one(reading, app, message);
    }
}

impl<B: Backend> Sources for B {
    writes! {
        reopen_event(reopen: ReopenEvent) -> Vec<(EndpointId, PendingDelivery)> = Reopen(reopen);
    }

    reads! {
        read source(org: OrgId, key: ResourceKey) -> Option<Source>
            = |reading| source::find(reading, org, &key);
        read source_of_token(digest: [u8; 32]) -> Option<Source>
            = |reading| source::of_token(reading, &digest);
        read source_of_application(app: AppId) -> Option<SourceId>
            = |reading| source::of_application(reading, app);
        read sources(org: OrgId, page: Page<SourceId>, order: Order) -> Vec<Source>
            = |reading| source::list(reading, org, page, order);
        walk source_events(query: SourceEventsQuery) -> ListPage<SourceEvent, MessageId>
            = |reading, slice| message::of_source(reading, slice, &query);
        read source_event(app: AppId, key: ResourceKey) -> Option<SourceEvent>
            = |reading| source::event(reading, app, &key);
    }
}

impl<B: Backend> Replays for B {
    writes! {
        step_replay(step: ReplayStep) -> ReplayStepped = StepReplay(step);
    }

    reads! {
        read replay(org: OrgId, id: ReplayId) -> Option<Replay> = |reading| replay::find(reading, org, id);
        read replays(query: ReplaysQuery) -> Vec<Replay> = |reading| replay::list(reading, query);
        read running_replays() -> Vec<Replay> = |reading| replay::running(reading);
    }

    fn count_replay(&self, replay: Replay, after: Option<MessageId>, look: usize) -> Read<ReplayCount> {
        let (clock, time) = (self.clock().clone(), self.count_time());
        self.read(move |reading| {
            replay::count_matches(reading, &Slice::begin(&clock, time), &replay, after, look)
        })
    }
}

impl<B: Backend> Statistics for B {
    writes! {
        sum_up(step: SumUp) -> usize = SumUp(step);
    }

    reads! {
        read endpoint_attempts(endpoint: EndpointId, since: Timestamp, until: Timestamp) -> AttemptCounts
            = |reading| statistics::endpoint_attempts(reading, endpoint, since, until);
        read application_attempts(query: ApplicationAttemptsQuery) -> Option<BTreeMap<String, AttemptCounts>>
            = |reading| reading.application_attempts(&query);
        background_read summed_through() -> Hour = |reading| statistics::hours_summed(reading);
        background_read unsummed(endpoints: Vec<EndpointId>, through: Hour) -> Vec<EndpointId>
            = |reading| statistics::unsummed(reading, &endpoints, through);
    }
}

impl<B: Backend> Retention for B {
    fn expire(
        &self,
        walk: RetentionWalk,
        rules: Arc<RetentionRules>,
        now: Timestamp,
        budget: RetentionBudget,
    ) -> Read<Expired> {
        let Some(removal) = walk.removal(&rules, now, budget) else {
            return self.background_read(move |reading| walk.search(reading, &rules, now, budget));
        };
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.write(Op::Remove(removal), Reply::Remove(done));
        Box::pin(async move { Ok(walk.after_removal(answered.await.map_err(|_| Error::Closed)??)) })
    }
}
