//! Policies as JSON, for the API and the store.

mod read;
mod write;

use super::{Policy, PolicyError};
use read::PolicyReader;
use serde_json::Value;

/// The JSON value for no end.
const UNTIL_REMOVED: &str = "untilRemoved";

impl Policy {
    /// Parses a policy. Missing fields are as in `standard`, except that a list of delays also sets the number
    /// of attempts. All errors are reported at once.
    pub fn from_json(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let mut reader = PolicyReader::default();
        let spec = reader.policy(value);
        match spec {
            Some(spec) if reader.errors.is_empty() => Self::new(spec).map_err(|error| vec![error]),
            _ => Err(reader.errors),
        }
    }

    /// Parses a policy of a request. It also rejects values that former versions accepted and may have stored.
    pub fn from_request_json(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let policy = Self::from_json(value)?;
        super::validate::check_given(&policy).map_err(|error| vec![error])?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests;
