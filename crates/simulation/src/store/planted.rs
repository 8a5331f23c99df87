//! Planted bugs of the store: in what it is asked and in what it answers. Those in its SQL, of reads too, are in
//! [`Sabotage::in_statements`].

use super::SimStore;
use super::disk::Disk;
use crate::sabotage::Sabotage;
use aldaba_delivery::Transition;
use aldaba_store::operations::{Op, OpOutcome, Result, everything};
use aldaba_store::{Accept, Accepted, Change, Changed, Record, Recorded};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// What is to be made of the answers of a batch.
#[derive(Default)]
pub(super) struct PlantedAnswers {
    hides_deletions: bool,
    /// Records that were left out of an operation: which one, and their places.
    lost: Vec<(usize, Vec<usize>)>,
    /// Operations that are answered as if nothing had to be opened.
    unopened: Vec<usize>,
    /// Due times that are written afterwards.
    due_times: Vec<(usize, Record)>,
}

impl SimStore {
    /// Plants a bug in an operation before its commit. With an outcome, the operation is answered without a commit.
    pub(super) fn plant_in_op(&self, op: &mut Op) -> Option<OpOutcome> {
        match op {
            Op::Change(change, _) if self.sabotage(Sabotage::CorrectLate) => {
                if let Change::Reschedule { deliveries } = &mut **change {
                    deliveries
                        .iter_mut()
                        .for_each(|row| row.due_at = row.due_at + Duration::from_secs(24 * 3600));
                }
                None
            }
            Op::Accept(accepts) if self.sabotage(Sabotage::LookThenStore) => {
                let disk = self.disk.lock();
                let named = |accept: &Accept| {
                    let id = accept.message.content.event_id.as_ref()?;
                    disk.look(|reading| everything::named(reading, accept.app, id))
                };
                let message = accepts.iter().find_map(named)?;
                Some(OpOutcome::Accept(vec![Accepted::EventIdTaken { message }]))
            }
            _ => None,
        }
    }

    /// Plants bugs in the operations of a batch.
    pub(super) fn plant_in_batch(&self, ops: &mut [Op], disk: &Disk) -> PlantedAnswers {
        let mut planted = PlantedAnswers::default();
        let Some(kind) = self.faults.sabotage else { return planted };
        planted.hides_deletions = kind == Sabotage::HideDelete;
        for (number, op) in ops.iter_mut().enumerate() {
            match op {
                Op::Accept(accepts) => {
                    accepts.iter_mut().for_each(|accept| self.plant_in_accept(kind, accept, disk));
                }
                Op::Record(records) => {
                    let mut lost = Vec::new();
                    for (place, record) in records.iter().enumerate() {
                        let loses = match kind {
                            Sabotage::LoseRecord => self.dice.lock().percent(3),
                            Sabotage::LoseManual => record.is_manual(),
                            _ => false,
                        };
                        lost.extend(loses.then_some(place));
                        if kind == Sabotage::RestoreDue && record.is_manual() {
                            planted.due_times.push((number, record.clone()));
                        }
                    }
                    lost.iter().rev().for_each(|place| drop(records.remove(*place)));
                    planted.lost.push((number, lost));
                }
                Op::Reopen(_) if kind == Sabotage::ForgetFailed => {
                    *op = Op::Accept(Vec::new());
                    planted.unopened.push(number);
                }
                _ => {}
            }
        }
        planted
    }

    fn plant_in_accept(&self, kind: Sabotage, accept: &mut Accept, disk: &Disk) {
        let created_at = accept.message.created_at;
        let of_source = accept.message.event_id_until.is_some();
        match kind {
            Sabotage::AcceptStale if accept.creates.is_none() => {
                let version = disk.look(|reading| everything::version(reading, accept.app));
                accept.version = version.unwrap_or(accept.version);
            }
            Sabotage::ExpireKeys => {
                let forget = format!("DELETE FROM unique_key WHERE expires_at <= {}", created_at.millis());
                disk.database.tamper(&forget).expect("SQL that forgets keys");
            }
            Sabotage::ForgetDelay => {
                accept.deliveries.iter_mut().for_each(|delivery| delivery.due_at = created_at);
            }
            Sabotage::TidyBody if of_source => {
                let content = Arc::make_mut(&mut accept.message.content);
                content.payload = Bytes::copy_from_slice(content.payload.trim_ascii());
            }
            Sabotage::MixHeaders if of_source => {
                let content = Arc::make_mut(&mut accept.message.content);
                let own = content.sealed_headers.clone();
                let before = self.last_headers.lock().insert(accept.app, own.clone());
                content.sealed_headers = before.unwrap_or(own);
            }
            _ => {}
        }
    }
}

impl PlantedAnswers {
    /// Makes the answers what they would be without the planted bug, as far as it hides itself.
    pub(super) fn mend(self, outcomes: &mut [Result<OpOutcome>], disk: &Disk) {
        for (number, places) in self.lost {
            if let Ok(OpOutcome::Record(results)) = &mut outcomes[number] {
                places.into_iter().for_each(|place| results.insert(place, Recorded::Applied));
            }
        }
        for number in self.unopened {
            outcomes[number] = Ok(OpOutcome::Reopen(Vec::new()));
        }
        for (_, record) in self.due_times {
            if let Transition::Retry { due_at } = record.transition {
                let (due_at, seq) = (due_at.millis(), record.seq.0);
                let restore =
                    format!("UPDATE delivery SET due_at = {due_at} WHERE seq = {seq} AND state = 0");
                disk.database.tamper(&restore).expect("SQL that restores a due time");
            }
        }
        for outcome in outcomes.iter_mut().filter(|_| self.hides_deletions) {
            if let Ok(OpOutcome::Change(Changed::Done { removed })) = outcome {
                removed.clear();
            }
        }
    }
}
