//! The writer: takes everything that waits, commits it as one, then tells those who wait.

use super::SimStore;
use super::disk::Disk;
use super::faults::Stage;
use super::observer::LogObserver;
use super::replies::{PendingReply, Whose};
use crate::log::Refusal;
use crate::process::pause;
use crate::sabotage::Sabotage;
use aldaba_delivery::{Ending, Timestamp, Transition};
use aldaba_store::operations::{Class, Op, OpOutcome, Reply, Result};
use aldaba_store::{Error, Record, Recorded};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How soon counts are written again for which the disk had no room.
const COUNTS_AGAIN: Duration = Duration::from_millis(100);

impl SimStore {
    pub(super) async fn write_all(self) {
        let mut commits = 0;
        while let Some(batch) = self.next_batch().await {
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
                self.tear(batch);
                return self.process.die();
            }
            if self.faults.is_full(self.process.now()) {
                let refused = self.refuse(batch);
                self.tell(refused, None);
                continue;
            }
            let replies = self.commit(batch, &mut self.disk.lock());
            if stage == Some(Stage::BeforeDone) {
                return self.process.die();
            }
            // What is committed can be read a moment before anybody has heard of it.
            let lag = if self.dice.lock().percent(20) { Duration::from_millis(1) } else { Duration::ZERO };
            pause(lag).await;
            if !self.tell(replies, stage) {
                return;
            }
        }
        self.tell_what_is_due(Timestamp::MAX);
        if let Err(error) = self.disk.lock().database.close() {
            self.log.lock().failures.push(format!("the store was not closed well: {error}"));
        }
        self.closed.send_replace(true);
    }

    /// Everything that waits. Meanwhile counts are written that have waited for long enough.
    async fn next_batch(&self) -> Option<Vec<(Op, Reply)>> {
        loop {
            let due = self.disk.lock().database.counts_due_in();
            let Some(due) = due else { return self.queue.take().await };
            tokio::select! {
                biased;
                batch = self.queue.take() => return batch,
                () = tokio::time::sleep(due.max(COUNTS_AGAIN)) => {}
            }
            if self.process.is_dead() || self.faults.is_full(self.process.now()) {
                continue;
            }
            if let Err(error) = self.disk.lock().database.write_due_counts() {
                self.log.lock().failures.push(format!("counts were not written: {error}"));
            }
        }
    }

    /// One transaction of the real writer.
    fn commit(&self, batch: Vec<(Op, Reply)>, disk: &mut Disk) -> Vec<PendingReply> {
        let (mut ops, replies): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        self.pace.store(self.pace_of(&ops), Ordering::Relaxed);
        let planted = self.plant_in_batch(&mut ops, disk);
        let at = self.process.now();
        let mut log = self.log.lock();
        log.note(at, || format!("commit of {}", ops.len()));
        let mut observer = LogObserver::new(&mut log, at, self.process.number);
        let mut outcomes = disk.database.run_observed(&ops, &mut observer);
        for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            log.failures.push(format!("a write has failed: {error}"));
        }
        drop(log);
        self.pace.store(0, Ordering::Relaxed);
        planted.mend(&mut outcomes, disk);
        let pending = ops.iter().zip(replies).zip(outcomes).map(|((op, reply), outcome)| {
            let whose = Whose::of(op, outcome.as_ref().ok(), disk);
            PendingReply { whose, reply, outcome, at, not_before: self.heard_at(at) }
        });
        pending.collect()
    }

    /// Mostly bulk work is done at once; sometimes its slice is over before.
    fn pace_of(&self, ops: &[Op]) -> u64 {
        let has_bulk = ops.iter().any(|op| op.class() == Class::Bulk);
        if has_bulk { self.faults.pace(self.process.now(), &mut self.dice.lock()) } else { 0 }
    }

    fn refuse(&self, batch: Vec<(Op, Reply)>) -> Vec<PendingReply> {
        let at = self.process.now();
        let disk = self.disk.lock();
        let refuse = |(op, reply)| {
            let outcome = match &op {
                Op::Record(records) => self.refuse_records(records, at),
                _ => Err(Error::Full),
            };
            PendingReply { whose: Whose::of(&op, None, &disk), reply, outcome, at, not_before: at }
        };
        batch.into_iter().map(refuse).collect()
    }

    fn refuse_records(&self, records: &[Record], at: Timestamp) -> Result<OpOutcome> {
        let mut log = self.log.lock();
        log.note(at, || {
            format!("no room for {:?}", records.iter().map(|record| record.seq).collect::<Vec<_>>())
        });
        let (step, life) = (log.step(), self.process.number);
        // The caller that cancels gets the error; the caller of a manual attempt tries again.
        let is_ended_manually = |record: &Record| match record.transition {
            Transition::Settle(Ending::Dead(reason)) => reason.is_manual(),
            Transition::Settle(Ending::Delivered) | Transition::Retry { .. } | Transition::Stop { .. } => {
                false
            }
        };
        if records.iter().any(|record| !is_ended_manually(record) && !record.is_manual()) {
            log.refusals.push(Refusal { step, at, life });
        }
        match self.sabotage(Sabotage::HideRefusal) {
            true => Ok(OpOutcome::Record(vec![Recorded::Applied; records.len()])),
            false => Err(Error::Full),
        }
    }

    /// Sabotage: everybody hears before anything is on disk.
    async fn commit_late(&self, batch: Vec<(Op, Reply)>, time: Duration, stage: Option<Stage>) {
        let mut later = self.disk.lock().copy();
        later.restart(self.clock.clone());
        let replies = self.commit(batch, &mut later);
        self.tell(replies, None);
        pause(time).await;
        if stage.is_some() {
            self.process.die();
            return std::future::pending().await;
        }
        *self.disk.lock() = later;
    }

    /// Sabotage: a crash leaves a part of every operation behind, without deliveries and attempts.
    fn tear(&self, batch: Vec<(Op, Reply)>) {
        if self.sabotage(Sabotage::TearCommit) {
            let mut disk = self.disk.lock();
            let torn = |sql: &str| disk.database.tamper(sql).expect("SQL for a torn commit");
            for table in ["delivery", "attempt"] {
                torn(&format!(
                    "CREATE TEMP TRIGGER torn_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"
                ));
            }
            drop(self.commit(batch, &mut disk));
            disk.database
                .tamper("DROP TRIGGER torn_delivery; DROP TRIGGER torn_attempt")
                .expect("no longer torn");
        }
    }
}
