//! The lines that the documents ask for in the log. One subscriber serves the whole program.

#![cfg(feature = "sqlite")]

use aldaba_receiver::inbound::{Inspector, Place, Recipe};
use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Cleanup, Event, Receiver};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines so far that have these words.
fn lines(words: &[&str]) -> Vec<String> {
    let logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let text = String::from_utf8(logged).unwrap();
    text.lines().filter(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned).collect()
}

async fn receiver(folder: &tempfile::TempDir, name: &str) -> Receiver<SqliteLedger> {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Log);
        tracing::subscriber::set_global_default(log.finish()).unwrap();
    });
    let ledger = SqliteLedger::open(folder.path().join("ledger.db")).unwrap();
    ledger.migrate().await.unwrap();
    let recipe = Recipe::unsigned().with_id(Place::parse("header:webhook-id").unwrap());
    Receiver::builder(Inspector::new(recipe, []).unwrap(), ledger).named(name).build()
}

async fn send(receiver: &Receiver<SqliteLedger>, id: &'static str) {
    let headers: HeaderMap = HeaderMap::from_iter([("webhook-id".parse().unwrap(), id.parse().unwrap())]);
    let handler = async |_: Event, _| Ok(());
    let answer = receiver.handle(&Method::POST, &headers, Bytes::from_static(b"{}"), handler).await;
    assert_eq!(http::Response::<Bytes>::from(answer).status(), 200);
}

#[tokio::test]
async fn e7_the_rate_of_duplicates_is_a_line_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let first = receiver(&folder, "rated").await;
    for id in ["a", "b", "c"] {
        send(&first, id).await;
    }
    first.finish(Duration::from_secs(10)).await;
    assert!(lines(&["duplicate rate", "receiver=\"rated\""]).is_empty(), "there were none");
    drop(first);
    // As after a restart.
    let second = receiver(&folder, "rated").await;
    send(&second, "a").await;
    second.finish(Duration::from_secs(10)).await;
    let found = lines(&["duplicate rate", "receiver=\"rated\""]);
    let [line] = &found[..] else { panic!("{found:?}") };
    assert!(
        line.contains(" INFO ") && line.contains("duplicate rate: 25.00% of 4 events within 24 h"),
        "{line}"
    );
    assert!(line.contains("duplicates=1 total=4 hours=24"), "{line}");
}

#[tokio::test]
async fn e7_the_line_comes_by_itself_some_seconds_after_a_duplicate() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = receiver(&folder, "by itself").await;
    for _ in 0..4 {
        send(&receiver, "a").await;
    }
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if !lines(&["duplicate rate: 75.00% of 4 events", "receiver=\"by itself\""]).is_empty() {
            return;
        }
    }
    panic!("it did not come");
}

#[tokio::test]
async fn e6_each_cleanup_is_a_line_in_the_log_with_the_number_of_marks() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = receiver(&folder, "cleaned").await;
    for id in ["a", "b", "c"] {
        send(&receiver, id).await;
    }
    // The database's clock has milliseconds.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let cleanup = Cleanup::of(&receiver).keep(Duration::from_millis(1)).start();
    let mut reports = cleanup.reports();
    reports.wait_for(Option::is_some).await.unwrap();
    let found = lines(&["removed old marks"]);
    assert!(
        found.iter().any(|line| line.contains(" INFO ") && line.contains("removed=3 keep=1ms")),
        "{found:?}"
    );
    cleanup.stop().await;
}
