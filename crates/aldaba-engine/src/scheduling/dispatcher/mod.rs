//! The dispatcher: the one task that owns the lanes. A thin loop: it takes inputs from its [inbox], runs a scheduling
//! pass, and carries out the actions that the pass returns.

mod commands;
mod events;
mod inbox;
mod questions;
mod reads;
mod records;
#[cfg(test)]
mod tests;

pub(crate) use commands::SchedulingCommand;
pub(crate) use events::{QueuedDelivery, SchedulingEvent};
pub(crate) use inbox::{DispatcherInput, Inbox};
pub(crate) use questions::SchedulingQuestion;

use crate::delivering::Sender;
use crate::engine::Pause;
use crate::housekeeping::background::Background;
use crate::recording::Recorder;
use crate::scheduling::expiry::Expirer;
use crate::scheduling::scheduler::{Action, Scheduler};
use crate::scheduling::sweep::Sweep;
use crate::{Clock, Policies, Profiles, Vault};
use aldaba_delivery::Timestamp;
use aldaba_store::{PendingDelivery, Record, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};

/// How long until a failed read or write of the store is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Inputs that are handled before the next scheduling pass.
const MAX_INPUTS_PER_PASS: usize = 512;

pub(crate) struct Dispatcher {
    pub(crate) scheduler: Scheduler,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) vault: Vault,
    pub(crate) policies: Policies,
    pub(crate) profiles: Profiles,
    pub(crate) sender: Sender,
    pub(crate) recorder: Recorder,
    pub(crate) expirer: Expirer,
    pub(crate) inbox: Inbox,
    pub(crate) inputs: mpsc::UnboundedReceiver<DispatcherInput>,
    pub(crate) background: Background,
    pub(crate) sweep: Sweep,
    /// Records that the store could not write, each with how its delivery is pending afterwards.
    pub(crate) failed_records: Vec<(Record, Option<PendingDelivery>)>,
    /// No attempt starts any more, until the process ends.
    pub(crate) halted_for_good: bool,
    /// Nothing is sent while it is on.
    pub(crate) pause: Pause,
    /// Answered when nothing is in flight.
    pub(crate) stopping: Option<oneshot::Sender<()>>,
    /// The longest sleep, so that a changed clock is noticed.
    pub(crate) max_sleep: Duration,
    /// The time of the last pass.
    pub(crate) last_now: Timestamp,
    /// Notified when due times may be too far ahead.
    pub(crate) clock_went_back: Arc<Notify>,
    /// Notified when deliveries may lack a sequence number.
    pub(crate) sequencing_needed: Arc<Notify>,
}

impl Dispatcher {
    pub(crate) async fn run(mut self) {
        loop {
            let now = self.clock.now();
            if now < std::mem::replace(&mut self.last_now, now) {
                self.scheduler.clock_went_back(now);
                self.sweep.start_over(now);
                self.clock_went_back.notify_one();
            }
            let next_pass = self.run_once(now);
            if self.stopping.is_some() && self.scheduler.in_flight() == 0 {
                if let Some(stopped) = self.stopping.take() {
                    let _ = stopped.send(());
                }
                return;
            }
            let sleep = next_pass.map_or(self.max_sleep, |at| at.since(now).min(self.max_sleep));
            let mut input = self.wait_for_input(sleep).await;
            let now = self.clock.now();
            for _ in 0..MAX_INPUTS_PER_PASS {
                let Some(next) = input else { break };
                self.handle(next, now);
                input = self.inputs.try_recv().ok();
            }
            if let Some(last) = input {
                self.handle(last, now);
            }
        }
    }

    /// Runs a scheduling pass and starts what it returns. Returns when the next pass is due if no input comes before.
    fn run_once(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.sweep.due(now) {
            let horizon = self.sweep.start(&self.store, &self.inbox, &self.background, now);
            self.scheduler.forget_idle(now, horizon);
        }
        let mut unread = Vec::new();
        for action in self.scheduler.run_once(now) {
            match action {
                Action::Read(endpoint) => unread.push(endpoint),
                Action::Refill(query) => self.refill(query),
                Action::Attempt(request) => self.sender.spawn(request),
                Action::End(request, reason) => self.end_unsent(&request, reason, now),
                Action::Search(search) => self.expirer.spawn(search),
            }
        }
        self.read_endpoints(&unread);
        if self.scheduler.has_ready() {
            return Some(now);
        }
        self.scheduler.next_alarm(now).into_iter().chain(self.sweep.next()).min()
    }

    /// The next input. `None`: none has come in this time.
    async fn wait_for_input(&mut self, sleep: Duration) -> Option<DispatcherInput> {
        if sleep.is_zero() {
            // Lets the attempts and reads run that have just started.
            tokio::task::yield_now().await;
            return self.inputs.try_recv().ok();
        }
        tokio::select! {
            biased;
            input = self.inputs.recv() => input,
            () = tokio::time::sleep(sleep) => None,
        }
    }

    fn handle(&mut self, input: DispatcherInput, now: Timestamp) {
        match input {
            DispatcherInput::Event(event) => self.on_event(event, now),
            DispatcherInput::Command(command) => self.on_command(command, now),
            DispatcherInput::Question(question) => self.on_question(question, now),
        }
    }
}
