use crate::counters::Counters;
use crate::receiver::{Options, Shared};
use crate::under_way::UnderWay;
use crate::{Challenge, Clock, Ledger, Receiver};
use aldaba_signature::inbound::Inspector;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a copy waits for the end of work on the same event.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// The longest body that is taken.
pub const DEFAULT_MAX_BODY: usize = 1024 * 1024;

/// How long a body may take to come.
pub const DEFAULT_BODY_TIME: Duration = Duration::from_secs(10);

/// How long a handler may take. Far beyond what senders wait for, because it goes on without them; without a limit one
/// that hangs would hold its transaction for ever.
pub const DEFAULT_HANDLER_TIME: Duration = Duration::from_secs(5 * 60);

/// How long an action after the commit may take.
pub const DEFAULT_AFTER_COMMIT_TIME: Duration = Duration::from_secs(60);

/// What a sender is told when the handler has failed. Its work is rolled back and the event not marked, either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// 500, so that it sends the event again.
    #[default]
    AskAgain,
    /// 200 `{"received": true, "error": "…"}`: the sender takes the event for delivered and never sends it again by
    /// itself. **The event is lost**, unless somebody reads the log and sends it again by hand.
    Acknowledge,
}

/// What becomes of a handler whose sender closes the connection before it has the answer. Only the layer knows of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenSenderLeaves {
    /// The handler goes on to its end in a task of its own, and its work is committed: the copy that the sender sends
    /// next is a duplicate. A handler that takes longer than its sender waits would otherwise never come to an end.
    #[default]
    Finish,
    /// The handler is dropped where it waits, and its work abandoned. With a transaction nothing of it stays; with a
    /// lease everything stays that it did outside, and the next copy does it again.
    Stop,
}

/// Sets what a receiver does beside the default.
pub struct Builder<L> {
    inspector: Inspector,
    ledger: L,
    name: String,
    options: Options,
}

impl<L: Ledger> Builder<L> {
    pub(crate) fn new(inspector: Inspector, ledger: L) -> Self {
        let options = Options {
            patience: DEFAULT_PATIENCE,
            on_failure: OnFailure::default(),
            when_sender_leaves: WhenSenderLeaves::default(),
            max_body: DEFAULT_MAX_BODY,
            body_time: DEFAULT_BODY_TIME,
            handler_time: DEFAULT_HANDLER_TIME,
            after_commit_time: DEFAULT_AFTER_COMMIT_TIME,
            clock: Clock::system(),
            challenge: None,
        };
        Self { inspector, ledger, name: "webhooks".into(), options }
    }

    /// The label `receiver` of its metrics, `webhooks` if none is given. For programs with several.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long a copy waits for the end of work on the same event, 10 s if nothing is said. It should be shorter than
    /// the sender's timeout.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.options.patience = patience;
        self
    }

    /// What the sender is told when the handler fails.
    #[must_use]
    pub fn on_failure(mut self, choice: OnFailure) -> Self {
        self.options.on_failure = choice;
        self
    }

    /// What becomes of a handler whose sender has gone.
    #[must_use]
    pub fn when_sender_leaves(mut self, choice: WhenSenderLeaves) -> Self {
        self.options.when_sender_leaves = choice;
        self
    }

    /// The longest body in bytes, 1 MiB if nothing is said. A longer one is answered with 413.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.options.max_body = bytes;
        self
    }

    /// How long the layer waits for a body, 10 s if nothing is said.
    #[must_use]
    pub fn body_time(mut self, time: Duration) -> Self {
        self.options.body_time = time;
        self
    }

    /// How long the layer lets a handler run, 5 min if nothing is said. Past it, the handler has failed.
    #[must_use]
    pub fn handler_time(mut self, time: Duration) -> Self {
        self.options.handler_time = time;
        self
    }

    /// How long each action after a commit may run, 60 s if nothing is said.
    #[must_use]
    pub fn after_commit_time(mut self, time: Duration) -> Self {
        self.options.after_commit_time = time;
        self
    }

    /// Answers the sender's question whether this is a receiver, where that comes without a signature. It is no event.
    #[must_use]
    pub fn challenge(mut self, challenge: Challenge) -> Self {
        self.options.challenge = Some(challenge);
        self
    }

    /// Another clock than the machine's, for tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.options.clock = clock;
        self
    }

    /// Builds the receiver.
    pub fn build(self) -> Receiver<L> {
        Receiver(Arc::new(Shared {
            inspector: self.inspector,
            ledger: self.ledger,
            options: self.options,
            counters: Counters::named(self.name),
            under_way: UnderWay::none(),
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
