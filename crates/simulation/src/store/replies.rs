//! The order of replies: those of one application follow the order of its commits, others may come in any order.
//!
//! An operation is ordered with those of every application that it is about. One that names none (of an organization's
//! policies, of settings, of what is removed, of due times) is ordered with all.

use super::SimStore;
use super::disk::{Disk, endpoint};
use super::faults::Stage;
use crate::process::pause;
use crate::sabotage::Sabotage;
use aldaba_delivery::{AppId, Timestamp};
use aldaba_store::Changed;
use aldaba_store::operations::{Op, OpOutcome, Reply, Result};
use std::collections::BTreeSet;
use std::time::Duration;

/// The maximum delay of a reply after its commit.
pub(crate) const MAX_REPLY_DELAY: Duration = Duration::from_millis(25);

/// The applications that an operation is about.
#[derive(Debug)]
pub(super) enum Whose {
    Everybodys,
    Of(BTreeSet<AppId>),
}

/// The reply to an operation, not delivered yet.
#[derive(Debug)]
pub(super) struct PendingReply {
    pub(super) whose: Whose,
    pub(super) reply: Reply,
    pub(super) outcome: Result<OpOutcome>,
    /// When it was committed.
    pub(super) at: Timestamp,
    /// The earliest time of its delivery.
    pub(super) not_before: Timestamp,
}

impl Whose {
    pub(super) fn of(op: &Op, outcome: Option<&OpOutcome>, disk: &Disk) -> Self {
        Self::Of(match (op, outcome) {
            (Op::Accept(batch), _) => batch.iter().map(|accept| accept.app).collect(),
            (Op::FindAccepted(app, _), _) => BTreeSet::from([*app]),
            (Op::Record(batch), _) => batch.iter().map(|record| record.app).collect(),
            (Op::Reopen(reopen), _) => BTreeSet::from([reopen.app]),
            (Op::Discard(app, ..), _) => BTreeSet::from([*app]),
            // Nobody waits for it.
            (Op::CountDuplicate(..), _) => BTreeSet::new(),
            (Op::RecordManual(resent), _) => {
                let found = disk.look(|reading| endpoint(reading, resent.endpoint));
                found.iter().map(|endpoint| endpoint.app).collect()
            }
            (Op::StepReplay(_), Some(OpOutcome::StepReplay(stepped))) if stepped.replay.is_some() => {
                stepped.replay.iter().map(|replay| replay.app).collect()
            }
            (Op::StepErasure(_), Some(OpOutcome::StepErasure(stepped))) if stepped.erasure.is_some() => {
                stepped.erasure.iter().map(|erasure| erasure.app).collect()
            }
            (Op::Change(..), Some(OpOutcome::Change(Changed::Sequenced(placed)))) => {
                placed.iter().map(|placed| placed.app).collect()
            }
            (Op::Change(change, _), _) => match change.app() {
                Some(app) => BTreeSet::from([app]),
                None => return Self::Everybodys,
            },
            _ => return Self::Everybodys,
        })
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Of(one), Self::Of(other)) => !one.is_disjoint(other),
            _ => true,
        }
    }
}

impl SimStore {
    /// Tells everybody, some of them later; `false`: the process died on the way.
    pub(super) fn tell(&self, replies: Vec<PendingReply>, stage: Option<Stage>) -> bool {
        self.unheard.lock().extend(replies);
        if stage == Some(Stage::AmongDones) {
            let waiting = self.unheard.lock().len();
            let told = self.dice.lock().index(waiting.max(1));
            (0..told).map_while(|_| self.next_reply(Timestamp::MAX)).for_each(PendingReply::call);
            self.process.die();
            return false;
        }
        self.tell_what_is_due(self.process.now());
        if !self.unheard.lock().is_empty() {
            let store = self.clone();
            tokio::spawn(async move {
                pause(MAX_REPLY_DELAY).await;
                store.tell_what_is_due(store.process.now());
            });
        }
        true
    }

    pub(super) fn tell_what_is_due(&self, now: Timestamp) {
        while !self.process.is_dead()
            && let Some(reply) = self.next_reply(now)
        {
            reply.call();
        }
    }

    /// One of those that nothing earlier of the same application has to be heard before.
    fn next_reply(&self, now: Timestamp) -> Option<PendingReply> {
        let mut unheard = self.unheard.lock();
        let is_free = |place: &usize| {
            let (earlier, reply) = (&unheard[..*place], &unheard[*place]);
            let waits = earlier.iter().any(|other| other.whose.meets(&reply.whose));
            reply.not_before <= now && (!waits || self.sabotage(Sabotage::MixNews))
        };
        let free: Vec<usize> = (0..unheard.len()).filter(is_free).collect();
        let first = *free.first()?;
        let shuffles = self.faults.active.contains(self.process.now());
        let next = if shuffles { free[self.dice.lock().index(free.len())] } else { first };
        let reply = unheard.remove(next);
        let is_early = unheard[..next].iter().any(|earlier| earlier.at < reply.at);
        self.log.lock().overtakings += u64::from(is_early);
        Some(reply)
    }

    /// When somebody is to hear of a commit of this moment.
    pub(super) fn heard_at(&self, now: Timestamp) -> Timestamp {
        let mut dice = self.dice.lock();
        let lags = self.faults.active.contains(now) && dice.percent(20);
        if lags { now + dice.millis(1, MAX_REPLY_DELAY.as_millis() as u64) } else { now }
    }
}

impl PendingReply {
    fn call(self) {
        self.reply.call(self.outcome);
    }
}
