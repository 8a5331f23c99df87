//! Sends again: replays of many deliveries, and single manual attempts.

mod manual;
mod replays;

pub use manual::{ByHand, NewResend, ResendError};
pub(crate) use manual::{Claim, Places, Resender};
pub use replays::{Counted, MOST_OPENED, NewReplay, Replays};
