use crate::counters::Counters;
use crate::receiver::{Options, ReceiverParts};
use crate::running_tasks::RunningTasks;
use crate::{Challenge, Clock, Ledger, Receiver};
use aldaba_signature::inbound::Inspector;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a copy waits while another copy of its event is handled.
pub const DEFAULT_WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The former name of [`DEFAULT_WAIT_TIMEOUT`].
#[deprecated(note = "use `DEFAULT_WAIT_TIMEOUT`")]
pub const DEFAULT_PATIENCE: Duration = DEFAULT_WAIT_TIMEOUT;

/// The maximum length of a body, in bytes.
pub const DEFAULT_MAX_BODY: usize = 1024 * 1024;

/// How long a body may take to arrive.
pub const DEFAULT_BODY_TIME: Duration = Duration::from_secs(10);

/// How long a handler may take. Longer than senders wait, because a handler goes on without its sender. A limit is
/// necessary: a handler that hangs would hold its transaction forever.
pub const DEFAULT_HANDLER_TIME: Duration = Duration::from_secs(5 * 60);

/// How long an action after the commit may take.
pub const DEFAULT_AFTER_COMMIT_TIME: Duration = Duration::from_secs(60);

/// The window of the duplicate rate.
pub const DEFAULT_DUPLICATE_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer when the handler fails. Either way its work is rolled back and the event is not marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// 500: the sender retries.
    #[default]
    AskAgain,
    /// 200 `{"received": true, "error": "…"}`: the sender considers the event delivered and does not retry. **The event
    /// is lost** unless somebody reads the log and sends it again.
    Acknowledge,
}

/// What happens to a handler whose sender closes the connection before the answer. Only the layer notices that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenSenderLeaves {
    /// The handler continues in its own task, and its work is committed: the sender's next copy is a duplicate. Otherwise a
    /// handler that takes longer than its sender waits would never finish.
    #[default]
    Finish,
    /// The handler is dropped and its work abandoned. A transaction is rolled back. With a lease the effects stay, and
    /// happen again with the next copy.
    Stop,
}

/// Builds a [`Receiver`] with other options than the defaults.
pub struct Builder<L> {
    inspector: Inspector,
    ledger: L,
    name: String,
    options: Options,
}

impl<L: Ledger> Builder<L> {
    pub(crate) fn new(inspector: Inspector, ledger: L) -> Self {
        let options = Options {
            wait_timeout: DEFAULT_WAIT_TIMEOUT,
            on_failure: OnFailure::default(),
            when_sender_leaves: WhenSenderLeaves::default(),
            max_body: DEFAULT_MAX_BODY,
            body_time: DEFAULT_BODY_TIME,
            handler_time: DEFAULT_HANDLER_TIME,
            after_commit_time: DEFAULT_AFTER_COMMIT_TIME,
            clock: Clock::system(),
            challenge: None,
            duplicate_window: DEFAULT_DUPLICATE_WINDOW,
        };
        Self { inspector, ledger, name: "webhooks".into(), options }
    }

    /// Sets the label `receiver` of the metrics, for programs with several receivers. Default: `webhooks`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how long a copy waits while another copy of its event is handled. It should be shorter than the sender's
    /// timeout. Default: 10 s.
    #[must_use]
    pub fn wait_timeout(mut self, timeout: Duration) -> Self {
        self.options.wait_timeout = timeout;
        self
    }

    /// The former name of [`Builder::wait_timeout`].
    #[deprecated(note = "use `wait_timeout`")]
    #[must_use]
    pub fn patience(self, timeout: Duration) -> Self {
        self.wait_timeout(timeout)
    }

    /// Sets the answer when the handler fails.
    #[must_use]
    pub fn on_failure(mut self, choice: OnFailure) -> Self {
        self.options.on_failure = choice;
        self
    }

    /// Sets what happens to a handler whose sender closes the connection.
    #[must_use]
    pub fn when_sender_leaves(mut self, choice: WhenSenderLeaves) -> Self {
        self.options.when_sender_leaves = choice;
        self
    }

    /// Sets the maximum length of a body in bytes; a longer one is answered with 413. Default: 1 MiB.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.options.max_body = bytes;
        self
    }

    /// Sets how long the layer waits for a body. Default: 10 s.
    #[must_use]
    pub fn body_time(mut self, time: Duration) -> Self {
        self.options.body_time = time;
        self
    }

    /// Sets the time limit of a handler; after it the handler has failed. Default: 5 min.
    #[must_use]
    pub fn handler_time(mut self, time: Duration) -> Self {
        self.options.handler_time = time;
        self
    }

    /// Sets the time limit of each action after a commit. Default: 60 s.
    #[must_use]
    pub fn after_commit_time(mut self, time: Duration) -> Self {
        self.options.after_commit_time = time;
        self
    }

    /// Answers a sender's unsigned challenge. A challenge is not an event.
    #[must_use]
    pub fn challenge(mut self, challenge: Challenge) -> Self {
        self.options.challenge = Some(challenge);
        self
    }

    /// Sets the window of the duplicate rate in the log and in the metrics. Default: 24 hours.
    #[must_use]
    pub fn duplicate_window(mut self, window: Duration) -> Self {
        self.options.duplicate_window = window;
        self
    }

    /// Sets the clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.options.clock = clock;
        self
    }

    /// Builds the receiver.
    pub fn build(self) -> Receiver<L> {
        Receiver(Arc::new(ReceiverParts {
            inspector: self.inspector,
            ledger: self.ledger,
            options: self.options,
            counters: Counters::named(self.name),
            running_tasks: RunningTasks::none(),
        }))
    }
}

impl<L> fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
