//! The worker as a process, and what its jobs tell.

use crate::support::gate::Rule;
use crate::support::{Receiver, World};
use apalis::prelude::Status;
use serde_json::json;

#[tokio::test]
async fn c7_a_job_that_succeeds_at_its_third_try_sends_one_webhook() {
    let mut world = World::new().await;
    let id = world.send("third-time@example.com");
    let _worker = world.work();
    let webhook = world.receiver.next().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 3), "a webhook came before the end was stored");
    assert_eq!(webhook.body["jobId"], id.as_str());
    assert_eq!(webhook.body["jobType"], "email.send");
    assert_eq!(webhook.body["status"], "completed");
    assert_eq!(webhook.body["result"], json!({"to": "third-time@example.com", "attempts": 3}));
    assert_eq!(webhook.body["error"], json!(null));
    assert_eq!(webhook.job_id, Some(id));
    assert_eq!(webhook.event.as_deref(), Some("job.status"));
    world.receiver.gets_nothing_more().await;
}

#[tokio::test]
async fn c1_a_job_that_fails_for_good_sends_one_webhook_with_its_last_error() {
    let mut world = World::new().await;
    let id = world.send("nobody@example.com");
    let _worker = world.work();
    let webhook = world.receiver.next().await;
    assert_eq!(world.stored(&id).await, (Status::Failed, 3), "a webhook came before the end was stored");
    assert_eq!(webhook.body["jobId"], id.as_str());
    assert_eq!(webhook.body["status"], "failed");
    assert_eq!(webhook.body["error"], "nobody@example.com does not exist");
    assert_eq!(webhook.body["result"], json!(null));
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Failed, 3));
}

#[tokio::test]
async fn a_job_that_is_not_worth_another_try_sends_its_webhook_after_the_first() {
    let mut world = World::new().await;
    let id = world.send("banned@example.com");
    let _worker = world.work();
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["status"], "failed");
    assert_eq!(webhook.body["error"], "banned@example.com wants no emails");
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Killed, 1));
}

#[tokio::test]
async fn c1_a_job_without_a_url_asks_nothing_of_aldaba() {
    let mut world = World::new().await;
    let (done, failed) =
        (world.send_without_url("ann@example.com"), world.send_without_url("nobody@example.com"));
    let _worker = world.work();
    world.wait_until_stored(&done, Status::Done).await;
    world.wait_until_stored(&failed, Status::Failed).await;
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.gate.requests(), 0);
}

#[tokio::test]
async fn a_job_that_ends_while_aldaba_is_down_is_reported_later() {
    let mut world = World::new().await;
    world.aldaba.stop();
    world.gate.rule(Rule::HangUp);
    let id = world.send("ann@example.com");
    let _worker = world.work();
    world.wait_until_stored(&id, Status::Done).await;
    world.gate.has_seen(2).await;
    world.aldaba.start_again();
    world.gate.leads_to(world.aldaba.address);
    world.gate.rule(Rule::Pass);
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["jobId"], id.as_str());
    assert_eq!(webhook.body["status"], "completed");
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 1));
}

#[tokio::test]
async fn c1_a_receiver_that_never_takes_it_does_not_repeat_the_job() {
    let mut world = World::with_receiver(Receiver::start(500).await).await;
    let id = world.send("ann@example.com");
    let _worker = world.work();
    // The policy of jobs has three attempts.
    for _ in 0..3 {
        assert_eq!(world.receiver.next().await.body["jobId"], id.as_str());
    }
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 1));
    assert_eq!(world.gate.requests(), 1);
}

#[tokio::test]
async fn c1_a_url_that_aldaba_refuses_does_not_fail_the_job() {
    let mut world = World::new().await;
    let id = world.send_with_url("ann@example.com", "ftp://example.com/not-a-webhook");
    let _worker = world.work();
    world.gate.has_seen(1).await;
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 1));
    assert_eq!(world.gate.requests(), 1, "what is refused was told again");
}

#[tokio::test]
async fn a_worker_killed_while_it_runs_a_job_tells_of_the_run_that_ends_it() {
    let mut world = World::new().await;
    let id = world.send("slow@example.com");
    let worker = world.work();
    world.wait_until_stored(&id, Status::Running).await;
    worker.kill();
    assert_eq!(world.stored(&id).await.0, Status::Running);
    let _worker = world.work();
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["jobId"], id.as_str());
    assert_eq!(webhook.body["status"], "completed");
    world.receiver.gets_nothing_more().await;
    // A crash counts as an attempt.
    assert_eq!(world.stored(&id).await, (Status::Done, 2));
}

/// The gap that the documents speak of.
#[tokio::test]
async fn a_worker_killed_before_the_dispatch_sends_no_webhook() {
    let mut world = World::new().await;
    world.gate.rule(Rule::HoldRequests);
    let id = world.send("ann@example.com");
    let worker = world.work();
    world.gate.holds().await;
    worker.kill();
    assert_eq!(world.stored(&id).await, (Status::Done, 1));
    world.gate.rule(Rule::Pass);
    let _worker = world.work();
    // The new worker does what comes next, and has long been told what the old one left.
    let next = world.send("bob@example.com");
    assert_eq!(world.receiver.next().await.body["jobId"], next.as_str());
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 1));
}

#[tokio::test]
async fn a_worker_that_reports_before_the_end_is_stored_sends_one_webhook_too() {
    let mut world = World::new().await;
    let (completed, failed) = (world.send("third-time@example.com"), world.send("nobody@example.com"));
    let _worker = world.work_and_report_before_stored();
    let mut ends = [world.receiver.next().await.body, world.receiver.next().await.body].map(|body| {
        (body["jobId"].as_str().unwrap().to_owned(), body["status"].as_str().unwrap().to_owned())
    });
    let mut wanted = [(completed, "completed".to_owned()), (failed, "failed".to_owned())];
    ends.sort();
    wanted.sort();
    assert_eq!(ends, wanted);
    world.receiver.gets_nothing_more().await;
}

#[tokio::test]
async fn a_worker_killed_before_aldaba_has_the_end_runs_the_job_again_if_it_reports_before_storing() {
    let mut world = World::new().await;
    world.gate.rule(Rule::HoldRequests);
    let id = world.send("ann@example.com");
    let worker = world.work_and_report_before_stored();
    world.gate.holds().await;
    worker.kill();
    assert_ne!(world.stored(&id).await.0, Status::Done);
    world.gate.rule(Rule::Pass);
    let _worker = world.work_and_report_before_stored();
    assert_eq!(world.receiver.next().await.body["jobId"], id.as_str());
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 2));
}

#[tokio::test]
async fn a_worker_killed_after_aldaba_has_the_end_runs_the_job_again_but_sends_no_second_webhook() {
    let mut world = World::new().await;
    world.gate.rule(Rule::HoldAnswers);
    let id = world.send("ann@example.com");
    let worker = world.work_and_report_before_stored();
    world.gate.holds().await;
    worker.kill();
    let webhook = world.receiver.next().await;
    assert_eq!(webhook.body["jobId"], id.as_str());
    assert_ne!(world.stored(&id).await.0, Status::Done);
    world.gate.rule(Rule::Pass);
    let _worker = world.work_and_report_before_stored();
    world.wait_until_stored(&id, Status::Done).await;
    world.gate.has_seen(2).await;
    world.receiver.gets_nothing_more().await;
    assert_eq!(world.stored(&id).await, (Status::Done, 2));
}
