//! The layer in workers of other shapes: with retries of their own, with panics and timeouts, with little room.

use crate::support::World;
use crate::work::{Work, enqueue, queue, webhooks};
use apalis::prelude::*;
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;

#[tokio::test]
async fn retries_within_the_worker_are_one_run() {
    let mut world = World::new().await;
    let id = enqueue(&world, 3).await;
    let worker = WorkerBuilder::new("retries")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .retry(RetryPolicy::retries(2))
        .build(|_: Work, attempt: Attempt| async move {
            if attempt.current() < 3 { Err("not yet") } else { Ok(attempt.current()) }
        });
    let worker = tokio::spawn(worker.run());
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["status"], "completed");
    assert_eq!(webhook.body["result"], json!(3));
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 3));
    worker.abort();
}

#[tokio::test]
async fn retries_within_the_worker_that_are_used_up_are_no_end_while_the_queue_has_attempts_left() {
    let mut world = World::new().await;
    let id = enqueue(&world, 4).await;
    let worker = WorkerBuilder::new("retries")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .retry(RetryPolicy::retries(1))
        .build(|_: Work, attempt: Attempt| async move {
            Err::<(), _>(format!("failed at attempt {}", attempt.current()))
        });
    let worker = tokio::spawn(worker.run());
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["status"], "failed");
    assert_eq!(webhook.body["error"], "failed at attempt 4");
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Failed, 4));
    worker.abort();
}

#[tokio::test]
async fn a_panic_that_is_caught_is_a_failure_for_good() {
    let mut world = World::new().await;
    let id = enqueue(&world, 3).await;
    let worker = WorkerBuilder::new("panics")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .catch_panic()
        .build(panics);
    let worker = tokio::spawn(worker.run());
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["status"], "failed");
    assert!(webhook.body["error"].as_str().unwrap().contains("no such mailbox"), "{webhook:?}");
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Killed, 1));
    worker.abort();
}

async fn panics(_: Work) {
    panic!("no such mailbox");
}

#[tokio::test]
async fn a_timeout_is_a_failure_that_the_queue_tries_again() {
    let mut world = World::new().await;
    let id = enqueue(&world, 2).await;
    let worker = WorkerBuilder::new("timeouts")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .timeout(Duration::from_millis(50))
        .build(never_ends);
    let worker = tokio::spawn(worker.run());
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["status"], "failed");
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Failed, 2));
    worker.abort();
}

async fn never_ends(_: Work) {
    std::future::pending().await
}

/// apalis stores no end while tasks of a batch wait in its memory; here that is for longer than a job takes.
#[tokio::test]
async fn a_sequential_worker_reports_every_job() {
    let mut world = World::new().await;
    let mut ids = HashSet::new();
    for _ in 0..5 {
        ids.insert(enqueue(&world, 3).await);
    }
    let worker = WorkerBuilder::new("one-at-a-time")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .concurrency(1)
        .build(takes_a_moment);
    let worker = tokio::spawn(worker.run());
    for _ in 0..5 {
        let webhook = world.receiver.next().await;
        let id = webhook.body["jobId"].as_str().unwrap();
        assert_eq!(world.stored(id).await, (Status::Done, 1), "a webhook came before the end was stored");
        assert!(ids.remove(id), "a second webhook of {id}");
    }
    world.receiver.gets_nothing_more().await;
    worker.abort();
}

async fn takes_a_moment(_: Work) {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

#[tokio::test]
async fn a_worker_that_stops_waits_for_the_webhooks_of_its_last_jobs() {
    let mut world = World::new().await;
    let id = enqueue(&world, 3).await;
    let webhooks = webhooks(&world);
    let worker = WorkerBuilder::new("stops")
        .backend(queue(&world))
        .layer(webhooks.clone())
        .build(|_: Work, worker: WorkerContext| async move { worker.stop() });
    worker.run().await.unwrap();
    let left = webhooks.finish(crate::support::WAIT_TIMEOUT).await;
    assert_eq!(left.jobs, []);
    assert_eq!(world.gate.requests(), 1, "it ended before its webhook was dispatched");
    assert_eq!(world.receiver.next().await.body["jobId"], id.as_str());
    world.receiver.gets_nothing_more().await;
}
