use aldaba_signature::inbound::{JsonPath, MAX_STEPS, PathError, Place, PlaceError, Template, TemplateError};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_path_leads_to_one_value() {
    let document = json!({
        "data": {"id": "a", "x-y_1": "b", "a name": "c", "it's": "d", "": "e", "ü": "f", "\\": "g"},
        "list": [[1, 2], {"id": "h"}],
    });
    for (path, expected) in [
        ("$.data.id", Some(json!("a"))),
        ("$.data.x-y_1", Some(json!("b"))),
        ("$.data['a name']", Some(json!("c"))),
        (r"$['data']['it\'s']", Some(json!("d"))),
        ("$.data['']", Some(json!("e"))),
        ("$.data['ü']", Some(json!("f"))),
        (r"$.data['\\']", Some(json!("g"))),
        ("$.list[0][1]", Some(json!(2))),
        ("$.list[1].id", Some(json!("h"))),
        ("$.list[2]", None),
        ("$.list.id", None),
        ("$.data[0]", None),
        ("$.data.id.more", None),
        ("$.other", None),
        ("$[0]", None),
    ] {
        let parsed = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(parsed.find(&document), expected.as_ref(), "{path}");
        assert_eq!(JsonPath::parse(&parsed.to_string()), Ok(parsed), "{path}");
    }
    let list = json!(["first"]);
    assert_eq!(JsonPath::parse("$[0]").unwrap().find(&list), Some(&json!("first")));
}

#[test]
fn a_text_that_is_no_path_is_refused_with_the_reason() {
    let deep = format!("${}", ".a".repeat(MAX_STEPS + 1));
    let long = format!("$['{}']", "a".repeat(300));
    for (text, error) in [
        ("", PathError::Start),
        ("$", PathError::Start),
        ("data.id", PathError::Start),
        ("$data", PathError::Step(1)),
        ("$.data id", PathError::Name),
        ("$.", PathError::Name),
        ("$..id", PathError::Name),
        ("$.*", PathError::Name),
        ("$.ü", PathError::Name),
        ("$[0]id", PathError::Step(4)),
        ("$[", PathError::Bracket),
        ("$[]", PathError::Bracket),
        ("$[*]", PathError::Bracket),
        ("$[-1]", PathError::Bracket),
        ("$[+1]", PathError::Bracket),
        ("$[01]", PathError::Bracket),
        ("$[99999999999999999999999]", PathError::Bracket),
        ("$['a]", PathError::Bracket),
        ("$['a'", PathError::Bracket),
        (r"$['a\n']", PathError::Bracket),
        ("$[\"a\"]", PathError::Bracket),
        (&deep, PathError::TooLong),
        (&long, PathError::TooLong),
    ] {
        assert_eq!(JsonPath::parse(text), Err(error), "{text}");
    }
    assert!(JsonPath::parse(&format!("${}", ".a".repeat(MAX_STEPS))).is_ok());
}

#[test]
fn a_place_round_trips() {
    for (text, place) in [
        ("header:x-event-id", Place::Header("x-event-id".into())),
        ("$.data.id", Place::Json("$.data.id".parse().unwrap())),
        ("body-digest", Place::BodyDigest),
    ] {
        assert_eq!(Place::parse(text), Ok(place.clone()));
        assert_eq!(place.to_string(), text);
    }
    assert_eq!(Place::parse("header:X-Event-ID"), Ok(Place::Header("x-event-id".into())));
    let long = format!("header:{}", "a".repeat(65));
    for (text, error) in [
        ("", PlaceError::Form),
        ("x-event-id", PlaceError::Form),
        ("Header:x", PlaceError::Form),
        ("header:", PlaceError::HeaderName),
        ("header:x event", PlaceError::HeaderName),
        ("header:x:y", PlaceError::HeaderName),
        ("header:x\r\ny", PlaceError::HeaderName),
        ("header:ü", PlaceError::HeaderName),
        (&long, PlaceError::HeaderName),
        ("$", PlaceError::Path(PathError::Start)),
    ] {
        assert_eq!(Place::parse(text), Err(error), "{text}");
    }
}

#[test]
fn a_template_is_read_and_written() {
    for text in
        ["{body}", "{id}.{timestamp}.{body}", "v0:{timestamp}:{body}", "{{{body}}}", "{body}ü{timestamp}"]
    {
        assert_eq!(Template::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Template::parse("{body}"), Ok(Template::body()));
    let long = format!("{{body}}{}", "a".repeat(256));
    for (text, error) in [
        ("", TemplateError::Body),
        ("{id}", TemplateError::Body),
        ("{body}{body}", TemplateError::Body),
        ("{id}{id}{body}", TemplateError::Twice),
        ("{timestamp}{timestamp}{body}", TemplateError::Twice),
        ("{url}{body}", TemplateError::Placeholder),
        ("{body", TemplateError::Placeholder),
        ("body}", TemplateError::Placeholder),
        ("{ body }", TemplateError::Placeholder),
        (&long, TemplateError::TooLong),
    ] {
        assert_eq!(Template::parse(text), Err(error), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic_and_what_is_read_is_written_alike(text in "(\\$|header:)?[ -~\\PC]{0,40}") {
        if let Ok(place) = Place::parse(&text) {
            prop_assert_eq!(Place::parse(&place.to_string()), Ok(place));
        }
        if let Ok(template) = Template::parse(&text) {
            prop_assert_eq!(Template::parse(&template.to_string()), Ok(template));
        }
    }

    #[test]
    fn any_name_can_be_a_step(names in prop::collection::vec(".{0,8}", 1..5)) {
        let quoted = names.iter().map(|name| format!("['{}']", name.replace('\\', r"\\").replace('\'', r"\'")));
        let path = JsonPath::parse(&format!("${}", quoted.collect::<String>())).unwrap();
        let document = names.iter().rev().fold(json!("found"), |inner, name| json!({ name.as_str(): inner }));
        prop_assert_eq!(path.find(&document), Some(&json!("found")));
        prop_assert_eq!(JsonPath::parse(&path.to_string()), Ok(path));
    }
}
