//! From the handler's end to the answer.

use crate::after_commit::{self, Action};
use crate::clock::instant;
use crate::opening::LEDGER_TIMEOUT;
use crate::running_tasks::RunningTask;
use crate::{
    Answer, Event, FailedEvent, Failure, Guarantee, Ledger, LedgerError, OnFailure, Outcome, Receiver, Work,
};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// The time limit of a ledger that completes an event. The answer does not wait as long.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(60);

/// A claimed event. Dropping it abandons the work: the next copy can claim the event.
pub struct Begun<L: Ledger> {
    task: Task<L>,
    work: L::Work,
}

/// A [`Begun`] without its work, which is lent to the handler.
pub(crate) struct Task<L: Ledger> {
    receiver: Receiver<L>,
    event: Event,
    since: Instant,
    counted: bool,
    /// The work is being completed; the actions after the commit wait for it.
    completing: bool,
    _running: RunningTask,
}

impl<L: Ledger> Begun<L> {
    pub(crate) fn new(task: Task<L>, work: L::Work) -> Self {
        Self { task, work }
    }

    /// The event that is handled.
    pub fn event(&self) -> &Event {
        &self.task.event
    }

    /// The transaction or lease of the event.
    pub fn work(&mut self) -> &mut L::Work {
        &mut self.work
    }

    /// The event and its work together.
    pub fn parts(&mut self) -> (&Event, &mut L::Work) {
        (&self.task.event, &mut self.work)
    }

    /// Completes or abandons the work and returns the answer. The actions after the commit start.
    pub async fn end(self, result: Result<(), Failure>) -> Answer {
        self.task.end(Some(self.work), result).await
    }

    pub(crate) fn split(self) -> (Task<L>, L::Work) {
        (self.task, self.work)
    }
}

impl<L: Ledger> Task<L> {
    pub(crate) fn begin(receiver: Receiver<L>, event: Event) -> Self {
        let running = receiver.0.running_tasks.begin();
        Self { receiver, event, since: instant(), counted: false, completing: false, _running: running }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// Ends the event. Without its work nothing can be completed.
    pub(crate) async fn end(mut self, work: Option<L::Work>, result: Result<(), Failure>) -> Answer {
        let answer = match (result, work) {
            (Ok(()), Some(work)) => self.complete(work).await,
            (Ok(()), None) => {
                self.failed(&Failure::new("the handler returned without dropping its transaction"))
            }
            (Err(failure), work) => {
                if let Some(work) = work {
                    // A timeout drops the work, which abandons it too.
                    let _ = tokio::time::timeout(LEDGER_TIMEOUT, work.abandon()).await;
                }
                self.note(failure.logged.clone());
                self.failed(&failure)
            }
        };
        self.counted = true;
        self.receiver.0.counters.handler_took(instant() - self.since);
        self.receiver.count(answer.outcome());
        answer
    }

    /// Completes the work in its own task: a late commit still counts, and its actions run.
    async fn complete(&mut self, work: L::Work) -> Answer {
        self.completing = true;
        let (receiver, event) = (self.receiver.clone(), self.event.clone());
        let running = receiver.0.running_tasks.begin();
        let completion = async move {
            let completed = match tokio::time::timeout(COMPLETION_TIMEOUT, work.complete()).await {
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
        let completed = match tokio::time::timeout(LEDGER_TIMEOUT, completion).await {
            Ok(Ok(completed)) => completed,
            Ok(Err(error)) => Err(LedgerError::Unavailable(error.to_string().into())),
            Err(_) => Err(no_answer()),
        };
        match completed {
            Ok(()) => Answer::new_event(),
            // The commit may have happened. Then the sender's next copy is a duplicate.
            Err(error) => {
                tracing::error!(event_id = self.event.id, %error, "the ledger could not complete an event; the sender is asked to retry");
                Answer::unavailable()
            }
        }
    }

    /// Notes a failure in the background: the database may be what failed.
    fn note(&self, error: String) {
        let (receiver, event) = (self.receiver.clone(), self.event.clone());
        let running = receiver.0.running_tasks.begin();
        let note = async move {
            let _running = running;
            let noted = receiver.0.ledger.note_failure(&event, FailedEvent::kept(&error));
            let noted =
                tokio::time::timeout(LEDGER_TIMEOUT, noted).await.unwrap_or_else(|_| Err(no_answer()));
            if let Err(error) = noted {
                tracing::warn!(event_id = event.id, %error, "the ledger could not note the failure of an event");
            }
        };
        tokio::spawn(note.in_current_span());
    }

    fn failed(&self, failure: &Failure) -> Answer {
        let Failure { logged, told, status, retry_after } = failure;
        let (event_id, event_type) = (&self.event.id, &self.event.event_type);
        let undone = match L::GUARANTEE {
            Guarantee::ExactlyOnceEffect => "its work was rolled back",
            Guarantee::AtLeastOnce => "its effects stay, and happen again when the event is sent again",
        };
        match self.receiver.0.options.on_failure {
            OnFailure::AskAgain => {
                tracing::warn!(
                    event_id,
                    event_type,
                    error = logged,
                    "a handler failed and the sender is asked to retry; {undone}"
                );
                Answer::failed(*status, told.clone(), retry_after.clone())
            }
            OnFailure::Acknowledge => {
                tracing::error!(
                    event_id,
                    event_type,
                    error = logged,
                    "a handler failed and the event was acknowledged: the sender does not retry; {undone}"
                );
                Answer::acknowledged_failure(told.clone())
            }
        }
    }
}

/// Runs the actions one after another.
async fn run_actions<L: Ledger>(
    receiver: Receiver<L>,
    _running: RunningTask,
    event_id: String,
    actions: Vec<Action>,
) {
    for action in actions {
        let ending = after_commit::run(action, &event_id, receiver.0.options.after_commit_time).await;
        receiver.0.counters.after_commit(ending);
    }
}

fn no_answer() -> LedgerError {
    LedgerError::Unavailable("no answer in time".into())
}

impl<L: Ledger> Drop for Task<L> {
    fn drop(&mut self) {
        if !self.completing {
            // An action may hold the event, which holds the actions.
            drop(self.event.actions.take());
        }
        if !self.counted {
            tracing::warn!(
                event_id = self.event.id,
                "an event was dropped before its handler ended; its work was abandoned"
            );
            self.receiver.count(Outcome::Dropped);
        }
    }
}

impl<L: Ledger> fmt::Debug for Begun<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("event", &self.task.event.id).finish_non_exhaustive()
    }
}
