//! Events: their contents, their endpoints, their repeats.

use crate::receiver::Receiver;
use crate::{ended, event, start};
use aldaba_embedded::{DeliveryState, EndpointSpec, Error, Event, Timestamp};
use serde_json::json;
use std::time::{Duration, SystemTime};

#[tokio::test]
async fn a_delivery_is_signed_with_the_secret_and_is_the_exact_payload() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let spec = EndpointSpec::to(receiver.url("/hook")).headers([("x-team", "billing")]);
    let endpoint = app.add_endpoint(spec).await.unwrap();
    let sent = app.send(Event::raw("invoice.paid", "{ \"n\" : 1.0 }")).await.unwrap();
    let arrival = receiver.next();
    assert_eq!((arrival.path.as_str(), arrival.body.as_slice()), ("/hook", &b"{ \"n\" : 1.0 }"[..]));
    assert_eq!(arrival.header("webhook-id"), sent.id.to_string());
    assert_eq!(arrival.header("x-team"), "billing");
    assert_eq!(arrival.verified_with(&app.secret(endpoint.id).await.unwrap()), Ok(()));
    assert!(arrival.verified_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_err(), "another secret");
}

#[tokio::test]
async fn only_endpoints_that_want_an_event_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/paid")).events(["invoice.paid"])).await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/madrid")).channels(["madrid"])).await.unwrap();
    let filter = r#"{"payload": "$.total", "gt": 100}"#;
    app.add_endpoint(EndpointSpec::to(receiver.url("/large")).filter(Some(filter))).await.unwrap();
    let other = aldaba.application("somebody-else").await.unwrap();
    other.add_endpoint(EndpointSpec::to(receiver.url("/else"))).await.unwrap();
    let paths = |count| {
        let mut paths: Vec<_> = (0..count).map(|_| receiver.next().path).collect();
        paths.sort_unstable();
        paths
    };
    app.send(Event::new("invoice.paid", &json!({"total": 5})).unwrap()).await.unwrap();
    assert_eq!(paths(1), ["/paid"]);
    app.send(Event::new("invoice.made", &json!({"total": 5})).unwrap().channels(["madrid", "x"]))
        .await
        .unwrap();
    assert_eq!(paths(1), ["/madrid"]);
    app.send(Event::new("invoice.made", &json!({"total": 500})).unwrap()).await.unwrap();
    assert_eq!(paths(1), ["/large"]);
    let nobody = app.send(Event::new("invoice.made", &json!({"total": 5})).unwrap()).await.unwrap();
    assert!(receiver.stays_quiet());
    assert_eq!(app.message(nobody.id).await.unwrap().unwrap().deliveries, []);
}

#[tokio::test]
async fn a_key_or_an_event_id_is_accepted_once() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let first = app.send(event(1).idempotency_key("k").id("e1")).await.unwrap();
    assert!(first.is_new);
    let again = app.send(event(1).idempotency_key("k").id("e1")).await.unwrap();
    assert_eq!((again.id, again.is_new), (first.id, false));
    assert_eq!(app.send(event(2).id("e1")).await.unwrap_err(), Error::EventIdTaken(first.id));
    let other = aldaba.application("other").await.unwrap();
    assert!(
        other.send(event(3).idempotency_key("k").id("e1")).await.unwrap().is_new,
        "another application's"
    );
    assert_eq!(receiver.next().json()["n"], 1);
    assert!(receiver.stays_quiet());
    assert_eq!(app.message("e1").await.unwrap().unwrap().id, first.id);
    assert_eq!(other.message(first.id).await.unwrap(), None, "another application's message is not there");
    assert_eq!(other.attempts(first.id, 10).await.unwrap_err(), Error::NotFound("message"));
}

#[tokio::test]
async fn many_events_have_a_result_each_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let taken = app.send(event(0).id("taken")).await.unwrap();
    let bad = Event::new("no good", &json!({})).unwrap();
    let results = app.send_many(vec![event(1).id("one"), bad, event(2).id("taken"), event(3)]).await.unwrap();
    assert_eq!(app.message("one").await.unwrap().unwrap().id, results[0].as_ref().unwrap().id);
    assert!(matches!(results[1], Err(Error::Invalid { field: "event_type", .. })), "{results:?}");
    assert_eq!(results[2], Err(Error::EventIdTaken(taken.id)));
    assert!(results[3].as_ref().unwrap().is_new);
    assert_eq!(app.send_many(Vec::new()).await.unwrap(), []);
}

#[tokio::test]
async fn an_event_for_later_waits_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let made = app.send(event(0)).await.unwrap();
    let now = app.message(made.id).await.unwrap().unwrap().created_at;
    receiver.next();
    let sent = app.send(event(1).deliver_at(now + Duration::from_secs(2))).await.unwrap();
    let waiting = app.message(sent.id).await.unwrap().unwrap();
    assert!(matches!(waiting.deliveries[0].state, DeliveryState::Waiting { due_at } if due_at > now));
    assert!(receiver.stays_quiet());
    assert!(ended(&app, sent.id).await.is_delivered());
    let year = SystemTime::from(now) + Duration::from_secs(367 * 24 * 3600);
    let refused = app.send(event(2).deliver_at(year)).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { field: "deliver_at", .. }), "{refused:?}");
    assert!(Timestamp::from(year) > now);
}

#[tokio::test]
async fn attempts_contain_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(500);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/")).policy("job-status")).await.unwrap();
    let sent = app.send(event(1)).await.unwrap();
    let message = ended(&app, sent.id).await;
    let delivery = &message.deliveries[0];
    assert!(!message.is_delivered() && matches!(delivery.state, DeliveryState::Dead { .. }));
    assert_eq!((delivery.attempts, delivery.last_status), (3, Some(500)));
    assert_eq!(delivery.last_error.as_deref(), Some("HTTP 500: Said"));
    let attempts = app.attempts(sent.id, 10).await.unwrap();
    assert_eq!(attempts.len(), 3);
    assert!(
        attempts.iter().all(|attempt| attempt.status == Some(500) && !attempt.success && !attempt.by_hand)
    );
    assert_eq!(Some(attempts[0].started_at), delivery.last_attempt_at);
}
