//! Starting, stopping, dropping: nothing that was accepted is lost.

use super::wait_until;
use crate::receiver::Receiver;
use crate::{LIMIT, ended, event, start};
use aldaba_embedded::{DeliveryState, EndpointSpec, Error};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const EVENTS: usize = 1000;
const HALF: u64 = 500;
const AT_ONCE: usize = 50;

#[tokio::test]
async fn after_a_drop_in_the_middle_a_new_start_delivers_all_thousand() {
    let folder = tempfile::tempdir().unwrap();
    // The second half is not answered before the drop, however long the sending takes.
    let dropped = Arc::new(AtomicBool::new(false));
    let is_dropped = dropped.clone();
    let receiver = Receiver::judging(move |arrival| {
        let hangs = arrival.json()["n"].as_u64().unwrap() >= HALF && !is_dropped.load(Ordering::SeqCst);
        (200, if hangs { Duration::from_secs(60) } else { Duration::from_millis(20) })
    });
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    for first in (0..EVENTS).step_by(AT_ONCE) {
        let events = (first..first + AT_ONCE).map(event).collect();
        assert!(app.send_many(events).await.unwrap().iter().all(Result::is_ok));
    }
    let mut arrived = BTreeSet::new();
    arrived.insert(receiver.next().json()["n"].as_u64().unwrap());
    drop((app, aldaba));
    while let Some(arrival) = receiver.within(Duration::from_millis(200)) {
        arrived.insert(arrival.json()["n"].as_u64().unwrap());
    }
    assert!(arrived.len() < EVENTS, "it was in the middle");
    dropped.store(true, Ordering::SeqCst);

    let aldaba = start(folder.path()).await;
    while arrived.len() < EVENTS {
        arrived.insert(receiver.next().json()["n"].as_u64().unwrap());
    }
    wait_until("nothing is pending", async || aldaba.waiting().await.unwrap() == 0).await;
    let app = aldaba.application("customer").await.unwrap();
    assert!(app.dead_letter(None, 10).await.unwrap().deliveries.is_empty());
    assert_eq!(aldaba.shutdown(LIMIT).await.in_flight, 0);
}

#[tokio::test]
async fn deliveries_pending_at_a_shutdown_are_sent_after_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let receiver =
        Receiver::judging(move |_| (if is_up.load(Ordering::SeqCst) { 200 } else { 503 }, Duration::ZERO));
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/")).policy("job-status")).await.unwrap();
    let sent = app.send(event(1)).await.unwrap();
    receiver.next();
    assert_eq!(aldaba.shutdown(LIMIT).await.in_flight, 0, "a request in flight ends");
    up.store(true, Ordering::SeqCst);

    let aldaba = start(folder.path()).await;
    let app = aldaba.find_application("customer").await.unwrap().expect("it is still there");
    let message = ended(&app, sent.id).await;
    assert!(message.is_delivered(), "{message:?}");
    assert_eq!(message.deliveries[0].attempts, 2, "the first one was written down");
    aldaba.shutdown(LIMIT).await;
}

#[tokio::test]
async fn a_shutdown_reports_deliveries_in_flight_and_they_are_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let hangs = Arc::new(AtomicBool::new(true));
    let hanging = hangs.clone();
    let receiver = Receiver::judging(move |_| {
        (200, Duration::from_secs(if hanging.load(Ordering::SeqCst) { 20 } else { 0 }))
    });
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    app.send(event(1)).await.unwrap();
    assert_eq!(receiver.next().json()["n"], 1);
    assert_eq!(aldaba.in_flight().await, 1);
    let left = aldaba.shutdown(Duration::from_millis(100)).await;
    assert_eq!((left.in_flight, left.folder_is_free), (1, true));
    assert_eq!(aldaba.shutdown(LIMIT).await, left, "a second time does nothing");
    hangs.store(false, Ordering::SeqCst);
    let aldaba = start(folder.path()).await;
    assert_eq!(receiver.next().json()["n"], 1);
    aldaba.shutdown(LIMIT).await;
}

#[tokio::test]
async fn a_second_shutdown_waits_for_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::judging(|_| (200, Duration::from_secs(2)));
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    app.send(event(1)).await.unwrap();
    receiver.next();
    let first = tokio::spawn({
        let aldaba = aldaba.clone();
        async move { aldaba.shutdown(Duration::from_secs(1)).await }
    });
    // The first shutdown begins before the second.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let left = aldaba.shutdown(LIMIT).await;
    // The folder is free when it returns.
    let aldaba = start(folder.path()).await;
    assert_eq!(first.await.unwrap(), left);
    // A cancelled call has started the shutdown too.
    tokio::select! {
        biased;
        left = aldaba.shutdown(LIMIT) => panic!("it took no time: {left:?}"),
        () = std::future::ready(()) => {}
    }
    assert!(aldaba.shutdown(Duration::ZERO).await.folder_is_free);
    start(folder.path()).await.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn after_a_shutdown_every_handle_reports_that_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    aldaba.clone().shutdown(LIMIT).await;
    assert_eq!(app.send(event(1)).await.unwrap_err(), Error::Stopped);
    assert_eq!(app.endpoints().await.unwrap_err(), Error::Stopped);
    assert_eq!(aldaba.applications(None, 10).await.unwrap_err(), Error::Stopped);
    assert_eq!(aldaba.in_flight().await, 0);
}

#[tokio::test]
async fn an_application_is_a_handle_that_keeps_the_engine_running() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let sent = app.send(event(1)).await.unwrap();
    let message = ended(&app, sent.id).await;
    assert!(matches!(message.deliveries[0].state, DeliveryState::Delivered { .. }));
}

#[tokio::test]
async fn a_cancelled_send_leaves_the_engine_intact() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    for number in 0..20 {
        let event = event(number).id(format!("e{number}")).idempotency_key(format!("k{number}"));
        let given_up = tokio::time::timeout(Duration::ZERO, app.send(event.clone())).await;
        // A repeat with its key finds it, whatever happened to the first call.
        let sent = app.send(event).await.unwrap();
        if let Ok(first) = given_up {
            assert_eq!(first.unwrap().id, sent.id);
        }
        assert!(app.message(format!("e{number}")).await.unwrap().is_some_and(|found| found.id == sent.id));
    }
}
