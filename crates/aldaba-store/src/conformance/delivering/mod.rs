//! Lanes, results of attempts, health and order.

pub mod by_hand;
pub mod due_times;
pub mod health;
pub mod lanes;
pub mod ordering;
pub mod recording;
pub mod stop_dates;
