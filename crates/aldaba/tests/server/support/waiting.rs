//! Waits for a condition, with a deadline. The only sleeps of the tests are here, or say why they are needed.

use super::client::Client;
use serde_json::Value;
use std::time::Duration;

/// A condition that does not hold by then fails its test.
const DEADLINE: Duration = Duration::from_secs(60);
/// The delay between two polls.
const POLL_DELAY: Duration = Duration::from_millis(10);

/// Polls until there is a value.
pub(crate) async fn wait_for<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::time::sleep(POLL_DELAY).await;
        }
    };
    tokio::time::timeout(DEADLINE, polling)
        .await
        .unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"))
}

/// Polls until a condition holds.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    wait_for(what, async || condition().await.then_some(())).await;
}

/// Waits until the next id sorts after all earlier ones: ids have a resolution of 4 ms.
pub(crate) async fn next_id_moment() {
    tokio::time::sleep(Duration::from_millis(8)).await;
}

impl Client {
    /// Polls a path until its answer is as wanted.
    pub(crate) async fn get_until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let polling = wait_for(path, async || {
            last = self.get(path).await.expect(200);
            wanted(&last).then(|| last.clone())
        });
        match tokio::time::timeout(DEADLINE - Duration::from_secs(1), polling).await {
            Ok(answer) => answer,
            Err(_) => panic!("{path}: the answer is still {last}"),
        }
    }

    /// Polls a list until it has this many items.
    pub(crate) async fn list_until(&self, path: &str, count: usize) -> Vec<Value> {
        let page = self.get_until(path, |page| items(page).len() == count).await;
        items(&page).clone()
    }

    /// The id of the newest attempt of a message, once there is one.
    pub(crate) async fn attempt_id(&self, app: &str, message: &str) -> String {
        let path = format!("/app/{app}/attempt/msg/{message}");
        let page = self.get_until(&path, |page| !items(page).is_empty()).await;
        items(&page)[0]["id"].as_str().unwrap().to_owned()
    }
}

fn items(page: &Value) -> &Vec<Value> {
    page["data"].as_array().unwrap_or_else(|| panic!("not a list: {page}"))
}
