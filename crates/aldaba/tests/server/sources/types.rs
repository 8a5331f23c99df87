//! Every type of source, end to end: signed as its sender signs, verified, forwarded.

use crate::sources::stage::{InboundSource, SECRET, hex, mac, now, standard};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use serde_json::{Value, json};

/// A request of a sender, and the expected event.
struct Case {
    kind: &'static str,
    config: Value,
    /// Further configuration of the source.
    more: Value,
    body: String,
    headers: Vec<(String, String)>,
    /// What the event must be called, and of which type it must be. Empty: the body's digest.
    id: &'static str,
    event_type: &'static str,
    /// Headers that must go out as they came.
    forwarded: &'static [&'static str],
}

fn text(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn stripe_like(header: &str, secret: &str, at: u64, body: &str) -> (String, String) {
    let signed = mac(secret.as_bytes(), &[at.to_string().as_bytes(), b".", body.as_bytes()]);
    text(header, format!("t={at},v1={}", hex(&signed)))
}

fn version_zero(secret: &str, at: u64, body: &str) -> String {
    format!(
        "v0={}",
        hex(&mac(secret.as_bytes(), &[b"v0:", at.to_string().as_bytes(), b":", body.as_bytes()]))
    )
}

fn cases(at: u64) -> Vec<Case> {
    let plain = json!({"secret": "a plain secret"});
    let of_plain = |body: &str| mac(b"a plain secret", &[body.as_bytes()]);
    let push = r#"{"ref": "refs/heads/main"}"#;
    let charge = r#"{"id": "evt_1", "type": "charge.succeeded"}"#;
    let slack = r#"{"type": "event_callback", "event_id": "Ev1", "event": {"type": "message"}}"#;
    let page = r#"{"object": "page", "entry": []}"#;
    let zoom = r#"{"event": "meeting.started", "payload": {}}"#;
    let graph = r#"{"value": [{"clientState": "between us", "changeType": "created"}]}"#;
    let named = r#"{"type": "user.created"}"#;
    let stamped = r#"{"id": "aw_1", "name": "payment.paid"}"#;
    let easy = r#"{"id": "evt_2", "description": "tracker.updated"}"#;
    let tail = r#"[{"type": "nodeCreated"}]"#;
    vec![
        Case {
            kind: "github",
            config: plain.clone(),
            more: json!({}),
            headers: vec![
                text("x-github-event", "push"),
                text("x-github-delivery", "72d3162e"),
                text("x-hub-signature-256", format!("sha256={}", hex(&of_plain(push)))),
                text("content-type", "application/json; charset=utf-8"),
            ],
            body: push.into(),
            id: "72d3162e",
            event_type: "push",
            forwarded: &["x-github-event", "x-github-delivery", "x-hub-signature-256", "content-type"],
        },
        Case {
            kind: "github",
            config: json!({}),
            more: json!({}),
            headers: vec![text("x-github-event", "ping"), text("x-github-delivery", "unsigned")],
            body: push.into(),
            id: "unsigned",
            event_type: "ping",
            forwarded: &["x-github-event"],
        },
        Case {
            kind: "stripe",
            config: plain.clone(),
            more: json!({}),
            headers: vec![stripe_like("stripe-signature", "a plain secret", at, charge)],
            body: charge.into(),
            id: "evt_1",
            event_type: "charge.succeeded",
            forwarded: &["stripe-signature"],
        },
        Case {
            kind: "shopify",
            config: plain.clone(),
            more: json!({}),
            headers: vec![
                text("x-shopify-topic", "orders/create"),
                text("x-shopify-webhook-id", "b54557e4"),
                text("x-shopify-hmac-sha256", STANDARD.encode(of_plain(push))),
            ],
            body: push.into(),
            id: "b54557e4",
            event_type: "orders.create",
            forwarded: &["x-shopify-topic", "x-shopify-webhook-id", "x-shopify-hmac-sha256"],
        },
        Case {
            kind: "slack",
            config: plain.clone(),
            more: json!({}),
            headers: vec![
                text("x-slack-request-timestamp", at.to_string()),
                text("x-slack-signature", version_zero("a plain secret", at, slack)),
            ],
            body: slack.into(),
            id: "Ev1",
            event_type: "message",
            forwarded: &["x-slack-signature", "x-slack-request-timestamp"],
        },
        Case {
            kind: "meta",
            config: json!({"secret": "a plain secret", "verifyToken": "typed in"}),
            more: json!({}),
            headers: vec![text("x-hub-signature-256", format!("sha256={}", hex(&of_plain(page))))],
            body: page.into(),
            id: "",
            event_type: "page",
            forwarded: &["x-hub-signature-256"],
        },
        Case {
            kind: "zoom",
            config: plain.clone(),
            more: json!({}),
            headers: vec![
                text("x-zm-request-timestamp", at.to_string()),
                text("x-zm-signature", version_zero("a plain secret", at, zoom)),
            ],
            body: zoom.into(),
            id: "",
            event_type: "meeting.started",
            forwarded: &["x-zm-signature"],
        },
        Case {
            kind: "microsoft-graph",
            config: json!({"clientState": "between us"}),
            more: json!({"eventIdFrom": ["body-digest"]}),
            headers: vec![],
            body: graph.into(),
            id: "",
            event_type: "created",
            forwarded: &[],
        },
        Case {
            kind: "x-webhook-signature",
            config: plain.clone(),
            more: json!({}),
            headers: vec![text("x-webhook-signature", hex(&of_plain(push)))],
            body: push.into(),
            id: "",
            event_type: "x-webhook-signature.event",
            forwarded: &[],
        },
        Case {
            kind: "branded",
            config: json!({"secret": "a plain secret", "brand": "Zeltapay"}),
            more: json!({}),
            headers: vec![
                stripe_like("zeltapay-signature", "a plain secret", at, push),
                text("zeltapay-event-id", "evt_branded"),
                text("zeltapay-event-type", "payment.success"),
            ],
            body: push.into(),
            id: "evt_branded",
            event_type: "payment.success",
            forwarded: &["zeltapay-event-id"],
        },
        Case {
            kind: "hmac",
            config: json!({
                "secret": "a plain secret",
                "header": "X-Signed",
                "prefix": "v=",
                "encoding": "base64",
                "signed": "{timestamp}/{body}",
                "timestampHeader": "X-At",
            }),
            more: json!({}),
            headers: vec![
                text("x-at", at.to_string()),
                text("x-signed", {
                    let parts =
                        [at.to_string().into_bytes(), b"/".to_vec(), push.as_bytes().to_vec()].concat();
                    format!("v={}", STANDARD.encode(mac(b"a plain secret", &[&parts])))
                }),
            ],
            body: push.into(),
            id: "",
            event_type: "hmac.event",
            forwarded: &["x-signed", "x-at"],
        },
        Case {
            kind: "airwallex",
            config: plain.clone(),
            more: json!({}),
            headers: vec![
                text("x-timestamp", format!("{at}000")),
                text("x-signature", {
                    hex(&mac(b"a plain secret", &[format!("{at}000").as_bytes(), stamped.as_bytes()]))
                }),
            ],
            body: stamped.into(),
            id: "aw_1",
            event_type: "payment.paid",
            forwarded: &["x-signature"],
        },
        Case {
            kind: "easypost",
            config: plain.clone(),
            more: json!({}),
            headers: vec![text("x-hmac-signature", format!("hmac-sha256-hex={}", hex(&of_plain(easy))))],
            body: easy.into(),
            id: "evt_2",
            event_type: "tracker.updated",
            forwarded: &["x-hmac-signature"],
        },
        Case {
            kind: "tailscale",
            config: json!({"secret": "a plain secret", "timestampGraceSeconds": 60}),
            more: json!({}),
            headers: vec![stripe_like("tailscale-webhook-signature", "a plain secret", at, tail)],
            body: tail.into(),
            id: "",
            event_type: "nodeCreated",
            forwarded: &["tailscale-webhook-signature"],
        },
        Case {
            kind: "generic-webhook",
            config: json!(null),
            more: json!({}),
            headers: vec![text("content-type", "text/plain")],
            body: "no json at all".into(),
            id: "",
            event_type: "generic-webhook.event",
            forwarded: &["content-type"],
        },
        Case {
            kind: "standard-webhooks",
            config: json!({"secret": SECRET}),
            more: json!({}),
            headers: standard("webhook", SECRET, "msg_theirs", at, named.as_bytes()),
            body: named.into(),
            id: "msg_theirs",
            event_type: "user.created",
            forwarded: &[],
        },
    ]
}

/// Ed25519, in the format of Telnyx. The source is configured with the account's public key.
fn telnyx(at: u64) -> Case {
    let key = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let body = r#"{"data": {"id": "e3", "event_type": "message.received"}}"#;
    let signature = key.sign(format!("{at}|{body}").as_bytes());
    Case {
        kind: "telnyx",
        config: json!({"publicKey": STANDARD.encode(key.verifying_key().as_bytes())}),
        more: json!({}),
        headers: vec![
            text("telnyx-signature-ed25519", STANDARD.encode(signature.to_bytes())),
            text("telnyx-timestamp", at.to_string()),
        ],
        body: body.into(),
        id: "e3",
        event_type: "message.received",
        forwarded: &["telnyx-signature-ed25519", "telnyx-timestamp"],
    }
}

const THROUGH_SVIX: [&str; 17] = [
    "svix",
    "beehiiv",
    "brex",
    "clerk",
    "guesty",
    "incident-io",
    "lithic",
    "nash",
    "open-ai",
    "pleo",
    "psi-fi",
    "render",
    "replicate",
    "resend",
    "safebase",
    "sardine",
    "stych",
];

#[tokio::test]
async fn every_type_verifies_names_and_forwards_as_its_sender_sends() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let at = now();
    let named = r#"{"type": "user.created"}"#;
    let svix = THROUGH_SVIX.map(|kind| Case {
        kind,
        config: json!({"secret": SECRET}),
        more: json!({}),
        headers: standard("svix", SECRET, "msg_theirs", at, named.as_bytes()),
        body: named.into(),
        id: "msg_theirs",
        event_type: "user.created",
        forwarded: &[],
    });
    let mut kinds = Vec::new();
    for case in cases(at).into_iter().chain([telnyx(at)]).chain(svix) {
        kinds.push(case.kind);
        let mut more = case.more.clone();
        more["config"] = case.config.clone();
        let inbound = InboundSource::new(&server, case.kind, more).await;
        let inbound = inbound.forwarding(&receiver, json!({})).await;
        let shown = inbound.source["config"].to_string();
        assert!(!shown.contains("plain secret") && !shown.contains(SECRET), "{shown}");
        let first = inbound.send_signed(&case.headers, case.body.clone()).await;
        assert_eq!(first.expect(200), json!({"received": true}), "{}", case.kind);
        let arrival = receiver.next().await;
        assert_eq!(arrival.body, case.body.as_bytes(), "{}", case.kind);
        for name in case.forwarded {
            let came =
                case.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_bytes());
            let went = arrival.headers.get(*name).map(|value| value.as_bytes());
            assert_eq!(went, came, "{} {name}", case.kind);
        }
        assert!(arrival.headers["webhook-id"].to_str().unwrap().starts_with("msg_"), "our own");
        assert_ne!(arrival.headers["webhook-id"], "msg_theirs");
        let [message] = &inbound.messages().await[..] else { panic!("one message of {}", case.kind) };
        assert_eq!(message["eventType"], case.event_type, "{}", case.kind);
        match case.id {
            "" => assert_eq!(message["eventId"].as_str().unwrap().len(), 64, "{}", case.kind),
            id => assert_eq!(message["eventId"], id, "{}", case.kind),
        }
        let again = inbound.send_signed(&case.headers, case.body.clone()).await;
        assert_eq!(again.expect(200), json!({"received": true, "duplicate": true}), "{}", case.kind);
        // Without its id and type it is anonymous. Some senders have neither.
        let known_by = ["secret", "clientState", "publicKey"];
        let unsigned = known_by.iter().all(|name| case.config[name].is_null());
        if !unsigned {
            let other = case.body.replace('{', "{ ").replace("between us", "guessed").replace('[', "[ ");
            inbound.send_signed(&case.headers, other).await.expect(401);
            if case.kind != "microsoft-graph" {
                inbound.send(&[], case.body.clone()).await.expect(401);
            }
        }
        assert_eq!(inbound.messages().await.len(), 1, "{}", case.kind);
    }
    kinds.sort_unstable();
    kinds.dedup();
    let mut all = aldaba_engine::SOURCE_TYPES.to_vec();
    all.sort_unstable();
    assert_eq!(kinds, all, "every type there is");
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn an_ed25519_sender_is_verified_by_its_public_key() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let key = aldaba_signature::SigningKey::generate_ed25519([7; 32]);
    let public = key.public_text();
    let config = json!({"config": {"secrets": [public, SECRET]}});
    let inbound =
        InboundSource::new(&server, "standard-webhooks", config).await.forwarding(&receiver, json!({})).await;
    assert_eq!(inbound.source["config"], json!({"publicKeys": [public]}), "what is no secret is shown");
    let (at, body) = (now(), r#"{"type": "a"}"#);
    let at_signed = i64::try_from(at).unwrap();
    let signature = aldaba_signature::Scheme::Standard.sign(&[key], "one", at_signed, body.as_bytes());
    let stamp = at.to_string();
    let headers = [("webhook-id", "one"), ("webhook-timestamp", &stamp), ("webhook-signature", &signature)];
    assert_eq!(inbound.send(&headers, body).await.expect(200), json!({"received": true}));
    assert_eq!(receiver.next().await.body, body);
    // Both secrets are valid.
    let headers = standard("webhook", SECRET, "two", at, body.as_bytes());
    assert_eq!(inbound.send_signed(&headers, body).await.expect(200), json!({"received": true}));
    receiver.next().await;
    server.stop().await;
}
