//! Ends deliveries that are past their stop date: behind a hold, an ordered head, a rate, a limit, or a server that was off.
//!
//! A *search* is about one endpoint. It reads expired deliveries in slices and passes each slice to the dispatcher, which
//! reserves the deliveries in their lane and submits their ends as records. Lanes in memory plan their searches themselves
//! (`scheduler/expiry.rs`). A walk over all endpoints finds what no lane knows of: deliveries that are due later than a stop date
//! that has become earlier. If such a stop date comes before the next walk, the walk plans a search right after it.

use crate::housekeeping::OperationalListeners;
use crate::housekeeping::background::{Background, StoreClosed, Task};
use crate::recording::{self, MailSubject, RecordResult, expired_mails};
use crate::scheduling::cancel::ended;
use crate::scheduling::dispatcher::{Dispatcher, Inbox, SchedulingCommand, SchedulingEvent};
use crate::scheduling::lane::SearchResult;
use crate::{Clock, ClockTrust, Policies};
use aldaba_delivery::{AppId, Delivery, EndpointId, OrgId, PendingAttempt, Reason, StopRule, Timestamp};
use aldaba_store::{
    Done, DueQuery, Endpoint, Error, KeptEndpoint, LanePosition, Notice, PendingDelivery, Record, Recorded,
    Seq, StartedCursor, StartedPage, StartedQuery, Store,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Deliveries that end in one commit.
const MAX_ENDED_PER_COMMIT: usize = 100;
/// The shortest pause between two slices. A slice that takes longer is followed by a pause of the same length.
const MIN_SLICE_PAUSE: Duration = Duration::from_millis(5);
/// Endpoints of one read of the walk.
const WALK_PAGE_SIZE: usize = 500;
/// How often the walk runs.
const WALK_INTERVAL: Duration = Duration::from_secs(600);
/// How long until a failed walk is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A search for expired deliveries of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpirySearch {
    pub(crate) endpoint: EndpointId,
    /// Nothing is sent before this moment: deliveries that expire until then end now.
    pub(crate) until: Timestamp,
}

/// Expired deliveries of one endpoint.
pub(crate) struct ExpiredDeliveries {
    search: ExpirySearch,
    /// As it was read.
    endpoint: Endpoint,
    rule: StopRule,
    /// Each with the notice for its organization.
    deliveries: Vec<(PendingDelivery, Option<Notice>)>,
}

#[derive(Clone)]
pub(crate) struct Expirer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trust: ClockTrust,
    pub(crate) policies: Policies,
    pub(crate) inbox: Inbox,
    pub(crate) listeners: OperationalListeners,
    pub(crate) background: Background,
    /// Notified when a policy was changed: stop dates may be earlier.
    pub(crate) policy_changed: Arc<Notify>,
}

impl Task for Expirer {
    const NAME: &'static str = "stop-dates";

    /// Walks all endpoints from time to time, and when a policy was changed.
    async fn run(&mut self) -> StoreClosed {
        loop {
            let pause = match self.walk().await {
                Ok(()) => WALK_INTERVAL,
                Err(Error::Closed) => return StoreClosed,
                Err(error) => {
                    tracing::warn!(%error, "cannot look for what is past its stop date; trying again");
                    RETRY_DELAY
                }
            };
            tokio::select! {
                biased;
                () = self.policy_changed.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

impl Expirer {
    /// Searches a lane in a task of its own.
    pub(crate) fn spawn(&self, search: ExpirySearch) {
        let expirer = self.clone();
        tokio::spawn(async move {
            let searched = expirer.background.supervised(Self::NAME, || expirer.search(search)).await;
            if let Err(error) = &searched
                && *error != Error::Closed
            {
                let endpoint = search.endpoint;
                tracing::warn!(%error, %endpoint, "cannot end what is past its stop date; trying again");
            }
            expirer.inbox.send(SchedulingEvent::SearchEnded(search.endpoint, searched.ok()));
        });
    }

    /// Ends the expired deliveries of an endpoint.
    async fn search(&self, search: ExpirySearch) -> Result<SearchResult, Error> {
        let found = self.store.lane_endpoints(vec![search.endpoint]).await?.pop();
        let Some(endpoint) = found.filter(|endpoint| !endpoint.deleted) else {
            return Ok(SearchResult { stop_after: None, held: false, ended: 0, oldest: None });
        };
        let rule = self.rule(&endpoint);
        let mut searched = SearchResult {
            stop_after: rule.policy.limit.stop_after,
            held: rule.holds(),
            ended: 0,
            oldest: None,
        };
        let Some(before) = rule.started_before(search.until) else {
            // After a hold the clocks start at its end. Held deliveries were not read.
            let oldest = Timestamp::MIN;
            searched.oldest = Some(if searched.held { oldest } else { rule.clock_start(oldest) });
            return Ok(searched);
        };
        let mut after = rule.release_owed_until().map(|due_at| {
            let turn = LanePosition { due_at, seq: Seq(i64::MAX) };
            StartedCursor::Untried(turn)
        });
        loop {
            let began = self.clock.monotonic();
            let page = self.page(&endpoint, before, after).await?;
            searched.oldest = searched.oldest.into_iter().chain(page.rest_since).min();
            let mut waiting = page.waiting;
            waiting.retain(|waiting| rule.ends(&pending_attempt(waiting), search.until));
            searched.ended += self.end(search, &endpoint, &rule, waiting).await?;
            after = page.next;
            if after.is_none() {
                searched.oldest = searched.oldest.map(|oldest| rule.clock_start(oldest));
                return Ok(searched);
            }
            tokio::time::sleep(MIN_SLICE_PAUSE.max(self.clock.monotonic().saturating_sub(began))).await;
        }
    }

    fn rule(&self, endpoint: &Endpoint) -> StopRule {
        endpoint.state().stop_rule(self.policies.of(endpoint.org, &endpoint.config.policy))
    }

    /// If a delivery that ends without success blocks the others, only the first can end.
    async fn page(
        &self,
        endpoint: &Endpoint,
        before: Timestamp,
        after: Option<StartedCursor>,
    ) -> Result<StartedPage, Error> {
        if !endpoint.config.ordering.blocks() {
            let query = StartedQuery { endpoint: endpoint.id, before, after, limit: MAX_ENDED_PER_COMMIT };
            return self.store.started_before(query).await;
        }
        let head = DueQuery { endpoint: endpoint.id, ordered: true, after: None, limit: 1 };
        let mut waiting = self.store.due(head).await?;
        let rest_since = waiting.first().map(|head| head.clock_start);
        // Another search may have ended the former head since the endpoint was read. Then the endpoint is blocked, and holds
        // the new head. The endpoint read after the head shows the block.
        let current = self.store.lane_endpoints(vec![endpoint.id]).await?.pop();
        if current.is_none_or(|current| current.health != endpoint.health) {
            waiting.clear();
        }
        Ok(StartedPage { waiting, next: None, rest_since })
    }

    /// Ends deliveries. Returns how many have ended.
    async fn end(
        &self,
        search: ExpirySearch,
        endpoint: &Endpoint,
        rule: &StopRule,
        waiting: Vec<PendingDelivery>,
    ) -> Result<usize, Error> {
        if waiting.is_empty() {
            return Ok(0);
        }
        let mut notices = self.notices(endpoint, &waiting).await?;
        let deliveries = waiting.into_iter().map(|pending| (pending, notices.remove(&pending.seq))).collect();
        let (endpoint, rule) = (endpoint.clone(), rule.clone());
        let expired = Box::new(ExpiredDeliveries { search, endpoint, rule, deliveries });
        let ended = self.inbox.ask(|answer| SchedulingCommand::EndExpired(expired, answer)).await;
        ended.unwrap_or(Err(Error::Closed))
    }

    /// The notices for the organization, if it wants them.
    async fn notices(
        &self,
        endpoint: &Endpoint,
        waiting: &[PendingDelivery],
    ) -> Result<HashMap<Seq, Notice>, Error> {
        if !self.listeners.wants(endpoint.org) {
            return Ok(HashMap::new());
        }
        let seqs = waiting.iter().map(|waiting| waiting.seq).collect();
        let views = self.store.delivery_views(endpoint.app, seqs).await?;
        let notice = |view: &aldaba_store::DeliveryView| {
            let whose: (OrgId, AppId, EndpointId) = (endpoint.org, endpoint.app, endpoint.id);
            recording::expired_notice(whose, view.status.message, view.last.as_ref())
        };
        Ok(views.iter().map(|view| (view.status.seq, notice(view))).collect())
    }

    async fn walk(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let began = self.clock.monotonic();
            let page = self.store.kept_endpoints(after, WALK_PAGE_SIZE).await?;
            let now = self.clock.now();
            let asked: Vec<_> = page
                .iter()
                .filter_map(|endpoint| self.started_before(endpoint, now + WALK_INTERVAL))
                .collect();
            if !asked.is_empty() && self.trust.may_end_by_time() {
                for endpoint in self.store.have_started_before(asked).await? {
                    let searched = self.search(ExpirySearch { endpoint, until: now }).await?;
                    self.inbox.send(SchedulingEvent::WalkSearched(endpoint, searched));
                }
            }
            if page.len() < WALK_PAGE_SIZE {
                return Ok(());
            }
            after = page.last().map(|endpoint| (endpoint.app, endpoint.id));
            tokio::time::sleep(MIN_SLICE_PAUSE.max(self.clock.monotonic().saturating_sub(began))).await;
        }
    }

    /// Deliveries whose clock started before the returned moment are past their stop date at `at`.
    fn started_before(&self, endpoint: &KeptEndpoint, at: Timestamp) -> Option<(EndpointId, Timestamp)> {
        let before = self.policies.of(endpoint.org, &endpoint.policy).limit.started_before(at)?;
        (!endpoint.deleted).then_some((endpoint.id, before))
    }
}

impl Dispatcher {
    /// Reserves deliveries in their lane and submits their ends. A delivery in flight is left alone: its attempt decides.
    pub(crate) fn end_expired(
        &mut self,
        expired: ExpiredDeliveries,
        answer: oneshot::Sender<Result<usize, Error>>,
        now: Timestamp,
    ) {
        let ExpiredDeliveries { search, endpoint: read, rule, deliveries } = expired;
        let (ExpirySearch { endpoint, until }, app, ordering) = (search, read.app, read.config.ordering);
        let subject = MailSubject::of_endpoint(&read);
        let blocks = ordering.blocks();
        if !self.scheduler.trust.may_end_by_time() || !self.scheduler.may_end_expired(endpoint) {
            return drop(answer.send(Ok(0)));
        }
        // The lane knows more than what was read.
        let (rule, until) = self.scheduler.stop_rule(endpoint, now).unwrap_or((rule, until));
        if blocks && self.scheduler.has_flights(endpoint) {
            return drop(answer.send(Ok(0)));
        }
        let mut records = Vec::new();
        for (pending, notice) in
            deliveries.into_iter().filter(|(pending, _)| rule.ends(&pending_attempt(pending), until))
        {
            let Some(pending) = self.scheduler.reserve(endpoint, app, pending, now) else { continue };
            let record = ended(app, endpoint, &pending, Reason::StopDate, now);
            // The health that an awake lane knows counts.
            let mut known = self.scheduler.health(endpoint).map(|(known, _)| known);
            let before = known.as_deref().unwrap_or(&rule.health);
            let health = before.after_ending(ordering, record.transition.ending(), now);
            let health_after = health.as_ref().unwrap_or(before);
            let mails = match (&subject, self.recorder.mail_queue.delay) {
                (Some(subject), Some(delay)) => {
                    let about = (&rule.policy, record.message);
                    expired_mails(subject, about, (before, health_after), (now, delay))
                }
                _ => Vec::new(),
            };
            if let (Some(known), Some(health)) = (&mut known, &health) {
                known.clone_from(health);
            }
            records.push(Record { notices: notice.into_iter().collect(), mails, health, ..record });
        }
        if records.is_empty() {
            return drop(answer.send(Ok(0)));
        }
        let (inbox, recorder, copies) = (self.inbox.clone(), self.recorder.clone(), records.clone());
        let done = Done::new(move |result: Result<Vec<Recorded>, Error>| {
            recorder.listeners.notices_pending.notify_one();
            recorder.mail_queue.pending.notify_one();
            match result {
                Ok(recorded) => {
                    let mut ends = Vec::with_capacity(recorded.len());
                    for (record, recorded) in copies.into_iter().zip(recorded) {
                        match recorded {
                            // Another search would find it again and again.
                            Recorded::Refused(_) => {
                                let written = RecordResult { record, next: None, result: Ok(recorded) };
                                inbox.send(SchedulingEvent::Recorded(Box::new(written)));
                            }
                            _ => ends.push((endpoint, record.seq, recorded == Recorded::Applied)),
                        }
                    }
                    let ended = ends.iter().filter(|(_, _, ended)| *ended).count();
                    if blocks {
                        // An idle lane may be reading its endpoint as it was before.
                        inbox.send(SchedulingEvent::EndpointChanged(endpoint));
                    }
                    inbox.send(SchedulingEvent::ReservationsEnded(ends));
                    let _ = answer.send(Ok(ended));
                }
                Err(error) => {
                    // As for every record: nothing is sent until it is on disk.
                    for record in copies {
                        let written = RecordResult { record, next: None, result: Err(error.clone()) };
                        inbox.send(SchedulingEvent::Recorded(Box::new(written)));
                    }
                    let _ = answer.send(Err(error));
                }
            }
        });
        self.store.record(records, done);
    }
}

pub(crate) fn pending_attempt(pending: &PendingDelivery) -> PendingAttempt {
    let PendingDelivery { due_at, attempts, clock_start, replayed, .. } = *pending;
    PendingAttempt { delivery: Delivery { attempts, clock_start }, due_at, replayed }
}
