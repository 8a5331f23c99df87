//! A mark in a key-value store: at least once, and repeats that come after the mark are duplicates.

use crate::world::World;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shop::{Manner, eventually, fresh};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const DAYS_30: i64 = 30 * 24 * 60 * 60;

/// The file of an event's mark.
fn mark(world: &World, id: &str) -> Option<(PathBuf, Value)> {
    let files = fs::read_dir(&world.keys).unwrap().map(|file| file.unwrap().path());
    let read = |path: PathBuf| {
        let entry: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        (path, entry)
    };
    files.map(read).find(|(_, entry)| entry["key"] == format!("event:{id}"))
}

pub(crate) async fn e13_a_first_event_is_handled_and_repeats_are_duplicates(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let first = world.sender.deliver(&id, &payment.body()).await;
    assert!(first.is_new(), "{first:?}");
    for _ in 0..2 {
        let repeat = world.sender.deliver(&id, &payment.body()).await;
        assert!(repeat.is_duplicate(), "{repeat:?}");
    }
    assert_eq!(world.backend.calls(&id), [payment.event()]);
}

/// E10: the record of an event that failed carries its error, and is no mark.
pub(crate) async fn a_failure_is_noted_with_its_error_and_the_next_try_is_handled(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    world.backend.answers(Manner::Badly);
    let failed = world.sender.deliver(&id, &payment.body()).await;
    assert_eq!(failed.status, 500, "{failed:?}");
    let (_, note) = eventually("the note", async || mark(&world, &id)).await;
    let note: Value = serde_json::from_str(note["value"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&note["status"], &note["error"]),
        (&json!("failed"), &json!("the backend answered 500")),
        "{note}"
    );
    assert!(note["failedAt"].is_string() && note["processedAt"].is_null(), "{note}");
    world.backend.answers(Manner::Well);
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    assert!(world.sender.deliver(&id, &payment.body()).await.is_duplicate());
    assert_eq!(world.backend.calls(&id).len(), 2);
}

/// The backend is called again, with the same key: this is what "at least once" means.
pub(crate) async fn a_crash_before_the_mark_loses_nothing(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    world.backend.answers(Manner::Never);
    let (sender, delivery) = (world.sender, world.sender.sign(&id, payment.body()));
    let cut_off = tokio::spawn(async move { sender.try_send(delivery).await });
    eventually("the call", async || (world.backend.calls(&id).len() == 1).then_some(())).await;
    let mut running = world.running.lock().await;
    running.kill();
    assert!(cut_off.await.unwrap().is_err());
    running.start_again().await;
    world.backend.answers(Manner::Well);
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    assert_eq!(world.backend.calls(&id).len(), 2);
}

/// Shown, not claimed: how many run depends on the moment. All are answered, and none after the mark runs.
pub(crate) async fn parallel_copies_may_run_beside_each_other(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    world.backend.answers(Manner::Slowly(Duration::from_millis(100)));
    let body = payment.body();
    let answers = join_all((0..10).map(|_| world.sender.deliver(&id, &body))).await;
    world.backend.answers(Manner::Well);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let ran = world.backend.calls(&id).len();
    println!("ten parallel copies with a mark that is not atomic: {ran} ran");
    assert!(world.sender.deliver(&id, &body).await.is_duplicate());
    assert_eq!(world.backend.calls(&id).len(), ran);
}

pub(crate) async fn e3_a_mark_is_kept_for_30_days(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    let (path, mut entry) = mark(&world, &id).unwrap();
    let value: Value = serde_json::from_str(entry["value"].as_str().unwrap()).unwrap();
    assert_eq!(value["type"], "payment.success");
    assert!(value["processedAt"].is_string());
    let left = entry["expiresAt"].as_i64().unwrap() / 1000 - shop::now();
    assert!((DAYS_30 - 60..=DAYS_30).contains(&left), "{left} s");
    // When it is over, the event is new again.
    entry["expiresAt"] = 1.into();
    fs::write(&path, entry.to_string()).unwrap();
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
}

pub(crate) async fn a_store_that_is_away_is_503_with_retry_after(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let aside = world.keys.with_extension("aside");
    fs::rename(&world.keys, &aside).unwrap();
    fs::write(&world.keys, "").unwrap();
    let answer = world.sender.deliver(&id, &payment.body()).await;
    fs::remove_file(&world.keys).unwrap();
    fs::rename(&aside, &world.keys).unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    assert!(world.backend.calls(&id).is_empty());
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
}

/// Whoever opens a pipe waits until somebody writes into it.
pub(crate) async fn a_store_that_hangs_is_503_with_retry_after(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    let (path, entry) = mark(&world, &id).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    // In a task, so that the pipe is cleared away whatever comes of it.
    let answer = tokio::spawn(world.sender.send_to_end(world.sender.sign(&id, payment.body()))).await;
    fs::write(&path, entry.to_string()).unwrap();
    fs::remove_file(&path).unwrap();
    let answer = answer.unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(world.backend.calls(&id).len(), 1);
}

/// The library keeps its leases under the same keys, and other programs what they like.
pub(crate) async fn a_record_counts_by_its_status_and_one_that_nobody_can_read_is_a_mark(world: Arc<World>) {
    let other = "0".repeat(64);
    let (payment, id) = (world.payment().await, fresh("evt"));
    let answer = world.sender.deliver(&id, &payment.body()).await;
    assert!(answer.is_new(), "{answer:?}");
    let (path, mut entry) = mark(&world, &id).unwrap();
    for (record, status, again, runs) in [
        (json!({"status": "processing", "receivedAt": "2999-01-01T00:00:00Z"}).to_string(), 409, true, 0),
        (json!({"status": "processing", "receivedAt": "2020-01-01T00:00:00Z"}).to_string(), 200, false, 1),
        (json!({"status": "failed", "digest": other}).to_string(), 200, false, 1),
        (json!({"status": "processed"}).to_string(), 200, false, 0),
        (json!({"status": "processed", "digest": other}).to_string(), 409, false, 0),
        (json!({"status": "processed", "digest": "of another kind"}).to_string(), 200, false, 0),
        (json!({"status": "done"}).to_string(), 200, false, 0),
        (json!({}).to_string(), 200, false, 0),
        ("null".into(), 200, false, 0),
        ("1".into(), 200, false, 0),
        ("handled by another program".into(), 200, false, 0),
    ] {
        entry["value"] = record.as_str().into();
        fs::write(&path, entry.to_string()).unwrap();
        let before = world.backend.count();
        let answer = world.sender.deliver(&id, &payment.body()).await;
        assert_eq!(answer.status, status, "{record}: {answer:?}");
        assert_eq!(answer.header("retry-after").is_some(), again, "{record}: {answer:?}");
        assert_eq!(answer.is_duplicate(), status == 200 && runs == 0, "{record}: {answer:?}");
        assert_eq!(world.backend.count() - before, runs, "{record}");
    }
}
