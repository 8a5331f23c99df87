//! The one task that owns the lanes. Everybody else tells it news through its inbox; it hands out
//! turns and has them carried out.

use crate::delivering::BudgetedContent;
use crate::delivering::Target;
use crate::delivering::{AttemptEnd, AttemptRequest, AttemptResult, Sender};
use crate::housekeeping::background::{self, Background};
use crate::recording::recorder::{self, RecordResult, Recorder};
use crate::replaying::Reservation;
use crate::scheduling::cancel::{Cancel, Cancelled};
use crate::scheduling::expiry::{Expired, Expirer};
use crate::scheduling::held_hosts::HeldHost;
use crate::scheduling::lane::{BufferedDelivery, SearchResult};
use crate::scheduling::scheduler::{Action, MayStart, Scheduler};
use crate::scheduling::sweep::Sweep;
use crate::scheduling::wait_reasons::{WaitQuestion, WaitReasons};
use crate::{Clock, Policies, Profiles, Vault};
use aldaba_delivery::{AppId, EndpointId, GateKey, OrgId, Reason, Timestamp};
use aldaba_store::{
    AuditEntry, DueQuery, Error, FoundLane, LaneTarget, PendingDelivery, Read, Record, Recorded, Seq,
    Sequenced, Store,
};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};

/// How long until something that the store could not do is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How many endpoints one read asks for.
const MAX_ENDPOINTS_PER_READ: usize = 100;

/// How much news is taken in before turns are given.
const MAX_INPUTS_PER_PASS: usize = 512;

/// A new delivery, on disk.
pub(crate) struct QueuedDelivery {
    pub(crate) endpoint: EndpointId,
    pub(crate) waiting: PendingDelivery,
    pub(crate) content: Option<Arc<BudgetedContent>>,
}

/// News for the lanes.
pub(crate) enum Event {
    Accepted(AppId, Vec<QueuedDelivery>),
    /// Deliveries of ordered endpoints are on disk that take their places later.
    SequencingNeeded,
    /// They have taken their places.
    Sequenced(Vec<Sequenced>),
    /// Endpoints of lanes have been read: those asked for, and those there are.
    EndpointsRead(Vec<EndpointId>, Vec<LaneTarget>),
    LaneRefilled(DueQuery, Vec<PendingDelivery>),
    AttemptEnded(Box<AttemptResult>),
    /// An attempt that had to wait for its payload asks whether it may still start.
    MayStart(Box<AttemptRequest>, oneshot::Sender<MayStart>),
    Recorded(Box<RecordResult>),
    /// A delivery is to be attempted by hand; with how it waits, if it does.
    Reserve(EndpointId, AppId, Option<PendingDelivery>, oneshot::Sender<Reservation>),
    /// What was claimed waits again, as it did.
    ReservationReturned(EndpointId, PendingDelivery),
    /// Endpoints of an application were deleted.
    EndpointsDeleted(AppId, Vec<EndpointId>),
    /// An application was deleted, with all its endpoints.
    ApplicationDeleted(AppId),
    /// An endpoint was changed: its lane must read it again before it sends.
    EndpointChanged(EndpointId),
    /// An endpoint was resumed: its lane must read it again, and send what was held.
    EndpointResumed(AppId, EndpointId),
    /// Gates were opened by a hand.
    GatesOpened(Vec<GateKey>),
    /// Which gates of an organization hold something back, and how much of it, or of one application.
    HeldHosts(OrgId, Option<AppId>, oneshot::Sender<Vec<HeldHost>>),
    /// Due times of lanes were corrected in the store.
    Rescheduled(Vec<(EndpointId, AppId)>),
    /// Answered when everything before it has been heard.
    Barrier(oneshot::Sender<()>),
    /// A policy of an organization was changed.
    PolicyChanged(OrgId, String),
    /// A wire profile of an organization was changed.
    ProfileChanged(OrgId, String),
    /// An application was changed.
    ApplicationChanged(AppId),
    /// Since when an endpoint's deliveries wait for its rate.
    ThrottledSince(EndpointId, oneshot::Sender<Option<Timestamp>>),
    /// A sweep has found lanes with work.
    LanesFound(Vec<FoundLane>),
    /// A sweep is over; `false`: it could not be finished.
    SweepEnded(bool),
    /// Hand in again what the store had no room for.
    RetryRecords,
    /// AttemptRequest nothing more.
    Halt,
    /// The same; say so when nothing is in flight any longer.
    Stop(oneshot::Sender<()>),
    /// AttemptEnd deliveries that wait, for this reason, and say what became of each.
    Cancel(Option<Arc<AuditEntry>>, Vec<Cancel>, Reason, oneshot::Sender<Result<Vec<Cancelled>, Error>>),
    /// What was to be ended is on disk as ended, or is not.
    ReservationsEnded(Vec<(EndpointId, Seq, bool)>),
    /// AttemptEnd deliveries that are past their stop date, and say how many have ended.
    EndExpired(Box<Expired>, oneshot::Sender<Result<usize, Error>>),
    /// A search for such deliveries of an endpoint is over; `None`: it could not be finished.
    SearchEnded(EndpointId, Option<SearchResult>),
    /// The walk over all endpoints has searched one of them.
    WalkSearched(EndpointId, SearchResult),
    /// What deliveries wait for.
    WaitReasons(Vec<WaitQuestion>, oneshot::Sender<Vec<WaitReasons>>),
    /// How many deliveries are in flight.
    InFlight(oneshot::Sender<usize>),
    /// Panics, as a bug would.
    #[cfg(test)]
    Panic,
    /// How many lanes there are, and deleted applications that are remembered for theirs.
    #[cfg(test)]
    Lanes(oneshot::Sender<(usize, usize)>),
}

/// The way to the dispatcher. What can pile up in it is bounded by what the store's writer and the
/// cap on requests in flight let through.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::UnboundedSender<Event>);

impl Inbox {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// After the dispatcher has stopped, news has nobody to go to: everything is on disk.
    pub(crate) fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }

    /// Asks, and waits for the answer; `None`: the dispatcher has stopped.
    pub(crate) async fn ask<T>(&self, event: impl FnOnce(oneshot::Sender<T>) -> Event) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.send(event(answer));
        answered.await.ok()
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbox")
    }
}

pub(crate) struct Dispatcher {
    pub(crate) scheduler: Scheduler,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) vault: Vault,
    pub(crate) policies: Policies,
    pub(crate) profiles: Profiles,
    pub(crate) sender: Sender,
    pub(crate) recorder: Recorder,
    pub(crate) expirer: Expirer,
    pub(crate) inbox: Inbox,
    pub(crate) background: Background,
    pub(crate) news: mpsc::UnboundedReceiver<Event>,
    pub(crate) sweep: Sweep,
    /// Records that the store had no room for.
    pub(crate) unwritten: Vec<(Record, Option<PendingDelivery>)>,
    /// Nothing more is started, for good.
    pub(crate) halting: bool,
    pub(crate) stopping: Option<oneshot::Sender<()>>,
    /// The longest sleep, so that a clock that was set is noticed.
    pub(crate) max_sleep: Duration,
    /// What the clock showed last.
    pub(crate) last_now: Timestamp,
    /// Told when due times may be too far ahead.
    pub(crate) clock_went_back: Arc<Notify>,
    /// Told when there may be more deliveries that take their places later.
    pub(crate) for_later: Arc<Notify>,
}

impl Dispatcher {
    pub(crate) async fn run(mut self) {
        loop {
            let now = self.clock.now();
            if now < std::mem::replace(&mut self.last_now, now) {
                self.scheduler.clock_went_back(now);
                self.sweep.start_over(now);
                self.clock_went_back.notify_one();
            }
            let next = self.run_once(now);
            if self.stopping.is_some() && self.scheduler.in_flight() == 0 {
                if let Some(stopped) = self.stopping.take() {
                    let _ = stopped.send(());
                }
                return;
            }
            let sleep = next.map_or(self.max_sleep, |at| at.since(now).min(self.max_sleep));
            let event = if sleep.is_zero() {
                // Let attempts and reads that were just started have their turn.
                tokio::task::yield_now().await;
                self.news.try_recv().ok()
            } else {
                tokio::select! {
                    biased;
                    event = self.news.recv() => event,
                    () = tokio::time::sleep(sleep) => None,
                }
            };
            let now = self.clock.now();
            let mut event = event;
            for _ in 0..MAX_INPUTS_PER_PASS {
                let Some(news) = event else { break };
                self.handle(news, now);
                event = self.news.try_recv().ok();
            }
            if let Some(news) = event {
                self.handle(news, now);
            }
        }
    }

    /// Does everything that can be done now; returns when there is more without further news.
    fn run_once(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.sweep.due(now) {
            let horizon = self.sweep.start(&self.store, &self.inbox, &self.background, now);
            self.scheduler.forget_idle(now, horizon);
        }
        let mut unread = Vec::new();
        for action in self.scheduler.run_once(now) {
            match action {
                Action::Read(endpoint) => unread.push(endpoint),
                Action::Refill(query) => self.refill(query),
                Action::Attempt(start) => self.sender.spawn(start),
                Action::End(start, reason) => self.end(&start, reason, now),
                Action::Search(search) => self.expirer.spawn(search),
            }
        }
        self.read_endpoints(&unread);
        if self.scheduler.has_ready() {
            return Some(now);
        }
        self.scheduler.next_alarm(now).into_iter().chain(self.sweep.next()).min()
    }

    fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Accepted(app, offers) => {
                for QueuedDelivery { endpoint, waiting, content } in offers {
                    self.scheduler.offer(endpoint, app, BufferedDelivery { waiting, content }, now);
                }
            }
            Event::SequencingNeeded => self.for_later.notify_one(),
            Event::Sequenced(placed) => {
                for Sequenced { endpoint, app, waiting } in placed {
                    self.scheduler.offer(endpoint, app, BufferedDelivery { waiting, content: None }, now);
                }
            }
            Event::EndpointsRead(asked, endpoints) => self.opened(&asked, &endpoints, now),
            Event::LaneRefilled(query, rows) => self.scheduler.refilled(query.endpoint, &rows, query.limit),
            Event::MayStart(start, answer) => drop(answer.send(self.scheduler.may_start(&start, now))),
            Event::AttemptEnded(ended) => self.ended(*ended, now),
            Event::Recorded(written) => self.recorded(*written, now),
            Event::Reserve(endpoint, app, read, answer) => {
                drop(answer.send(self.reserve(endpoint, app, read, now)));
            }
            Event::ReservationReturned(endpoint, waiting) => {
                self.scheduler.recorded(endpoint, waiting.seq, Some(waiting), now)
            }
            Event::EndpointsDeleted(app, endpoints) => {
                for endpoint in endpoints {
                    self.scheduler.removed(endpoint, app, now);
                }
            }
            Event::ApplicationDeleted(app) => self.scheduler.application_removed(app),
            Event::EndpointChanged(endpoint) => {
                // It may have become an ordered one, for which messages for later wait.
                self.for_later.notify_one();
                self.scheduler.altered(endpoint);
            }
            Event::EndpointResumed(app, endpoint) => self.scheduler.resumed(endpoint, app, now),
            Event::GatesOpened(gates) => self.scheduler.released(&gates, now),
            Event::HeldHosts(org, app, answer) => drop(answer.send(self.scheduler.gates.held(org, app))),
            Event::Rescheduled(lanes) => {
                self.for_later.notify_one();
                for (endpoint, app) in lanes {
                    self.scheduler.rescheduled(endpoint, app, now);
                }
            }
            Event::Barrier(answer) => drop(answer.send(())),
            Event::PolicyChanged(org, name) => {
                self.scheduler.policy_changed(org, &name);
                self.expirer.changed.notify_one();
            }
            Event::ProfileChanged(org, name) => self.scheduler.profile_changed(org, &name),
            Event::ApplicationChanged(app) => self.scheduler.application_changed(app),
            Event::ThrottledSince(endpoint, answer) => {
                let _ = answer.send(self.scheduler.throttled_since(endpoint, now));
            }
            Event::LanesFound(lanes) => {
                for FoundLane { endpoint, app, .. } in lanes {
                    self.scheduler.open(endpoint, app, now);
                }
            }
            Event::SweepEnded(finished) => self.sweep.ended(finished, now),
            Event::RetryRecords => self.write_again(),
            Event::Halt => self.halt(),
            Event::Stop(stopped) => {
                self.halt();
                self.stopping = Some(stopped);
            }
            Event::Cancel(audit, deliveries, reason, answer) => {
                self.cancel(audit.as_ref(), deliveries, reason, answer, now);
            }
            Event::ReservationsEnded(deliveries) => {
                for (endpoint, seq, ended) in deliveries {
                    self.scheduler.withdrawn(endpoint, seq, ended, now);
                }
            }
            Event::EndExpired(expired, answer) => self.expire(*expired, answer, now),
            Event::WalkSearched(endpoint, searched) => self.scheduler.search_after(endpoint, searched, now),
            Event::SearchEnded(endpoint, searched) => self.scheduler.searched(endpoint, searched, now),
            Event::WaitReasons(questions, answer) => {
                let wait_reasons = |question| self.scheduler.wait_reasons(question, now);
                drop(answer.send(questions.iter().map(wait_reasons).collect()));
            }
            Event::InFlight(answer) => drop(answer.send(self.scheduler.in_flight())),
            #[cfg(test)]
            Event::Panic => panic!("on purpose"),
            #[cfg(test)]
            Event::Lanes(answer) => drop(answer.send(self.scheduler.memory())),
        }
    }

    fn reserve(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        read: Option<PendingDelivery>,
        now: Timestamp,
    ) -> Reservation {
        let Some(read) = read.filter(|_| !self.scheduler.halted) else {
            return if self.scheduler.halted { Reservation::Paused } else { Reservation::Granted(None) };
        };
        match self.scheduler.withdraw(endpoint, app, read, now) {
            Some(waiting) => Reservation::Granted(Some(waiting)),
            None => Reservation::InFlight,
        }
    }

    fn halt(&mut self) {
        self.halting = true;
        self.scheduler.halted = true;
    }

    fn opened(&mut self, asked: &[EndpointId], read: &[LaneTarget], now: Timestamp) {
        for LaneTarget { endpoint, app_rate } in read {
            let (policies, profiles) = (&self.policies, &self.profiles);
            let target = Target::of_lane(endpoint, *app_rate, policies, profiles, &self.vault);
            self.scheduler.opened(endpoint.id, target, endpoint.health.clone(), now);
        }
        let there = |id: &EndpointId| read.iter().any(|read| read.endpoint.id == *id);
        for id in asked.iter().filter(|id| !there(id)) {
            tracing::error!(endpoint = %id, "deliveries wait for an endpoint that has no row");
            self.scheduler.vanished(*id, now);
        }
    }

    /// An attempt is over: decide, then have it written. Only what is on disk counts.
    fn ended(&mut self, ended: AttemptResult, now: Timestamp) {
        let (endpoint, seq) = (ended.start.endpoint, ended.start.waiting.seq);
        if let AttemptEnd::PutBack | AttemptEnd::Abandoned = ended.end {
            return self.not_sent(&ended, now);
        }
        let Some((health, gates)) = self.scheduler.health(endpoint) else {
            tracing::error!(%endpoint, "a bug: an attempt of a lane that is gone has ended");
            return self.not_sent(&ended, now);
        };
        let Some(plan) = self.recorder.plan(ended, health, gates, now) else {
            return;
        };
        self.scheduler.left_wire(endpoint, seq, plan.answered);
        for endpoint in plan.woken {
            self.scheduler.wake(endpoint);
        }
        self.recorder.submit(plan.record, plan.again);
    }

    /// Its turn is over without a request: the row waits as before.
    fn not_sent(&mut self, AttemptResult { start, end }: &AttemptResult, now: Timestamp) {
        let (endpoint, seq) = (start.endpoint, start.waiting.seq);
        for endpoint in self.scheduler.gates.abandoned(start, now) {
            self.scheduler.wake(endpoint);
        }
        self.scheduler.left_wire(endpoint, seq, None);
        let again = matches!(end, AttemptEnd::PutBack).then_some(start.waiting);
        self.scheduler.recorded(endpoint, seq, again, now);
    }

    fn end(&mut self, start: &AttemptRequest, reason: Reason, now: Timestamp) {
        let Some((health, _)) = self.scheduler.health(start.endpoint) else {
            tracing::error!(endpoint = %start.endpoint, "a bug: a delivery of a lane that is gone ends");
            return self.scheduler.recorded(start.endpoint, start.waiting.seq, None, now);
        };
        self.recorder.submit(recorder::unsent(start, reason, health, now), None);
    }

    fn recorded(&mut self, written: RecordResult, now: Timestamp) {
        let RecordResult { record, again, result } = written;
        match result {
            Ok(Recorded::Applied) => {
                self.writing_works();
                self.scheduler.recorded(record.endpoint, record.seq, again, now);
            }
            Ok(Recorded::Fenced) => {
                self.writing_works();
                tracing::warn!(endpoint = %record.endpoint, message_id = %record.message, "a late record was refused");
                if record.attempt.is_some() {
                    self.scheduler.recorded(record.endpoint, record.seq, None, now);
                } else {
                    // It may have been read a while ago, and wait on as it is now.
                    self.scheduler.withdrawn(record.endpoint, record.seq, false, now);
                }
            }
            Ok(Recorded::Refused(why)) | Err(Error::Refused(why)) => {
                self.writing_works();
                self.record_without_texts(record, again, &why);
            }
            Err(Error::Closed) => self.scheduler.recorded(record.endpoint, record.seq, None, now),
            Err(error) => {
                // If nothing can be written, nothing is sent.
                tracing::error!(%error, "cannot record attempts; sending stops until they are on disk");
                self.scheduler.halted = true;
                if self.unwritten.is_empty() {
                    let inbox = self.inbox.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(RETRY_DELAY).await;
                        inbox.send(Event::RetryRecords);
                    });
                }
                self.unwritten.push((record, again));
            }
        }
    }

    /// The store cannot hold what came back: the result is recorded without it. What is refused even then stays in flight until
    /// the next start, and the lane goes on with the others.
    fn record_without_texts(&mut self, mut record: Record, again: Option<PendingDelivery>, why: &str) {
        const NOT_STORED: &str = "What came back could not be stored";
        let (endpoint, message) = (record.endpoint, record.message);
        match &mut record.attempt {
            Some(attempt) if attempt.error != NOT_STORED => {
                tracing::warn!(%endpoint, message_id = %message, why, "the store refuses what came back");
                (attempt.error, attempt.response) = (NOT_STORED.into(), Bytes::new());
                record.gates.iter_mut().for_each(|gate| gate.why = NOT_STORED.into());
                self.recorder.submit(record, again);
            }
            _ => tracing::error!(%endpoint, message_id = %message, why, "the store refuses a result"),
        }
    }

    /// Sending goes on with the first of these that is on disk.
    fn write_again(&mut self) {
        for (mut record, again) in self.unwritten.drain(..) {
            self.scheduler.renew(&mut record);
            self.recorder.submit(record, again);
        }
    }

    /// A result is on disk, so that those of further attempts can be.
    fn writing_works(&mut self) {
        self.scheduler.halted = self.halting;
    }

    /// In slices, so that one read neither lasts long nor keeps others waiting.
    fn read_endpoints(&self, endpoints: &[EndpointId]) {
        for slice in endpoints.chunks(MAX_ENDPOINTS_PER_READ) {
            let (store, inbox, slice) = (self.store.clone(), self.inbox.clone(), slice.to_vec());
            let background = self.background.clone();
            tokio::spawn(async move {
                let read = || until_read(|| store.lane_targets(slice.clone()));
                if let Some(read) = background.supervised(background::LANE_READS, read).await {
                    inbox.send(Event::EndpointsRead(slice, read));
                }
            });
        }
    }

    fn refill(&self, query: DueQuery) {
        let (store, inbox, background) = (self.store.clone(), self.inbox.clone(), self.background.clone());
        tokio::spawn(async move {
            let read = || until_read(|| store.due(query));
            if let Some(rows) = background.supervised(background::LANE_READS, read).await {
                inbox.send(Event::LaneRefilled(query, rows));
            }
        });
    }
}

/// Repeats a read until it succeeds. `None`: the store has closed.
async fn until_read<T>(read: impl Fn() -> Read<T>) -> Option<T> {
    loop {
        match read().await {
            Ok(value) => return Some(value),
            Err(Error::Closed) => return None,
            Err(error) => {
                tracing::warn!(%error, "cannot read from the store; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
