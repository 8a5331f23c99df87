//! The way into the dispatcher: one channel, so that the order of arrival is the order of handling.
//!
//! The order matters: the store reports commits in the order of an application's commits, and lanes rely on it.

use super::{SchedulingCommand, SchedulingEvent, SchedulingQuestion};
use std::fmt;
use tokio::sync::{mpsc, oneshot};

/// One input of the dispatcher.
pub(crate) enum DispatcherInput {
    /// Something has happened.
    Event(SchedulingEvent),
    /// Something is to be done.
    Command(SchedulingCommand),
    /// Something is asked; the answer changes nothing.
    Question(SchedulingQuestion),
}

impl From<SchedulingEvent> for DispatcherInput {
    fn from(event: SchedulingEvent) -> Self {
        Self::Event(event)
    }
}

impl From<SchedulingCommand> for DispatcherInput {
    fn from(command: SchedulingCommand) -> Self {
        Self::Command(command)
    }
}

impl From<SchedulingQuestion> for DispatcherInput {
    fn from(question: SchedulingQuestion) -> Self {
        Self::Question(question)
    }
}

/// Sends inputs to the dispatcher. The queue has no limit of its own: the store's writer and the in-flight limit
/// bound what can be in it.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::UnboundedSender<DispatcherInput>);

impl Inbox {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<DispatcherInput>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Drops the input if the dispatcher has stopped: everything that counts is on disk.
    pub(crate) fn send(&self, input: impl Into<DispatcherInput>) {
        let _ = self.0.send(input.into());
    }

    /// Sends an input with a channel for the answer, and waits for it. `None`: the dispatcher has stopped.
    pub(crate) async fn ask<T, I: Into<DispatcherInput>>(
        &self,
        input: impl FnOnce(oneshot::Sender<T>) -> I,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.send(input(answer));
        answered.await.ok()
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbox")
    }
}
