//! Questions of a sender that come without a signature, before the first event.

use crate::suite::client::{Sent, inspector};
use aldaba_receiver::lease::MemoryLeases;
use aldaba_receiver::{Challenge, Event, Receiver};
use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::{Method, Request};
use http_body_util::BodyExt;
use tower::Service;

const ASKED: &str = "/webhooks?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock";

fn app(challenge: Option<Challenge>) -> Router {
    let mut builder = Receiver::builder(inspector(), MemoryLeases::new());
    if let Some(challenge) = challenge {
        builder = builder.challenge(challenge);
    }
    Router::new().route("/webhooks", post(|_: Event| async {}).layer(builder.build().layer()))
}

struct Answered {
    status: u16,
    content_type: String,
    nosniff: bool,
    body: String,
}

async fn call(app: &Router, request: Request<Body>) -> Answered {
    let response = app.clone().call(request).await.unwrap();
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (content_type, nosniff) = (header("content-type"), header("x-content-type-options"));
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answered {
        status,
        content_type: content_type.unwrap_or_default(),
        nosniff: nosniff.as_deref() == Some("nosniff"),
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

async fn ask(app: &Router, method: Method, uri: &str) -> Answered {
    call(app, Request::builder().method(method).uri(uri).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn meta_gets_its_challenge_back_for_the_verify_token() {
    let app = app(Some(Challenge::meta("meatyhamhock")));
    let answer = ask(&app, Method::GET, ASKED).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "1158201444"));
    assert!(answer.nosniff && answer.content_type.starts_with("text/plain"), "{}", answer.content_type);
}

#[tokio::test]
async fn a_wrong_verify_token_gets_403_and_no_echo() {
    for token in ["another", ""] {
        let answer = ask(&app(Some(Challenge::meta(token))), Method::GET, ASKED).await;
        assert_eq!(answer.status, 403, "{token:?}");
        assert!(!answer.body.contains("1158201444") && !answer.body.contains("meatyhamhock"));
    }
    let empty = "/webhooks?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=";
    assert_eq!(ask(&app(Some(Challenge::meta(""))), Method::GET, empty).await.status, 403);
}

#[tokio::test]
async fn microsoft_graph_gets_the_decoded_text_back() {
    let app = app(Some(Challenge::MicrosoftGraph));
    let answer = ask(&app, Method::POST, "/webhooks?validationToken=Validation%3A+Testing").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "Validation: Testing"));
    assert!(answer.nosniff && answer.content_type.starts_with("text/plain"), "{}", answer.content_type);
}

/// A request that is not a challenge is handled as usual.
#[tokio::test]
async fn a_challenge_of_another_kind_is_no_challenge() {
    let graph = "/webhooks?validationToken=abc";
    for (challenge, method, uri, status) in [
        (None, Method::GET, ASKED, 405),
        (None, Method::POST, graph, 401),
        (Some(Challenge::meta("meatyhamhock")), Method::POST, ASKED, 401),
        (Some(Challenge::meta("meatyhamhock")), Method::GET, "/webhooks", 405),
        (Some(Challenge::meta("meatyhamhock")), Method::GET, "/webhooks?hub.challenge=1", 405),
        (Some(Challenge::meta("meatyhamhock")), Method::GET, graph, 405),
        (Some(Challenge::MicrosoftGraph), Method::GET, graph, 405),
        (Some(Challenge::MicrosoftGraph), Method::POST, ASKED, 401),
    ] {
        let answer = ask(&app(challenge.clone()), method.clone(), uri).await;
        assert_eq!(answer.status, status, "{challenge:?} {method} {uri}: {}", answer.body);
    }
}

#[tokio::test]
async fn events_come_as_before_where_challenges_are_answered() {
    for challenge in [Challenge::meta("meatyhamhock"), Challenge::MicrosoftGraph] {
        let (app, event) = (app(Some(challenge)), Sent::new("a"));
        for said in [r#"{"received":true}"#, r#"{"received":true,"duplicate":true}"#] {
            let request = event.request().body(Body::from(event.body.clone())).unwrap();
            assert_eq!(call(&app, request).await.body, said);
        }
    }
}

#[tokio::test]
async fn a_verify_token_does_not_show_itself() {
    let receiver = Receiver::builder(inspector(), MemoryLeases::new()).challenge(Challenge::meta("hamhock"));
    assert!(!format!("{receiver:?}").contains("hamhock"));
    assert!(!format!("{:?}", receiver.build()).contains("hamhock"));
}
