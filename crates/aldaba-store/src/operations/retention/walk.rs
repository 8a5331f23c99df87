//! A round of retention: which searches it makes, and in which order.

use super::newest_positions::Newest;
use super::search::{Cutoff, ExpiredItem, PayloadsCursor, Search, SettledPosition, StoredKey};
use super::{Removal, Removed, kept_endpoints, newest_delivered};
use crate::operations::{Reading, Result};
use crate::{Expired, GateRecord, KeptEndpoint, RemovedCounts, RetentionBudget, RetentionRules, Seq};
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use std::collections::VecDeque;
use std::mem::take;
use std::time::Duration;

/// Endpoints that one read names, and that one search is about.
const ENDPOINTS: usize = 500;
/// Keys that one round looks at; the next round goes on from there.
const MAX_KEYS_PER_ROUND: usize = 100_000;
/// The same for payloads whose time has come: those that something still waits for are passed over again and again.
const MAX_PAYLOADS_PER_ROUND: usize = 100_000;
/// Every so many rounds the walk over messages starts from the beginning, in case one was passed over.
const FULL_MESSAGE_WALK_ROUNDS: u32 = 60;

/// How far retention has come: the round under way, and what the next one goes on from.
#[derive(Clone, Debug, Default)]
pub struct RetentionWalk {
    /// What the round still has to do; `None`: it has not begun.
    tasks: Option<VecDeque<Task>>,
    /// Found, and still to be removed.
    found: VecDeque<ExpiredItem>,
    /// Something was removed since the last search.
    has_removed: bool,
    /// Of endpoints whose history is still to be searched.
    histories: Vec<History>,
    rounds: u32,
    /// Messages that were made before this moment were looked at.
    messages_before: Option<Timestamp>,
    payloads: Option<PayloadsCursor>,
    keys: Option<StoredKey>,
    surplus_gates: Vec<ExpiredItem>,
}

#[derive(Clone, Debug)]
enum Task {
    /// Reads endpoints, and finds out which applications are complete.
    Endpoints {
        after: Option<(AppId, EndpointId)>,
        application: Vec<KeptEndpoint>,
    },
    /// Ranks the newest deliveries of those endpoints of an application whose policy counts them.
    Rank {
        application: Vec<KeptEndpoint>,
        counted: Vec<EndpointId>,
        newest: Newest,
    },
    /// Searches the histories that are left.
    Histories,
    /// A search, and how often it may be continued.
    Search(Search, usize),
    /// The same search again, if what it found was removed.
    Repeat(Search),
    SurplusGates,
}

/// Where the history of an endpoint ends.
#[derive(Clone, Debug)]
struct History {
    app: AppId,
    /// It goes with the last of its history.
    leaves: bool,
    cutoff: Cutoff,
}

impl RetentionWalk {
    /// `surplus_gates`: those on disk that were not remembered at the start, being over the limits. One that has been held
    /// anew since then stays.
    pub fn new(surplus_gates: &[GateRecord]) -> Self {
        let as_found = |record: &GateRecord| {
            let until = record.gate.held_until?;
            Some(ExpiredItem::Gate(record.key.clone(), until + Duration::from_millis(1)))
        };
        Self { surplus_gates: surplus_gates.iter().filter_map(as_found).collect(), ..Self::default() }
    }

    /// Leaves the round that is under way: the next step begins one. What was found is removed first.
    pub fn begin_again(&mut self) {
        (self.tasks, self.histories) = (None, Vec::new());
    }

    /// Forgets how far earlier rounds have come.
    #[must_use]
    pub fn reset(self) -> Self {
        Self { surplus_gates: self.surplus_gates, ..Self::default() }
    }

    pub fn is_over(&self) -> bool {
        self.found.is_empty() && self.tasks.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// Whether the next step removes what was found.
    pub fn is_removing(&self) -> bool {
        !self.found.is_empty()
    }

    /// What the writer is to remove next.
    pub(crate) fn removal(
        &self,
        rules: &RetentionRules,
        now: Timestamp,
        budget: RetentionBudget,
    ) -> Option<Removal> {
        let items = || self.found.iter().take(budget.slice).cloned().collect();
        self.is_removing().then(|| Removal { items: items(), now, event_ids_kept: rules.event_ids })
    }

    pub(crate) fn after_removal(mut self, Removed { seen, counts, took }: Removed) -> Expired {
        self.has_removed |= counts != RemovedCounts::default();
        let gone = self.found.drain(..seen.min(self.found.len()));
        let credentials = gone.filter_map(ExpiredItem::credential).collect();
        Expired { walk: self, removed: counts, credentials, took: Some(took) }
    }

    /// Makes the next search.
    pub(crate) fn search(
        mut self,
        reading: &dyn Reading,
        rules: &RetentionRules,
        now: Timestamp,
        budget: RetentionBudget,
    ) -> Result<Expired> {
        if self.tasks.is_none() {
            self.tasks = Some(self.plan(rules, now, budget));
        }
        while let Some(task) = self.next_task(rules, now) {
            match task {
                Task::Histories => continue,
                Task::Repeat(_) if !self.has_removed => continue,
                Task::Endpoints { after, application } => {
                    self.read_endpoints(reading, rules, now, (after, application))?;
                }
                Task::Rank { application, counted, newest } => {
                    self.rank(reading, rules, now, (application, counted, newest))?;
                }
                Task::Search(search, continued) => self.run(reading, &search, continued, budget)?,
                Task::Repeat(search) => self.run(reading, &search, usize::MAX, budget)?,
                Task::SurplusGates => self.found.extend(take(&mut self.surplus_gates)),
            }
            break;
        }
        Ok(Expired { walk: self, removed: RemovedCounts::default(), credentials: Vec::new(), took: None })
    }

    fn plan(&mut self, rules: &RetentionRules, now: Timestamp, budget: RetentionBudget) -> VecDeque<Task> {
        if self.rounds.is_multiple_of(FULL_MESSAGE_WALK_ROUNDS) {
            self.messages_before = None;
        }
        self.rounds = self.rounds.wrapping_add(1);
        let surely_past = now.before(rules.clock_tolerance);
        let times = |most: usize| (most / budget.rows.max(1)).max(1);
        let messages = rules.defaults.delivered.map(|kept| {
            let created = (self.messages_before.unwrap_or(Timestamp::MIN), now.before(kept));
            Task::Search(Search::Messages { after: None, created }, usize::MAX)
        });
        let payloads = Search::Payloads { after: self.payloads, now };
        let keys = Search::Keys { after: self.keys.clone(), before: surely_past };
        let others = [
            Search::Replays(now.before(rules.replays)),
            Search::Applications { after: None },
            Search::Audit(now.before(rules.audit)),
            Search::Alerts(now.before(rules.alerts)),
            Search::Revocations(surely_past),
        ];
        [Task::Endpoints { after: None, application: Vec::new() }]
            .into_iter()
            .chain(messages)
            .chain([Task::Search(payloads, times(MAX_PAYLOADS_PER_ROUND))])
            .chain([Task::Search(keys, times(MAX_KEYS_PER_ROUND))])
            .chain(others.map(|search| Task::Search(search, usize::MAX)))
            .chain([Task::SurplusGates])
            .chain([Task::Search(Search::Gates(now.before(rules.gates)), usize::MAX)])
            .collect()
    }

    fn next_task(&mut self, rules: &RetentionRules, now: Timestamp) -> Option<Task> {
        let is_last = matches!(self.tasks.as_ref()?.front(), Some(Task::Histories));
        if self.histories.len() >= ENDPOINTS || (is_last && !self.histories.is_empty()) {
            self.plan_histories(now.before(rules.counters));
        }
        self.tasks.as_mut()?.pop_front()
    }

    /// These come before all other tasks.
    fn first(&mut self, tasks: impl IntoIterator<Item = Task, IntoIter: DoubleEndedIterator>) {
        let all = self.tasks.get_or_insert_default();
        tasks.into_iter().rev().for_each(|task| all.push_front(task));
    }

    /// Deliveries with their attempts and messages, counters, and endpoints that are gone.
    fn plan_histories(&mut self, counters_before: Timestamp) {
        let batch: Vec<History> = self.histories.drain(..ENDPOINTS.min(self.histories.len())).collect();
        let endpoint = |history: &History| history.cutoff.endpoint;
        let mut apps: Vec<AppId> = batch.iter().map(|history| history.app).collect();
        apps.dedup();
        let searches = [
            Search::Deliveries(batch.iter().map(|history| history.cutoff).collect()),
            Search::ApplicationCounters(apps, counters_before),
            Search::Counters(batch.iter().map(endpoint).collect(), counters_before),
            Search::Endpoints(batch.iter().filter(|history| history.leaves).map(endpoint).collect()),
        ];
        self.first(searches.map(|search| Task::Search(search, usize::MAX)));
    }

    fn read_endpoints(
        &mut self,
        reading: &dyn Reading,
        rules: &RetentionRules,
        now: Timestamp,
        (mut after, mut application): (Option<(AppId, EndpointId)>, Vec<KeptEndpoint>),
    ) -> Result<()> {
        let page = kept_endpoints(reading, after, ENDPOINTS)?;
        let (is_last, mut complete) = (page.len() < ENDPOINTS, Vec::new());
        for endpoint in page {
            after = Some((endpoint.app, endpoint.id));
            if application.first().is_some_and(|first| first.app != endpoint.app) {
                complete.push(take(&mut application));
            }
            application.push(endpoint);
        }
        self.first([if is_last {
            complete.push(application);
            Task::Histories
        } else {
            Task::Endpoints { after, application }
        }]);
        let mut ranks = Vec::new();
        for application in complete {
            let newest = |endpoint: &KeptEndpoint| rules.policies.of(endpoint.org, &endpoint.policy).newest;
            match application.iter().filter_map(newest).max() {
                Some(most) => {
                    let counted = application.iter().filter(|endpoint| newest(endpoint).is_some());
                    let counted = counted.map(|endpoint| endpoint.id).collect();
                    ranks.push(Task::Rank { application, counted, newest: Newest::of(most) });
                }
                None => self.cut(application, &Newest::of(0), rules, now),
            }
        }
        self.first(ranks);
        Ok(())
    }

    fn rank(
        &mut self,
        reading: &dyn Reading,
        rules: &RetentionRules,
        now: Timestamp,
        (application, mut counted, mut newest): (Vec<KeptEndpoint>, Vec<EndpointId>, Newest),
    ) -> Result<()> {
        let rest = counted.split_off(counted.len().min(newest.endpoints_at_once()));
        newest.add(newest_delivered(reading, &counted, newest.floor(), newest.most())?);
        if rest.is_empty() {
            self.cut(application, &newest, rules, now);
        } else {
            self.first([Task::Rank { application, counted: rest, newest }]);
        }
        Ok(())
    }

    /// Decides where the history of each endpoint of one application ends.
    fn cut(
        &mut self,
        application: Vec<KeptEndpoint>,
        newest: &Newest,
        rules: &RetentionRules,
        now: Timestamp,
    ) {
        self.histories.extend(application.into_iter().map(|endpoint| {
            let rule = rules.policies.of(endpoint.org, &endpoint.policy);
            let cutoffs = rule.cutoffs(&rules.defaults, endpoint.deleted, now);
            let before = |at| SettledPosition { at, seq: Seq(i64::MIN) };
            let oldest = rule.newest.and_then(|count| newest.oldest_of(count));
            let cutoff = Cutoff {
                endpoint: endpoint.id,
                delivered: cutoffs.delivered.map(before).max(oldest),
                dead: cutoffs.dead.map(before),
                discarded: cutoffs.discarded.map(before),
            };
            History { app: endpoint.app, leaves: endpoint.deleted || endpoint.direct, cutoff }
        }));
    }

    fn run(
        &mut self,
        reading: &dyn Reading,
        search: &Search,
        continued: usize,
        budget: RetentionBudget,
    ) -> Result<()> {
        let page = search.run(reading, budget)?;
        self.has_removed = false;
        self.found.extend(page.items);
        match (search, &page.next) {
            (Search::Messages { created, .. }, None) => self.messages_before = Some(created.1),
            (_, Some(Search::Payloads { after, .. })) => self.payloads = *after,
            (Search::Payloads { .. }, _) => self.payloads = None,
            (_, Some(Search::Keys { after, .. })) => self.keys.clone_from(after),
            (Search::Keys { .. }, _) => self.keys = None,
            _ => {}
        }
        // What is found again and does not go would be found without end.
        let next = page.next.filter(|_| continued > 1);
        self.first(next.map(|next| {
            if next == *search { Task::Repeat(next) } else { Task::Search(next, continued - 1) }
        }));
        Ok(())
    }
}

/// For tests of one step.
#[cfg(any(test, feature = "conformance"))]
impl RetentionWalk {
    pub fn searching(search: Search) -> Self {
        Self { tasks: Some(VecDeque::from([Task::Search(search, usize::MAX)])), ..Self::default() }
    }

    pub fn removing(items: Vec<ExpiredItem>) -> Self {
        Self { tasks: Some(VecDeque::new()), found: items.into(), ..Self::default() }
    }

    pub fn found(&self) -> Vec<ExpiredItem> {
        self.found.iter().cloned().collect()
    }

    /// How the search that was made last goes on.
    pub fn next(&self) -> Option<Search> {
        match self.tasks.as_ref()?.front()? {
            Task::Search(search, _) | Task::Repeat(search) => Some(search.clone()),
            _ => None,
        }
    }
}
