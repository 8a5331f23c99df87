//! Sending to a URL that is no endpoint.

use crate::receiver::Receiver;
use crate::{LIMIT, ended, start};
use aldaba_embedded::{DeliveryState, Dispatch, Error};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_dispatch_goes_to_its_url_alone_by_its_policy_and_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let receiver =
        Receiver::judging(|arrival| (if arrival.path == "/down" { 500 } else { 200 }, Duration::ZERO));
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    let good = Dispatch::to(receiver.url("/done"), &json!([1, 2])).unwrap().header("x-job", "7").id("job-7");
    let sent = app.dispatch(good.clone().idempotency_key("k")).await.unwrap();
    let arrival = receiver.next();
    assert_eq!((arrival.path.as_str(), arrival.body.as_slice()), ("/done", &b"[1,2]"[..]));
    assert_eq!((arrival.header("x-job"), arrival.header("webhook-id")), ("7", sent.id.to_string().as_str()));
    assert!(ended(&app, sent.id).await.is_delivered());
    assert_eq!(app.message("job-7").await.unwrap().unwrap().event_type, "dispatch");
    let again = app.dispatch(good.clone().idempotency_key("k")).await.unwrap();
    assert_eq!((again.id, again.is_new), (sent.id, false));
    assert_eq!(app.dispatch(good).await.unwrap_err(), Error::EventIdTaken(sent.id));
    assert_eq!(app.endpoints().await.unwrap(), [], "it is on no list");

    let bad = Dispatch::raw(receiver.url("/down"), "{}").policy("job-status").event_type("job.status");
    let bad = app.dispatch(bad).await.unwrap();
    let message = ended(&app, bad.id).await;
    let delivery = &message.deliveries[0];
    assert!(matches!(delivery.state, DeliveryState::Dead { .. }), "{delivery:?}");
    assert_eq!((delivery.attempts, message.event_type.as_str()), (3, "job.status"));
    assert_eq!(app.dead_letter(None, 10).await.unwrap().deliveries.len(), 1);
    assert!(!app.resend(bad.id, delivery.endpoint).await.unwrap(), "it can be tried by hand");
    aldaba.shutdown(LIMIT).await;
}

#[tokio::test]
async fn a_dispatch_is_signed_with_its_own_secret_or_the_applications() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let dispatch = || Dispatch::to(receiver.url("/"), &json!({})).unwrap();
    for (dispatch, secret) in [(dispatch(), app.dispatch_secret()), (dispatch().secret(own), own.to_owned())]
    {
        app.dispatch(dispatch).await.unwrap();
        assert_eq!(receiver.next().verified_with(&secret), Ok(()));
    }
}

#[tokio::test]
async fn an_invalid_dispatch_is_refused_and_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    let dispatch = |url: &str| Dispatch::to(url, &json!({})).unwrap();
    let good = || dispatch("https://example.com/");
    for (dispatch, field) in [
        (dispatch("https://10.0.0.1/"), "url"),
        (dispatch("nothing"), "url"),
        (good().policy("nobodys"), "policy"),
        (good().profile("nobodys"), "profile"),
        (good().header("host", "x"), "headers"),
        (good().header("x-a", "1").header("X-A", "2"), "headers"),
        (good().secret("no secret"), "secret"),
        (good().event_type("a b"), "event_type"),
        (good().id("msg_1"), "id"),
        (good().tags(["a b"]), "tags"),
    ] {
        match app.dispatch(dispatch).await {
            Err(Error::Invalid { field: wrong, .. }) => assert_eq!(wrong, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    assert_eq!(aldaba.waiting().await.unwrap(), 0);
}
