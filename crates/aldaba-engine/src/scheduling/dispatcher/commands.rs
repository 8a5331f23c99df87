//! Commands: what the dispatcher is to do.

use super::Dispatcher;
use crate::delivering::AttemptRequest;
use crate::replaying::Reservation;
use crate::scheduling::cancel::{Cancel, Cancelled};
use crate::scheduling::expiry::ExpiredDeliveries;
use crate::scheduling::scheduler::MayStart;
use aldaba_delivery::{AppId, EndpointId, Reason, Timestamp};
use aldaba_store::{AuditEntry, Error, PendingDelivery};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What is to be done. The last part of most commands is the channel for the answer.
pub(crate) enum SchedulingCommand {
    /// Let an attempt start that had to wait for its payload, if it still may.
    Start(Box<AttemptRequest>, oneshot::Sender<MayStart>),
    /// Reserve a delivery for a manual attempt; with the delivery as it was read, if it is pending.
    Reserve(EndpointId, AppId, Option<PendingDelivery>, oneshot::Sender<Reservation>),
    /// End pending deliveries for this reason.
    Cancel(Option<Arc<AuditEntry>>, Vec<Cancel>, Reason, oneshot::Sender<Result<Vec<Cancelled>, Error>>),
    /// End deliveries that are past their stop date; the answer is how many have ended.
    EndExpired(Box<ExpiredDeliveries>, oneshot::Sender<Result<usize, Error>>),
    /// Submit the records again that the store could not write.
    RetryRecords,
    /// The pause after a restore is over.
    Resume,
    /// Start no more attempts.
    Halt,
    /// Start no more attempts, and answer when nothing is in flight.
    Stop(oneshot::Sender<()>),
    /// Panic, as a bug would.
    #[cfg(test)]
    Panic,
}

impl Dispatcher {
    pub(super) fn on_command(&mut self, command: SchedulingCommand, now: Timestamp) {
        match command {
            SchedulingCommand::Start(request, answer) => {
                let _ = answer.send(self.scheduler.may_start(&request, now));
            }
            SchedulingCommand::Reserve(endpoint, app, read, answer) => {
                drop(answer.send(self.reserve(endpoint, app, read, now)));
            }
            SchedulingCommand::Cancel(audit, deliveries, reason, answer) => {
                self.cancel(audit.as_ref(), deliveries, reason, answer, now);
            }
            SchedulingCommand::EndExpired(expired, answer) => self.end_expired(*expired, answer, now),
            SchedulingCommand::RetryRecords => self.retry_records(),
            SchedulingCommand::Resume => {
                // Records that could not be written say themselves when they are on disk.
                if self.failed_records.is_empty() {
                    self.writing_works();
                }
            }
            SchedulingCommand::Halt => self.halt(),
            SchedulingCommand::Stop(stopped) => {
                self.halt();
                self.stopping = Some(stopped);
            }
            #[cfg(test)]
            SchedulingCommand::Panic => panic!("on purpose"),
        }
    }

    fn reserve(
        &mut self,
        endpoint: EndpointId,
        app: AppId,
        read: Option<PendingDelivery>,
        now: Timestamp,
    ) -> Reservation {
        if self.scheduler.halted {
            return Reservation::Paused;
        }
        let Some(read) = read else {
            return Reservation::Granted(None);
        };
        match self.scheduler.reserve(endpoint, app, read, now) {
            Some(pending) => Reservation::Granted(Some(pending)),
            None => Reservation::InFlight,
        }
    }

    fn halt(&mut self) {
        self.halted_for_good = true;
        self.scheduler.halted = true;
    }
}
