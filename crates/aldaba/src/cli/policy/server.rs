//! The policies of a running server.

use crate::cli::server_client::{ServerClient, ServerError};
use aldaba_delivery::Policy;
use http::StatusCode;

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
    server.call(server.client().policies().create(&policy.to_new())).await.map(drop)
}

/// Replaces the policy of the same name.
pub(super) async fn replace(server: &ServerClient, policy: &Policy) -> Result<(), ServerError> {
    server.call(server.client().policies().update(&policy.to_new())).await.map(drop)
}
