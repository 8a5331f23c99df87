//! The engine inside a program: this one.

mod bad_input;
mod dead_letter;
mod dispatch;
mod endpoints;
mod events;
#[path = "../../examples/embedded.rs"]
#[expect(dead_code, reason = "its `main` is not called here")]
mod example;
mod life;
mod locked;
mod receiver;
mod several;
mod start;

use aldaba_embedded::{Aldaba, Application, Builder, Event, Message, MessageId};
use serde_json::json;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Deliveries may go to this machine.
fn builder(folder: &Path) -> Builder {
    Aldaba::builder().sqlite(folder).allow("127.0.0.0/8").low_space(0)
}

async fn start(folder: &Path) -> Aldaba {
    builder(folder).start().await.expect("it starts")
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch: how long callers wait is what is tested")]
async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let started = std::time::Instant::now();
    let output = future.await;
    (output, started.elapsed())
}

fn event(number: usize) -> Event {
    Event::new("a.thing", &json!({"n": number})).expect("an object")
}

/// The message once all of its deliveries have ended.
async fn ended(app: &Application, message: MessageId) -> Message {
    wait_for("the message has ended", async || {
        let found = app.message(message).await.expect("it can be read").expect("it is kept");
        found.has_ended().then_some(found)
    })
    .await
}

/// Polls until there is a value; fails after 30 s.
async fn wait_for<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let polled = tokio::time::timeout(Duration::from_secs(30), polling).await;
    polled.unwrap_or_else(|_| panic!("not within 30 s: {what}"))
}

/// Polls until a condition holds.
async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    wait_for(what, async || condition().await.then_some(())).await;
}

#[tokio::test]
async fn the_example_prints_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let lines = Mutex::new(Vec::new());
    example::run(folder.path(), |line| lines.lock().unwrap().push(line)).await.unwrap();
    let mut lines = lines.into_inner().unwrap();
    // The two deliveries are in the order of the endpoints' ids, and ids made within 4 ms are in none.
    lines[3..5].sort_by(|a, b| b.cmp(a));
    assert!(lines[0].starts_with("customer-17 verifies with whsec_"), "{lines:?}");
    assert_eq!(
        lines[1..],
        [
            "accepted a new event",
            "sent again: the same one",
            "good: delivered, attempts: 1",
            "bad: given up, attempts: 3, the last: HTTP 500: Internal Server Error",
            "sent once more by hand: delivered",
            "stopped, in flight: 0",
        ]
    );
}
