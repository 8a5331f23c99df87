//! Sends again: replays of many deliveries, and single manual attempts.

mod manual;
mod replays;

pub use manual::{ManualAttempt, NewResend, ResendError};
pub(crate) use manual::{ManualPermits, Resender, Reservation};
pub use replays::{MAX_REPLAYED_DELIVERIES, NewReplay, ReplayCount, Replays};
