//! Whether a run of a job was its last one, as its queue sees it.

use crate::JobStatus;
use apalis_core::error::{AbortError, BoxDynError, DeferredError, RetryAfterError};
use apalis_core::task::ExecutionContext;
use apalis_core::task::attempt::Attempt;
use apalis_core::task::status::{AtomicStatus, Status};

/// A run of a job. apalis shares what it knows about it, so that this sees it change.
#[derive(Debug)]
pub(super) struct Run {
    status: AtomicStatus,
    attempts: Attempt,
    most_attempts: Option<usize>,
}

impl Run {
    pub(super) fn of(task: &ExecutionContext) -> Self {
        Self {
            status: task.raw_status().clone(),
            attempts: task.raw_attempt().clone(),
            most_attempts: task.max_attempts(),
        }
    }

    /// The status that the queue stores.
    pub(super) fn status(&self) -> Status {
        self.status.load()
    }

    /// A panic that was caught, or a timeout, drops the future in which apalis keeps a task's status, and the task would
    /// be `Running` until its worker is gone. This is what apalis itself makes of the same error.
    pub(super) fn settle(&self, error: &BoxDynError) {
        if self.status() == Status::Running {
            self.status.store(if error.is::<AbortError>() { Status::Killed } else { Status::Failed });
        }
    }

    /// How the job has ended; not at all, if the queue runs it again. A queue without a count of attempts keeps nothing,
    /// and never runs anything again.
    pub(super) fn end(&self) -> Option<JobStatus> {
        let last = || self.most_attempts.is_none_or(|most| self.attempts.current() >= most);
        match self.status() {
            Status::Done => Some(JobStatus::Completed),
            Status::Killed => Some(JobStatus::Failed),
            Status::Failed if last() => Some(JobStatus::Failed),
            _ => None,
        }
    }
}

/// How long an error's text may be, in bytes. Aldaba takes no longer one, and half of it is better than no webhook.
const LONGEST_ERROR: usize = 64 << 10;

/// The words of an error, without those that apalis puts around it.
pub(super) fn words(error: &BoxDynError) -> String {
    let wrapped = error.is::<AbortError>() || error.is::<RetryAfterError>() || error.is::<DeferredError>();
    let mut words = match error.source() {
        Some(inner) if wrapped => inner.to_string(),
        _ => error.to_string(),
    };
    words.truncate(words.floor_char_boundary(LONGEST_ERROR));
    words
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_ERROR, Run, words};
    use crate::JobStatus;
    use apalis_core::error::{AbortError, BoxDynError};
    use apalis_core::task::attempt::Attempt;
    use apalis_core::task::status::Status;

    fn run(status: Status, attempts: usize, most_attempts: Option<usize>) -> Run {
        Run { status: status.into(), attempts: Attempt::new_with_value(attempts), most_attempts }
    }

    #[test]
    fn a_failure_is_the_end_once_all_attempts_were_made() {
        assert_eq!(run(Status::Failed, 1, Some(3)).end(), None);
        assert_eq!(run(Status::Failed, 2, Some(3)).end(), None);
        assert_eq!(run(Status::Failed, 3, Some(3)).end(), Some(JobStatus::Failed));
        // A crash counts as an attempt too, so that there may have been more.
        assert_eq!(run(Status::Failed, 4, Some(3)).end(), Some(JobStatus::Failed));
    }

    #[test]
    fn a_failure_is_the_end_where_nobody_counts_attempts() {
        assert_eq!(run(Status::Failed, 1, None).end(), Some(JobStatus::Failed));
    }

    #[test]
    fn success_and_abort_are_ends_at_any_attempt() {
        assert_eq!(run(Status::Done, 1, Some(3)).end(), Some(JobStatus::Completed));
        assert_eq!(run(Status::Killed, 1, Some(3)).end(), Some(JobStatus::Failed));
    }

    #[test]
    fn what_the_queue_still_has_to_do_is_no_end() {
        for status in [Status::Pending, Status::Queued, Status::Running] {
            assert_eq!(run(status, 3, Some(3)).end(), None);
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
    fn the_words_are_those_of_the_job() {
        assert_eq!(words(&"mailbox full".into()), "mailbox full");
        assert_eq!(words(&AbortError::new("mailbox gone").into()), "mailbox gone");
    }

    #[test]
    fn a_text_that_aldaba_would_refuse_is_cut_between_two_characters() {
        let error: BoxDynError = format!("a{}", "ñ".repeat(40_000)).into();
        assert_eq!(words(&error).len(), LONGEST_ERROR - 1);
    }
}
