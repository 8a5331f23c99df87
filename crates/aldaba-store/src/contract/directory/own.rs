//! What organizations have made for their endpoints to name.

use aldaba_delivery::{OrgId, Policy, Timestamp};

/// A policy that an organization has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPolicy {
    pub org: OrgId,
    pub policy: Policy,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A wire profile that an organization has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProfile {
    pub org: OrgId,
    pub name: String,
    /// What it is, as JSON. The store never looks inside.
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
