//! Requests that never reach the handler.

use super::Stage;
use super::client::{Body, Sent, now};
use super::scene::{Act, Scene};
use http::{Method, Request};
use serde_json::json;
use std::time::Duration;

const SMALL: usize = 4096;

fn without(mut request: Request<Body>, header: &str) -> Request<Body> {
    request.headers_mut().remove(header).unwrap();
    request
}

pub(crate) async fn e2_and_e9_bad_requests_are_refused_and_nothing_is_stored_or_run<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.max_body(SMALL)).await;
    let event = Sent::new("evt_bad");
    let good = || event.request().body(event.whole()).unwrap();
    let forged = Sent { body: "{}".into(), ..event.clone() };
    let large = Sent::with("evt_bad", &json!({"pad": "x".repeat(SMALL)}));
    let other_key = {
        let mut request = good();
        let signature = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse().unwrap();
        request.headers_mut().insert("webhook-signature", signature);
        request
    };
    let unsigned_number = {
        let mut request = good();
        request.headers_mut().insert("webhook-timestamp", "soon".parse().unwrap());
        request
    };
    let id_of = |id: &str| {
        let event = Sent::new(id);
        event.request().body(event.whole()).unwrap()
    };
    let requests = [
        ("another body than was signed", event.request().body(forged.whole()).unwrap(), 401),
        ("a wrong signature", other_key, 401),
        ("no signature", without(good(), "webhook-signature"), 401),
        ("no timestamp", without(good(), "webhook-timestamp"), 401),
        ("a timestamp that is none", unsigned_number, 401),
        ("an old timestamp", event.request_at(now() - 3600).body(event.whole()).unwrap(), 401),
        ("a timestamp of tomorrow", event.request_at(now() + 86_400).body(event.whole()).unwrap(), 401),
        ("no id", without(good(), "webhook-id"), 400),
        ("an id with a space", id_of("evt bad"), 400),
        ("an id that is too long", id_of(&"e".repeat(256)), 400),
        ("a body that is told to be too large", large.request().body(large.whole()).unwrap(), 413),
        ("a body that turns out too large", large.request().body(large.in_pieces()).unwrap(), 413),
    ];
    for (what, request, status) in requests {
        let reply = scene.send_as(request).await;
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        reply.is_refused(status);
    }
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let mut request = good();
        *request.method_mut() = method;
        let reply = scene.send_as(request).await;
        reply.is_refused(405);
        assert_eq!(reply.header("allow"), Some("POST"));
    }
    assert_eq!(scene.runs(), 0);
    scene.left(&event, 0, 0).await;
    scene.send(&event).await.is_new();
}

/// Past this time the answer would be another one.
const AT_ONCE: Duration = Duration::from_secs(5);

pub(crate) async fn a_body_that_is_told_to_be_too_large_is_not_read<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.max_body(SMALL).body_time(AT_ONCE)).await;
    let event = Sent::new("evt_told_too_large");
    let request = event.request().header("content-length", SMALL + 1).body(event.stuck()).unwrap();
    scene.send_as(request).await.is_refused(413);
    let request = event.request().header("content-length", 1_u64 << 40).body(event.stuck()).unwrap();
    scene.send_as(request).await.is_refused(413);
    assert_eq!((scene.runs(), scene.counted.events("refused_size")), (0, 2));
}

pub(crate) async fn a_body_without_end_is_read_up_to_the_limit<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.max_body(SMALL).body_time(AT_ONCE)).await;
    let event = Sent::new("evt_endless");
    scene.send_as(event.request().body(event.endless()).unwrap()).await.is_refused(413);
    assert_eq!((scene.runs(), scene.counted.events("refused_size")), (0, 1));
}

pub(crate) async fn a_known_id_with_another_body_is_a_conflict<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_used_twice");
    scene.send(&event).await.is_new();
    let reply =
        scene.send(&Sent::with(&event.id, &json!({"type": "payment.success", "amount": 1_000_000}))).await;
    reply.is_refused(409);
    assert_eq!(reply.header("retry-after"), None);
    assert_eq!((scene.runs(), scene.counted.events("other_body")), (1, 1));
    scene.left(&event, 1, 1).await;
    scene.send(&event).await.is_duplicate();
}

pub(crate) async fn an_id_in_progress_with_another_body_is_a_conflict<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_changed");
    scene.next([Act::WorkThenWait]);
    let first = scene.sending(&event);
    scene.runs_reach(1).await;
    // Some ledgers recognize it at once, some after the first has ended.
    let second = scene.sending(&Sent::with(&event.id, &json!({"type": "payment.refund"})));
    // The second request arrives before the first one ends.
    tokio::time::sleep(Duration::from_millis(100)).await;
    scene.release(1);
    first.await.unwrap().is_new();
    second.await.unwrap().is_refused(409);
    assert_eq!((scene.runs(), scene.counted.events("other_body")), (1, 1));
    scene.left(&event, 1, 1).await;
}

pub(crate) async fn a_ledger_that_is_down_runs_nothing_and_asks_again<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.wait_timeout(Duration::from_millis(500))).await;
    let event = Sent::new("evt_while_down");
    scene.stage.take_down().await;
    let reply = scene.send(&event).await;
    reply.is_refused(503);
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(scene.runs(), 0);
    scene.stage.bring_back().await;
    scene.left(&event, 0, 0).await;
    scene.send(&event).await.is_new();
    scene.left(&event, 1, 1).await;
}

pub(crate) async fn e9_the_ledger_is_not_asked_before_the_signature_held<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_unsigned");
    scene.stage.take_down().await;
    let request = without(event.request().body(event.whole()).unwrap(), "webhook-signature");
    scene.send_as(request).await.is_refused(401);
    scene.stage.bring_back().await;
    scene.left(&event, 0, 0).await;
}

pub(crate) async fn a_body_that_does_not_come_is_not_waited_for<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.body_time(Duration::from_millis(200))).await;
    let event = Sent::new("evt_stuck");
    let reply = scene.send_as(event.request().body(event.stuck()).unwrap()).await;
    reply.is_refused(408);
    assert_eq!((scene.runs(), scene.counted.events("refused_body")), (0, 1));
    scene.left(&event, 0, 0).await;
}
