use crate::samples::{NOW, sample_of};
use aldaba_signature::inbound::challenge::{self, Answer, MAX_QUERY, MAX_TEXT};
use aldaba_signature::inbound::{Arrival, Inspector, Place, Recipe, Refusal, Secret};
use hmac::{KeyInit, Mac};

const PLAIN: &str = "text/plain; charset=utf-8";

fn plain(body: &str) -> Option<Answer> {
    Some(Answer { status: 200, content_type: PLAIN, body: body.into() })
}

fn sign(secret: &str, message: &[u8]) -> String {
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().iter().fold("v0=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// A body as Slack and Zoom sign it.
fn open(recipe: Recipe, secrets: &[&str], signed_with: &str, body: &[u8]) -> Result<Arrival, Refusal> {
    let prefix = if recipe == Recipe::slack() { "x-slack" } else { "x-zm" };
    let signature = sign(signed_with, &[format!("v0:{NOW}:").as_bytes(), body].concat());
    let headers = [
        (format!("{prefix}-signature"), signature),
        (format!("{prefix}-request-timestamp"), NOW.to_string()),
    ];
    let secrets = secrets.iter().map(|text| Secret::text(text).unwrap());
    Inspector::new(recipe, secrets).unwrap().open(headers.as_slice(), body, NOW)
}

#[test]
fn slack_gets_its_challenge_back_once_its_signature_held() {
    let body = br#"{"token": "x", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", "type": "url_verification"}"#;
    let answer = plain("3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P");
    assert_eq!(challenge::slack(body), answer);
    assert_eq!(open(Recipe::slack(), &["a"], "a", body), Ok(Arrival::Challenge(answer.unwrap())));
    assert!(open(Recipe::slack(), &["a"], "b", body).unwrap_err().is_unauthorized());
    assert_eq!(
        open(Recipe::slack(), &["a"], "a", br#"{"type": "url_verification"}"#),
        Err(Refusal::NoId(vec![Place::parse("$.event_id").unwrap()])),
        "without a challenge it is an event like any other, and has no id"
    );
}

#[test]
fn a_request_that_is_not_a_slack_challenge_gets_no_challenge_answer() {
    let long = format!(r#"{{"type": "url_verification", "challenge": "{}"}}"#, "a".repeat(MAX_TEXT + 1));
    for body in [
        "",
        "{}",
        "[]",
        "challenge=a&type=url_verification",
        r#"{"type": "event_callback", "challenge": "a"}"#,
        r#"{"type": "url_verification", "challenge": 7}"#,
        r#"{"type": "url_verification", "challenge": null}"#,
        r#"{"type": "url_verification", "challenge": ""}"#,
        r#"{"type": "url_verification", "challenge": "<script>"}"#,
        r#"{"type": "url_verification", "challenge": "a\r\nb"}"#,
        &long,
    ] {
        assert_eq!(challenge::slack(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn events_are_opened_as_they_are_inspected() {
    for sender in ["slack", "zoom", "stripe"] {
        let sample = sample_of(sender);
        let opened = sample.inspector().open(sample.headers.as_slice(), &sample.body, sample.now);
        assert_eq!(opened, Ok(Arrival::Event(sample.expected())));
    }
}

#[test]
fn zoom_gets_its_token_signed_with_the_secret_that_signed_the_question() {
    let body =
        br#"{"event": "endpoint.url_validation", "payload": {"plainToken": "qgg8vlvZRS6UYooatFL8Aw"}}"#;
    let encrypted = "33c87763eeee7760422d82e566d46fe8b5eaca6c3da5abf7923e6e8765c76a26";
    let answer = challenge::zoom(body, &Secret::text("zoom secret").unwrap()).unwrap();
    assert_eq!((answer.status, answer.content_type), (200, "application/json"));
    let json: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let expected = serde_json::json!({"plainToken": "qgg8vlvZRS6UYooatFL8Aw", "encryptedToken": encrypted});
    assert_eq!(json, expected);

    for secrets in [["zoom secret", "new"], ["new", "zoom secret"]] {
        let opened = open(Recipe::zoom(), &secrets, "zoom secret", body);
        assert_eq!(opened, Ok(Arrival::Challenge(answer.clone())));
    }
    assert!(open(Recipe::zoom(), &["zoom secret"], "another", body).unwrap_err().is_unauthorized());
}

/// Events are signed over `v0:<time>:<body>` with the same secret: a token of that form would be a forged event.
#[test]
fn zooms_challenge_signs_nothing_but_tokens() {
    let secret = Secret::text("zoom secret").unwrap();
    for token in [r#"v0:1614265330:{\"event\": \"a\"}"#, "a:b", "a b", "", "ü"] {
        let body =
            format!(r#"{{"event": "endpoint.url_validation", "payload": {{"plainToken": "{token}"}}}}"#);
        assert_eq!(challenge::zoom(body.as_bytes(), &secret), None, "{token}");
    }
    for body in
        ["{}", r#"{"event": "endpoint.url_validation"}"#, r#"{"event": "a", "payload": {"plainToken": "a"}}"#]
    {
        assert_eq!(challenge::zoom(body.as_bytes(), &secret), None, "{body}");
    }
}

#[test]
fn meta_gets_its_challenge_back_for_the_right_token() {
    let query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=me%20at%2By";
    assert_eq!(challenge::meta(query, "me at+y"), plain("1158201444"));
    assert_eq!(challenge::meta(&format!("?{query}"), "me at+y"), plain("1158201444"));
    assert_eq!(
        challenge::meta("hub%2Emode=subscribe&hub.challenge=1&hub.verify_token=a+b", "a b"),
        plain("1")
    );
}

#[test]
fn meta_is_refused_for_another_token() {
    for (query, token) in [
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=b", "a"),
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=aa", "a"),
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=", "a"),
        ("hub.mode=subscribe&hub.challenge=1", "a"),
        ("hub.mode=subscribe&hub.challenge=1", ""),
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=", ""),
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=b&hub.verify_token=a", "a"),
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=%ff", "a"),
        ("hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=a", "a"),
        ("hub.mode=subscribe&hub.verify_token=a", "a"),
        ("hub.mode=subscribe&hub.challenge=%3Cscript%3E&hub.verify_token=a", "a"),
        ("hub.mode=subscribe&hub.challenge=1&hub.challenge=2&hub.verify_token=a", "a"),
    ] {
        let answer = challenge::meta(query, token).unwrap();
        assert_eq!((answer.status, answer.content_type), (403, PLAIN), "{query}");
        assert!(!answer.body.contains("script"));
    }
    let long = format!("hub.mode=subscribe&hub.verify_token=a&hub.challenge={}", "1".repeat(MAX_QUERY));
    for query in ["", "a=b", "hub.challenge=1&hub.verify_token=a", &long] {
        assert_eq!(challenge::meta(query, "a"), None, "{query}");
    }
}

#[test]
fn microsoft_graph_gets_the_decoded_text_back() {
    let query = "validationToken=Validation%3a+Testing+client+application+reachability%20%26%20more";
    let text = "Validation: Testing client application reachability & more";
    assert_eq!(challenge::microsoft_graph(query), plain(text));
    assert_eq!(challenge::microsoft_graph("?a=b&validationToken=%C3%BC&c"), plain("ü"));
    let long = format!("validationToken={}", "a".repeat(MAX_TEXT + 1));
    let longer = format!("validationToken=a&{}", "b".repeat(MAX_QUERY));
    for query in [
        "",
        "validationToken",
        "validationToken=",
        "validationtoken=a",
        "validationToken=a&validationToken=b",
        "validationToken=%ff",
        "validationToken=a%0d%0ab",
        "validationToken=%00",
        &long,
        &longer,
    ] {
        assert_eq!(challenge::microsoft_graph(query), None, "{query}");
    }
}
