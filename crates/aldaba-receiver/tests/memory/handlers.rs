//! The arguments and results of handlers, and their errors.

use crate::suite::client::{Sent, inspector};
use aldaba_receiver::axum::EventJson;
use aldaba_receiver::lease::MemoryLeases;
use aldaba_receiver::{
    Claim, Event, Failure, Guarantee, Held, Lease, Ledger, LedgerError, Misplaced, Receiver, Work,
};
use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::post;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tower::{Layer, Service};

#[derive(Deserialize)]
struct Payment {
    amount: u64,
}

async fn call(app: Router, event: &Sent) -> (u16, String) {
    let request = event.request().body(Body::from(event.body.clone())).unwrap();
    let response = app.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn receiver() -> Receiver<MemoryLeases> {
    Receiver::new(inspector(), MemoryLeases::new())
}

#[tokio::test]
async fn a_handler_takes_the_event_its_body_and_its_lease_in_any_order() {
    async fn paid(
        lease: Lease<MemoryLeases>,
        EventJson(payment): EventJson<Payment>,
        event: Event,
        raw: Bytes,
    ) -> Result<(), Failure> {
        assert!(lease.is_held());
        assert_eq!((payment.amount, event.event_type.as_str()), (1999, "payment.success"));
        assert_eq!(raw, event.body);
        Ok(())
    }
    let app = Router::new().route("/webhooks", post(paid).layer(receiver().layer()));
    let event = Sent::with("a", &json!({"type": "payment.success", "amount": 1999}));
    assert_eq!(call(app, &event).await, (200, r#"{"received":true}"#.into()));
}

#[tokio::test]
async fn an_unreadable_body_is_a_failure_and_the_sender_gets_the_reason() {
    async fn paid(EventJson(payment): EventJson<Payment>) {
        let _ = payment.amount;
    }
    let app = Router::new().route("/webhooks", post(paid).layer(receiver().layer()));
    for body in [json!({"amount": "much"}), json!({"amount": null}), json!([]), json!({})] {
        let (status, answer) = call(app.clone(), &Sent::with("a", &body)).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["received"]), (500, &json!(false)));
        assert!(answer["error"].as_str().unwrap().contains("the type that the handler reads"));
    }
}

#[tokio::test]
async fn the_layer_can_be_around_a_whole_router() {
    let app = Router::new().route("/webhooks", post(|_: Event| async {})).layer(receiver().layer());
    assert_eq!(call(app, &Sent::new("a")).await.0, 200);
}

#[tokio::test]
async fn a_handler_without_a_layer_does_not_run() {
    async fn lease(_: Lease<MemoryLeases>) {
        panic!("it must not run");
    }
    async fn event(_: Event) {
        panic!("it must not run");
    }
    async fn json(_: EventJson<Payment>) {
        panic!("it must not run");
    }
    for route in [post(lease), post(event), post(json)] {
        let (status, answer) = call(Router::new().route("/webhooks", route), &Sent::new("a")).await;
        assert_eq!((status, answer.as_str()), (500, Misplaced::NoLayer.to_string().as_str()));
    }
}

/// The inner one would wait for the outer one, which waits for it.
#[tokio::test]
async fn nested_receivers_are_an_immediate_error() {
    async fn paid(_: Event) {
        panic!("it must not run");
    }
    let receiver = receiver();
    let route = post(paid).layer(receiver.layer());
    let app = Router::new().route("/webhooks", route).layer(receiver.layer());
    let answer = tokio::time::timeout(Duration::from_secs(5), call(app, &Sent::new("a"))).await;
    let (status, answer) = answer.expect("it is answered before the wait timeout");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, &answer["error"]), (500, &json!(Misplaced::Nested.to_string())));
    let once = Router::new().route("/webhooks", post(|_: Event| async {}).layer(receiver.layer()));
    assert_eq!(call(once, &Sent::new("a")).await, (200, r#"{"received":true}"#.into()), "it is not marked");
}

struct OtherWork;

impl Work for OtherWork {
    async fn complete(self) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn abandon(self) {}
}

struct OtherLedger;

impl Ledger for OtherLedger {
    type Work = OtherWork;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, _: &Event, _: Duration) -> Result<Claim<OtherWork>, LedgerError> {
        Ok(Claim::New(OtherWork))
    }

    async fn clean(&self, _: Duration) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

/// A tower service that takes the work itself, and reports the result.
async fn taken<L: Ledger>(request: Request<Full<Bytes>>) -> Result<Response<String>, Infallible> {
    let first = Held::<L>::of(request.extensions());
    let text = match &first {
        Ok(_) => Held::<L>::of(request.extensions()).unwrap_err().to_string(),
        Err(misplaced) => misplaced.to_string(),
    };
    let mut response = Response::new(text.clone());
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response.extensions_mut().insert(Failure::telling(text));
    Ok(response)
}

#[tokio::test]
async fn work_is_taken_once_and_from_its_own_ledger() {
    async fn told<S>(mut service: S) -> String
    where
        S: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible>,
    {
        let event = Sent::new("a");
        let request = event.request().body(Full::new(event.body.clone())).unwrap();
        let body = service.call(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()["error"].as_str().unwrap().to_owned()
    }
    let layer = receiver().layer();
    let own = layer.layer(tower::service_fn(taken::<MemoryLeases>));
    assert_eq!(told(own).await, Misplaced::Taken.to_string());
    let other = layer.layer(tower::service_fn(taken::<OtherLedger>));
    assert_eq!(told(other).await, Misplaced::OtherLedger.to_string());
}

#[tokio::test]
async fn a_failure_without_a_layer_is_a_plain_answer_that_tells_no_more() {
    let response = Failure::new("password of db-7 is wrong").into_response();
    assert_eq!(response.status(), 500);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "the event could not be processed");
}
