//! The dispatcher, against the real server.

use crate::proxy::{Fault, Proxy};
use crate::running::{Running, client_of, free_address, timed, token};
use aldaba_client::{
    Client, Dispatched, Dispatcher, DispatcherBuilder, DispatcherStats, Error, Job, JobRecord, JobStatus,
    Json, Leftover,
};
use futures_util::TryStreamExt;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

const BUSY: &str = r#"{"code": "busy", "detail": "The server is busy. Nothing was stored; try again"}"#;

fn job(n: u32) -> Job {
    named(&n.to_string())
}

fn named(id: &str) -> Job {
    let webhook_url = Some("http://127.0.0.1:9/done".into());
    Job { id: id.to_owned(), job_type: "email.send".into(), webhook_url }
}

fn quick(address: SocketAddr) -> DispatcherBuilder {
    Dispatcher::builder(client_of(address), "acme")
        .pauses(Duration::from_millis(20), Duration::from_millis(100))
        // Long enough for one that gets through on a busy machine.
        .first_try(Duration::from_secs(2))
}

async fn completed(dispatcher: &Dispatcher, job: &Job) -> Dispatched {
    dispatcher.dispatch(job, JobStatus::Completed, Some(json!({"sent": true})), None).await
}

fn stats(accepted: u64, retrying: u64, refused: u64, dropped: u64) -> [u64; 4] {
    [accepted, retrying, refused, dropped]
}

fn shown(stats: DispatcherStats) -> [u64; 4] {
    [stats.accepted, stats.retrying, stats.refused, stats.dropped]
}

async fn records(server: &Running) -> Vec<JobRecord> {
    server.client.app("acme").jobs().list_all().try_collect().await.unwrap()
}

#[tokio::test]
async fn c7_without_a_url_nothing_happens_and_nothing_is_asked() {
    let dispatcher = quick(free_address()).build();
    for webhook_url in [None, Some(String::new())] {
        let job = Job { webhook_url, ..job(1) };
        assert!(matches!(completed(&dispatcher, &job).await, Dispatched::NoUrl));
    }
    assert_eq!(shown(dispatcher.stats()), stats(0, 0, 0, 0));
}

#[tokio::test]
async fn c7_what_is_accepted_is_on_record_with_what_the_job_said() {
    let server = Running::start().await;
    server.application("acme").await;
    let dispatcher = quick(server.address).build();
    let Dispatched::Accepted(record) = completed(&dispatcher, &named("a")).await else {
        panic!("not accepted")
    };
    assert_eq!((record.job_id.as_str(), record.max_attempts), ("a", Some(3)));
    assert_eq!(record.payload.value()["result"], json!({"sent": true}));
    let why = Some("no such mailbox".to_owned());
    let failed = dispatcher.dispatch(&named("b"), JobStatus::Failed, None, why).await;
    let Dispatched::Accepted(record) = failed else { panic!("not accepted") };
    assert_eq!(
        (&record.payload.value()["status"], &record.payload.value()["error"]),
        (&json!("failed"), &json!("no such mailbox"))
    );
    assert_eq!(shown(dispatcher.stats()), stats(2, 0, 0, 0));
    server.stop().await;
}

#[tokio::test]
async fn a_job_that_ends_twice_is_reported_once() {
    let server = Running::start().await;
    server.application("acme").await;
    // Two workers, and the second runs the job again after the first was killed.
    let (one, two) = (quick(server.address).build(), quick(server.address).build());
    completed(&one, &job(1)).await;
    completed(&two, &job(1)).await;
    assert_eq!(records(&server).await.len(), 1);
    // That it failed is other news.
    two.dispatch(&job(1), JobStatus::Failed, None, None).await;
    assert_eq!(records(&server).await.len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_down_gets_it_when_it_is_up_with_the_time_of_the_end() {
    let server = Running::start().await;
    server.application("acme").await;
    let address = server.address;
    let folder = server.stop().await;
    let dispatcher = quick(address).build();
    for n in 0..20 {
        let (outcome, took) = timed(completed(&dispatcher, &job(n))).await;
        assert!(matches!(outcome, Dispatched::Retrying), "{outcome:?}");
        assert!(took < Duration::from_secs(5), "a job does not wait for a server that is down");
    }
    assert_eq!(shown(dispatcher.stats()), stats(0, 20, 0, 0));
    let server = Running::within(folder, address).await;
    let left = dispatcher.shutdown(Duration::from_secs(20)).await;
    assert!(left.jobs.is_empty(), "{left:?}");
    assert_eq!(shown(dispatcher.stats()), stats(20, 0, 0, 0));
    let records = records(&server).await;
    assert_eq!(records.len(), 20);
    // RFC 3339 in UTC sorts as text.
    let ended_before = |record: &JobRecord| {
        record.payload.value()["completedAt"].as_str().unwrap() < record.created_at.as_str()
    };
    assert!(records.iter().all(ended_before), "{records:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_webhook() {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    let dispatcher = quick(proxy.address).build();
    proxy.plan([Fault::CutAnswer, Fault::CutAnswer, Fault::CutRequest]);
    assert!(matches!(completed(&dispatcher, &job(1)).await, Dispatched::Retrying));
    assert!(dispatcher.shutdown(Duration::from_secs(20)).await.jobs.is_empty());
    assert_eq!(proxy.seen().len(), 4);
    assert_eq!(records(&server).await.len(), 1);
    assert_eq!(shown(dispatcher.stats()), stats(1, 0, 0, 0));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_keeps_a_job_for_the_first_try_only() {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    let dispatcher = quick(proxy.address).build();
    proxy.plan([Fault::HoldAnswer]);
    let (outcome, took) = timed(completed(&dispatcher, &job(1))).await;
    assert!(matches!(outcome, Dispatched::Retrying), "{outcome:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(dispatcher.shutdown(Duration::from_secs(20)).await.jobs.is_empty());
    assert_eq!(records(&server).await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_busy_server_is_tried_again() {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    let dispatcher = quick(proxy.address).build();
    proxy.plan([
        Fault::Answer(503, Some(1), BUSY),
        Fault::Answer(507, None, BUSY),
        Fault::Answer(429, Some(1), BUSY),
    ]);
    assert!(matches!(completed(&dispatcher, &job(1)).await, Dispatched::Retrying));
    assert!(dispatcher.shutdown(Duration::from_secs(20)).await.jobs.is_empty());
    assert_eq!(records(&server).await.len(), 1);
    server.stop().await;
}

/// Its record is deeper still, and one that cannot be read would hold up all that come after it.
#[tokio::test]
async fn the_deepest_allowed_result_is_reported_and_delays_no_other_job() {
    let server = Running::start().await;
    server.application("acme").await;
    let dispatcher = quick(server.address).build();
    let deep = (0..127).fold(json!(1), |inner, _| json!([inner]));
    let told = dispatcher.dispatch(&named("deep"), JobStatus::Completed, Some(deep), None).await;
    assert!(matches!(&told, Dispatched::Accepted(record) if record.job_id == "deep"), "{told:?}");
    assert!(matches!(completed(&dispatcher, &named("next")).await, Dispatched::Accepted(_)));
    assert_eq!(records(&server).await.len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn dispatches_left_at_a_shutdown_can_be_stored_and_sent_after_the_next_start() {
    let server = Running::start().await;
    server.application("acme").await;
    let before = quick(free_address()).build();
    let why = Some("no such mailbox".to_owned());
    assert!(matches!(before.dispatch(&named("a"), JobStatus::Failed, None, why).await, Dispatched::Retrying));
    assert!(matches!(completed(&before, &named("b")).await, Dispatched::Retrying));
    let stored = serde_json::to_string(&before.shutdown(Duration::ZERO).await).unwrap();

    let after = quick(server.address).build();
    let mut left: Leftover = serde_json::from_str(&stored).unwrap();
    left.jobs.sort_by(|one, other| one.job_id.cmp(&other.job_id));
    // Twice: a program may crash before it has forgotten what it stored.
    for end in left.jobs.iter().chain(&left.jobs) {
        assert!(matches!(after.dispatch_end(end.clone()).await, Dispatched::Accepted(_)));
    }
    let mut told = records(&server).await;
    told.sort_by(|one, other| one.job_id.cmp(&other.job_id));
    assert_eq!(told.len(), 2);
    for (record, end) in told.iter().zip(&left.jobs) {
        let payload = record.payload.value();
        assert_eq!(payload["completedAt"].as_str(), end.completed_at.as_deref());
        assert_eq!(payload["error"].as_str(), end.error.as_deref());
        assert_eq!(payload["result"], end.result.as_ref().map(Json::value).unwrap_or_default());
    }
    server.stop().await;
}

#[tokio::test]
async fn a_rejected_dispatch_is_logged_and_does_not_fail_the_job() {
    let server = Running::start().await;
    server.application("acme").await;
    let dispatcher = quick(server.address).build();
    let bad = Job { webhook_url: Some("nowhere".into()), ..job(1) };
    let Dispatched::Refused(error) = completed(&dispatcher, &bad).await else { panic!("not refused") };
    assert!(error.to_string().contains("body.webhookUrl"), "{error}");
    let nobody = Dispatcher::builder(client_of(server.address), "nobody").build();
    assert!(matches!(completed(&nobody, &job(1)).await, Dispatched::Refused(error) if error.is_not_found()));
    let stranger = Client::new(&format!("http://{}", server.address), "wrong").unwrap();
    let stranger = Dispatcher::builder(stranger, "acme").build();
    assert!(
        matches!(completed(&stranger, &job(1)).await, Dispatched::Refused(error) if error.status() == Some(401))
    );
    let nameless = quick(server.address).build();
    assert!(matches!(completed(&nameless, &named("ñ\n")).await, Dispatched::Refused(_)));
    assert_eq!(shown(dispatcher.stats()), stats(0, 0, 1, 0));
    assert!(!format!("{dispatcher:?}").contains(&token()));
    server.stop().await;
}

#[tokio::test]
async fn no_more_wait_than_may_in_number_in_bytes_and_in_time() {
    let address = free_address();
    let few = quick(address).most_waiting(2).build();
    for n in 0..5 {
        completed(&few, &job(n)).await;
    }
    assert_eq!(shown(few.stats()), stats(0, 2, 0, 3));
    let mut left = few.shutdown(Duration::from_millis(100)).await;
    left.jobs.sort_by(|one, other| one.job_id.cmp(&other.job_id));
    let ids: Vec<_> = left.jobs.iter().map(|end| end.job_id.as_str()).collect();
    assert_eq!(ids, ["0", "1"]);
    assert_eq!(shown(few.stats()), stats(0, 0, 0, 5));
    // After that nothing waits any more.
    assert!(matches!(completed(&few, &job(9)).await, Dispatched::Dropped));

    let small = quick(address).most_bytes(100).build();
    assert!(matches!(completed(&small, &job(1)).await, Dispatched::Dropped));

    let hasty = quick(address).give_up_after(Duration::from_millis(50)).build();
    assert!(matches!(completed(&hasty, &job(1)).await, Dispatched::Retrying));
    assert!(hasty.shutdown(Duration::from_secs(20)).await.jobs.is_empty());
    assert_eq!(shown(hasty.stats()), stats(0, 0, 0, 1));
}

#[tokio::test]
async fn one_that_cannot_be_taken_now_does_not_hold_up_the_others() {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    let dispatcher = quick(proxy.address).build();
    // Both fail at first; then the first of them once more.
    proxy.plan(vec![Fault::Answer(500, None, BUSY); 3]);
    completed(&dispatcher, &job(1)).await;
    completed(&dispatcher, &job(2)).await;
    assert!(dispatcher.shutdown(Duration::from_secs(20)).await.jobs.is_empty());
    let keys =
        proxy.seen().into_iter().map(|seen| seen.headers["idempotency-key"].to_str().unwrap().to_owned());
    let (one, two) = ("job-completed-1", "job-completed-2");
    assert_eq!(keys.collect::<Vec<_>>(), [one, two, one, two, one]);
    assert_eq!(records(&server).await.len(), 2);
    server.stop().await;
}

#[test]
fn dispatches_of_an_ended_runtime_continue_on_the_next() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    let (folder, dispatcher) = first.block_on(async {
        let server = Running::start().await;
        server.application("acme").await;
        let dispatcher = quick(server.address).build();
        let kept = (server.address, server.stop().await);
        assert!(matches!(completed(&dispatcher, &job(1)).await, Dispatched::Retrying));
        (kept, dispatcher)
    });
    drop(first);
    runtime().block_on(async {
        assert!(matches!(completed(&dispatcher, &job(2)).await, Dispatched::Retrying));
        let server = Running::within(folder.1, folder.0).await;
        assert!(dispatcher.shutdown(Duration::from_secs(20)).await.jobs.is_empty());
        assert_eq!(records(&server).await.len(), 2);
        server.stop().await;
    });
}

#[test]
fn without_a_runtime_there_is_no_panic() {
    let dispatcher = quick(free_address()).build();
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = bare.block_on(completed(&dispatcher, &job(1)));
    assert!(matches!(outcome, Dispatched::Refused(Error::Request { .. })), "{outcome:?}");
}
