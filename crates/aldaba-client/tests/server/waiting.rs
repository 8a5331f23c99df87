//! Waits for a condition, with a deadline.

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
