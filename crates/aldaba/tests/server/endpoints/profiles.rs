//! What a receiver gets under each wire profile, at the first attempt and at a retry.

use crate::support::hmac::{hex, sha256, sha512};
use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::Running;
use crate::support::waiting::wait_for;
use aldaba_engine::{Clock, SystemClock};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const PAYLOAD: &str = r#"{ "jobId": "job-7", "n":1.0 }"#;

fn key() -> Vec<u8> {
    BASE64_STANDARD.decode(SECRET.trim_start_matches("whsec_")).unwrap()
}

/// A server with one endpoint, whose receiver says no: every message arrives three times, 1 and 2 s apart.
struct Stage {
    server: Running,
    receiver: Receiver,
    app: String,
    endpoint: String,
}

impl Stage {
    async fn new(profile: Value) -> Self {
        Self::on(Running::delivering().await, profile).await
    }

    async fn on(server: Running, profile: Value) -> Self {
        let receiver = Receiver::answering(503, "not now").await;
        let app = server.application().await;
        let endpoint =
            json!({"url": receiver.url("/"), "policy": "job-status", "secret": SECRET, "profile": profile});
        let endpoint = server.endpoint(&app, endpoint).await;
        assert_eq!(endpoint["profile"], profile);
        let endpoint = endpoint["id"].as_str().unwrap().to_owned();
        Self { server, receiver, app, endpoint }
    }

    /// Its id.
    async fn send(&self, payload: &str, version: Option<&str>) -> String {
        let version = version.map_or("null".to_owned(), |version| format!("\"{version}\""));
        let body = format!(r#"{{"eventType":"invoice.paid","payload":{payload},"version":{version}}}"#);
        let sent = self.server.client.post(&format!("/app/{}/msg", self.app), body).await.expect(202);
        sent["id"].as_str().unwrap().to_owned()
    }

    async fn patch(&self, change: Value) {
        let path = format!("/app/{}/endpoint/{}", self.app, self.endpoint);
        self.server.client.patch(&path, change.to_string()).await.expect(200);
    }
}

/// The value of a header; empty: it did not come.
fn header<'a>(arrival: &'a Arrival, name: &str) -> &'a str {
    arrival.headers.get(name).map_or("", |value| value.to_str().unwrap())
}

/// The names of all headers but those of HTTP itself.
fn names(arrival: &Arrival) -> Vec<&str> {
    let plain = ["accept", "content-length", "content-type", "host", "user-agent"];
    assert_eq!(header(arrival, "content-type"), "application/json");
    assert!(header(arrival, "user-agent").starts_with("Aldaba/"));
    let mut names: Vec<_> =
        arrival.headers.keys().map(|name| name.as_str()).filter(|name| !plain.contains(name)).collect();
    names.sort_unstable();
    names
}

fn is_now(seconds: &str) -> bool {
    let sent: i64 = seconds.parse().unwrap();
    let now = SystemClock::new().wall().millis() / 1000;
    (now - 60..=now + 1).contains(&sent)
}

async fn standard_webhooks(prefix: &str, profile: Value) {
    let mut stage = Stage::new(profile).await;
    let id = stage.send(PAYLOAD, Some("2")).await;
    for _ in 0..2 {
        let arrival = stage.receiver.next().await;
        assert_eq!(names(&arrival), ["id", "signature", "timestamp"].map(|name| format!("{prefix}-{name}")));
        assert_eq!(header(&arrival, &format!("{prefix}-id")), id);
        let time = header(&arrival, &format!("{prefix}-timestamp"));
        assert!(is_now(time));
        let signed = sha256(&key(), format!("{id}.{time}.{PAYLOAD}").as_bytes());
        let expected = format!("v1,{}", BASE64_STANDARD.encode(signed));
        assert_eq!(header(&arrival, &format!("{prefix}-signature")), expected);
    }
}

#[tokio::test]
async fn standard_sends_the_same_id_and_a_fresh_signature_on_a_retry() {
    standard_webhooks("webhook", Value::Null).await;
}

#[tokio::test]
async fn svix_sends_the_same_under_its_own_names() {
    standard_webhooks("svix", json!("svix")).await;
}

#[tokio::test]
async fn d9_x_webhook_counts_retries_and_sends_the_version_a_message_was_accepted_under() {
    let mut stage = Stage::new(json!("x-webhook")).await;
    let id = stage.send(PAYLOAD, Some("2024-06")).await;
    for retry in ["0", "1", "2"] {
        let arrival = stage.receiver.next().await;
        assert_eq!(names(&arrival), ["x-webhook-retry", "x-webhook-signature", "x-webhook-version"]);
        assert_eq!(header(&arrival, "x-webhook-retry"), retry);
        assert_eq!(header(&arrival, "x-webhook-signature"), hex(&sha256(&key(), PAYLOAD.as_bytes())));
        assert_eq!(header(&arrival, "x-webhook-version"), "2024-06");
        assert_eq!(arrival.body, PAYLOAD.as_bytes());
    }
    let path = format!("/app/{}/msg", stage.app);
    let shown = stage.server.client.get(&format!("{path}/{id}")).await.expect(200);
    assert_eq!(shown["version"], "2024-06");
    stage.send(PAYLOAD, None).await;
    assert_eq!(names(&stage.receiver.next().await), ["x-webhook-retry", "x-webhook-signature"]);
    let listed = stage.server.client.get(&path).await.expect(200);
    assert_eq!(
        (&listed["data"][0]["version"], &listed["data"][1]["version"]),
        (&Value::Null, &json!("2024-06"))
    );
}

#[tokio::test]
async fn c2_job_status_names_the_event_and_the_job_and_is_signed() {
    const SIGNED: [&str; 3] = ["webhook-id", "webhook-signature", "webhook-timestamp"];
    let mut stage = Stage::new(json!("job-status")).await;
    let id = stage.send(PAYLOAD, None).await;
    for _ in 0..2 {
        let arrival = stage.receiver.next().await;
        assert_eq!(names(&arrival), [&SIGNED[..], &["x-job-id", "x-webhook-event"]].concat());
        let time = header(&arrival, "webhook-timestamp");
        let signed = sha256(&key(), format!("{id}.{time}.{PAYLOAD}").as_bytes());
        assert!(is_now(time) && header(&arrival, "webhook-id") == id);
        assert_eq!(header(&arrival, "webhook-signature"), format!("v1,{}", BASE64_STANDARD.encode(signed)));
        assert_eq!(
            (header(&arrival, "x-webhook-event"), header(&arrival, "x-job-id")),
            ("job.status", "job-7")
        );
    }
    // The third one of the first message comes 2 s later.
    stage.send(r#"{"job": "none"}"#, None).await;
    let arrival = stage.receiver.next().await;
    assert_eq!(
        (arrival.body.as_ref(), names(&arrival)),
        (br#"{"job": "none"}"#.as_ref(), [&SIGNED[..], &["x-webhook-event"]].concat())
    );
}

#[tokio::test]
async fn e1_branded_sends_id_and_type_under_the_brand_and_a_dated_signature() {
    let server = Running::with(|config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.engine.brand = "Zeltapay".parse().unwrap();
        config.engine.profile = "branded".into();
    });
    // Endpoints that name none get the server's default.
    let mut stage = Stage::on(server.await, Value::Null).await;
    let id = stage.send(PAYLOAD, None).await;
    for _ in 0..2 {
        let arrival = stage.receiver.next().await;
        assert_eq!(names(&arrival), ["zeltapay-event-id", "zeltapay-event-type", "zeltapay-signature"]);
        assert_eq!(header(&arrival, "zeltapay-event-id"), id);
        assert_eq!(header(&arrival, "zeltapay-event-type"), "invoice.paid");
        let signature = header(&arrival, "zeltapay-signature");
        let (time, signed) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        assert!(is_now(time));
        assert_eq!(signed, hex(&sha256(&key(), format!("{time}.{PAYLOAD}").as_bytes())));
    }
}

#[tokio::test]
async fn e1_branded_and_own_templates_send_the_event_id_that_the_sender_gave() {
    let server = Running::delivering().await;
    let own = json!({"name": "own", "headers": {"X-Event": "{type}/{eventId}", "X-Id": "{id}"}});
    server.client.post("/profile", own.to_string()).await.expect(201);
    for (profile, name, before) in [("branded", "aldaba-event-id", ""), ("own", "x-event", "invoice.paid/")] {
        let mut receiver = Receiver::answering(503, "not now").await;
        let app = server.application().await;
        let endpoint = json!({"url": receiver.url("/"), "policy": "quick", "profile": profile});
        let endpoint = server.endpoint(&app, endpoint).await;
        let event = json!({"eventType": "invoice.paid", "eventId": "order-7.paid_1", "payload": {"n": 1}});
        let sent = server.client.post(&format!("/app/{app}/msg"), event.to_string()).await.expect(202);
        let id = sent["id"].as_str().unwrap();
        // The first attempt, a retry, and a manual attempt: the same id each time.
        let expected = format!("{before}order-7.paid_1");
        for _ in 0..2 {
            assert_eq!(header(&receiver.next().await, name), expected);
        }
        receiver.answer(200);
        let resend = format!("/app/{app}/msg/{id}/endpoint/{}/resend", endpoint["id"].as_str().unwrap());
        // The retry may still be in flight.
        let resent = wait_for("the retry is recorded", async || {
            Some(server.client.post(&resend, "{}").await).filter(|resent| resent.status != 409)
        })
        .await;
        resent.expect(202);
        assert_eq!(header(&receiver.next().await, name), expected);
        // The shown headers of an attempt are computed again, and are the same.
        let attempts = server.client.get(&format!("/app/{app}/attempt/msg/{id}")).await.expect(200);
        for attempt in attempts["data"].as_array().unwrap() {
            let path = format!("/app/{app}/msg/{id}/attempt/{}/headers", attempt["id"].as_str().unwrap());
            let shown = server.client.get(&path).await.expect(200);
            assert_eq!(shown["sentHeaders"][name], expected, "{shown}");
        }
        // Without one it is the message's.
        let event = json!({"eventType": "invoice.paid", "payload": {"n": 2}});
        let sent = server.client.post(&format!("/app/{app}/msg"), event.to_string()).await.expect(202);
        let arrival = receiver.next().await;
        assert_eq!(header(&arrival, name), format!("{before}{}", sent["id"].as_str().unwrap()));
    }
}

#[tokio::test]
async fn e1_an_event_id_that_no_header_can_hold_is_refused_on_intake() {
    let server = Running::start().await;
    let app = server.application().await;
    let long = "x".repeat(257);
    for id in ["a\r\nX-Evil: 1", "a b", "a\tb", "ñ", "\u{0}", "", " a", &long] {
        for (path, body) in [
            ("msg", json!({"eventType": "a", "eventId": id, "payload": {}})),
            ("dispatch", json!({"url": "https://example.com/", "eventId": id, "payload": {}})),
        ] {
            let refused =
                server.client.post(&format!("/app/{app}/{path}"), body.to_string()).await.expect(422);
            assert_eq!(refused["detail"][0]["loc"], json!(["body", "eventId"]), "{refused}");
        }
    }
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

fn acme() -> Value {
    json!({
        "name": "acme",
        "headers": {
            "X-Acme-Delivery": "{id}; retry={attempt}; at={timestampMs}",
            "X-Acme-Signature": "sha512={signature}",
            "X-Acme-Subject": "{type}@{version}",
            "X-Acme-From": "{app}/{endpoint}",
        },
        "signature": {"scheme": "base64", "hash": "sha512"},
    })
}

#[tokio::test]
async fn a_custom_profile_sends_its_templates() {
    let server = Running::delivering().await;
    server.client.post("/profile", acme().to_string()).await.expect(201);
    let mut stage = Stage::on(server, json!("acme")).await;
    let id = stage.send(PAYLOAD, Some("3")).await;
    for retry in 0..2 {
        let arrival = stage.receiver.next().await;
        assert_eq!(names(&arrival), ["x-acme-delivery", "x-acme-from", "x-acme-signature", "x-acme-subject"]);
        let (delivery, millis) = header(&arrival, "x-acme-delivery").rsplit_once('=').unwrap();
        assert_eq!(delivery, format!("{id}; retry={retry}; at"));
        assert!(is_now(&millis[..millis.len() - 3]));
        assert_eq!(header(&arrival, "x-acme-subject"), "invoice.paid@3");
        assert_eq!(header(&arrival, "x-acme-from"), format!("{}/{}", stage.app, stage.endpoint));
        let signed = BASE64_STANDARD.encode(sha512(&key(), PAYLOAD.as_bytes()));
        assert_eq!(header(&arrival, "x-acme-signature"), format!("sha512={signed}"));
    }
}

#[tokio::test]
async fn a_change_of_profile_holds_from_the_next_attempt_on() {
    let server = Running::delivering().await;
    server.client.post("/profile", acme().to_string()).await.expect(201);
    let mut stage = Stage::on(server, json!("acme")).await;
    let id = stage.send(PAYLOAD, None).await;
    assert!(stage.receiver.next().await.headers.contains_key("x-acme-delivery"));
    // The profile itself is rewritten while a retry waits,
    let changed = json!({"headers": {"X-Acme-Id": "{id}"}});
    stage.server.client.put("/profile/acme", changed.to_string()).await.expect(200);
    let arrival = stage.receiver.next().await;
    assert_eq!((names(&arrival), header(&arrival, "x-acme-id")), (vec!["x-acme-id"], &*id));
    // and then the endpoint gets another one.
    stage.patch(json!({"profile": "branded"})).await;
    let arrival = stage.receiver.next().await;
    assert_eq!(names(&arrival), ["aldaba-event-id", "aldaba-event-type", "aldaba-signature"]);
    assert_eq!(header(&arrival, "aldaba-event-id"), id);
    stage.server.client.delete("/profile/acme").await.expect(204);
    stage.patch(json!({"profile": null})).await;
    stage.send(PAYLOAD, None).await;
    assert_eq!(names(&stage.receiver.next().await), ["webhook-id", "webhook-signature", "webhook-timestamp"]);
}

#[tokio::test]
async fn profiles_and_versions_are_there_after_a_restart() {
    let server = Running::delivering().await;
    let made = server.client.post("/profile", acme().to_string()).await.expect(201);
    let mut stage = Stage::on(server, json!("acme")).await;
    stage.send(PAYLOAD, Some("3")).await;
    stage.receiver.next().await;
    let folder = stage.server.stop().await;
    let server =
        Running::within(folder, |config| config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()]).await;
    assert_eq!(server.client.get("/profile/acme").await.expect(200), made);
    let arrival = stage.receiver.next().await;
    assert_eq!(header(&arrival, "x-acme-subject"), "invoice.paid@3");
    assert!(header(&arrival, "x-acme-delivery").contains("retry=1"));
}
