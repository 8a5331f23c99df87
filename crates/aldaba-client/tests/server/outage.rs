//! The dispatcher while Aldaba hangs, is down, or is replaced by another server.

use crate::proxy::{Fault, Proxy};
use crate::running::{Running, client_of, free_address, timed};
use crate::waiting::wait_until;
use aldaba_client::{Dispatched, Dispatcher, DispatcherBuilder, Job, JobStatus};
use futures_util::future::join_all;
use futures_util::{FutureExt, TryStreamExt};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

/// How long a first try may take here: long enough for one that gets through on a busy machine.
const FIRST_TRY: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(20);

fn job(id: &str) -> Job {
    let webhook_url = Some("http://user:a-password@127.0.0.1:9/done".into());
    Job { id: id.to_owned(), job_type: "email.send".into(), webhook_url }
}

fn quick(address: SocketAddr) -> DispatcherBuilder {
    Dispatcher::builder(client_of(address), "acme")
        .pauses(Duration::from_millis(20), Duration::from_millis(100))
        .first_try(FIRST_TRY)
}

async fn completed(dispatcher: &Dispatcher, id: &str) -> Dispatched {
    dispatcher.dispatch(&job(id), JobStatus::Completed, Some(json!({"sent": "a result"})), None).await
}

async fn wired() -> (Running, Proxy) {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    (server, proxy)
}

async fn told(server: &Running) -> usize {
    let records: Vec<_> = server.client.app("acme").jobs().list_all().try_collect().await.unwrap();
    records.len()
}

#[tokio::test]
async fn a_server_that_hangs_gets_few_first_tries_at_once_and_no_job_waits_longer_than_one() {
    let (server, proxy) = wired().await;
    proxy.plan(vec![Fault::HoldRequest; 500]);
    let dispatcher = quick(proxy.address).build();
    let all = (0..300).map(|n| {
        let dispatcher = dispatcher.clone();
        async move { completed(&dispatcher, &n.to_string()).await }
    });
    let (outcomes, took) = timed(join_all(all)).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Dispatched::Retrying)), "{outcomes:?}");
    assert!(took < 4 * FIRST_TRY, "{took:?}");
    // 16 of them, and the one that works in the background.
    assert!(proxy.connections() <= 17, "{} connections", proxy.connections());
    assert_eq!(dispatcher.stats().retrying, 300);
    server.stop().await;
}

#[tokio::test]
async fn concurrent_first_tries_reach_their_limit() {
    let (server, proxy) = wired().await;
    proxy.plan(vec![Fault::HoldRequest; 20]);
    let dispatcher = quick(proxy.address).first_tries_at_once(2).build();
    join_all(["a", "b", "c", "d", "e"].map(|id| completed(&dispatcher, id))).await;
    assert!(proxy.connections() <= 3, "{} connections", proxy.connections());
    server.stop().await;
}

#[tokio::test]
async fn in_an_outage_that_is_known_no_job_waits() {
    let (server, proxy) = wired().await;
    let dispatcher =
        quick(proxy.address).pauses(Duration::from_millis(400), Duration::from_millis(400)).build();
    proxy.plan(vec![Fault::HoldRequest; 2]);
    let (_, took) = timed(completed(&dispatcher, "first")).await;
    assert!(took >= FIRST_TRY, "{took:?}");
    let (_, took) = timed(async {
        for n in 0..20 {
            assert!(matches!(completed(&dispatcher, &n.to_string()).await, Dispatched::Retrying));
        }
    })
    .await;
    assert!(took < FIRST_TRY, "{took:?}");
    // After the outage jobs are reported immediately again, even while others still wait.
    wait_until("a job is reported", async || dispatcher.stats().accepted > 0).await;
    assert!(matches!(completed(&dispatcher, "after").await, Dispatched::Accepted(_)));
    assert!(dispatcher.shutdown(LIMIT).await.jobs.is_empty());
    assert_eq!(told(&server).await, 22);
    server.stop().await;
}

#[tokio::test]
async fn a_requested_pause_is_respected() {
    let (server, proxy) = wired().await;
    let dispatcher = quick(proxy.address).build();
    proxy.plan([Fault::Answer(503, Some(1), "<html>a busy proxy</html>")]);
    let (_, took) = timed(async {
        assert!(matches!(completed(&dispatcher, "1").await, Dispatched::Retrying));
        wait_until("the job is reported", async || dispatcher.stats().accepted > 0).await;
    })
    .await;
    assert!(took >= Duration::from_secs(1), "{took:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_of_a_proxy_is_retried() {
    let (server, proxy) = wired().await;
    let strangers = [
        (404, "404 page not found\n"),
        (200, "<html>maintenance</html>"),
        (302, ""),
        (403, "<html>forbidden</html>"),
        (400, "bad request"),
        (202, r#"{"dispatched": true, "id": "msg_1"}"#),
        (204, ""),
    ];
    for (n, (status, body)) in strangers.into_iter().enumerate() {
        let dispatcher = quick(proxy.address).build();
        proxy.plan([Fault::Answer(status, None, body), Fault::Answer(status, None, body)]);
        let outcome = completed(&dispatcher, &n.to_string()).await;
        assert!(matches!(outcome, Dispatched::Retrying), "{status}: {outcome:?}");
        assert!(dispatcher.shutdown(LIMIT).await.jobs.is_empty());
        assert_eq!((dispatcher.stats().accepted, told(&server).await), (1, n + 1), "{status}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_cancelled_dispatch_continues_in_the_background() {
    let (server, proxy) = wired().await;
    let dispatcher = quick(proxy.address).build();
    proxy.plan([Fault::HoldAnswer]);
    let given_up = tokio::time::timeout(Duration::from_millis(100), completed(&dispatcher, "1")).await;
    assert!(given_up.is_err());
    assert_eq!(dispatcher.stats().retrying, 1);
    assert!(dispatcher.shutdown(LIMIT).await.jobs.is_empty());
    assert_eq!((dispatcher.stats().accepted, told(&server).await), (1, 1));
    // The same where no runtime is: the one that it began on goes on with it.
    let dispatcher = quick(proxy.address).build();
    let begun = dispatcher.clone();
    let mut dispatching = Box::pin(async move { completed(&begun, "2").await });
    assert!((&mut dispatching).now_or_never().is_none());
    std::thread::spawn(move || drop(dispatching)).join().unwrap();
    assert_eq!(dispatcher.stats().retrying, 1);
    assert!(dispatcher.shutdown(LIMIT).await.jobs.is_empty());
    assert_eq!(told(&server).await, 2);
    server.stop().await;
}

#[tokio::test]
async fn spans_that_never_end_do_not_panic() {
    let forever = Duration::MAX;
    let dispatcher = quick(free_address()).give_up_after(forever).build();
    assert!(matches!(completed(&dispatcher, "1").await, Dispatched::Retrying));
    let dispatcher = quick(free_address()).pauses(forever, forever).first_try(forever).build();
    assert!(matches!(completed(&dispatcher, "1").await, Dispatched::Retrying));
    assert_eq!(dispatcher.shutdown(Duration::from_millis(100)).await.jobs.len(), 1);
}

#[tokio::test]
async fn nothing_of_what_waits_is_shown() {
    let dispatcher = quick(free_address()).build();
    completed(&dispatcher, "1").await;
    let shown = format!("{dispatcher:?}");
    assert!(!shown.contains("a-password") && !shown.contains("a result"), "{shown}");
    let left = dispatcher.shutdown(Duration::ZERO).await;
    assert!(!format!("{left:?}").contains("a-password"), "{left:?}");
}

#[tokio::test]
async fn an_error_that_aldaba_would_refuse_is_cut_between_two_characters() {
    let (server, proxy) = wired().await;
    let dispatcher = quick(proxy.address).build();
    let long = Some(format!("a{}", "ñ".repeat(40_000)));
    let outcome = dispatcher.dispatch(&job("1"), JobStatus::Failed, None, long).await;
    let Dispatched::Accepted(record) = outcome else { panic!("{outcome:?}") };
    assert_eq!(record.payload.value()["error"].as_str().unwrap().len(), (64 << 10) - 1);
    server.stop().await;
}

#[tokio::test]
async fn a_result_that_aldaba_does_not_take_is_refused_with_the_reason_however_large() {
    let (server, proxy) = wired().await;
    for megabytes in [2, 8] {
        for address in [server.address, proxy.address] {
            let dispatcher = quick(address).first_try(LIMIT).build();
            let result = Some(json!("x".repeat(megabytes << 20)));
            let outcome = dispatcher.dispatch(&job("1"), JobStatus::Completed, result, None).await;
            let Dispatched::Refused(error) = outcome else { panic!("{megabytes}: {outcome:?}") };
            assert_eq!(error.status(), Some(413), "{error:?}");
            assert_eq!(dispatcher.stats().refused, 1);
        }
    }
    server.stop().await;
}
