//! Questions: what only the dispatcher's memory knows. The answers change nothing.

use super::Dispatcher;
use crate::SchedulerLoad;
use crate::scheduling::scheduler::SchedulingProgress;
use crate::scheduling::wait_reasons::{WaitQuestion, WaitReasons};
use aldaba_delivery::{EndpointId, Timestamp};
use tokio::sync::oneshot;

/// What is asked, with the channel for the answer.
pub(crate) enum SchedulingQuestion {
    /// What deliveries wait for.
    WaitReasons(Vec<WaitQuestion>, oneshot::Sender<Vec<WaitReasons>>),
    /// Since when an endpoint's deliveries wait for a rate.
    ThrottledSince(EndpointId, oneshot::Sender<Option<Timestamp>>),
    /// Whether deliveries are getting on.
    Progress(oneshot::Sender<SchedulingProgress>),
    /// How many deliveries are in flight.
    InFlight(oneshot::Sender<usize>),
    /// What is in memory.
    Load(oneshot::Sender<SchedulerLoad>),
    /// Answered when every earlier input has been handled.
    Barrier(oneshot::Sender<()>),
    /// How many lanes there are, and how many deleted applications are remembered for them.
    #[cfg(test)]
    Lanes(oneshot::Sender<(usize, usize)>),
}

impl Dispatcher {
    pub(super) fn on_question(&mut self, question: SchedulingQuestion, now: Timestamp) {
        match question {
            SchedulingQuestion::WaitReasons(questions, answer) => {
                let reasons = |question| self.scheduler.wait_reasons(question, now);
                drop(answer.send(questions.iter().map(reasons).collect()));
            }
            SchedulingQuestion::ThrottledSince(endpoint, answer) => {
                let _ = answer.send(self.scheduler.throttled_since(endpoint, now));
            }
            SchedulingQuestion::Progress(answer) => drop(answer.send(self.scheduler.progress(now))),
            SchedulingQuestion::InFlight(answer) => drop(answer.send(self.scheduler.in_flight())),
            SchedulingQuestion::Load(answer) => drop(answer.send(self.scheduler.load())),
            SchedulingQuestion::Barrier(answer) => drop(answer.send(())),
            #[cfg(test)]
            SchedulingQuestion::Lanes(answer) => drop(answer.send(self.scheduler.memory())),
        }
    }
}
