//! The policies of a running server.

use crate::cli::server_client::{ServerClient, ServerError};
use aldaba_client::NewPolicy;
use aldaba_delivery::Policy;
use http::StatusCode;
use serde_json::Value;

/// Every policy that endpoints of the organization can name: the built-in ones and its own.
pub(super) async fn policies(server: &ServerClient) -> Result<Vec<Policy>, ServerError> {
    let listed = server.call(server.client().policies().list()).await?;
    let unreadable = || ServerError::NotAldaba { url: server.url().to_string(), status: StatusCode::OK };
    let policy = |listed: &aldaba_client::Policy| {
        let mut json = serde_json::to_value(listed).ok()?;
        json.as_object_mut()?.remove("builtIn");
        Policy::from_json(&json).ok()
    };
    listed.iter().map(|listed| policy(listed).ok_or_else(unreadable)).collect()
}

/// Creates a policy.
pub(super) async fn create(server: &ServerClient, policy: &Policy) -> Result<(), ServerError> {
    let new = request(policy)?;
    server.call(server.client().policies().create(&new)).await.map(drop)
}

/// Replaces the policy of the same name.
pub(super) async fn replace(server: &ServerClient, policy: &Policy) -> Result<(), ServerError> {
    let new = request(policy)?;
    server.call(server.client().policies().update(&new)).await.map(drop)
}

fn request(policy: &Policy) -> Result<NewPolicy, ServerError> {
    let json: Value = policy.to_json();
    serde_json::from_value(json)
        .map_err(|error| ServerError::Request(format!("a bug: the policy cannot be sent: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::policy::Overrides;
    use aldaba_engine::Policies;

    #[test]
    fn every_field_of_a_policy_is_sent() {
        let policies = Policies::new(&Overrides::default()).unwrap();
        for name in policies.builtin_names() {
            let policy = policies.builtin(name).unwrap();
            let sent = serde_json::to_value(request(policy).unwrap()).unwrap();
            assert_eq!(Policy::from_json(&sent).unwrap(), *policy, "{name}");
        }
    }
}
