//! Layers that make something else of what came of a job. The webhook tells what the queue has stored, and nothing
//! in it contradicts that.

use crate::support::World;
use crate::work::{Work, enqueue, queue, webhooks};
use apalis::prelude::*;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// How often a job was refused, in the one test where that happens.
static REFUSALS: AtomicUsize = AtomicUsize::new(0);

type Outcome = Result<String, BoxDynError>;

#[derive(Clone, Copy)]
enum Meddling {
    /// Success becomes failure.
    Spoils,
    /// Failure becomes success.
    Saves,
    /// The job is not run, this time.
    Refuses,
    /// The job is not run, ever.
    Forbids,
}

#[derive(Clone)]
struct Meddler<S>(Meddling, S);

impl<S> Layer<S> for Meddling {
    type Service = Meddler<S>;

    fn layer(&self, inner: S) -> Meddler<S> {
        Meddler(*self, inner)
    }
}

impl<S> Service<Task<Work>> for Meddler<S>
where
    S: Service<Task<Work>, Response = String>,
    S::Error: Into<BoxDynError>,
    S::Future: Send + 'static,
{
    type Response = String;
    type Error = BoxDynError;
    type Future = Pin<Box<dyn Future<Output = Outcome> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        self.1.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, task: Task<Work>) -> Self::Future {
        let meddling = self.0;
        match meddling {
            Meddling::Refuses if REFUSALS.fetch_add(1, Ordering::SeqCst) < 2 => {
                return Box::pin(async { Err("overloaded".into()) });
            }
            Meddling::Forbids => return Box::pin(async { Err(AbortError::new("forbidden").into()) }),
            _ => {}
        }
        let running = self.1.call(task);
        Box::pin(async move {
            match (meddling, running.await.map_err(Into::into)) {
                (Meddling::Spoils, Ok(result)) => Err(format!("not good enough: {result}").into()),
                (Meddling::Saves, Err(error)) => Ok(format!("in spite of: {error}")),
                (_, outcome) => outcome,
            }
        })
    }
}

/// Runs a job of two attempts under such a layer; what its webhook says, and what the queue has stored.
async fn ended(meddling: Meddling, job: fn() -> Outcome) -> (Value, (Status, usize)) {
    let mut world = World::new().await;
    let id = enqueue(&world, 2).await;
    let worker = WorkerBuilder::new("meddling")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .layer(meddling)
        .build(move |_: Work| async move { job() });
    let worker = tokio::spawn(worker.run());
    let webhook = world.receiver.next().await;
    world.receiver.gets_nothing_more().await;
    let stored = world.stored(&id).await;
    worker.abort();
    (webhook.body, stored)
}

#[tokio::test]
async fn a_success_that_a_layer_turns_into_a_failure_is_reported_as_stored() {
    let (webhook, stored) = ended(Meddling::Spoils, || Ok("sent".into())).await;
    assert_eq!(stored, (Status::Done, 1));
    assert_eq!((&webhook["status"], &webhook["error"]), (&"completed".into(), &Value::Null), "{webhook}");
    assert_eq!(webhook["result"], Value::Null, "it was lost in the layer: {webhook}");
}

#[tokio::test]
async fn a_failure_that_a_layer_turns_into_a_success_is_reported_as_stored() {
    let (webhook, stored) = ended(Meddling::Saves, || Err("mailbox full".into())).await;
    assert_eq!(stored, (Status::Failed, 2));
    assert_eq!((&webhook["status"], &webhook["result"]), (&"failed".into(), &Value::Null), "{webhook}");
    let error = webhook["error"].as_str().unwrap();
    assert!(error.contains("a layer of the worker"), "{webhook}");
}

#[tokio::test]
async fn a_job_that_a_layer_refuses_is_run_when_it_is_let_through() {
    let (webhook, stored) = ended(Meddling::Refuses, || Ok("sent".into())).await;
    assert_eq!(stored, (Status::Done, 1));
    assert_eq!((&webhook["status"], &webhook["result"]), (&"completed".into(), &"sent".into()));
    assert_eq!(REFUSALS.load(Ordering::SeqCst), 3, "refused twice, and let through");
}

#[tokio::test]
async fn a_job_that_a_layer_forbids_has_ended() {
    let (webhook, stored) = ended(Meddling::Forbids, || Ok("never run".into())).await;
    assert_eq!(stored, (Status::Killed, 0));
    assert_eq!((&webhook["status"], &webhook["error"]), (&"failed".into(), &"forbidden".into()));
}
