//! Hosts that look down, and are held back.

#[cfg(feature = "server")]
use crate::read::{moment, size};
use crate::{Timestamp, response};

response! {
    ($)
    /// For whom a host is held back.
    HostScope "ScopeOut" of HostScopeView {
        /// `application`: the hold binds that application. `host`: all applications of the organization, and no other
        /// organization.
        required scope: String;
        /// Which application.
        nullable application_id: String;
    }
    each host_scope_fields;
}

response! {
    /// A host that is held back.
    Host "HostOut" of HostView with { scope: HostScope as host_scope_fields; } {
        /// Scheme, host and port.
        required origin: String;
        /// Since when.
        nullable since: Timestamp = moment();
        /// Until when.
        nullable until: Timestamp = moment();
        /// Why.
        required why: String;
        /// Failures in a row.
        required failures: u32;
        /// The hold is over, and one request is on its way to find out more.
        required probing: bool;
        /// Endpoints that wait for it.
        required lanes: u64 = size();
        /// Deliveries that wait for it.
        required deliveries: u64 = size();
    }
}

response! {
    /// A host that was released.
    Released "ReleasedOut" of ReleasedView {
        /// Scheme, host and port.
        required origin: String;
        /// For whom.
        required released: Vec<HostScope>;
    }
}
