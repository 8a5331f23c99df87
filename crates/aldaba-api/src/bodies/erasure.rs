//! Erasures: everything that is stored of an application is removed for good.

#[cfg(feature = "server")]
use crate::read::{size, toggle};
use crate::{request, response};

request! {
    /// Whether an application is erased, or only counted.
    Erase "EraseIn" = {"dryRun": true} {
        /// Only count.
        given dry_run: bool = toggle();
    }
}

response! {
    /// What an erasure would remove.
    ErasureCount "ErasureCountOut" of ErasureCountView {
        /// Messages, with their payloads.
        required messages: u64 = size();
        /// Deliveries of these.
        required deliveries: u64 = size();
        /// Attempts, with what came back.
        required attempts: u64 = size();
        /// Endpoints and addresses, deleted ones too.
        required endpoints: u64 = size();
        /// Rows of the audit log that lose their values.
        required audit_rows: u64 = size();
        /// Counting was given up there.
        required at_least: bool;
    }
}
