use super::webhooks;
use aldaba_engine::NewEventType;
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
    let flaws = webhooks::read(document).expect_err("something is wrong");
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
