//! Replays, and recoveries after an outage.

pub mod recoveries;
pub mod replay_filters;
pub mod replays;
