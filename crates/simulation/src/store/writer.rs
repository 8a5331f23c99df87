//! The writer: takes everything that waits, commits it as one, then tells those who wait.

use super::SimStore;
use super::disk::Disk;
use super::faults::Stage;
use super::queue::{Op, Reply};
use crate::log::{
    AcceptCommit, Deletion, Hand, Hold, Log, Opening, OrderingCommit, PlaceCommit, RecordCommit, Refusal,
    RemovalCommit, SourceCommit, SourceDeed,
};
use crate::process::pause;
use crate::sabotage::Sabotage;
use aldaba_delivery::{Ending, Timestamp, Transition};
use aldaba_store::{
    Accept, Accepted, Change, Changed, Error, Record, Recorded, Removal, Removed, RemovedCounts, Seq, Stale,
    Trigger,
};
use std::time::Duration;

impl SimStore {
    pub(super) async fn write(self) {
        let mut commits = 0;
        while let Some(batch) = self.queue.take().await {
            commits += 1;
            let now = self.process.now();
            let time = self.faults.commit_time(now, &mut self.dice.lock());
            let stage = self.faults.crash_at(commits);
            if self.sabotage(Sabotage::AckBeforeCommit) {
                self.commit_late(batch, time, stage).await;
                continue;
            }
            pause(time).await;
            if stage == Some(Stage::BeforeCommit) {
                self.tear(&batch);
                return self.process.die();
            }
            if self.faults.is_full(self.process.now()) {
                self.refuse(batch);
                continue;
            }
            let replies = self.apply(batch, &mut self.disk.lock());
            if stage == Some(Stage::BeforeDone) {
                return self.process.die();
            }
            // What is committed can be read a moment before anybody has heard of it.
            let lag = if self.dice.lock().percent(20) { Duration::from_millis(1) } else { Duration::ZERO };
            pause(lag).await;
            if !self.answer(replies, stage) {
                return;
            }
        }
        self.closed.send_replace(true);
    }

    /// Tells everybody; `false`: the process died on the way.
    fn answer(&self, replies: Vec<Reply>, stage: Option<Stage>) -> bool {
        let told = match stage {
            Some(Stage::AmongDones) => self.dice.lock().index(replies.len()),
            _ => replies.len(),
        };
        let all = told == replies.len();
        replies.into_iter().take(told).for_each(Reply::call);
        if !all {
            self.process.die();
        }
        all
    }

    fn apply(&self, batch: Vec<Op>, disk: &mut Disk) -> Vec<Reply> {
        let at = self.process.now();
        let mut log = self.log.lock();
        log.note(at, || format!("commit of {}", batch.len()));
        let commit = |op| match op {
            Op::Record(records, done) => {
                let outcome = records.iter().map(|record| self.record(record, disk, &mut log, at)).collect();
                Reply::Record(done, outcome)
            }
            Op::Resent(resent, done) => {
                if disk.resent(&resent) {
                    disk.note_deed(resent.audit.as_deref(), 1);
                }
                log.note(at, || format!("resent {} {}", resent.message, resent.attempt.success));
                Reply::Resent(done)
            }
            Op::Accept(accepts, done) => {
                let outcome =
                    accepts.iter().map(|accept| self.accept_one(accept, disk, &mut log, at)).collect();
                Reply::Accept(done, outcome)
            }
            Op::Change(change, audit, done) => {
                let before = change.subject().and_then(|subject| disk.values_of(subject));
                let changed = self.change_one(&change, disk, &mut log, at);
                if let Some(entry) = audit.filter(|_| changed.is_change()) {
                    disk.note_deed(Some(&entry.with_values_of(&change, before.as_ref())), entry.count);
                }
                Reply::Change(done, changed)
            }
            Op::Reopen(reopen, done) => {
                let before = disk.sent_to(reopen.message);
                let opened = match self.sabotage(Sabotage::ForgetFailed) {
                    true => Vec::new(),
                    false => disk.reopen_event(&reopen),
                };
                let all_gone = !before.iter().any(|endpoint| disk.is_there(*endpoint));
                let new = opened.iter().filter(|(endpoint, _)| !before.contains(endpoint));
                log.passed_on.extend(new.map(|(endpoint, _)| ((reopen.message, *endpoint), all_gone)));
                log.note(at, || format!("a repeat of {} opens {opened:?}", reopen.message));
                let begins = log.step();
                log.rounds.extend(opened.iter().map(|(_, waiting)| (waiting.seq, begins)));
                Reply::Reopen(done, opened)
            }
            Op::StepReplay(step, done) => {
                let stepped = disk.step_replay(&step);
                log.note(at, || format!("replay {} opens {:?}", step.id, stepped.opened));
                let begins = log.step();
                log.rounds.extend(stepped.opened.iter().map(|waiting| (waiting.seq, begins)));
                Reply::StepReplay(done, Box::new(stepped))
            }
            Op::SettleSetting(name, value, done) => {
                Reply::SettleSetting(done, disk.settle_setting(name, &value))
            }
            Op::Discard(app, deliveries, audit, done) => {
                let discarded = disk.discard(app, &deliveries);
                if discarded > 0 {
                    disk.note_deed(audit.as_deref(), discarded as u32);
                }
                Reply::Discard(done, discarded)
            }
            Op::SumUp(step, done) => Reply::SumUp(done, disk.sum_up(&step)),
            Op::Remove(removal, done) => Reply::Remove(done, self.remove_slice(&removal, disk, &mut log, at)),
        };
        batch.into_iter().map(commit).collect()
    }

    fn record(&self, record: &Record, disk: &mut Disk, log: &mut Log, at: Timestamp) -> Recorded {
        if self.sabotage(Sabotage::LoseRecord) && self.dice.lock().percent(3) {
            return Recorded::Applied;
        }
        if self.sabotage(Sabotage::LoseByHand) && is_by_hand(record) {
            return Recorded::Applied;
        }
        let result = disk.record(record, self.faults.sabotage);
        log.note(at, || format!("record {:?} {:?} {result:?}", record.seq, record.transition));
        let step = log.step();
        let held = |gate: &aldaba_store::GateRecord| {
            let (until, failed_at) = (gate.gate.held_until?, gate.gate.failed_at?);
            Some(Hold { key: gate.key.clone(), until, failed_at })
        };
        log.records.push(RecordCommit {
            step,
            at,
            life: self.process.number,
            seq: record.seq,
            endpoint: record.endpoint,
            decided_at: record.at,
            attempt: record.attempt.clone(),
            transition: record.transition,
            health: record.health.clone(),
            gates: record.gates.iter().filter_map(held).collect(),
            result: result.clone(),
        });
        result
    }

    fn accept_one(&self, accept: &Accept, disk: &mut Disk, log: &mut Log, at: Timestamp) -> Accepted {
        let wanted = disk.subscribers(accept);
        let skipped = disk.skipping(&wanted);
        let accepted = disk.accept(accept, self.faults.sabotage);
        log.note(at, || format!("accept {} {accepted:?}", accept.message.id));
        if let Accepted::New { .. } = accepted {
            let (step, app, message) = (log.step(), accept.app, accept.message.id);
            log.accepts.push(AcceptCommit { step, at, app, message, wanted, skipped });
        }
        accepted
    }

    fn refuse(&self, batch: Vec<Op>) {
        let at = self.process.now();
        for op in batch {
            match op {
                Op::Record(records, done) => {
                    let step = {
                        let mut log = self.log.lock();
                        log.note(at, || {
                            format!("no room for {:?}", records.iter().map(|r| r.seq).collect::<Vec<_>>())
                        });
                        log.step()
                    };
                    let hidden = self.sabotage(Sabotage::HideRefusal);
                    done.call(if hidden {
                        Ok(records.iter().map(|_| Recorded::Applied).collect())
                    } else {
                        Err(Error::Full)
                    });
                    // Whoever cancels is told, and nothing follows from it; who sends by hand tries again.
                    let is_ended_by_hand = |record: &Record| match record.transition {
                        Transition::Settle(Ending::Dead(reason)) => reason.is_by_hand(),
                        Transition::Settle(Ending::Delivered)
                        | Transition::Retry { .. }
                        | Transition::Stop { .. } => false,
                    };
                    if records.iter().any(|record| !is_ended_by_hand(record) && !is_by_hand(record)) {
                        let life = self.process.number;
                        self.log.lock().refusals.push(Refusal { step, at, life });
                    }
                }
                other => other.refuse(Error::Full),
            }
        }
    }

    /// Sabotage: everybody hears before anything is on disk.
    async fn commit_late(&self, batch: Vec<Op>, time: Duration, stage: Option<Stage>) {
        let mut later = self.disk.lock().clone();
        let replies = self.apply(batch, &mut later);
        replies.into_iter().for_each(Reply::call);
        pause(time).await;
        if stage.is_some() {
            self.process.die();
            return std::future::pending().await;
        }
        *self.disk.lock() = later;
    }

    /// Sabotage: a crash leaves a part of every operation behind.
    fn tear(&self, batch: &[Op]) {
        if !self.sabotage(Sabotage::TearCommit) {
            return;
        }
        let (mut disk, mut log) = (self.disk.lock(), self.log.lock());
        for op in batch {
            match op {
                Op::Accept(accepts, _) => accepts.iter().for_each(|accept| {
                    let wanted = disk.subscribers(accept);
                    disk.accept(&Accept { deliveries: Vec::new(), ..accept.clone() }, None);
                    let (app, message, skipped) = (accept.app, accept.message.id, disk.skipping(&wanted));
                    let step = log.step();
                    log.accepts.push(AcceptCommit {
                        step,
                        at: self.process.now(),
                        app,
                        message,
                        wanted,
                        skipped,
                    });
                }),
                Op::Record(records, _) => records.iter().for_each(|record| disk.insert_attempt(record)),
                Op::Resent(..)
                | Op::Change(..)
                | Op::Reopen(..)
                | Op::StepReplay(..)
                | Op::SettleSetting(..)
                | Op::Discard(..)
                | Op::SumUp(..)
                | Op::Remove(..) => {}
            }
        }
    }

    /// Mostly all of it; sometimes the slice is over before.
    fn remove_slice(&self, removal: &Removal, disk: &mut Disk, log: &mut Log, at: Timestamp) -> Removed {
        let most = removal.items.len();
        let seen = match self.faults.sabotage {
            None if self.dice.lock().percent(20) => 1 + self.dice.lock().index(most.max(1)),
            _ => most,
        };
        let mut counts = RemovedCounts::default();
        for item in removal.items.iter().take(seen) {
            let before = match item {
                Stale::Delivery(place) => disk.rank(*place),
                _ => None,
            };
            let (deliveries, all) = (counts.deliveries, counts);
            match item {
                Stale::Payload(app, message) if self.sabotage(Sabotage::RemovePayloads) => {
                    disk.expunge_message(*app, *message);
                }
                _ => disk.remove(item, removal, &mut counts),
            }
            if counts != all {
                log.removed.push((at, item.clone()));
            }
            if let Some((delivery, newer)) = before.filter(|_| counts.deliveries > deliveries) {
                log.note(at, || format!("removed {:?}", delivery.seq));
                log.removals.push(RemovalCommit { at, decided_at: removal.now, delivery, newer });
            }
        }
        Removed { seen: seen.min(most), counts, took: Duration::ZERO }
    }

    pub(super) fn sabotage(&self, kind: Sabotage) -> bool {
        self.faults.sabotage == Some(kind)
    }

    fn change_one(&self, change: &Change, disk: &mut Disk, log: &mut Log, at: Timestamp) -> Changed {
        let concerned = match change {
            Change::UpdateEndpoint { endpoint, .. } => Some(endpoint.id),
            Change::ResumeEndpoint { endpoint, .. } => Some(*endpoint),
            _ => None,
        };
        let epoch = |disk: &Disk| Some(disk.endpoints.get(&concerned?)?.health.epoch);
        let before = epoch(disk);
        let last = disk.last_seq;
        let changed = match change {
            Change::TakePlaces { now, limit } => {
                disk.take_places(*now, *limit, self.sabotage(Sabotage::JumpQueue))
            }
            _ => disk.change(change),
        };
        if let Changed::Placed(placed) = &changed {
            log.note(at, || format!("places {placed:?}"));
            let step = log.step();
            let commits = (last..).zip(placed);
            let commits =
                commits.map(|(after, row)| (row.waiting.seq, PlaceCommit { step, after: Seq(after) }));
            log.places.extend(commits);
        }
        if let Some(row) = concerned.and_then(|id| disk.endpoints.get(&id)).filter(|_| epoch(disk) != before)
        {
            log.note(at, || format!("{} by hand: off {}, {:?}", row.id, row.config.disabled, row.health));
            let (step, life) = (log.step(), self.process.number);
            let (endpoint, off, health) = (row.id, row.config.disabled, row.health.clone());
            log.hands.push(Hand { step, at, life, endpoint, off, health });
        }
        if let (Change::ReleaseGates { gates }, Changed::Done { .. }) = (change, &changed) {
            let step = log.step();
            log.openings.push(Opening { step, at, gates: gates.clone() });
        }
        if let Changed::Done { removed } = &changed {
            log.note(at, || format!("change, removed {removed:?}"));
            if let Change::CreateEndpoint { endpoint, .. } | Change::UpdateEndpoint { endpoint, .. } = change
            {
                let (step, first) = (log.step(), matches!(change, Change::CreateEndpoint { .. }));
                let (endpoint, ordering) = (endpoint.id, endpoint.config.ordering);
                log.orderings.push(OrderingCommit { step, at, endpoint, ordering, first });
            }
            let mut removed = removed.clone();
            note_source(change, log, at);
            if let Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } = change {
                removed.extend(disk.endpoints.values().filter(|row| row.app == *app).map(|row| row.id));
            }
            log.deletions.extend(removed.into_iter().map(|endpoint| Deletion { at, endpoint }));
            if self.sabotage(Sabotage::HideDelete) {
                return Changed::Done { removed: Vec::new() };
            }
        }
        changed
    }
}

fn is_by_hand(record: &Record) -> bool {
    record.attempt.as_ref().is_some_and(|attempt| attempt.trigger == Trigger::Manual)
}

fn note_source(change: &Change, log: &mut Log, at: Timestamp) {
    let (source, app, deed) = match change {
        Change::CreateSource { source, .. } | Change::UpdateSource { source, .. } => {
            (source.id, source.app, SourceDeed::Is(source.config.name.clone()))
        }
        Change::RotateSourceToken { source, .. } => (source.id, source.app, SourceDeed::Rotated),
        Change::DeleteSource { source, app, .. } => (*source, *app, SourceDeed::Deleted),
        _ => return,
    };
    log.note(at, || format!("{source}: {deed:?}"));
    log.sources.push(SourceCommit { at, source, app, deed });
}
