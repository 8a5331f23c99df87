//! Decides which delivery is sent next, and when.
//!
//! The [dispatcher] owns the lanes and carries out what the [scheduler] selects. A [lane] is the
//! queue of one endpoint; [gates] hold back origins that fail; a [sweep] finds deliveries that memory does
//! not know of.

mod cancel;
mod dispatcher;
mod expiry;
mod gates;
mod held_hosts;
mod lane;
mod scheduler;
mod sweep;
mod wait_reasons;

pub use cancel::{Cancel, Cancelled};
pub(crate) use dispatcher::{
    Dispatcher, Inbox, QueuedDelivery, SchedulingCommand, SchedulingEvent, SchedulingQuestion,
};
pub(crate) use expiry::Expirer;
pub use gates::GateBacklog;
pub(crate) use gates::{GATE_RETENTION, GateLimits, Gates, HeldList};
pub use held_hosts::HeldHost;
pub(crate) use lane::{FixedMap, LaneClass};
pub use scheduler::SchedulingProgress;
pub(crate) use scheduler::{MayStart, Scheduler};
pub(crate) use sweep::Sweep;
pub(crate) use wait_reasons::WaitQuestion;
pub use wait_reasons::{HostHold, WaitReasons};
