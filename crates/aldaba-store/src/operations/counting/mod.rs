//! Counters of attempts, deliveries and messages, and their sums.

pub(crate) mod commit_watch;
pub(crate) mod counters;
pub(crate) mod live;
pub(crate) mod organizations;
pub(crate) mod overviews;
pub(crate) mod quota;
pub(crate) mod statistics;
