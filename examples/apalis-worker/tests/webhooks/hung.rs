//! A worker while Aldaba takes requests and never answers.

use crate::support::World;
use crate::support::gate::Rule;
use crate::work::{Work, enqueue, queue, webhooks};
use apalis::prelude::*;
use std::collections::HashSet;

const JOBS: usize = 60;
/// First tries at once, as it is by default, and the one of the background.
const MAX_REQUESTS: usize = 16 + 1;

#[tokio::test]
async fn a_hung_aldaba_costs_a_worker_few_sockets_and_no_webhook() {
    let mut world = World::new().await;
    world.gate.rule(Rule::HoldRequests);
    let mut ids = HashSet::new();
    for _ in 0..JOBS {
        ids.insert(enqueue(&world, 1).await);
    }
    let worker = WorkerBuilder::new("hung")
        .backend(queue(&world))
        .layer(webhooks(&world))
        .build(|_: Work| async { Ok::<_, BoxDynError>(1) });
    let worker = tokio::spawn(worker.run());
    for id in &ids {
        world.wait_until_stored(id, Status::Done).await;
    }
    // Longer than a first try takes.
    world.receiver.gets_nothing_more().await;
    assert!(world.gate.requests() <= MAX_REQUESTS, "{} requests", world.gate.requests());
    assert!(!worker.is_finished());

    world.gate.rule(Rule::Pass);
    while !ids.is_empty() {
        let webhook = world.receiver.next().await;
        let id = webhook.body["jobId"].as_str().unwrap();
        assert!(ids.remove(id), "a second webhook of {id}");
    }
    worker.abort();
}
