use super::*;
use serde_json::json;

fn schema(value: &Value) -> Schema {
    Schema::new(value).unwrap_or_else(|errors| panic!("{value} cannot be used: {errors:?}"))
}

fn errors(value: &Value) -> Vec<SchemaError> {
    Schema::new(value).err().unwrap_or_else(|| panic!("{value} can be used"))
}

fn check(schema: &Schema, payload: &Value) -> Result<(), PayloadError> {
    schema.check(payload.to_string().as_bytes())
}

/// The paths and reasons of a payload's problems.
fn problems(schema: &Schema, payload: &Value) -> Vec<(String, String)> {
    match check(schema, payload) {
        Err(PayloadError::Problems { problems, more: Some(0) }) => {
            problems.into_iter().map(|problem| (problem.place.join("/"), problem.why)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Alternatives that each refer to the next ones twice.
fn doubling(levels: usize, last: &Value) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        defs.insert(format!("a{level}"), json!({"anyOf": [next, next]}));
    }
    defs.insert(format!("a{levels}"), last.clone());
    json!({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/a0"}}})
}

#[test]
fn all_problems_of_a_payload_are_listed_with_their_paths() {
    let schema = schema(&json!({
        "type": "object",
        "required": ["id"],
        "properties": {"lines": {"type": "array", "items": {"properties": {"count": {"type": "integer"}}}}},
    }));
    assert_eq!(check(&schema, &json!({"id": 1, "lines": [{"count": 1}]})), Ok(()));
    let wrong = problems(&schema, &json!({"lines": [{}, {"count": "many"}]}));
    assert_eq!(
        wrong,
        [
            (String::new(), "\"id\" is a required property".to_owned()),
            ("lines/[1]/count".to_owned(), "\"many\" is not of type \"integer\"".to_owned()),
        ]
    );
}

#[test]
fn problems_past_the_limit_are_only_counted() {
    let schema = schema(&json!({"properties": {"n": {"items": {"type": "string"}}}}));
    let Err(PayloadError::Problems { problems, more }) = check(&schema, &json!({"n": vec![1; 50]})) else {
        panic!()
    };
    assert_eq!((problems.len(), more), (MAX_PROBLEMS, Some(30)));
}

#[test]
fn long_values_are_masked_in_problems() {
    let schema = schema(&json!({"properties": {"n": {"type": "integer"}}}));
    for long in [json!("x".repeat(1000)), json!(vec![1; 1000])] {
        let [(_, why)] = &problems(&schema, &json!({"n": long}))[..] else { panic!() };
        assert_eq!(why, "the value is not of type \"integer\"");
    }
}

#[test]
fn an_unknown_type_is_reported_with_the_known_ones() {
    let wrong = errors(&json!({"properties": {"a": {"type": "objekt"}}}));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0].place, ["properties", "a", "type"]);
    assert!(
        wrong[0].why.starts_with("\"objekt\" is not a JSON Schema type; known ones: array, "),
        "{wrong:?}"
    );
}

#[test]
fn problems_of_a_schema_are_listed_with_their_paths() {
    for (wrong, place) in [
        (json!({"type": "strin"}), "type"),
        (json!({"properties": {"a": {"minimum": "x"}}}), "properties/a/minimum"),
        (json!({"required": "a"}), "required"),
        (json!({"properties": {"a": {"pattern": "("}}}), "properties/a/pattern"),
        (json!({"$schema": "https://example.com/mine"}), "$schema"),
        (json!({"$schema": 7}), "$schema"),
        (json!(5), ""),
        (json!([]), ""),
    ] {
        assert_eq!(errors(&wrong)[0].place.join("/"), place, "{wrong}");
    }
    let two = errors(&json!({"type": 5, "properties": {"a": {"minLength": -1}}}));
    assert_eq!(two.len(), 2, "{two:?}");
}

#[test]
fn a_schema_without_a_draft_uses_the_newest_possible_one() {
    let tuple = json!({"properties": {"a": {"items": [{"type": "string"}], "additionalItems": false}}});
    assert!(check(&schema(&tuple), &json!({"a": ["x", 1]})).is_err(), "draft 7");
    let prefix = json!({"properties": {"a": {"prefixItems": [{"type": "string"}], "items": false}}});
    assert!(check(&schema(&prefix), &json!({"a": ["x", 1]})).is_err(), "2020-12");
    let said = json!({"$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 3, "exclusiveMinimum": true}}});
    assert!(check(&schema(&said), &json!({"a": 3})).is_err(), "draft 4");
}

#[test]
fn formats_are_checked() {
    let schema = schema(&json!({"properties": {"at": {"format": "date-time"}, "n": {"format": "int64"}}}));
    assert_eq!(check(&schema, &json!({"at": "2026-01-31T12:00:00Z", "n": "what nobody knows"})), Ok(()));
    assert!(check(&schema, &json!({"at": "yesterday"})).is_err());
}

#[test]
fn internal_references_are_followed_and_may_be_recursive() {
    let tree = schema(&json!({
        "$id": "https://example.com/tree",
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "nodes": {"items": {"$ref": "#/$defs/node"}}},
        }},
    }));
    let mut payload = json!({"name": 5});
    for _ in 0..30 {
        payload = json!({"name": "x", "nodes": [payload]});
    }
    let [(place, _)] = &problems(&tree, &payload)[..] else { panic!() };
    assert!(place.starts_with("nodes/[0]/nodes/[0]") && place.ends_with("name"), "{place}");
}

#[test]
fn external_references_are_refused() {
    for reference in [
        "http://example.com/schema.json",
        "https://json-schema.org/draft/2020-12/schema",
        "file:///etc/passwd",
        "other.json",
        "//example.com/x",
        "urn:x:y",
        "",
        "?x",
        "#anchor",
        "#/$defs/%61",
        "#/nothing",
        "#/$defs/a/0",
    ] {
        let inside = json!({"$defs": {"a": {"$anchor": "anchor"}}, "properties": {"x": {"$ref": reference}}});
        let found = errors(&inside);
        assert_eq!(found[0].place.join("/"), "properties/x/$ref", "{reference}: {found:?}");
        let unused = json!({"$defs": {"a": {"allOf": [{"$ref": reference}]}}});
        assert_eq!(errors(&unused)[0].place.join("/"), "$defs/a/allOf/[0]/$ref", "{reference}");
    }
    let long = json!({"$ref": format!("http://{}", "x".repeat(10_000))});
    assert!(errors(&long)[0].why.len() < 500);
}

#[test]
fn other_base_uris_and_dynamic_references_are_refused() {
    let base = json!({"properties": {"a": {"$id": "https://example.com/a", "$ref": "#/$defs/b"}}});
    assert_eq!(errors(&base)[0].place.join("/"), "properties/a/$id");
    let through =
        json!({"x": {"$id": "urn:x", "y": {"$ref": "#/z"}, "z": true}, "$ref": "#/x/y", "z": false});
    assert_eq!(errors(&through)[0].place.join("/"), "$ref");
    let dynamic = json!({"properties": {"a": {"$dynamicRef": "#b"}}});
    assert_eq!(errors(&dynamic)[0].place.join("/"), "properties/a/$dynamicRef");
    let old =
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"id": "urn:x"}}});
    assert_eq!(errors(&old)[0].place.join("/"), "properties/a/id");
    schema(&json!({"properties": {"$id": {"type": "string"}, "id": {}, "$ref": {"type": "string"}}}));
}

#[test]
fn circular_schemas_that_consume_nothing_are_refused() {
    let one_after_the_other = |length: usize| {
        let refer = |n: usize| (format!("a{n}"), json!({"allOf": [{"$ref": format!("#/$defs/a{}", n + 1)}]}));
        let mut defs: serde_json::Map<_, _> = (0..length).map(refer).collect();
        defs.insert(format!("a{length}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/a0", "$defs": defs})
    };
    for circle in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": true, "then": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"properties": {"x": {"$ref": "#/properties/x"}}}),
        one_after_the_other(20),
        one_after_the_other(5_000),
    ] {
        let found = errors(&circle);
        assert!(found[0].why.contains("refers to itself"), "{found:?}");
    }
    let fine = schema(&one_after_the_other(14));
    assert!(check(&fine, &json!({})).is_ok());
}

#[test]
fn validation_that_doubles_with_every_level_ends() {
    for last in [json!(false), json!({"type": "null"}), json!({"minimum": 3}), json!({"not": {}})] {
        let doubled = doubling(14, &last);
        let Ok(schema) = Schema::new(&doubled) else { continue };
        for x in [json!(1), json!("x"), json!({"a": 1}), json!(vec![1; 1000])] {
            let found = check(&schema, &json!({"x": x}));
            assert!(
                matches!(found, Err(PayloadError::TooCostly | PayloadError::Somewhere)) || found.is_ok(),
                "{found:?}"
            );
        }
    }
    let untyped = errors(&doubling(14, &json!(false)));
    assert!(untyped[0].why.contains("give each a `type`"), "{untyped:?}");
}

/// The walk relies on this: schemas that do not access the value are charged in advance.
#[test]
fn schemas_that_count_as_accessing_the_value_do_access_it() {
    let value = json!({"a": 1});
    for (word, says) in [
        ("type", json!("object")),
        ("const", value.clone()),
        ("enum", json!([value])),
        ("required", json!(["a"])),
        ("properties", json!({"a": true})),
    ] {
        assert!(walk::TYPED_KEYWORDS.contains(&word));
        let fifty = schema(&json!({"allOf": vec![json!({word: says}); 50]}));
        let cost =
            |budget| meter::run(&value, budget, fifty.costs, |value| fifty.validator.is_valid(value)).0;
        assert_eq!(cost(49), Err(meter::BudgetExhausted), "{word}");
        assert_eq!(cost(1000), Ok(true), "{word}");
    }
}

#[test]
fn validation_that_doubles_with_the_depth_of_the_payload_ends() {
    let again = json!({"$ref": "#"});
    let twice =
        schema(&json!({"type": "object", "properties": {"a": {"anyOf": [again, again]}, "b": false}}));
    let mut payload = json!({"b": 1});
    for _ in 0..100 {
        payload = json!({"a": payload});
    }
    assert_eq!(check(&twice, &payload), Err(PayloadError::Somewhere));
}

#[test]
fn unevaluated_properties_beside_very_many_schemas_are_refused() {
    let mut wide = doubling(14, &json!({"type": "object", "properties": {"y": {}}}));
    wide["properties"]["x"]["unevaluatedProperties"] = json!(false);
    assert!(errors(&wide)[0].why.contains("unevaluatedProperties"));
    let few = schema(&json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}));
    assert_eq!(check(&few, &json!({"a": 1})), Ok(()));
    assert!(check(&few, &json!({"b": 1})).is_err());
}

#[test]
fn expensive_patterns_are_refused_and_the_others_end() {
    for pattern in ["(?=a)b", "(a)\\1", "((a{1000}){1000}){1000}", ".{5000}", &"a".repeat(1001)] {
        let found = errors(&json!({"properties": {"a": {"pattern": pattern}}}));
        assert_eq!(found[0].place[..2], ["properties", "a"], "{found:?}");
        let found = errors(&json!({"patternProperties": {pattern: {}}}));
        assert!(!found.is_empty());
    }
    let many: Vec<_> = (0..101).map(|n| json!({"type": "string", "pattern": format!("^{n}")})).collect();
    assert!(errors(&json!({"anyOf": many}))[0].why.contains("patterns"));

    let states = schema(&json!({"properties": {"a": {"pattern": "[ab]*a[ab]{1000}c"}}}));
    let text: String =
        (0..200_000).map(|n: u32| if n.wrapping_mul(2_654_435_761) >> 31 == 0 { 'a' } else { 'b' }).collect();
    assert_eq!(check(&states, &json!({"a": text})), Err(PayloadError::TooCostly));
    let names = schema(&json!({"patternProperties": {"[ab]*a[ab]{1000}c": {}}}));
    assert_eq!(check(&names, &json!({text: 1})), Err(PayloadError::TooCostly));
    let names = schema(&json!({"propertyNames": {"pattern": "[ab]*a[ab]{1000}c"}}));
    assert_eq!(check(&names, &json!({"a".repeat(200_000): 1})), Err(PayloadError::TooCostly));
}

#[test]
fn an_ordinary_large_payload_is_checked() {
    let schema = schema(&json!({"properties": {"items": {"items": {
        "type": "object",
        "required": ["id", "email"],
        "properties": {
            "id": {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
            "email": {"type": "string", "format": "email", "maxLength": 100},
            "n": {"type": "integer", "minimum": 0},
            "tags": {"items": {"enum": ["a", "b", "c"]}, "uniqueItems": true},
        },
        "additionalProperties": false,
    }}}}));
    let item = |n| {
        let id = "123e4567-e89b-12d3-a456-426614174000";
        json!({"id": id, "email": "someone@example.com", "n": n, "tags": ["a", "b"]})
    };
    let items: Vec<_> = (0..9_000).map(item).collect();
    assert_eq!(check(&schema, &json!({"items": items})), Ok(()));
    let mut items = items;
    items[8_998]["n"] = json!(-1);
    items[8_999]["n"] = json!(-1);
    let Err(PayloadError::Problems { problems, more: None }) = check(&schema, &json!({"items": items}))
    else {
        panic!("the first problem is named, and that there may be others")
    };
    assert_eq!(problems[0].place, ["items", "[8998]", "n"]);
}

#[test]
fn deep_schemas_and_payloads_do_not_run_out_of_stack() {
    let mut deep = json!({"type": "object"});
    for _ in 0..40 {
        deep = json!({"properties": {"a": {"allOf": [deep]}}});
    }
    let deep = schema(&deep);
    let refer = |n: usize| (format!("a{n}"), json!({"allOf": [{"$ref": format!("#/$defs/a{}", n + 1)}]}));
    let mut defs: serde_json::Map<_, _> = (0..14).map(refer).collect();
    defs.insert("a14".into(), json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": false}));
    let round = schema(&json!({"$ref": "#/$defs/a0", "$defs": defs}));
    let mut payload = json!({"b": 1});
    for _ in 0..120 {
        payload = json!({"a": payload});
    }
    assert!(check(&deep, &payload).is_ok());
    assert!(check(&round, &payload).is_err());
    let nested = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert!(matches!(round.check(nested.as_bytes()), Err(PayloadError::Unreadable(_))));
}

#[test]
fn the_newest_version_is_the_highest_number_or_else_the_last_name() {
    let newest = |text: &str| Schemas::read(text).unwrap().names().last().map(str::to_owned);
    assert_eq!(newest(r#"{"9": true, "10": true, "2": true}"#).unwrap(), "10");
    assert_eq!(newest(r#"{"2024-05-01": true, "2023-12-31": true}"#).unwrap(), "2024-05-01");
    assert_eq!(newest(r#"{"1": true, "draft": true}"#).unwrap(), "1");
    assert_eq!(newest("{}"), None);
}

#[test]
fn a_version_chooses_its_schema() {
    let text = r#"{"1": {"required": ["a"]}, "2": {"required": ["b"]}}"#;
    let schemas = Schemas::read(text).unwrap();
    let check = |version, payload: &str| schemas.check(version, payload.as_bytes());
    assert_eq!(check(None, r#"{"b": 1}"#), Ok(()));
    assert_eq!(check(Some("1"), r#"{"a": 1}"#), Ok(()));
    let Err(CheckError::Payload { version, .. }) = check(None, r#"{"a": 1}"#) else { panic!() };
    assert_eq!(version, "2");
    let known = vec!["1".to_owned(), "2".to_owned()];
    assert_eq!(check(Some("3"), "{}"), Err(CheckError::Version { known }));
}

#[test]
fn schemas_are_stored_as_they_were_given() {
    let text = r#"{"1":{"title": "b" , "a":1e3,"x":123456789012345678901234567890},"2":true}"#;
    assert_eq!(Schemas::read(text).unwrap().to_text(), text);
    let wrong = Schemas::read(r#"{"1": true, "2": {"type": 5}}"#).unwrap().check_all();
    assert_eq!(wrong[0].place, ["2", "type"]);
    assert!(Schemas::read("[]").is_err());
}

#[test]
fn examples_come_from_the_newest_version_as_they_were_written() {
    let example = |schema: &str, index| {
        let schemas = Schemas::read(&format!(r#"{{"1": {{"examples": [0]}}, "2": {schema}}}"#)).unwrap();
        schemas.example(index).map(|example| example.get().to_owned())
    };
    let two = r#"{"examples": [{ "a":1.0 }, {"b": 2}]}"#;
    assert_eq!(example(two, 0).unwrap(), r#"{ "a":1.0 }"#);
    assert_eq!(example(two, 1).unwrap(), r#"{"b": 2}"#);
    assert_eq!(example(two, 2), None);
    assert_eq!(example(r#"{"example": {"c": 3}}"#, 7).unwrap(), r#"{"c": 3}"#);
    for none in ["{}", "true", r#"{"examples": null}"#, r#"{"examples": []}"#] {
        assert_eq!(example(none, 0), None, "{none}");
    }
}

#[test]
fn payloads_of_one_request_share_a_budget() {
    let again = json!({"$ref": "#"});
    let twice =
        schema(&json!({"type": "object", "properties": {"a": {"anyOf": [again, again]}, "b": false}}));
    let nested = (0..100).fold(json!({"b": 1}), |nested, _| json!({ "a": nested })).to_string();
    let mut budget = CheckBudget::for_request(0);
    let mut check = |payload: &str| twice.check_within(payload.as_bytes(), &mut budget);
    let looked_at = (0..100).take_while(|_| check(&nested) == Err(Some(PayloadError::Somewhere))).count();
    assert!((40..=50).contains(&looked_at), "{looked_at}");
    assert_eq!(check("{}"), Err(None), "nothing is left");
    assert_eq!(twice.check(nested.as_bytes()), Err(PayloadError::Somewhere), "alone there is enough");
}

#[test]
fn a_budget_suffices_for_many_cheap_payloads() {
    let plain =
        schema(&json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}));
    let mut budget = CheckBudget::for_request(0);
    for _ in 0..1000 {
        assert_eq!(plain.check_within(b"{\"a\": 1}", &mut budget), Ok(()));
        assert!(matches!(plain.check_within(b"{}", &mut budget), Err(Some(PayloadError::Problems { .. }))));
    }
    let mut budget = CheckBudget::inline();
    let inline = (0..1000).take_while(|_| plain.check_within(b"{\"a\": 1}", &mut budget).is_ok()).count();
    assert!((50..=100).contains(&inline), "{inline}");
}
