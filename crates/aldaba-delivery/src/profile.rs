//! The names of the wire profiles. The engine defines their headers.

/// The built-in profiles. No organization can use these names.
pub const BUILTIN_PROFILES: [&str; 5] = ["branded", "job-status", "standard", "svix", "x-webhook"];
