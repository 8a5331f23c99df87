//! Policies as JSON: what the API shows and takes, and what is stored.

mod read;
mod write;

use super::{Policy, PolicyError};
use read::Reader;
use serde_json::Value;

/// What stands for no end.
const UNTIL_REMOVED: &str = "untilRemoved";

impl Policy {
    /// Reads a policy. What is left out is as in `standard`, except that a list of delays also says how
    /// many attempts there are. All that is wrong is named at once.
    pub fn from_json(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let mut reader = Reader::default();
        let spec = reader.policy(value);
        match spec {
            Some(spec) if reader.errors.is_empty() => Self::new(spec).map_err(|error| vec![error]),
            _ => Err(reader.errors),
        }
    }

    /// Reads a policy that somebody gives. Refuses also what former versions have taken, and may have stored.
    pub fn from_request_json(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let policy = Self::from_json(value)?;
        super::validate::check_given(&policy).map_err(|error| vec![error])?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests;
