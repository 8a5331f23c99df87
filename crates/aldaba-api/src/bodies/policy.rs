//! What a retry policy would do.

#[cfg(feature = "server")]
use crate::read::size;
use crate::response;

response! {
    /// What a policy would do.
    Previewed "PreviewOut" of PreviewedView {
        /// Its name.
        required policy: String;
        /// For how long the receiver refuses connections.
        nullable outage: String;
        /// Of the chances in it.
        required seed: u64;
        /// What would be tried when.
        required attempts: Vec<PlannedAttempt>;
        /// Seconds after the first attempt; null: it never arrives.
        nullable arrives_at: f64;
        /// It would arrive.
        required delivered: bool;
        /// Why not.
        nullable reason: String;
    }
}

response! {
    /// An attempt that would be made.
    PlannedAttempt "Planned" of PlannedAttemptView {
        /// Its number.
        required attempt: u32 = size();
        /// Seconds from the first.
        required at: f64;
        /// The same in words.
        required after: String;
    }
}
