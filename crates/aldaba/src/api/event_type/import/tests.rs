use super::webhooks::{self, Refused};
use aldaba_engine::{ChangeError, EventTypes, NewEventType, Schemas};
use serde_json::{Value, json};

fn document(version: &str, section: &str, webhooks: Value, components: &Value) -> Value {
    let mut document =
        json!({"openapi": version, "info": {"title": "x", "version": "1"}, "components": components});
    document[section] = webhooks;
    document
}

fn webhook(schema: &Value) -> Value {
    json!({"pet.new": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}})
}

fn read(document: &Value) -> Vec<NewEventType> {
    webhooks::read(document).unwrap_or_else(|flaws| panic!("{flaws:?}"))
}

fn schema(document: &Value) -> Value {
    let found = read(document);
    let schemas: Value = serde_json::from_str(found[0].schemas.as_deref().unwrap()).unwrap();
    schemas["1"].clone()
}

/// The places of what is wrong.
fn flaws(document: &Value) -> Vec<String> {
    let Err(Refused::Flaws(flaws)) = webhooks::read(document) else { panic!("something is wrong") };
    flaws.iter().map(|flaw| flaw.place.join("/")).collect()
}

#[test]
fn a_webhook_is_an_event_type_with_what_its_operation_says() {
    let operation = json!({
        "description": " Information about a new pet ",
        "deprecated": true,
        "x-svix-feature-flags": ["gold", "beta", "gold"],
        "x-svix-group-name": "pet",
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    });
    let bare = json!({"summary": "Gone", "delete": {}});
    for section in ["webhooks", "x-webhooks"] {
        let webhooks = json!({"pet.new": {"post": operation}, "pet.gone": bare});
        let found = read(&document("3.1.0", section, webhooks, &json!({})));
        let [gone, new] = &found[..] else { panic!("{found:?}") };
        assert_eq!((new.name.as_str(), new.description.as_str()), ("pet.new", "Information about a new pet"));
        assert_eq!((new.deprecated, new.feature_flags.clone()), (true, vec!["beta".into(), "gold".into()]));
        assert_eq!(new.group_name.as_deref(), Some("pet"));
        assert_eq!(new.schemas.as_deref(), Some(r#"{"1":{"type":"object"}}"#));
        assert_eq!((gone.description.as_str(), &gone.schemas), ("Gone", &None));
    }
}

#[test]
fn what_a_schema_refers_to_comes_with_it() {
    let components = json!({
        "schemas": {
            "Pet": {
                "type": "object",
                "properties": {
                    "owner": {"$ref": "#/components/schemas/Owner"},
                    "$ref": {"type": "string"},
                },
                "examples": [{"$ref": "#/not/a/reference"}],
            },
            "Owner": {"properties": {"pets": {"items": {"$ref": "#/components/schemas/Pet"}}}},
            "Unused": {"type": 5},
        },
        "requestBodies": {"Pet": {"content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Pet"},
        }}}},
    });
    let webhooks = json!({"pet.new": {"post": {"requestBody": {"$ref": "#/components/requestBodies/Pet"}}}});
    let owner = json!({"properties": {"pets": {"items": {"$ref": "#/$defs/Pet"}}}});
    let pet = json!({
        "type": "object",
        "properties": {"owner": {"$ref": "#/$defs/Owner"}, "$ref": {"type": "string"}},
        "examples": [{"$ref": "#/not/a/reference"}],
    });
    let mut expected = pet.clone();
    expected["$defs"] = json!({"Owner": owner, "Pet": pet});
    assert_eq!(schema(&document("3.1.0", "webhooks", webhooks, &components)), expected);
}

#[test]
fn two_schemas_of_one_name_are_kept_apart() {
    let both = json!({"anyOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/x/A"}]});
    let mut document =
        document("3.1.0", "webhooks", webhook(&both), &json!({"schemas": {"A": {"type": "null"}}}));
    document["x"] = json!({"A": {"type": "object"}});
    let found = schema(&document);
    assert_eq!(found["anyOf"], json!([{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A_2"}]));
    assert_eq!(found["$defs"], json!({"A": {"type": "null"}, "A_2": {"type": "object"}}));
}

#[test]
fn the_words_of_openapi_3_0_are_translated() {
    let older = json!({"properties": {
        "a": {"type": "string", "nullable": true, "enum": ["x"]},
        "b": {"type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
        "c": {"nullable": false, "type": "string"},
    }});
    let found = schema(&document("3.0.3", "x-webhooks", webhook(&older), &json!({})));
    assert_eq!(
        found["properties"],
        json!({
            "a": {"type": ["string", "null"], "enum": ["x", null]},
            "b": {"type": "integer", "exclusiveMinimum": 3, "maximum": 9},
            "c": {"type": "string"},
        })
    );
}

#[test]
fn examples_beside_a_schema_become_its_own() {
    let content = |beside: Value| {
        let mut media = json!({"schema": {"type": "object"}});
        media.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        let webhooks = json!({"a": {"post": {"requestBody": {"content": {"application/json": media}}}}});
        schema(&document("3.1.0", "webhooks", webhooks, &json!({})))["examples"].clone()
    };
    assert_eq!(content(json!({"example": {"n": 1}})), json!([{"n": 1}]));
    assert_eq!(
        content(json!({"examples": {"one": {"value": {"n": 1}}, "two": {"value": {}}}})),
        json!([{"n": 1}, {}])
    );
    assert_eq!(content(json!({})), Value::Null);
}

#[test]
fn what_is_wrong_is_named_where_it_is() {
    let with =
        |webhooks: Value| document("3.1.0", "webhooks", webhooks, &json!({"schemas": {"Bad": {"type": 5}}}));
    let schema = |schema: Value| with(webhook(&schema));
    let at = "webhooks/pet.new/post/requestBody/content";
    for (wrong, places) in [
        (json!({}), vec!["openapi"]),
        (json!({"swagger": "2.0"}), vec!["openapi"]),
        (json!({"openapi": "2.0"}), vec!["openapi"]),
        (json!({"openapi": 3.1}), vec!["openapi"]),
        (json!({"openapi": "3.1.0"}), vec![""]),
        (with(json!([])), vec!["webhooks"]),
        (with(json!({"New pet": {"post": {}}, "": {"post": {}}})), vec!["webhooks/", "webhooks/New pet"]),
        (with(json!({"a": {}, "b": 5})), vec!["webhooks/a", "webhooks/b"]),
        (with(json!({"pet.new": {"post": {"requestBody": {}}}})), vec![at]),
        (with(json!({"pet.new": {"post": {"requestBody": {"content": {"text/xml": {}}}}}})), vec![at]),
        (
            with(json!({"a": {"post": {"x-svix-feature-flags": 5}}})),
            vec!["webhooks/a/post/x-svix-feature-flags"],
        ),
        (
            with(json!({"a": {"post": {"x-svix-group-name": "a b"}}})),
            vec!["webhooks/a/post/x-svix-group-name"],
        ),
        (
            with(json!({"a": {"$ref": "#/webhooks/b"}, "b": {"$ref": "#/webhooks/a"}})),
            vec!["webhooks/a", "webhooks/b"],
        ),
        (
            schema(json!({"properties": {"a": {"type": 5}}})),
            vec!["webhooks/pet.new/post/requestBody/content/application/json/schema/properties/a/type"],
        ),
        (
            schema(json!({"$ref": "http://example.com/x"})),
            vec!["webhooks/pet.new/post/requestBody/content/application/json/schema/$ref"],
        ),
        (
            schema(json!({"items": {"$ref": "#/components/schemas/None"}})),
            vec!["webhooks/pet.new/post/requestBody/content/application/json/schema/items/$ref"],
        ),
        (schema(json!({"items": {"$ref": "#/components/schemas/Bad"}})), vec!["components/schemas/Bad/type"]),
    ] {
        assert_eq!(flaws(&wrong), places, "{wrong}");
    }
    let mut twice = with(json!({"a": {"post": {}}}));
    twice["x-webhooks"] = json!({"a": {"post": {}}});
    assert_eq!(flaws(&twice), ["x-webhooks/a"]);
}

/// So many webhooks that all refer to one schema, which needs so many parts of so many bytes.
fn fanned_out(webhooks: usize, parts: usize, bytes: usize) -> Value {
    let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}});
    let webhooks: serde_json::Map<_, _> =
        (0..webhooks).map(|n| (format!("w{n}"), json!({"post": {"requestBody": body}}))).collect();
    let name = |n: usize| format!("B{n}");
    let mut schemas: serde_json::Map<_, _> =
        (0..parts).map(|n| (name(n), json!({"type": "object", "description": "x".repeat(bytes)}))).collect();
    let properties: serde_json::Map<_, _> = (0..parts)
        .map(|n| (format!("p{n}"), json!({"$ref": format!("#/components/schemas/{}", name(n))})))
        .collect();
    schemas.insert("A".into(), json!({"type": "object", "properties": properties}));
    document("3.1.0", "webhooks", json!(webhooks), &json!({"schemas": schemas}))
}

#[test]
fn a_schema_that_is_too_large_with_all_it_refers_to_is_refused_while_it_is_written_out() {
    let large = fanned_out(1, 100, Schemas::MAX_BYTES / 100);
    let places = flaws(&large);
    assert!(places[0].starts_with("components/schemas/"), "{places:?}");
    // What is behind the limit is never copied, however much it is.
    let huge = "x".repeat(64 << 20);
    let item = json!({"type": "object", "description": huge});
    let schema = json!({"$ref": "#/components/schemas/A"});
    let deep = document("3.0.3", "x-webhooks", webhook(&schema), &json!({"schemas": {"A": item}}));
    assert_eq!(flaws(&deep), ["components/schemas/A"]);
    read(&fanned_out(1, 100, Schemas::MAX_BYTES / 150));
}

#[test]
fn writing_out_ends_when_there_is_more_than_an_organization_may_have() {
    let refused = webhooks::read(&fanned_out(3000, 100, 500));
    assert!(matches!(refused, Err(Refused::Room(ChangeError::SchemasTooLarge))));
    let refused = webhooks::read(&fanned_out(EventTypes::MAX_PER_ORGANIZATION + 1, 0, 0));
    assert!(matches!(refused, Err(Refused::Room(ChangeError::TooManyEventTypes))));
}

#[test]
fn what_is_counted_is_never_more_than_what_is_kept() {
    let words = json!({"type": "string", "nullable": true, "minimum": 1, "exclusiveMinimum": true});
    let member = |n: usize| (format!("m{n}"), words.clone());
    let fits = |count: usize| {
        let properties: serde_json::Map<_, _> = (0..count).map(member).collect();
        let schema = json!({"type": "object", "properties": properties});
        webhooks::read(&document("3.0.0", "x-webhooks", webhook(&schema), &json!({})))
    };
    let one = schema(&document(
        "3.0.0",
        "x-webhooks",
        webhook(&json!({"type": "object", "properties": {"m0000": words}})),
        &json!({}),
    ));
    let each = one["properties"]["m0000"].to_string().len() + r#""m0000":,"#.len();
    let count = (Schemas::MAX_BYTES - 200) / each;
    let found = fits(count).unwrap_or_else(|refused| panic!("{refused:?}"));
    assert!(found[0].schemas.as_ref().unwrap().len() > Schemas::MAX_BYTES * 9 / 10);
    fits(count + 200).expect_err("too large");
}
