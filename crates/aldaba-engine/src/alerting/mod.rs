//! Judges the alert rules: for the whole server and for each organization, from what memory knows.
//!
//! A round takes measurements, asks [`AlertState::judge`], and writes what fires or is resolved in one commit with the notices and
//! mails about it. What fires is read back at the start, so that a restart neither forgets an alert nor tells of it twice. So is
//! what is beyond its threshold, but not for long enough yet. Alerts of single endpoints are not judged here: the store
//! writes them with the endpoint's health.

mod board;
mod measurements;
mod pending;
mod telling;
#[cfg(test)]
mod tests;

pub(crate) use board::AlertBoard;
pub use board::FiringCount;
pub(crate) use measurements::{EngineMeasurements, Measurements};

use crate::housekeeping::background::{self, StoreClosed, Task};
use crate::housekeeping::{OperationalListeners, management};
use crate::mailing::MailQueue;
use crate::{Clock, Entropy, Scope};
use aldaba_delivery::alert::{AlertLimits, AlertRule, AlertRules, AlertScope, AlertState, AlertTransition};
use aldaba_delivery::{AlertId, OrgId, Timestamp};
use aldaba_store::{Alert, Change, Changed, Done, Error, NewMail, Notice, Store};
use pending::StoredPending;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Alerts that one read or one commit is about.
const BATCH: usize = 100;
/// Alerts that could not be written yet. Beyond it, the oldest are in the log only.
const MAX_UNWRITTEN: usize = 10_000;
/// Organizations that are judged between two moments at which other tasks may run.
const ORGANIZATIONS_AT_ONCE: usize = 64;

/// The background task.
pub(crate) struct Alerting {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) listeners: OperationalListeners,
    pub(crate) mail_queue: MailQueue,
    pub(crate) measurements: Arc<dyn Measurements>,
    pub(crate) settings: watch::Receiver<AlertSettings>,
    /// Those of the settings at the last round.
    pub(crate) rules: Arc<AlertRules>,
    pub(crate) board: AlertBoard,
    pub(crate) memory: AlertMemory,
}

/// By what alerts are judged. An operator may change it while the engine runs.
#[derive(Clone, Debug)]
pub struct AlertSettings {
    pub rules: Arc<AlertRules>,
    /// How often.
    pub interval: Duration,
}

/// What the task remembers between two rounds.
#[derive(Debug, Default)]
pub(crate) struct AlertMemory {
    has_read: bool,
    /// Those that are pending or firing, by organization; the server's are the management organization's.
    states: HashMap<(OrgId, AlertRule), Remembered>,
    /// Those that are pending, as the store has them.
    stored_pending: StoredPending,
    /// Oldest first.
    unwritten: Vec<AlertWrite>,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    state: AlertState,
    /// Of the alert that fires.
    id: Option<AlertId>,
}

/// What is to be written of one alert.
#[derive(Clone, Debug)]
struct AlertWrite {
    fired: Option<Alert>,
    resolved: Option<(AlertId, Timestamp)>,
    notice: Option<Notice>,
    mail: Option<NewMail>,
}

/// Something that fires or is resolved.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    org: OrgId,
    rule: AlertRule,
    limits: AlertLimits,
    transition: AlertTransition,
    id: AlertId,
    at: Timestamp,
}

impl Verdict {
    fn scope(&self) -> AlertScope {
        if self.org == management() { AlertScope::Server } else { AlertScope::Organization }
    }
}

impl Task for Alerting {
    const NAME: &'static str = background::ALERTS;

    async fn run(&mut self) -> StoreClosed {
        loop {
            match self.run_once(self.clock.now()).await {
                Ok(()) => {}
                Err(Error::Closed) => return StoreClosed,
                // The next round tries again.
                Err(error) => tracing::warn!(%error, "alerts cannot be read or stored; trying again"),
            }
            let interval = self.settings.borrow().interval;
            tokio::time::sleep(interval).await;
        }
    }
}

impl Alerting {
    /// One round: judges every rule, and writes what has changed.
    pub(crate) async fn run_once(&mut self, now: Timestamp) -> Result<(), Error> {
        self.rules = self.settings.borrow().rules.clone();
        if !self.memory.has_read {
            self.settle_endpoints(now).await?;
            self.read().await?;
        }
        let mut verdicts = Vec::new();
        self.judge(Scope::Server, now, &mut verdicts);
        for (number, org) in self.organizations().into_iter().enumerate() {
            self.judge(Scope::Organization(org), now, &mut verdicts);
            if number % ORGANIZATIONS_AT_ONCE == ORGANIZATIONS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
        for verdict in &verdicts {
            telling::log(verdict);
            let write = self.write_of(verdict);
            self.memory.unwritten.push(write);
        }
        self.show();
        self.write().await?;
        self.write_pending(now).await
    }

    /// Resolves alerts of endpoints that the rules in force no longer have.
    async fn settle_endpoints(&self, now: Timestamp) -> Result<(), Error> {
        let mut after = None;
        loop {
            let endpoints = self.store.alerting_endpoints(after, BATCH).await?;
            let Some(last) = endpoints.last() else { return Ok(()) };
            after = Some(*last);
            self.change(Change::SettleEndpointAlerts { endpoints, at: now }).await?;
        }
    }

    async fn change(&self, change: Change) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result: Result<Changed, Error>| drop(answer.send(result)));
        self.store.change(change, None, done);
        answered.await.map_err(|_| Error::Closed)?.map(drop)
    }

    /// What fired, and what was pending, when the last process ended.
    async fn read(&mut self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let found = self.store.judged_alerts(after, BATCH).await?;
            after = found.last().map(|alert| alert.id);
            let is_last = found.len() < BATCH;
            for Alert { id, org, rule, fired_at, .. } in found {
                let state = AlertState::Firing { since: fired_at };
                self.memory.states.insert((org, rule), Remembered { state, id: Some(id) });
            }
            if is_last {
                self.read_pending().await?;
                self.memory.has_read = true;
                return Ok(());
            }
        }
    }

    /// Those with activity, and those of which something is pending or firing.
    fn organizations(&self) -> BTreeSet<OrgId> {
        let known = self.memory.states.keys().map(|(org, _)| *org);
        let mut all: BTreeSet<_> = self.measurements.organizations().into_iter().chain(known).collect();
        all.remove(&management());
        all
    }

    fn judge(&mut self, scope: Scope, now: Timestamp, verdicts: &mut Vec<Verdict>) {
        let (org, of) = match scope {
            Scope::Server => (management(), AlertScope::Server),
            Scope::Organization(org) => (org, AlertScope::Organization),
        };
        let rules: Vec<_> = self.rules.of(of).collect();
        let measured = self.measurements.measure(scope, &rules, now);
        for ((rule, limits), measured) in rules.into_iter().zip(measured) {
            let was = self.memory.states.get(&(org, rule)).copied();
            let state = was.map_or(AlertState::Inactive, |was| was.state);
            let (next, transition) = state.judge(rule, &limits, measured, now);
            let id = match transition {
                AlertTransition::Fires { .. } => Some(AlertId::new(now, self.entropy.bytes())),
                AlertTransition::None | AlertTransition::Resolves { .. } => was.and_then(|was| was.id),
            };
            match next {
                AlertState::Inactive => drop(self.memory.states.remove(&(org, rule))),
                state => drop(self.memory.states.insert((org, rule), Remembered { state, id })),
            }
            if let (Some(id), true) = (id, transition != AlertTransition::None) {
                verdicts.push(Verdict { org, rule, limits, transition, id, at: now });
            }
        }
        self.end_rules_not_in_force(org, of, now, verdicts);
    }

    /// A rule was turned off while it fired.
    fn end_rules_not_in_force(
        &mut self,
        org: OrgId,
        scope: AlertScope,
        now: Timestamp,
        verdicts: &mut Vec<Verdict>,
    ) {
        for rule in AlertRule::ALL {
            if rule.scopes().contains(&scope) && self.rules.limits(rule).is_some() {
                continue;
            }
            if let Some(Remembered { id: Some(id), .. }) = self.memory.states.remove(&(org, rule)) {
                let (limits, transition) = (rule.default_limits(), AlertTransition::Resolves { value: None });
                verdicts.push(Verdict { org, rule, limits, transition, id, at: now });
            }
        }
    }

    fn write_of(&self, verdict: &Verdict) -> AlertWrite {
        let is_heard = self.listeners.wants_alerts(verdict.org);
        // Organizations have no address of their own.
        let is_mailed = self.mail_queue.delay.is_some() && verdict.scope() == AlertScope::Server;
        let Verdict { org, rule, limits, transition, id, at } = *verdict;
        let fired = match transition {
            AlertTransition::Fires { value } => Some(Alert {
                id,
                org,
                app: None,
                endpoint: None,
                rule,
                value,
                threshold: limits.threshold,
                fired_at: at,
                resolved_at: None,
                acknowledged_at: None,
                acknowledged_by: None,
            }),
            AlertTransition::None | AlertTransition::Resolves { .. } => None,
        };
        AlertWrite {
            resolved: fired.is_none().then_some((id, at)),
            fired,
            notice: is_heard.then(|| telling::notice(verdict)),
            mail: is_mailed.then(|| telling::mail(verdict)),
        }
    }

    /// Writes what is not written yet, in order. What fails stays for the next round.
    async fn write(&mut self) -> Result<(), Error> {
        while !self.memory.unwritten.is_empty() {
            let batch = self.memory.unwritten.len().min(BATCH);
            let (mut fired, mut resolved) = (Vec::new(), Vec::new());
            let (mut notices, mut mails) = (Vec::new(), Vec::new());
            for write in self.memory.unwritten[..batch].iter().cloned() {
                fired.extend(write.fired);
                resolved.extend(write.resolved);
                notices.extend(write.notice);
                mails.extend(write.mail);
            }
            let (has_notices, has_mails) = (!notices.is_empty(), !mails.is_empty());
            let written = self.change(Change::WriteAlerts { fired, resolved, notices, mails }).await;
            if written.is_err() {
                self.forget_surplus();
            }
            written?;
            self.memory.unwritten.drain(..batch);
            if has_notices {
                self.listeners.notices_pending.notify_one();
            }
            if has_mails {
                self.mail_queue.pending.notify_one();
            }
        }
        Ok(())
    }

    fn forget_surplus(&mut self) {
        let surplus = self.memory.unwritten.len().saturating_sub(MAX_UNWRITTEN);
        if surplus > 0 {
            self.memory.unwritten.drain(..surplus);
            tracing::warn!(surplus, "too many alerts could not be stored; these are in the log only");
        }
    }

    fn show(&self) {
        let firing = self.memory.states.iter().filter(|(_, remembered)| remembered.state.is_firing());
        self.board.put(firing.map(|((org, rule), _)| {
            (*rule, if *org == management() { AlertScope::Server } else { AlertScope::Organization })
        }));
    }
}
