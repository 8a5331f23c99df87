use aldaba_signature::inbound::{Inspected, Inspector, MAX_EVENT_TYPE, MAX_ID, Place, Recipe, Refusal};
use serde_json::{Value, json};

fn unsigned(id: &[&str], event_type: &[&str]) -> Inspector {
    let place = |text: &&str| Place::parse(text).unwrap();
    let recipe = id.iter().map(place).fold(Recipe::unsigned(), Recipe::or_id);
    let recipe = event_type.iter().map(place).fold(recipe, Recipe::or_event_type);
    Inspector::new(recipe, []).unwrap()
}

fn of_body(body: &[u8]) -> Result<Inspected, Refusal> {
    unsigned(&["$.id"], &["$.type"]).inspect(|_: &str| None, body, 0)
}

fn of_id(id: &Value) -> Result<String, Refusal> {
    of_body(json!({ "id": id }).to_string().as_bytes()).map(|inspected| inspected.id)
}

fn of_type(event_type: &Value) -> Result<Option<String>, Refusal> {
    let body = json!({ "id": "a", "type": event_type });
    of_body(body.to_string().as_bytes()).map(|inspected| inspected.event_type)
}

fn no_id(places: &[&str]) -> Refusal {
    Refusal::NoId(places.iter().map(|text| Place::parse(text).unwrap()).collect())
}

fn of_header(id: &str) -> Result<String, Refusal> {
    let headers = [("X-Id", id)];
    unsigned(&["header:x-id"], &[]).inspect(headers.as_slice(), b"", 0).map(|inspected| inspected.id)
}

#[test]
fn an_id_is_a_text_or_a_whole_number() {
    for (id, expected) in [
        (json!("evt_1"), "evt_1"),
        (json!(0), "0"),
        (json!(-5), "-5"),
        (json!(820_982_911_946_154_508_u64), "820982911946154508"),
        (json!(u64::MAX), "18446744073709551615"),
    ] {
        assert_eq!(of_id(&id), Ok(expected.to_owned()), "{id}");
    }
    for id in [json!(1.5), json!(true), json!(["a"]), json!({"a": 1}), json!(1e3)] {
        assert_eq!(of_id(&id), Err(Refusal::IdKind), "{id}");
    }
    // It would be rounded, and then be somebody else's.
    assert_eq!(of_body(b"{\"id\": 18446744073709551616}"), Err(Refusal::IdKind));
    for id in [json!(null), json!("")] {
        assert_eq!(of_id(&id), Err(no_id(&["$.id"])), "{id}");
    }
    assert_eq!(of_body(b"{}"), Err(no_id(&["$.id"])));
    assert_eq!(of_body(b"[]"), Err(no_id(&["$.id"])));
    assert_eq!(of_body(b"7"), Err(no_id(&["$.id"])));
}

#[test]
fn an_id_has_1_to_255_visible_characters() {
    let longest = "a".repeat(MAX_ID);
    assert_eq!(of_id(&json!(longest)), Ok(longest.clone()));
    assert_eq!(of_header(&longest), Ok(longest));
    assert_eq!(of_id(&json!("a".repeat(MAX_ID + 1))), Err(Refusal::IdTooLong(256)));
    assert_eq!(of_header(&"a".repeat(MAX_ID + 1)), Err(Refusal::IdTooLong(256)));
    assert_eq!(of_id(&json!("ü".repeat(128))), Err(Refusal::IdTooLong(256)));
    for id in ["a b", "a\0", "a\n", "\u{7f}", "ü", " a", "a\u{200b}", "\u{202e}a"] {
        assert_eq!(of_id(&json!(id)), Err(Refusal::IdCharacters), "{id:?}");
    }
    for id in ["a b", "a\tb", "ü"] {
        assert_eq!(of_header(id), Err(Refusal::IdCharacters), "{id:?}");
    }
    for id in ["", " ", "\t"] {
        assert_eq!(of_header(id), Err(no_id(&["header:x-id"])), "{id:?}");
    }
    assert_eq!(of_header(" a "), Ok("a".to_owned()), "spaces around a header's value are no part of it");
}

#[test]
fn a_type_has_at_most_100_bytes_and_no_control_characters() {
    let longest = "a".repeat(MAX_EVENT_TYPE);
    for event_type in ["order.paid", "Order Completed", "orders/create", "pedido_añadido", longest.as_str()]
    {
        assert_eq!(of_type(&json!(event_type)), Ok(Some(event_type.to_owned())));
    }
    assert_eq!(of_type(&json!("a".repeat(101))), Err(Refusal::EventTypeTooLong(101)));
    for event_type in ["a\0", "a\nb", "\u{85}"] {
        assert_eq!(of_type(&json!(event_type)), Err(Refusal::EventTypeCharacters), "{event_type:?}");
    }
    for event_type in [json!(null), json!(""), json!({"a": 1}), json!(["a"]), json!(true), json!(1.5)] {
        assert_eq!(of_type(&event_type), Ok(None), "{event_type}");
    }
    assert_eq!(of_type(&json!(7)), Ok(Some("7".to_owned())));
}

#[test]
fn an_id_is_read_only_from_the_places_of_the_recipe() {
    let headers = [("x-id", "from-header")];
    let headers = headers.as_slice();
    let body = br#"{"id": "from-body"}"#;
    let id = |places: &[&str]| unsigned(places, &[]).inspect(headers, body, 0).map(|inspected| inspected.id);
    assert_eq!(id(&["header:x-id", "$.id"]), Ok("from-header".into()));
    assert_eq!(id(&["$.id", "header:x-id"]), Ok("from-body".into()));
    assert_eq!(id(&["$.other", "header:x-id"]), Ok("from-header".into()));
    let refusal = id(&["$.other", "header:x-other"]).unwrap_err();
    assert_eq!(refusal, no_id(&["$.other", "header:x-other"]));
    assert_eq!(refusal.to_string(), "the event has no id: there is none in `$.other` or `header:x-other`");
    assert_eq!(id(&[]), Err(Refusal::NoIdPlace));
    // What `sha256sum` makes of the body.
    let digest = "34a36c87dd245f1a1783237fa41f47afc396de7badc0c3de2bbf38d91aabb294";
    assert_eq!(id(&["$.other", "body-digest"]), Ok(digest.into()));
    let replaced = Recipe::stripe().with_id(Place::parse("header:X-Id").unwrap());
    assert_eq!(replaced.id_places(), [Place::Header("x-id".into())]);
    let added = Recipe::stripe().or_event_type(Place::parse("$.kind").unwrap());
    assert_eq!(added.event_type_places().len(), 2);
}

#[test]
fn a_body_that_is_no_json_is_refused_only_if_the_id_should_be_in_it() {
    for body in
        [&b""[..], b"{", b"id=1", b"{\"id\": \"a\"} x", b"\xff\xfe", b"{\"id\": \"\xff\"}", b"\xef\xbb\xbf{}"]
    {
        assert_eq!(of_body(body), Err(Refusal::BodyNotJson), "{body:?}");
        let headers = [("x-id", "a")];
        let inspected = unsigned(&["header:x-id"], &["$.type"]).inspect(headers.as_slice(), body, 0).unwrap();
        assert_eq!(inspected, Inspected { id: "a".into(), event_type: None });
    }
    let digested = unsigned(&["$.id", "body-digest"], &[]).inspect(|_: &str| None, b"id=1", 0);
    assert_eq!(digested.unwrap().id.len(), 64);
}

#[test]
fn a_body_may_be_nested_127_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let mut body = br#"{"id": "a", "x": "#.to_vec();
        body.extend(b"[".repeat(depth));
        body.extend(b"]".repeat(depth));
        body.push(b'}');
        body
    };
    assert!(of_body(&nested(126)).is_ok());
    assert_eq!(of_body(&nested(127)), Err(Refusal::BodyNotJson));
    assert_eq!(of_body(&nested(1_000_000)), Err(Refusal::BodyNotJson));
    assert_eq!(of_body(&b"[".repeat(1_000_000)), Err(Refusal::BodyNotJson));
}

#[test]
fn of_a_key_that_comes_twice_the_last_counts() {
    let inspected = of_body(br#"{"id": "first", "type": "a", "id": "last", "type": "b"}"#).unwrap();
    assert_eq!(inspected, Inspected { id: "last".into(), event_type: Some("b".into()) });
}

#[test]
fn only_a_failed_signature_is_unauthorized() {
    let no = Refusal::Signature(aldaba_signature::VerifyError::Mismatch);
    assert!(no.is_unauthorized() && Refusal::Missing(String::new()).is_unauthorized());
    assert!(Refusal::Unclear(String::new()).is_unauthorized());
    for refusal in [no_id(&["$.id"]), Refusal::NoIdPlace, Refusal::IdCharacters, Refusal::BodyNotJson] {
        assert!(!refusal.is_unauthorized(), "{refusal}");
    }
}
