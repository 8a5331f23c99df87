//! The end of an attempt, and what becomes of its record. Only what is on disk counts.

use super::{Dispatcher, RETRY_DELAY, SchedulingCommand};
use crate::delivering::{AttemptEnd, AttemptRequest, AttemptResult};
use crate::recording::{self, RecordResult};
use aldaba_delivery::{Reason, Timestamp};
use aldaba_store::{Error, PendingDelivery, Record, Recorded};
use bytes::Bytes;

impl Dispatcher {
    /// Plans the record of an attempt and submits it.
    pub(super) fn attempt_ended(&mut self, result: AttemptResult, now: Timestamp) {
        let (endpoint, seq) = (result.request.endpoint, result.request.pending.seq);
        if let AttemptEnd::Returned | AttemptEnd::Abandoned = result.end {
            return self.not_sent(&result, now);
        }
        let Some((health, gates)) = self.scheduler.health(endpoint) else {
            tracing::error!(%endpoint, "a bug: an attempt of a lane that is gone has ended");
            return self.not_sent(&result, now);
        };
        let Some(plan) = self.recorder.plan(result, health, gates, now) else {
            return;
        };
        self.scheduler.left_wire(endpoint, seq, plan.answered);
        for endpoint in plan.woken {
            self.scheduler.wake(endpoint);
        }
        self.recorder.submit(plan.record, plan.next);
    }

    /// No request left: the row is pending as before.
    fn not_sent(&mut self, AttemptResult { request, end }: &AttemptResult, now: Timestamp) {
        let (endpoint, seq) = (request.endpoint, request.pending.seq);
        for endpoint in self.scheduler.gates.probe_abandoned(request, now) {
            self.scheduler.wake(endpoint);
        }
        self.scheduler.left_wire(endpoint, seq, None);
        let next = matches!(end, AttemptEnd::Returned).then_some(request.pending);
        self.scheduler.recorded(endpoint, seq, next, now);
    }

    /// Ends a delivery without sending it.
    pub(super) fn end_unsent(&mut self, request: &AttemptRequest, reason: Reason, now: Timestamp) {
        let Some((health, _)) = self.scheduler.health(request.endpoint) else {
            tracing::error!(endpoint = %request.endpoint, "a bug: a delivery of a lane that is gone ends");
            return self.scheduler.recorded(request.endpoint, request.pending.seq, None, now);
        };
        self.recorder.submit(recording::ended_unsent(request, reason, health, now), None);
    }

    /// The store has written a record, or could not.
    pub(super) fn recorded(&mut self, written: RecordResult, now: Timestamp) {
        let RecordResult { record, next, result } = written;
        match result {
            Ok(Recorded::Applied) => {
                self.writing_works();
                self.scheduler.recorded(record.endpoint, record.seq, next, now);
            }
            Ok(Recorded::Fenced) => {
                self.writing_works();
                tracing::warn!(endpoint = %record.endpoint, message_id = %record.message, "a late record was refused");
                if record.attempt.is_some() {
                    self.scheduler.recorded(record.endpoint, record.seq, None, now);
                } else {
                    // The row may have changed since it was read, and still be pending.
                    self.scheduler.reservation_ended(record.endpoint, record.seq, false, now);
                }
            }
            Ok(Recorded::Refused(why)) | Err(Error::Refused(why)) => {
                self.writing_works();
                self.record_without_texts(record, next, &why);
            }
            Err(Error::Closed) => self.scheduler.recorded(record.endpoint, record.seq, None, now),
            Err(error) => {
                // Nothing is sent while nothing can be written.
                tracing::error!(%error, "cannot record attempts; sending stops until they are on disk");
                self.scheduler.halted = true;
                if self.failed_records.is_empty() {
                    let inbox = self.inbox.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(RETRY_DELAY).await;
                        inbox.send(SchedulingCommand::RetryRecords);
                    });
                }
                self.failed_records.push((record, next));
            }
        }
    }

    /// The store refuses the response or the error text: the result is recorded without them. If that is refused too, the
    /// delivery stays in flight until the next start, and the lane goes on with the others.
    fn record_without_texts(&mut self, mut record: Record, next: Option<PendingDelivery>, why: &str) {
        const NOT_STORED: &str = "What came back could not be stored";
        let (endpoint, message) = (record.endpoint, record.message);
        match &mut record.attempt {
            Some(attempt) if attempt.error != NOT_STORED => {
                tracing::warn!(%endpoint, message_id = %message, why, "the store refuses what came back");
                (attempt.error, attempt.response) = (NOT_STORED.into(), Bytes::new());
                record.gates.iter_mut().for_each(|gate| gate.why = NOT_STORED.into());
                self.recorder.submit(record, next);
            }
            _ => tracing::error!(%endpoint, message_id = %message, why, "the store refuses a result"),
        }
    }

    /// Submits the failed records again. The first of them that is on disk lets sending continue.
    pub(super) fn retry_records(&mut self) {
        for (mut record, next) in self.failed_records.drain(..) {
            self.scheduler.refresh(&mut record);
            self.recorder.submit(record, next);
        }
    }

    /// A result is on disk, so the results of further attempts can be written too.
    pub(super) fn writing_works(&mut self) {
        self.scheduler.halted = self.halted_for_good || self.pause.is_on();
    }
}
