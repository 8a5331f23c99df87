//! Applications and endpoints, created through the API.

use crate::Result;
use crate::api::{Api, Post};
use serde_json::json;
use tokio::task::JoinSet;

/// Connections on which endpoints are created: concurrent requests share commits.
const CONNECTIONS: usize = 64;

/// A new endpoint.
#[derive(Clone, Debug)]
pub(crate) struct NewEndpoint {
    pub(crate) url: String,
    pub(crate) policy: &'static str,
    pub(crate) throttle_rate: Option<u16>,
}

impl NewEndpoint {
    pub(crate) fn new(url: String) -> Self {
        Self { url, policy: "standard", throttle_rate: None }
    }

    pub(crate) fn policy(self, policy: &'static str) -> Self {
        Self { policy, ..self }
    }
}

/// Creates an application with these endpoints; returns the path of its messages.
pub(crate) async fn application(api: &Api, endpoints: Vec<NewEndpoint>) -> Result<String> {
    let app = api.make("/app", json!({"name": "bench"}).to_string()).await?;
    let path = format!("/app/{app}/endpoint");
    let posts = endpoints.into_iter().map(|NewEndpoint { url, policy, throttle_rate }| {
        let body = json!({"url": url, "policy": policy, "throttleRate": throttle_rate}).to_string();
        Post { path: path.clone(), key: None, body }
    });
    make_all(api, posts.collect()).await?;
    Ok(format!("/app/{app}/msg"))
}

/// Posts all of them over a few connections; each must be accepted.
pub(crate) async fn make_all(api: &Api, mut posts: Vec<Post>) -> Result<()> {
    let mut workers = JoinSet::new();
    let share = posts.len().div_ceil(CONNECTIONS).max(1);
    while !posts.is_empty() {
        let (api, posts) = (api.clone(), posts.split_off(posts.len().saturating_sub(share)));
        workers.spawn(async move {
            let mut connection = api.connect().await?;
            for post in posts {
                connection.post(&post).await?.id()?;
            }
            Ok::<_, crate::Error>(())
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked??;
    }
    Ok(())
}
