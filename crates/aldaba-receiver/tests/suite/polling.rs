//! Waits for a condition, with a deadline.

#![allow(dead_code, reason = "each suite uses its own part of this module")]

use super::scene::PATIENT;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The delay between two polls.
const POLL_DELAY: Duration = Duration::from_millis(10);

/// How long a task must wait to count as waiting.
const A_WHILE: Duration = Duration::from_millis(300);

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
    tokio::time::timeout(PATIENT, polling).await.unwrap_or_else(|_| panic!("not within {PATIENT:?}: {what}"))
}

/// Polls until a condition holds.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    wait_for(what, async || condition().await.then_some(())).await;
}

/// Asserts that a task does not end for a while.
pub(crate) async fn still_waits<T>(task: &JoinHandle<T>) {
    tokio::time::sleep(A_WHILE).await;
    assert!(!task.is_finished(), "it did not wait");
}
