//! Decides which delivery is sent next, and when.
//!
//! The [dispatcher](task) owns the lanes and carries out what the [turns](scheduler) select. A [lane](lane) is the
//! queue of one endpoint; [gates](gates) hold back origins that fail; a [sweep](sweep) finds deliveries that memory does
//! not know of.

mod cancel;
mod expiry;
mod gates;
mod held_hosts;
mod lane;
mod scheduler;
mod sweep;
mod task;
mod wait_reasons;

pub use cancel::{Cancel, Cancelled};
pub(crate) use expiry::Expirer;
pub use gates::Behind;
pub(crate) use gates::{FORGOTTEN_AFTER, GateLimits, Gates};
pub use held_hosts::HeldHost;
pub(crate) use lane::{FixedMap, Standing};
pub(crate) use scheduler::{MayStart, Turns};
pub(crate) use sweep::Sweep;
pub(crate) use task::{Dispatcher, Event, Inbox, Offer};
pub(crate) use wait_reasons::Question;
pub use wait_reasons::{HostHold, Outlook};
