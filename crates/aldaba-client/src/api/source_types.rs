//! What a source is, and what came in through it.

use aldaba_api::{SourceEventStatus, Timestamp, input};

input! {
    /// Which events.
    SourceEventFilter {
        /// That have come so far.
        status: Option<SourceEventStatus>,
        /// Received before.
        before: Option<Timestamp>,
        /// Received after.
        after: Option<Timestamp>,
    }
}
