use super::*;
use aldaba_signature::HashKind;
use aldaba_signature::inbound::{Inspector, Place, Recipe, Secret};
use proptest::prelude::*;
use serde_json::{Value, json};

const BODY: &[u8] = br#"{"jobId":"j-7","test": 2432232314}"#;

fn context<'a>(keys: &'a [SigningKey], version: Option<&'a str>) -> HeaderContext<'a> {
    HeaderContext {
        message: MessageId::from_bytes([1; 20]),
        event_id: None,
        event_type: "invoice.paid",
        version,
        app: AppId::from_bytes([2; 20]),
        endpoint: EndpointId::from_bytes([3; 20]),
        attempts: 2,
        now: Timestamp::from_millis(1_614_265_330_987),
        keys,
        body: BODY,
        traceparent: None,
    }
}

fn key() -> SigningKey {
    SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a key")
}

fn read(json: &Value) -> Result<Profile, Vec<(String, String)>> {
    let pairs = |errors: Vec<ProfileError>| {
        errors.into_iter().map(|e| (e.field.join("/"), e.why)).collect::<Vec<_>>()
    };
    Profile::from_json(json).map_err(pairs)
}

fn sent(profile: &Profile, version: Option<&str>) -> Vec<(String, String)> {
    let keys = [key()];
    let headers = profile.headers(&context(&keys, version));
    let own = headers.iter().skip(3);
    own.map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned())).collect()
}

#[test]
fn every_placeholder_has_its_value() {
    let all = "{id} {eventId} {type} {timestamp} {timestampMs} {attempt} {version} {endpoint} {app} {payload.jobId} {{}}";
    let profile = read(&json!({"name": "a", "headers": {"X-All": all}})).expect("a profile");
    let (id, app) = (MessageId::from_bytes([1; 20]), AppId::from_bytes([2; 20]));
    let endpoint = EndpointId::from_bytes([3; 20]);
    let expected = format!("{id} {id} invoice.paid 1614265330 1614265330987 2 v9 {endpoint} {app} j-7 {{}}");
    assert_eq!(sent(&profile, Some("v9")), [("x-all".to_owned(), expected)]);
}

#[test]
fn a_profile_sends_the_trace_of_an_attempt_where_it_asks_for_it_and_there_is_one() {
    let traced = read(&json!({"name": "a", "headers": {"Traceparent": "{traceparent}"}})).expect("a profile");
    let plain = read(&json!({"name": "a", "headers": {"X-Id": "{id}"}})).expect("a profile");
    assert_eq!((traced.sends_traceparent(), plain.sends_traceparent()), (true, false));
    let (keys, trace) =
        ([key()], HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
    let context = HeaderContext { traceparent: Some(&trace), ..context(&keys, None) };
    assert_eq!(traced.headers(&context)["traceparent"], trace);
    let without = traced.headers(&HeaderContext { traceparent: None, ..context });
    assert!(!without.contains_key("traceparent"));
}

#[test]
fn e1_the_event_id_is_the_senders_and_the_messages_where_the_sender_gave_none() {
    let own = json!({"name": "a", "headers": {"X-Event": "event={eventId}"}});
    let own = read(&own).expect("a profile");
    let branded = builtin("branded", &"Zeltapay".parse().expect("a brand")).expect("it is built in");
    let (keys, message) = ([key()], MessageId::from_bytes([1; 20]).to_string());
    for (given, expected) in [(Some("order-7.paid"), "order-7.paid"), (None, &*message)] {
        let context = HeaderContext { event_id: given, ..context(&keys, None) };
        for headers in [branded.headers(&context), branded.headers_without_body(&context)] {
            assert_eq!(headers["zeltapay-event-id"], expected);
        }
        assert_eq!(own.headers(&context)["x-event"], format!("event={expected}"));
    }
}

#[test]
fn e1_an_event_id_can_break_no_header() {
    // The API refuses all of these; stored data is trusted no more.
    let profile = read(&json!({"name": "a", "headers": {"X-Event": "{eventId}"}})).expect("a profile");
    let keys = [key()];
    for given in ["a\r\nX-Evil: 1", "a\nb", "\u{0}", "\u{7f}"] {
        let sent = profile.headers(&HeaderContext { event_id: Some(given), ..context(&keys, None) });
        assert!(!sent.contains_key("x-event") && !sent.contains_key("x-evil"), "{given:?}");
    }
}

#[test]
fn a_header_with_a_missing_value_is_left_out() {
    let headers = json!({"X-A": "v{version}", "X-B": "{payload.other}", "X-C": "always"});
    let profile = read(&json!({"name": "a", "headers": headers})).expect("a profile");
    assert_eq!(sent(&profile, None), [("x-c".to_owned(), "always".to_owned())]);
    assert_eq!(sent(&profile, Some("2")).len(), 2);
}

#[test]
fn a_signature_is_put_where_the_template_says() {
    let profile = json!({
        "name": "hub",
        "headers": {"X-Hub-Signature-256": "sha256={signature}"},
        "signature": {"scheme": "hex"},
    });
    let value = format!("sha256={}", Scheme::Hex(HashKind::Sha256).sign(&[key()], "", 0, BODY));
    assert_eq!(sent(&read(&profile).expect("a profile"), None), [("x-hub-signature-256".to_owned(), value)]);
}

/// Every built-in profile is verified by the recipe for its receivers.
#[test]
fn the_headers_of_a_profile_are_verified_by_its_recipe() {
    let brand: Brand = "Zeltapay".parse().expect("a brand");
    let message = MessageId::from_bytes([1; 20]).to_string();
    for (name, recipe, id, event_type) in [
        ("standard", Recipe::standard(), message.as_str(), None),
        ("svix", Recipe::svix(), &message, None),
        ("x-webhook", Recipe::x_webhook_signature().with_id(place("$.jobId")), "j-7", None),
        ("branded", Recipe::branded("Zeltapay"), &message, Some("invoice.paid")),
        (
            "job-status",
            Recipe::standard().with_event_type(place("header:x-webhook-event")),
            &message,
            Some("job.status"),
        ),
    ] {
        let sent = sent(&builtin(name, &brand).expect("it is built in"), None);
        let secret = Secret::parse_for(&recipe, &key().public_text()).expect("a secret");
        let inspector = Inspector::new(recipe, [secret]).expect("an inspector");
        let inspected = inspector.inspect(sent.as_slice(), BODY, 1_614_265_330).expect(name);
        assert_eq!((inspected.id.as_str(), inspected.event_type.as_deref()), (id, event_type), "{name}");
        let other = inspector.inspect(sent.as_slice(), b"{}", 1_614_265_330).expect_err("another body");
        assert!(other.is_unauthorized(), "{name}");
    }
}

fn place(text: &str) -> Place {
    Place::parse(text).expect("a place")
}

#[test]
fn a_profile_survives_serialization() {
    let brand: Brand = "Zeltapay".parse().expect("a brand");
    for name in aldaba_delivery::BUILTIN_PROFILES {
        let profile = builtin(name, &brand).expect("it is built in");
        let again = read(&profile.to_json()).expect("a profile");
        assert_eq!(again.to_json(), profile.to_json());
        assert_eq!(sent(&again, Some("1")).len(), sent(&profile, Some("1")).len());
    }
    assert!(builtin("acme", &brand).is_none());
}

#[test]
fn a_brand_is_a_valid_header_prefix() {
    for wrong in ["", "a b", "a:", "ñ", "a\r\n", &"x".repeat(33)] {
        assert!(wrong.parse::<Brand>().is_err(), "{wrong:?}");
    }
    // Every valid brand gives valid headers.
    for brand in ["Zeltapay", "X", "proxy", "content", "te", "!", &"x".repeat(32)] {
        assert!(builtin("branded", &brand.parse().expect("a brand")).is_some());
    }
}

#[test]
fn an_invalid_profile_is_refused_with_field_and_reason() {
    let header = |name: &str, template: &str| {
        let mut headers = serde_json::Map::new();
        headers.insert(name.to_owned(), template.into());
        json!({"name": "a", "headers": headers})
    };
    let long = "x".repeat(513);
    let name = "a header name must be 1 to 64 letters, digits or characters of !#$%&'*+-.^_`|~";
    let reserved = "belongs to the connection, the body or the endpoint; choose another";
    let printable = "must be printable ASCII on one line, without a space at either end";
    for (json, field, why) in [
        (header("X Y", "a"), "headers/X Y", name),
        (header("", "a"), "headers/", name),
        (header("X-A\r\nHost", "a"), "headers/X-A\r\nHost", name),
        (header(&"x".repeat(65), "a"), &*format!("headers/{}", "x".repeat(65)), name),
        (header("Host", "a"), "headers/Host", reserved),
        (header("content-LENGTH", "a"), "headers/content-LENGTH", reserved),
        (header("Connection", "a"), "headers/Connection", reserved),
        (header("Transfer-Encoding", "a"), "headers/Transfer-Encoding", reserved),
        (header("Authorization", "a"), "headers/Authorization", reserved),
        (header("X", "a\r\nHost: b"), "headers/X", printable),
        (header("X", "a\u{0}"), "headers/X", printable),
        (header("X", " a"), "headers/X", printable),
        (header("X", "ñ"), "headers/X", printable),
        (header("X", ""), "headers/X", "must be 1 to 512 bytes long; it is 0"),
        (header("X", &long), "headers/X", "must be 1 to 512 bytes long; it is 513"),
        (
            header("X", "{ID}"),
            "headers/X",
            "`{ID}` is not a placeholder; known ones: {id}, {eventId}, {type}, {timestamp}, {timestampMs}, {attempt}, \
             {version}, {endpoint}, {app}, {signature}, {traceparent}, {payload.<field>}",
        ),
        (header("X", "a{id"), "headers/X", "a `{` is not closed; write `{{` for a literal one"),
        (header("X", "a}"), "headers/X", "a `}` has no opening `{`; write `}}` for a literal one"),
        (
            header("X", "{payload.a.b}"),
            "headers/X",
            "`{payload.a.b}`: a field of the payload is 1 to 64 letters, digits, `_` or `-`, and stands at its top",
        ),
        (header("X", "{signature}"), "headers/X", "uses `{signature}`, but the profile has no `signature`"),
        (json!({"name": "a", "headers": {"X": "a", "x": "b"}}), "headers/x", "is the same header as `X`"),
        (
            json!({"name": "a b", "headers": {"X": "a"}}),
            "name",
            "use 1 to 64 letters, digits, `-`, `_` or `.`",
        ),
        (json!({"headers": {"X": "a"}}), "name", "this field is required"),
        (json!({"name": 1, "headers": {"X": "a"}}), "name", "expected a string, not a number"),
        (json!({"name": "a"}), "headers", "this field is required"),
        (json!({"name": "a", "headers": []}), "headers", "expected an object of strings, not a list"),
        (json!({"name": "a", "headers": {}}), "headers", "must be 1 to 20 headers; there are 0"),
        (json!({"name": "a", "headers": {"X": 1}}), "headers/X", "expected a string, not a number"),
        (
            json!({"name": "a", "headers": {"X": "a"}, "color": 1}),
            "color",
            "unknown field; there are: headers, signature, name",
        ),
        (
            json!({"name": "a", "headers": {"X": "a"}, "signature": "hex"}),
            "signature",
            "expected a JSON object, not a string",
        ),
        (
            json!({"name": "a", "headers": {"X": "{signature}"}, "signature": {"scheme": "md5"}}),
            "signature/scheme",
            "must be `standard` or `timestamped` or `hex` or `base64`, not `md5`",
        ),
        (
            json!({"name": "a", "headers": {"X": "{signature}"}, "signature": {"scheme": "hex", "hash": "md5"}}),
            "signature/hash",
            "must be `sha256` or `sha512`, not `md5`",
        ),
        (
            json!({"name": "a", "headers": {"X": "{signature}"}, "signature": {"scheme": "hex", "key": "a"}}),
            "signature/key",
            "unknown field; there are: scheme, hash",
        ),
        (
            json!({"name": "a", "headers": {"X": "{id} {timestamp} {signature}"},
                   "signature": {"scheme": "standard", "hash": "sha512"}}),
            "signature/hash",
            "`standard` is always made with sha256",
        ),
        (
            json!({"name": "a", "headers": {"X": "{id}"}, "signature": {"scheme": "hex"}}),
            "signature",
            "no header sends it; put `{signature}` into one",
        ),
        (
            json!({"name": "a", "headers": {"X": "{signature}"}, "signature": {"scheme": "standard"}}),
            "signature",
            "`standard` signs the message's id and the time as well; send `{id}` (`{eventId}` may be another) and \
             `{timestamp}` in headers",
        ),
        (json!([]), "", "expected a JSON object"),
    ] {
        assert_eq!(read(&json), Err(vec![(field.to_owned(), why.to_owned())]), "{json}");
    }
    let many: serde_json::Map<_, _> = (0..21).map(|n| (format!("X-{n}"), json!("a"))).collect();
    let refused = read(&json!({"name": "a", "headers": many})).expect_err("too many");
    assert_eq!(refused[0].1, "may have 20 items at most; it has 21");
    // All errors are reported at once.
    let refused = read(&json!({"name": "", "headers": {"Host": "a", "X": "{y}"}})).expect_err("three errors");
    assert_eq!(refused.len(), 3);
}

/// The values were captured at a receiver and verified with Python's `hmac`.
#[test]
fn the_page_on_profiles_shows_what_is_sent() {
    let page = include_str!("../../../../../docs/profiles.md");
    let (keys, brand) = ([key()], "Zeltapay".parse().expect("a brand"));
    let message = "msg_3M9KlX4MZz10D6NByhC8p0MEFnG".parse().expect("an id");
    let context = HeaderContext {
        message,
        event_type: "job.done",
        attempts: 1,
        now: Timestamp::from_millis(1_794_757_495_000),
        body: br#"{"jobId": "job-7", "status": "completed"}"#,
        ..context(&keys, Some("2"))
    };
    let (_, example) = page.split_once("```json\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let own = read(&serde_json::from_str(example).expect("JSON")).expect("a profile");
    let builtin = |name: &&str| builtin(name, &brand).expect("it is built in");
    for profile in aldaba_delivery::BUILTIN_PROFILES.iter().map(builtin).chain([own]) {
        for (name, value) in profile.headers(&context).iter().skip(3) {
            let line = format!("{name}: {}", value.to_str().expect("text"));
            assert!(page.contains(&line), "docs/profiles.md lacks, of `{}`:\n{line}", profile.name());
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_profile_panic_or_send_what_no_header_may_hold(
        name in "[ -~]{1,8}",
        template in "(\\PC|[{}]|\\{(id|type|version|signature|payload\\.jobId)\\}){0,8}",
        value in "\\PC{1,8}",
    ) {
        let headers = vec![(name, template)];
        for scheme in [None, Some(Scheme::Timestamped(HashKind::Sha256))] {
            let spec = ProfileSpec { name: "a".into(), headers: headers.clone(), scheme };
            let Ok(profile) = Profile::new(spec) else { continue };
            prop_assert_eq!(read(&profile.to_json()), Ok(profile.clone()));
            let body = json!({"jobId": value}).to_string();
            let (keys, event_type) = ([key()], value.as_str());
            let sent = profile.headers(&HeaderContext { body: body.as_bytes(), event_type, ..context(&keys, None) });
            prop_assert!(sent.values().all(|value| !value.is_empty() && !value.as_bytes().contains(&b'\n')));
        }
    }
}
