//! Lists, single items and statistics.

pub mod deliveries;
pub mod dispatching;
pub mod history;
pub mod lists;
pub mod organizations;
pub mod overviews;
pub mod statistics;
