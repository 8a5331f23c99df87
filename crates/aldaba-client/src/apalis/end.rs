//! Decides whether a run of a job was its last one for the queue.

use crate::JobStatus;
use apalis_core::error::{AbortError, BoxDynError, DeferredError, RetryAfterError};
use apalis_core::task::ExecutionContext;
use apalis_core::task::attempt::Attempt;
use apalis_core::task::status::{AtomicStatus, Status};
use serde::Serialize;
use serde_json::Value;

/// A run of a job. It shares the task's data with apalis, so it sees changes.
#[derive(Debug)]
pub(super) struct Run {
    status: AtomicStatus,
    attempts: Attempt,
    /// Attempts before this run.
    before: usize,
    most_attempts: Option<usize>,
}

/// The end of a job, with its result or error.
#[derive(Debug, PartialEq)]
pub(super) struct End {
    pub(super) status: JobStatus,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
}

/// The error of a webhook whose job failed with an error that a layer has hidden.
const HIDDEN: &str = "the job has failed; a layer of the worker made something else of its error";

impl Run {
    pub(super) fn of(task: &ExecutionContext) -> Self {
        Self {
            status: task.raw_status().clone(),
            attempts: task.raw_attempt().clone(),
            before: task.raw_attempt().current(),
            most_attempts: task.max_attempts(),
        }
    }

    /// The status that the queue stores.
    pub(super) fn status(&self) -> Status {
        self.status.load()
    }

    /// A caught panic or a timeout drops the future in which apalis keeps a task's status; the task would stay `Running`
    /// until its worker is gone. A task that a layer rejects would stay `Queued` as long. This sets the status that
    /// apalis sets for the same error.
    pub(super) fn settle(&self, error: &BoxDynError) {
        let never_run = self.attempts.current() == self.before;
        if never_run || self.status() == Status::Running {
            self.status.store(if error.is::<AbortError>() { Status::Killed } else { Status::Failed });
        }
    }

    /// The end of the job; `None` if the queue runs it again. A queue without a counter of attempts stores nothing and
    /// never runs a job again.
    ///
    /// The status is the one that the queue stores, because it decides whether the job runs again. The result of the run
    /// is reported only if it agrees: a layer of the worker may have turned a failure into a success, or the reverse,
    /// without the queue.
    pub(super) fn end<Response: Serialize>(&self, came_to: &Result<Response, BoxDynError>) -> Option<End> {
        let status = self.ended()?;
        let (result, error) = match (status, came_to) {
            (JobStatus::Completed, Ok(response)) => (output(response), None),
            (JobStatus::Failed, Err(error)) => (None, Some(words(error))),
            (JobStatus::Completed, Err(_)) => (None, None),
            (JobStatus::Failed, Ok(_)) => (None, Some(HIDDEN.to_owned())),
        };
        if (status == JobStatus::Completed) != came_to.is_ok() {
            tracing::warn!(
                status = status.as_str(),
                "a layer has changed the result of a job; its webhook has the queue's status"
            );
        }
        Some(End { status, result, error })
    }

    fn ended(&self) -> Option<JobStatus> {
        let last = || self.most_attempts.is_none_or(|most| self.attempts.current() >= most);
        match self.status() {
            Status::Done => Some(JobStatus::Completed),
            Status::Killed => Some(JobStatus::Failed),
            Status::Failed if last() => Some(JobStatus::Failed),
            _ => None,
        }
    }
}

/// The return value of a handler as JSON.
fn output(response: &impl Serialize) -> Option<Value> {
    match serde_json::to_value(response) {
        Ok(Value::Null) => None,
        Ok(output) => Some(output),
        Err(error) => {
            tracing::warn!(%error, "the result of a job cannot be serialized as JSON; its webhook has no result");
            None
        }
    }
}

/// The text of an error, without the text that apalis adds.
fn words(error: &BoxDynError) -> String {
    let wrapped = error.is::<AbortError>() || error.is::<RetryAfterError>() || error.is::<DeferredError>();
    match error.source() {
        Some(inner) if wrapped => inner.to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{End, HIDDEN, Run, words};
    use crate::JobStatus;
    use apalis_core::error::{AbortError, BoxDynError};
    use apalis_core::task::attempt::Attempt;
    use apalis_core::task::status::Status;

    fn run(status: Status, attempts: usize, most_attempts: Option<usize>) -> Run {
        let before = attempts.saturating_sub(1);
        Run { status: status.into(), attempts: Attempt::new_with_value(attempts), before, most_attempts }
    }

    #[test]
    fn a_failure_is_the_end_once_all_attempts_were_made() {
        assert_eq!(run(Status::Failed, 1, Some(3)).ended(), None);
        assert_eq!(run(Status::Failed, 2, Some(3)).ended(), None);
        assert_eq!(run(Status::Failed, 3, Some(3)).ended(), Some(JobStatus::Failed));
        // A crash counts as an attempt too, so there may have been more.
        assert_eq!(run(Status::Failed, 4, Some(3)).ended(), Some(JobStatus::Failed));
    }

    #[test]
    fn without_an_attempt_counter_a_failure_is_final() {
        assert_eq!(run(Status::Failed, 1, None).ended(), Some(JobStatus::Failed));
    }

    #[test]
    fn success_and_abort_are_ends_at_any_attempt() {
        assert_eq!(run(Status::Done, 1, Some(3)).ended(), Some(JobStatus::Completed));
        assert_eq!(run(Status::Killed, 1, Some(3)).ended(), Some(JobStatus::Failed));
    }

    #[test]
    fn a_queued_or_running_job_has_not_ended() {
        for status in [Status::Pending, Status::Queued, Status::Running] {
            assert_eq!(run(status, 3, Some(3)).ended(), None);
        }
    }

    #[test]
    fn an_error_that_left_the_task_running_gets_the_status_that_apalis_gives_it_elsewhere() {
        let (aborted, failed): (BoxDynError, BoxDynError) = (AbortError::new("no").into(), "no".into());
        let task = run(Status::Running, 1, Some(3));
        task.settle(&aborted);
        assert_eq!(task.status(), Status::Killed);
        let task = run(Status::Running, 1, Some(3));
        task.settle(&failed);
        assert_eq!(task.status(), Status::Failed);
        let task = run(Status::Pending, 1, Some(3));
        task.settle(&failed);
        assert_eq!(task.status(), Status::Pending);
    }

    #[test]
    fn a_run_that_never_began_does_not_stay_in_the_worker() {
        let (forbidden, refused): (BoxDynError, BoxDynError) = (AbortError::new("no").into(), "no".into());
        for status in [Status::Queued, Status::Pending] {
            let task = Run { before: 2, ..run(status.clone(), 2, Some(3)) };
            task.settle(&refused);
            assert_eq!((task.status(), task.ended()), (Status::Failed, None), "the queue runs it again");
            let task = Run { before: 2, ..run(status, 2, Some(3)) };
            task.settle(&forbidden);
            assert_eq!(task.ended(), Some(JobStatus::Failed));
        }
    }

    #[test]
    fn nothing_in_a_webhook_contradicts_the_status_that_the_queue_stores() {
        let (good, bad): (Result<u8, BoxDynError>, Result<u8, BoxDynError>) = (Ok(7), Err("no".into()));
        let end = |status, came_to| run(status, 3, Some(3)).end(came_to).unwrap();
        let told = |End { status, result, error }: End| (status, result.is_some(), error);
        assert_eq!(told(end(Status::Done, &good)), (JobStatus::Completed, true, None));
        assert_eq!(told(end(Status::Done, &bad)), (JobStatus::Completed, false, None));
        assert_eq!(told(end(Status::Failed, &bad)), (JobStatus::Failed, false, Some("no".into())));
        assert_eq!(told(end(Status::Failed, &good)), (JobStatus::Failed, false, Some(HIDDEN.into())));
        assert_eq!(told(end(Status::Killed, &good)), (JobStatus::Failed, false, Some(HIDDEN.into())));
    }

    #[test]
    fn the_words_are_those_of_the_job() {
        assert_eq!(words(&"mailbox full".into()), "mailbox full");
        assert_eq!(words(&AbortError::new("mailbox gone").into()), "mailbox gone");
    }
}
