//! The policies of a running server.

use crate::cli::api_client::{ApiClient, ApiError};
use aldaba_delivery::Policy;
use http::Method;
use serde_json::Value;

/// All that endpoints of the organization can name, and which of them are its own.
pub(super) async fn policies(server: &ApiClient) -> Result<Vec<Policy>, ApiError> {
    let list = server.ask(Method::GET, "/policy", None).await?;
    let strange = || ApiError::Strange { url: server.url.to_string(), status: http::StatusCode::OK };
    let items = list.get("data").and_then(Value::as_array).ok_or_else(strange)?;
    let policy = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().map(|fields| fields.remove("builtIn"));
        Policy::from_json(&item).map_err(|_| strange())
    };
    items.iter().map(policy).collect()
}
