//! What is kept of an endpoint's health besides the health itself.

use aldaba_delivery::{Condition, ConditionCause, Timestamp};

/// How many changes are kept for each endpoint. The oldest go first.
pub const HEALTH_CHANGES_KEPT: usize = 100;

/// The newest failed attempt of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    pub at: Timestamp,
    pub status_code: Option<u16>,
    pub text: String,
}

/// Counts the changes of one endpoint, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HealthChangeNumber(pub i64);

/// A change of an endpoint's condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChange {
    pub number: HealthChangeNumber,
    pub at: Timestamp,
    pub was: Condition,
    pub became: Condition,
    pub cause: ConditionCause,
    /// The failure that led to it, where one did.
    pub detail: String,
}

/// A URL up to the slash with which its path begins.
pub(crate) fn url_start(url: &str) -> &str {
    let slashes = url.match_indices('/');
    slashes.take(3).nth(2).map_or(url, |(third, _)| &url[..=third])
}
