//! A wire that breaks, a server that is busy, and callers that are wrong.

use crate::proxy::{Fault, Proxy, Seen};
use crate::running::{Running, client_of, free_address, timed, token};
use crate::waiting::wait_until;
use aldaba_client::{
    Client, Error, NewApplication, NewEndpoint, NewMessage, NewPolicy, Retries, RotateSecret, Trigger,
};
use serde_json::json;
use std::time::Duration;

const BUSY: &str = r#"{"code": "busy", "detail": "The server is busy. Nothing was stored; try again"}"#;

/// A server with the application `acme`, a wire to it, and a client at its end.
async fn wired() -> (Running, Proxy, Client) {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    let quick = Retries::default().pauses(Duration::from_millis(20), Duration::from_millis(100));
    let client = client_of(proxy.address).with_retries(quick);
    (server, proxy, client)
}

fn keys(seen: &[Seen]) -> Vec<String> {
    let key = |seen: &Seen| seen.headers["idempotency-key"].to_str().unwrap().to_owned();
    seen.iter().map(key).collect()
}

#[tokio::test]
async fn a_message_whose_answer_is_lost_is_accepted_once() {
    let (server, proxy, client) = wired().await;
    // Long enough for the one that gets through, on a busy machine.
    let hasty = client.with_retries(
        Retries::default().timeout(Duration::from_secs(2)).pauses(Duration::ZERO, Duration::ZERO),
    );
    let messages = hasty.app("acme").messages();
    proxy.plan([Fault::CutAnswer, Fault::HoldAnswer, Fault::CutRequest]);
    let sent = messages.send(&NewMessage::new("a.b", json!({"n": 1}))).await.unwrap();
    let seen = proxy.seen();
    assert_eq!(seen.len(), 4, "three faults, and the one that got through");
    assert!(keys(&seen).iter().all(|key| *key == keys(&seen)[0]));
    let stored = server.client.app("acme").messages().list().await.unwrap().data;
    assert_eq!(stored.iter().map(|message| &message.id).collect::<Vec<_>>(), [&sent.id]);
    // Another call is another message.
    messages.send(&NewMessage::new("a.b", json!({"n": 1}))).await.unwrap();
    assert_eq!(server.client.app("acme").messages().list().await.unwrap().data.len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_key_of_the_caller_makes_calls_of_two_clients_one() {
    let (server, _, client) = wired().await;
    let other = Client::new(&format!("http://{}", server.address), &token()).unwrap();
    let message = NewMessage::new("a.b", json!({}));
    let first = client.idempotent("order-17").app("acme").messages().send(&message).await.unwrap();
    let second = other.idempotent("order-17").app("acme").messages().send(&message).await.unwrap();
    assert_eq!(first.id, second.id);
    let third = other.idempotent("order-18").app("acme").messages().send(&message).await.unwrap();
    assert_ne!(first.id, third.id);
    let unfit = other.idempotent("line\nbreak").app("acme").messages().send(&message).await.unwrap_err();
    assert!(matches!(unfit, Error::Request { .. }), "{unfit}");
    server.stop().await;
}

#[tokio::test]
async fn a_blank_key_is_refused_and_nothing_is_sent() {
    let (server, proxy, client) = wired().await;
    // The server takes such a key for none: a repeat would be a second message.
    proxy.plan([Fault::CutAnswer]);
    for blank in ["", "  ", "\t", "\u{a0}"] {
        let messages = client.idempotent(blank).app("acme").messages();
        let error = messages.send(&NewMessage::new("a.b", json!({}))).await.unwrap_err();
        assert!(matches!(error, Error::Request { .. }), "{blank:?}: {error:?}");
        assert!(error.to_string().contains("idempotency key is blank"), "{error}");
    }
    assert!(proxy.seen().is_empty());
    assert!(server.client.app("acme").messages().list().await.unwrap().data.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn retry_after_is_obeyed() {
    let (server, proxy, client) = wired().await;
    for status in [429, 503] {
        proxy.plan([Fault::Answer(status, Some(1), BUSY)]);
        let message = NewMessage::new("a.b", json!({}));
        let (sent, took) = timed(client.app("acme").messages().send(&message)).await;
        sent.unwrap();
        assert!(took >= Duration::from_secs(1), "{status}: {took:?}");
    }
    // A wait longer than the call's time limit is reported at once.
    proxy.plan([Fault::Answer(429, Some(3600), BUSY)]);
    let (shown, took) = timed(client.app("acme").get()).await;
    let error = shown.unwrap_err();
    assert!(matches!(error, Error::Api { status: 429, retry_after: Some(_), .. }), "{error:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_given_up_after_the_last_attempt() {
    let (server, proxy, client) = wired().await;
    proxy.plan([502, 503, 504].map(|status| Fault::Answer(status, None, "<html>a proxy's own page</html>")));
    client.app("acme").get().await.unwrap();
    assert_eq!(proxy.seen().len(), 4);
    proxy.plan(vec![Fault::Answer(503, None, BUSY); 5]);
    let error = client.app("acme").get().await.unwrap_err();
    assert!(matches!(&error, Error::Api { status: 503, code, .. } if code == "busy"), "{error:?}");
    assert_eq!(proxy.seen().len(), 9);
    // A 500 is a mistake that trying again does not mend.
    proxy.plan([Fault::Answer(500, None, BUSY)]);
    client.app("acme").get().await.unwrap_err();
    assert_eq!(proxy.seen().len(), 10);
    server.stop().await;
}

#[tokio::test]
async fn unsafe_requests_are_not_repeated_after_a_lost_answer() {
    let (server, proxy, client) = wired().await;
    proxy.plan([Fault::CutRequest]);
    let error = client.policies().create(&NewPolicy::with_delays("mine", &["1s"])).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!(proxy.seen().len(), 1);
    // Aldaba's own no is certain: nothing was made.
    proxy.plan([Fault::Answer(503, None, BUSY)]);
    client.policies().create(&NewPolicy::with_delays("mine", &["1s"])).await.unwrap();
    assert_eq!(proxy.seen().len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn a_message_is_sent_again_once_when_the_answer_is_lost() {
    let (server, proxy, client) = wired().await;
    let app = client.app("acme");
    app.endpoints()
        .create(&NewEndpoint { uid: Some("e".into()), ..NewEndpoint::new("http://127.0.0.1:9") })
        .await
        .unwrap();
    app.messages()
        .send(&NewMessage { event_id: Some("m".into()), ..NewMessage::new("a.b", json!({})) })
        .await
        .unwrap();
    let message = app.message("m");
    wait_until("an attempt is made", async || !message.attempts().await.unwrap().data.is_empty()).await;
    let before = proxy.seen().len();
    proxy.plan([Fault::CutAnswer]);
    message.resend("e").await.unwrap();
    let keys = keys(&proxy.seen()[before..]);
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    let attempts = message.attempts().await.unwrap().data;
    assert_eq!(attempts.iter().filter(|attempt| attempt.trigger_type == Trigger::Manual).count(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_rotation_whose_answer_is_lost_rotates_once() {
    let (server, proxy, client) = wired().await;
    let new = NewEndpoint { uid: Some("e".into()), ..NewEndpoint::new("http://127.0.0.1:9") };
    client.app("acme").endpoints().create(&new).await.unwrap();
    let endpoint = client.app("acme").endpoint("e");
    proxy.plan([Fault::CutAnswer]);
    let rotated = endpoint.rotate_secret(&RotateSecret::default()).await.unwrap();
    assert_eq!(endpoint.secret().await.unwrap(), rotated);
    server.stop().await;
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_has_worked() {
    let (server, proxy, client) = wired().await;
    proxy.plan([Fault::CutAnswer]);
    client.app("acme").delete().await.unwrap();
    // Without a lost answer it says what it is.
    assert!(client.app("acme").delete().await.unwrap_err().is_not_found());
    server.stop().await;
}

#[tokio::test]
async fn errors_describe_the_failure() {
    let (server, proxy, client) = wired().await;
    let nowhere = Client::builder(&format!("http://{}", free_address()), &token())
        .retries(Retries::default().attempts(2).pauses(Duration::ZERO, Duration::ZERO))
        .build()
        .unwrap();
    let error = nowhere.ping().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("Check that it runs"), "{error}");

    let slow = client.with_retries(Retries::none().timeout(Duration::from_millis(200)));
    proxy.plan([Fault::HoldAnswer]);
    assert!(matches!(slow.ping().await.unwrap_err(), Error::Timeout { .. }));

    proxy.plan([Fault::Answer(200, None, "<html>welcome</html>")]);
    assert!(matches!(client.whoami().await.unwrap_err(), Error::Answer { status: 200, .. }));
    proxy.plan([Fault::Answer(302, None, "")]);
    assert!(matches!(client.whoami().await.unwrap_err(), Error::Answer { status: 302, .. }));

    let error = client.app("nobody").get().await.unwrap_err();
    assert!(matches!(&error, Error::Api { status: 404, code, .. } if code == "not_found"), "{error:?}");
    let taken = client.applications().create(&NewApplication::with_uid("a", "acme")).await.unwrap_err();
    assert!(matches!(&taken, Error::Api { status: 409, .. }), "{taken:?}");
    let error = client.app("acme").endpoints().create(&NewEndpoint::new("no url")).await.unwrap_err();
    let Error::Api { status: 422, problems, .. } = &error else { panic!("{error:?}") };
    assert_eq!(problems[0].loc, ["body", "url"]);
    assert!(error.to_string().contains("body.url: "), "{error}");
    assert!(matches!(client.app("").get().await.unwrap_err(), Error::Request { .. }));
    server.stop().await;
}

#[tokio::test]
async fn the_error_of_a_wrong_token_does_not_show_the_token() {
    let server = Running::start().await;
    let client = Client::new(&format!("http://{}", server.address), "not-a-token-of-anybody").unwrap();
    let error = client.whoami().await.unwrap_err();
    assert_eq!(error.status(), Some(401));
    assert!(!format!("{error} {error:?} {client:?}").contains("not-a-token"), "{error:?}");
    server.stop().await;
}

#[tokio::test]
async fn two_clients_of_two_servers_live_in_one_process() {
    let (one, two) = (Running::start().await, Running::start().await);
    one.application("of-one").await;
    two.application("of-two").await;
    let (a, b) = tokio::join!(async { one.client.applications().list().await.unwrap().data }, async {
        two.client.applications().list().await.unwrap().data
    },);
    assert_eq!((a[0].uid.as_deref(), b[0].uid.as_deref()), (Some("of-one"), Some("of-two")));
    assert!(one.client.app("of-two").get().await.unwrap_err().is_not_found());
    one.stop().await;
    two.stop().await;
}
