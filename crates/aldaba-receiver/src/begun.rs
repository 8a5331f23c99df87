//! From the handler's end to the answer.

use crate::after_commit::{self, Action};
use crate::clock::instant;
use crate::opening::LEDGER_TIME;
use crate::under_way::Running;
use crate::{
    Answer, Event, FailedEvent, Failure, Guarantee, Ledger, LedgerError, OnFailure, Outcome, Receiver, Work,
};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// How long a ledger may take to complete an event's work. The answer does not wait for that long.
const COMPLETION_TIME: Duration = Duration::from_secs(60);

/// An event that is the caller's to handle. Dropping it abandons the work: the event is anybody's again.
pub struct Begun<L: Ledger> {
    task: Task<L>,
    work: L::Work,
}

/// A [`Begun`] without its work, which the layer lends to the handler.
pub(crate) struct Task<L: Ledger> {
    receiver: Receiver<L>,
    event: Event,
    since: Instant,
    counted: bool,
    /// The work is being completed, and what was left for after the commit waits for that.
    completing: bool,
    _running: Running,
}

impl<L: Ledger> Begun<L> {
    pub(crate) fn new(task: Task<L>, work: L::Work) -> Self {
        Self { task, work }
    }

    /// The event that is handled.
    pub fn event(&self) -> &Event {
        &self.task.event
    }

    /// What the handler works in: a transaction, or a lease.
    pub fn work(&mut self) -> &mut L::Work {
        &mut self.work
    }

    /// Both at once, where a handler wants them side by side.
    pub fn parts(&mut self) -> (&Event, &mut L::Work) {
        (&self.task.event, &mut self.work)
    }

    /// Completes the work or abandons it, and says what to answer. What was left for after the commit begins to run.
    pub async fn end(self, result: Result<(), Failure>) -> Answer {
        self.task.end(Some(self.work), result).await
    }

    pub(crate) fn split(self) -> (Task<L>, L::Work) {
        (self.task, self.work)
    }
}

impl<L: Ledger> Task<L> {
    pub(crate) fn begin(receiver: Receiver<L>, event: Event) -> Self {
        let running = receiver.0.under_way.begin();
        Self { receiver, event, since: instant(), counted: false, completing: false, _running: running }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// Without work there is nothing that could be completed.
    pub(crate) async fn end(mut self, work: Option<L::Work>, result: Result<(), Failure>) -> Answer {
        let answer = match (result, work) {
            (Ok(()), Some(work)) => self.complete(work).await,
            (Ok(()), None) => {
                self.failed(&Failure::new("the handler has kept its transaction beyond its end"))
            }
            (Err(failure), work) => {
                if let Some(work) = work {
                    // One that does not come to its end is dropped, which abandons it too.
                    let _ = tokio::time::timeout(LEDGER_TIME, work.abandon()).await;
                }
                self.note(failure.logged.clone());
                self.failed(&failure)
            }
        };
        self.counted = true;
        self.receiver.0.counters.handler_took(instant() - self.since);
        self.receiver.0.counters.event(answer.outcome());
        answer
    }

    /// In a task of its own: a commit that comes late comes true all the same, and what waits for it runs.
    async fn complete(&mut self, work: L::Work) -> Answer {
        self.completing = true;
        let (receiver, event) = (self.receiver.clone(), self.event.clone());
        let running = receiver.0.under_way.begin();
        let completion = async move {
            let completed = match tokio::time::timeout(COMPLETION_TIME, work.complete()).await {
                Ok(completed) => completed,
                Err(_) => Err(no_answer()),
            };
            let actions = event.actions.take();
            if completed.is_ok() && !actions.is_empty() {
                tokio::spawn(run_actions(receiver, running, event.id, actions).in_current_span());
            }
            completed
        };
        let completion = tokio::spawn(completion.in_current_span());
        let completed = match tokio::time::timeout(LEDGER_TIME, completion).await {
            Ok(Ok(completed)) => completed,
            Ok(Err(error)) => Err(LedgerError::Unavailable(error.to_string().into())),
            Err(_) => Err(no_answer()),
        };
        match completed {
            Ok(()) => Answer::new_event(),
            // It may be committed for all that is known. The sender's next copy finds out: it is a duplicate then.
            Err(error) => {
                tracing::error!(event_id = self.event.id, %error, "the end of an event's work could not be stored; its sender is asked to send it again");
                Answer::unavailable()
            }
        }
    }

    /// Beside the answer, which does not wait for it: what has failed may be the database.
    fn note(&self, error: String) {
        let (receiver, event) = (self.receiver.clone(), self.event.clone());
        let running = receiver.0.under_way.begin();
        let note = async move {
            let _running = running;
            let noted = receiver.0.ledger.note_failure(&event, FailedEvent::kept(&error));
            let noted = tokio::time::timeout(LEDGER_TIME, noted).await.unwrap_or_else(|_| Err(no_answer()));
            if let Err(error) = noted {
                tracing::warn!(event_id = event.id, %error, "the failure of an event could not be noted");
            }
        };
        tokio::spawn(note.in_current_span());
    }

    fn failed(&self, failure: &Failure) -> Answer {
        let Failure { logged, told, status, retry_after } = failure;
        let (event_id, event_type) = (&self.event.id, &self.event.event_type);
        let undone = match L::GUARANTEE {
            Guarantee::ExactlyOnceEffect => "its work was rolled back",
            Guarantee::AtLeastOnce => "what it has done stays, and is done again when the event comes again",
        };
        match self.receiver.0.options.on_failure {
            OnFailure::AskAgain => {
                tracing::warn!(
                    event_id,
                    event_type,
                    error = logged,
                    "a handler failed and the sender is asked to send the event again; {undone}"
                );
                Answer::failed(*status, told.clone(), retry_after.clone())
            }
            OnFailure::Acknowledge => {
                tracing::error!(
                    event_id,
                    event_type,
                    error = logged,
                    "a handler failed and the event was acknowledged all the same: it does not come again by itself; {undone}"
                );
                Answer::acknowledged_failure(told.clone())
            }
        }
    }
}

/// One after another.
async fn run_actions<L: Ledger>(
    receiver: Receiver<L>,
    _running: Running,
    event_id: String,
    actions: Vec<Action>,
) {
    for action in actions {
        let ending = after_commit::run(action, &event_id, receiver.0.options.after_commit_time).await;
        receiver.0.counters.after_commit(ending);
    }
}

fn no_answer() -> LedgerError {
    LedgerError::Unavailable("it did not answer in time".into())
}

impl<L: Ledger> Drop for Task<L> {
    fn drop(&mut self) {
        if !self.completing {
            // They may hold the event, which holds them.
            drop(self.event.actions.take());
        }
        if !self.counted {
            tracing::warn!(
                event_id = self.event.id,
                "an event was dropped before its handler had ended; its work was abandoned"
            );
            self.receiver.0.counters.event(Outcome::Dropped);
        }
    }
}

impl<L: Ledger> fmt::Debug for Begun<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("event", &self.task.event.id).finish_non_exhaustive()
    }
}
