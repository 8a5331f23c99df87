//! Event types from an OpenAPI document.

use crate::requests::bad_input::places;
use crate::support::running::Running;
use serde_json::{Value, json};

const PATH: &str = "/event-type/import/openapi";

const YAML: &str = r##"
openapi: 3.1.0
info: {title: Webhook Example, version: 1.0.0}
webhooks:
  "pet.new":
    post:
      description: Information about a new pet
      x-svix-feature-flags: [beta]
      x-svix-group-name: pet
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Pet"}
            example: {id: 1, name: Rex}
      responses:
        "200": {description: ok}
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, format: int64}
        name: {type: string}
"##;

async fn event_types(server: &Running) -> Vec<(String, bool)> {
    let page = server.client.get("/event-type?include_archived=true").await.expect(200);
    let one = |one: &Value| (one["name"].as_str().unwrap().to_owned(), one["archived"] == true);
    page["data"].as_array().unwrap().iter().map(one).collect()
}

fn webhooks(names: &[&str]) -> Value {
    let operation = |name: &&str| ((*name).to_owned(), json!({"post": {"summary": format!("About {name}")}}));
    let webhooks: serde_json::Map<_, _> = names.iter().map(operation).collect();
    json!({"openapi": "3.1.0", "webhooks": webhooks})
}

#[tokio::test]
async fn a_document_in_yaml_becomes_event_types_that_can_be_used() {
    let server = Running::start().await;
    let app = server.application().await;
    let body = json!({"specRaw": YAML}).to_string();
    let dry = json!({"specRaw": YAML, "dryRun": true}).to_string();
    let would = server.client.post(PATH, dry).await.expect(200);
    assert_eq!(would["data"]["modified"], json!([]));
    let [pet] = &would["data"]["to_modify"].as_array().unwrap()[..] else { panic!("{would}") };
    assert_eq!(
        (&pet["name"], &pet["groupName"], &pet["featureFlags"]),
        (&json!("pet.new"), &json!("pet"), &json!(["beta"]))
    );
    assert_eq!(event_types(&server).await, []);

    let done = server.client.post(PATH, body).await.expect(200);
    assert_eq!((&done["data"]["modified"], &done["data"]["to_modify"]), (&json!(["pet.new"]), &Value::Null));
    let made = server.client.get("/event-type/pet.new").await.expect(200);
    assert_eq!(made["schemas"], pet["schemas"]);
    assert_eq!(made["description"], "Information about a new pet");
    server.client.patch("/event-type/pet.new", r#"{"validate": true}"#).await.expect(200);
    let wrong = r#"{"eventType": "pet.new", "payload": {"id": "x"}}"#;
    let refused = places(&server.client.post(&format!("/app/{app}/msg"), wrong).await);
    assert_eq!(refused.len(), 2, "{refused:?}");
    server.endpoint(&app, json!({"uid": "e"})).await;
    let example = format!("/app/{app}/endpoint/e/send-example");
    let sent = server.client.post(&example, r#"{"eventType": "pet.new"}"#).await.expect(202);
    assert_eq!(sent["payload"], json!({"id": 1, "name": "Rex"}));
}

#[tokio::test]
async fn an_import_changes_and_revives_only_the_event_types_it_contains() {
    let server = Running::start().await;
    for name in ["a", "b", "c"] {
        let body =
            json!({"description": "old", "schemas": {"1": true, "2": true}, "validate": true}).to_string();
        server.client.put(&format!("/event-type/{name}"), body).await.expect(201);
    }
    server.client.delete("/event-type/b").await.expect(204);
    let body = json!({"spec": webhooks(&["a", "b", "new"])}).to_string();
    let done = server.client.post(PATH, body).await.expect(200);
    assert_eq!(done["data"]["modified"], json!(["a", "b", "new"]));
    assert_eq!(done["data"]["archived"], json!([]));
    let all = [("a", false), ("b", false), ("c", false), ("new", false)];
    assert_eq!(event_types(&server).await, all.map(|(name, archived)| (name.to_owned(), archived)));
    let a = server.client.get("/event-type/a").await.expect(200);
    assert_eq!(
        (&a["description"], &a["schemas"], &a["validate"]),
        (&json!("About a"), &Value::Null, &json!(false))
    );
    assert_eq!(server.client.get("/event-type/c").await.expect(200)["description"], "old");
}

#[tokio::test]
async fn an_import_archives_missing_event_types_on_request() {
    let server = Running::start().await;
    for name in ["a", "b", "c"] {
        server.event_type(name).await;
    }
    let body =
        |dry: bool| json!({"spec": webhooks(&["a", "d"]), "replaceAll": true, "dryRun": dry}).to_string();
    let would = server.client.post(PATH, body(true)).await.expect(200);
    assert_eq!(would["data"]["archived"], json!(["b", "c"]));
    assert_eq!(event_types(&server).await.len(), 3);
    let done = server.client.post_once(PATH, "k", body(false)).await.expect(200);
    assert_eq!(
        (&done["data"]["modified"], &done["data"]["archived"]),
        (&json!(["a", "d"]), &json!(["b", "c"]))
    );
    let all = [("a", false), ("b", true), ("c", true), ("d", false)];
    assert_eq!(event_types(&server).await, all.map(|(name, archived)| (name.to_owned(), archived)));
    server.client.patch("/event-type/b", r#"{"archived": false}"#).await.expect(200);
    server.client.post_once(PATH, "k", body(false)).await.expect(200);
    assert_eq!(event_types(&server).await[1], ("b".to_owned(), false), "a repeat changes nothing");
}

#[tokio::test]
async fn an_invalid_document_changes_nothing_and_the_error_has_a_path() {
    let server = Running::start().await;
    server.event_type("there").await;
    let mut bad = webhooks(&["good"]);
    bad["webhooks"]["bad one"] = json!({"post": {}});
    bad["webhooks"]["bad.type"] =
        json!({"post": {"requestBody": {"content": {"application/json": {"schema": {"type": "x"}}}}}});
    let found = places(&server.client.post(PATH, json!({"spec": bad, "replaceAll": true}).to_string()).await);
    let of_schema = "body.spec.webhooks.bad.type.post.requestBody.content.application/json.schema.type";
    assert_eq!(found, ["body.spec.webhooks.bad one", of_schema]);
    for (body, found) in [
        (json!({"spec": []}), "body.spec"),
        (json!({"spec": "x"}), "body.spec"),
        (json!({"specRaw": {}}), "body.specRaw"),
        (json!({"specRaw": "a: [1"}), "body.specRaw"),
        (json!({"specRaw": "{\"a\": "}), "body.specRaw"),
        (json!({"specRaw": ""}), "body.specRaw"),
        (json!({"specRaw": "just a text"}), "body.specRaw.openapi"),
        (json!({"spec": {}}), "body.spec.openapi"),
        (json!({"spec": {"openapi": "3.1.0"}}), "body.spec"),
        (json!({"spec": webhooks(&["a"]), "dryRun": null}), "body.dryRun"),
        (json!({"spec": webhooks(&["a"]), "replaceAll": 1}), "body.replaceAll"),
    ] {
        assert_eq!(places(&server.client.post(PATH, body.to_string()).await), [found], "{body}");
    }
    for body in [json!({}), json!({"spec": webhooks(&["a"]), "specRaw": YAML}), json!({"spec": null})] {
        server.client.post(PATH, body.to_string()).await.expect(400);
    }
    assert_eq!(event_types(&server).await, [("there".to_owned(), false)]);
    assert_eq!(
        server.client.post(PATH, json!({"spec": webhooks(&[])}).to_string()).await.expect(200)["data"]["modified"],
        json!([])
    );
}

#[tokio::test]
async fn documents_that_grow_when_they_are_read_are_refused() {
    let server = Running::start().await;
    let mut bomb = "openapi: 3.1.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert_eq!(
        places(&server.client.post(PATH, json!({"specRaw": bomb}).to_string()).await),
        ["body.specRaw"]
    );
    let mut round = webhooks(&[]);
    round["webhooks"]["a"] = json!({"post": {"requestBody": {"$ref": "#/webhooks/a/post/requestBody"}}});
    assert_eq!(places(&server.client.post(PATH, json!({"spec": round}).to_string()).await).len(), 1);
}

#[tokio::test]
async fn a_document_that_expands_too_far_is_refused_early_and_by_a_dry_run() {
    let server = Running::start().await;
    let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}});
    let webhooks: serde_json::Map<_, _> =
        (0..3000).map(|n| (format!("w{n}"), json!({"post": {"requestBody": body}}))).collect();
    let part = |n: usize| (format!("B{n}"), json!({"type": "object", "description": "x".repeat(500)}));
    let mut schemas: serde_json::Map<_, _> = (0..100).map(part).collect();
    let property = |n: usize| (format!("p{n}"), json!({"$ref": format!("#/components/schemas/B{n}")}));
    let properties: serde_json::Map<_, _> = (0..100).map(property).collect();
    schemas.insert("A".into(), json!({"type": "object", "properties": properties}));
    let spec = json!({"openapi": "3.1.0", "webhooks": webhooks, "components": {"schemas": schemas}});
    for dry in [true, false] {
        let refused = server.client.post(PATH, json!({"spec": spec, "dryRun": dry}).to_string()).await;
        assert_eq!(refused.expect(409)["code"], "conflict");
    }
    assert_eq!(event_types(&server).await, []);
}

#[tokio::test]
async fn a_dry_run_reports_that_an_import_exceeds_the_limit() {
    let server = Running::start().await;
    // The existing types use most of the limit.
    let description = "x".repeat(250_000);
    for n in 0..66 {
        let body = json!({"description": "", "schemas": {"1": {"description": description}}}).to_string();
        server.client.put(&format!("/event-type/t{n}"), body).await.expect(201);
    }
    let schema = json!({"type": "object", "description": description});
    let operation = json!({"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}});
    let webhooks = json!({"a": operation, "b": operation});
    for dry in [true, false] {
        let body = json!({"spec": {"openapi": "3.1.0", "webhooks": webhooks}, "dryRun": dry}).to_string();
        server.client.post(PATH, body).await.expect(409);
    }
}
