//! Removes what is no longer kept. `walk.rs` is a round: it makes one bounded search after the other (`search.rs`), and
//! has what they find removed in slices of the writer (`remove.rs`).

mod newest_positions;
mod remove;
mod search;
mod walk;

pub(crate) use remove::remove;
use search::newest_delivered;
pub use search::{Cutoff, ExpiredItem, Search, SettledPosition, StoredKey};
pub(crate) use search::{SearchPage, deleted_applications, kept_endpoints};
pub use walk::RetentionWalk;

use crate::RemovedCounts;
use aldaba_delivery::Timestamp;
use std::time::Duration;

/// What to remove in one slice of the writer.
#[derive(Clone, Debug)]
pub struct Removal {
    pub items: Vec<ExpiredItem>,
    pub now: Timestamp,
    /// How long an event id is remembered at least, counted from the acceptance of its message, though the
    /// message is gone.
    pub event_ids_kept: Duration,
}

/// What became of a [`Removal`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many of the items are dealt with. The rest did not fit into the slice of time.
    pub seen: usize,
    pub counts: RemovedCounts,
    /// How long the writer was busy with it.
    pub took: Duration,
}

#[cfg(any(test, feature = "conformance"))]
pub(super) fn all_statements() -> Vec<&'static super::Statement> {
    [search::statements(), remove::statements()].concat()
}
