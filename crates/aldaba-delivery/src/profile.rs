//! The names of the wire profiles. What each sends is the business of whoever sends.

/// Those that come with the server, by name: no organization can make one of such a name.
pub const BUILTIN_PROFILES: [&str; 5] = ["branded", "job-status", "standard", "svix", "x-webhook"];
