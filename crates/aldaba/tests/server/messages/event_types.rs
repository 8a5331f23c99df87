//! Event types as a resource, and what endpoints can ask for.

use crate::credentials::tokens::{OTHER_ORGANIZATION, signed};
use crate::requests::bad_input::places;
use crate::support::running::{Running, token};
use serde_json::{Value, json};

fn names(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_event_type_is_returned_unchanged_after_a_restart() {
    let server = Running::start().await;
    let schema = json!({"type": "object", "examples": [{"n": 1}]});
    let full = json!({
        "name": "invoice.paid", "description": "An invoice was paid", "deprecated": true, "validate": true,
        "schemas": {"1": schema, "2": true}, "featureFlags": ["gold", "beta", "gold"], "groupName": "invoice",
    });
    let made = server.client.post("/event-type", full.to_string()).await.expect(201);
    for (field, value) in [
        ("name", json!("invoice.paid")),
        ("description", json!("An invoice was paid")),
        ("archived", json!(false)),
        ("deprecated", json!(true)),
        ("validate", json!(true)),
        ("schemas", json!({"1": schema, "2": true})),
        ("featureFlags", json!(["beta", "gold"])),
        ("featureFlag", json!("beta")),
        ("groupName", json!("invoice")),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    let bare = server.client.post("/event-type", r#"{"name": "a", "description": ""}"#).await.expect(201);
    for field in ["schemas", "featureFlags", "featureFlag", "groupName"] {
        assert_eq!(bare.get(field), Some(&Value::Null), "{field}");
    }
    assert_eq!(bare["validate"], false);
    assert_eq!(server.client.get("/event-type/a").await.expect(200), bare);

    let server = Running::within(server.stop().await, |_| {}).await;
    assert_eq!(server.client.get("/event-type/invoice.paid").await.expect(200), made);
    let page = server.client.get("/event-type?with_content=true").await.expect(200);
    assert_eq!(page["data"], json!([bare, made]));
    let mut without = made.clone();
    without["schemas"] = Value::Null;
    assert_eq!(server.client.get("/event-type").await.expect(200)["data"], json!([bare, without]));
}

#[tokio::test]
async fn schemas_are_shown_as_they_were_written() {
    let server = Running::start().await;
    let schemas = r#"{"1":{"title": "b" ,  "maximum":123456789012345678901234567890, "a":1e3}}"#;
    let body = format!(r#"{{"name": "a", "description": "", "schemas": {schemas}}}"#);
    server.client.post("/event-type", body).await.expect(201);
    server.client.patch("/event-type/a", r#"{"description": "b"}"#).await.expect(200);
    let shown = server.client.get("/event-type/a").await;
    assert!(String::from_utf8_lossy(&shown.body).contains(schemas), "{:?}", shown.body);
}

#[tokio::test]
async fn an_older_name_for_one_feature_flag_is_taken() {
    let server = Running::start().await;
    let made = json!({"name": "a", "description": "", "featureFlag": "beta"}).to_string();
    let made = server.client.post("/event-type", made).await.expect(201);
    assert_eq!((&made["featureFlag"], &made["featureFlags"]), (&json!("beta"), &json!(["beta"])));
    // A representation can be sent back.
    let back = server.client.put("/event-type/a", made.to_string()).await.expect(200);
    assert_eq!(back["featureFlags"], json!(["beta"]));
    for (change, flags) in [
        (json!({"featureFlags": ["a", "b"]}), json!(["a", "b"])),
        (json!({"featureFlag": "a", "featureFlags": ["a", "b"]}), json!(["a", "b"])),
        (json!({"featureFlag": "c"}), json!(["c"])),
        (json!({"featureFlag": null}), Value::Null),
    ] {
        let changed = server.client.patch("/event-type/a", change.to_string()).await.expect(200);
        assert_eq!(changed["featureFlags"], flags, "{change}");
    }
    let both = json!({"featureFlag": "c", "featureFlags": ["a"]}).to_string();
    assert_eq!(places(&server.client.patch("/event-type/a", both).await), ["body.featureFlag"]);
}

#[tokio::test]
async fn event_types_are_listed_by_name_both_ways() {
    let server = Running::start().await;
    let all = ["--", "-b", "a", "a.b", "b", "z-", "z_"];
    for name in all.iter().rev() {
        server.event_type(name).await;
    }
    server.event_type("gone").await;
    server.client.delete("/event-type/gone").await.expect(204);
    assert_eq!(names(&server.client.get("/event-type").await.expect(200)), all);
    let down: Vec<_> = all.iter().rev().copied().collect();
    for (order, expected) in [("ascending", &all[..]), ("descending", &down)] {
        let (mut seen, mut iterator, mut last) = (Vec::new(), String::new(), Value::Null);
        for round in 0.. {
            assert!(round < 10, "the list ends");
            let path = format!("/event-type?limit=2&order={order}&iterator={iterator}");
            let page = server.client.get(&path).await.expect(200);
            seen.extend(names(&page).iter().map(|name| (*name).to_owned()));
            iterator = page["iterator"].as_str().unwrap().to_owned();
            let done = page["done"] == true;
            last = page;
            if done {
                break;
            }
        }
        assert_eq!(seen, expected);
        let mut back: Vec<_> = names(&last).iter().map(|name| (*name).to_owned()).collect();
        let mut previous = last["prevIterator"].as_str().unwrap().to_owned();
        for round in 0.. {
            assert!(round < 10, "the list ends");
            let path = format!("/event-type?limit=2&order={order}&iterator={previous}");
            let page = server.client.get(&path).await.expect(200);
            let mut items: Vec<_> = names(&page).iter().map(|name| (*name).to_owned()).collect();
            items.extend(back);
            back = items;
            if page["done"] == true {
                break;
            }
            previous = page["prevIterator"].as_str().unwrap().to_owned();
        }
        assert_eq!(back, expected);
    }
    let archived = server.client.get("/event-type?include_archived=true").await.expect(200);
    assert_eq!(names(&archived), ["--", "-b", "a", "a.b", "b", "gone", "z-", "z_"]);
    for (query, status) in [
        ("iterator=a%20b", 422),
        ("limit=251", 422),
        ("limit=0", 422),
        ("include_archived=yes", 422),
        ("with_content=1", 422),
        ("order=up", 422),
    ] {
        server.client.get(&format!("/event-type?{query}")).await.expect(status);
    }
}

#[tokio::test]
async fn a_page_with_large_schemas_ends_early() {
    let server = Running::start().await;
    for name in 'a'..='z' {
        let schemas = json!({"1": {"description": "x".repeat(200_000)}});
        let body = json!({"description": "", "schemas": schemas}).to_string();
        server.client.put(&format!("/event-type/{name}"), body).await.expect(201);
    }
    let page = server.client.get("/event-type?with_content=true").await.expect(200);
    assert_eq!((page["data"].as_array().unwrap().len(), &page["done"]), (20, &json!(false)));
    let rest = format!("/event-type?with_content=true&iterator={}", page["iterator"].as_str().unwrap());
    let rest = server.client.get(&rest).await.expect(200);
    assert_eq!((names(&rest).len(), &rest["done"]), (6, &json!(true)));
    assert_eq!(names(&server.client.get("/event-type").await.expect(200)).len(), 26);
}

#[tokio::test]
async fn a_second_one_of_a_name_is_in_the_way_and_an_archived_one_is_revived() {
    let server = Running::start().await;
    let first = json!({"name": "a", "description": "first", "schemas": {"1": {}}, "groupName": "g"});
    let first = server.client.post("/event-type", first.to_string()).await.expect(201);
    let second = r#"{"name": "a", "description": "second"}"#;
    assert_eq!(server.client.post("/event-type", second).await.expect(409)["code"], "event_type_exists");
    for _ in 0..2 {
        server.client.delete("/event-type/a").await.expect(204);
    }
    let archived = server.client.get("/event-type/a").await.expect(200);
    assert_eq!((&archived["archived"], &archived["description"]), (&json!(true), &json!("first")));
    let revived = server.client.post("/event-type", second).await.expect(201);
    assert_eq!((&revived["archived"], &revived["description"]), (&json!(false), &json!("second")));
    assert_eq!((&revived["schemas"], &revived["groupName"]), (&Value::Null, &Value::Null));
    assert_eq!(revived["createdAt"], first["createdAt"]);
    server.client.delete("/event-type/a?expunge=true").await.expect(204);
    server.client.get("/event-type/a").await.expect(404);
    server.client.delete("/event-type/a?expunge=true").await.expect(404);
    server.client.delete("/event-type/a").await.expect(404);
    server.client.delete("/event-type/a?expunge=maybe").await.expect(422);
}

#[tokio::test]
async fn a_repeated_creation_gets_the_first_answer() {
    let server = Running::start().await;
    let body = r#"{"name": "a", "description": "first"}"#;
    let first = server.client.post_once("/event-type", "k", body).await.expect(201);
    let again = server.client.post_once("/event-type", "k", body).await.expect(201);
    let other = r#"{"name": "b", "description": "other"}"#;
    let other = server.client.post_once("/event-type", "k", other).await.expect(201);
    assert_eq!((&first, &first), (&again, &other));
    server.client.post_once("/event-type", "k2", body).await.expect(409);
    assert_eq!(names(&server.client.get("/event-type").await.expect(200)), ["a"]);
}

#[tokio::test]
async fn put_makes_or_replaces_and_patch_changes_what_is_given() {
    let server = Running::start().await;
    let body = json!({"description": "d", "schemas": {"1": {"type": "object"}}, "groupName": "g", "deprecated": true,
        "featureFlags": ["x"], "validate": true});
    let made = server.client.put("/event-type/a", body.to_string()).await.expect(201);
    let changed = server.client.patch("/event-type/a", r#"{"description": "e"}"#).await.expect(200);
    let mut expected = made.clone();
    expected["description"] = json!("e");
    expected["updatedAt"] = changed["updatedAt"].clone();
    assert_eq!(changed, expected);
    assert_ne!(changed["updatedAt"], made["updatedAt"]);
    let cleared = json!({"schemas": null, "featureFlags": null, "groupName": null, "validate": false});
    let cleared = server.client.patch("/event-type/a", cleared.to_string()).await.expect(200);
    for field in ["schemas", "featureFlags", "featureFlag", "groupName"] {
        assert_eq!(cleared[field], Value::Null, "{field}");
    }
    assert_eq!(cleared["deprecated"], true);
    let replaced = server.client.put("/event-type/a", r#"{"description": "f"}"#).await.expect(200);
    assert_eq!((&replaced["deprecated"], &replaced["createdAt"]), (&json!(false), &made["createdAt"]));
    let archived = r#"{"description": "f", "archived": true}"#;
    assert_eq!(server.client.put("/event-type/a", archived).await.expect(200)["archived"], true);
    assert_eq!(
        server.client.patch("/event-type/a", r#"{"archived": false}"#).await.expect(200)["archived"],
        false
    );
    server.client.patch("/event-type/none", "{}").await.expect(404);
    for wrong in ["a%20b", "a%2Fb", &"x".repeat(257), "%C3%B1"] {
        let refused = server.client.put(&format!("/event-type/{wrong}"), r#"{"description": ""}"#).await;
        assert_eq!(places(&refused), ["path.event_type_name"], "{wrong}");
    }
}

#[tokio::test]
async fn event_types_that_are_not_acceptable_are_refused() {
    let server = Running::start().await;
    let long = "x".repeat(16_385);
    let many: Vec<_> = (0..101).map(|n| n.to_string()).collect();
    let versions: Value =
        (0..33).map(|n| (n.to_string(), json!(true))).collect::<serde_json::Map<_, _>>().into();
    for (more, place) in [
        (json!({"name": null}), "body.name"),
        (json!({"name": 5}), "body.name"),
        (json!({"name": ""}), "body.name"),
        (json!({"name": "a b"}), "body.name"),
        (json!({"name": "x".repeat(257)}), "body.name"),
        (json!({"description": null}), "body.description"),
        (json!({"description": 5}), "body.description"),
        (json!({"description": "a\u{0}b"}), "body.description"),
        (json!({"description": long}), "body.description"),
        (json!({"archived": null}), "body.archived"),
        (json!({"archived": "yes"}), "body.archived"),
        (json!({"deprecated": 1}), "body.deprecated"),
        (json!({"validate": null}), "body.validate"),
        (json!({"validate": "true"}), "body.validate"),
        (json!({"validate": true}), "body.validate"),
        (json!({"validate": true, "schemas": {}}), "body.validate"),
        (json!({"schemas": []}), "body.schemas"),
        (json!({"schemas": "{}"}), "body.schemas"),
        (json!({"schemas": {"a b": {}}}), "body.schemas.a b"),
        (json!({"schemas": {"": {}}}), "body.schemas."),
        (json!({"schemas": {"1": 5}}), "body.schemas.1"),
        (json!({"schemas": {"1": null}}), "body.schemas.1"),
        (
            json!({"schemas": {"1": {}, "2": {"properties": {"a": {"type": "x"}}}}}),
            "body.schemas.2.properties.a.type",
        ),
        (json!({"schemas": versions}), "body.schemas"),
        (json!({"schemas": {"1": {"description": "x".repeat(262_144)}}}), "body.schemas"),
        (json!({"featureFlags": []}), "body.featureFlags"),
        (json!({"featureFlags": many}), "body.featureFlags"),
        (json!({"featureFlags": ["a", "b c"]}), "body.featureFlags.[1]"),
        (json!({"featureFlags": "a"}), "body.featureFlags"),
        (json!({"featureFlag": "a b"}), "body.featureFlag"),
        (json!({"groupName": "a b"}), "body.groupName"),
        (json!({"groupName": 5}), "body.groupName"),
    ] {
        let mut body = json!({"name": "a", "description": ""});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = server.client.post("/event-type", body.to_string()).await;
        assert_eq!(places(&reply), [place], "{more}");
    }
    for (body, found) in [
        ("", vec!["body"]),
        ("[]", vec!["body"]),
        ("{", vec!["body"]),
        ("{}", vec!["body.name", "body.description"]),
    ] {
        assert_eq!(places(&server.client.post("/event-type", body).await), found, "{body}");
    }
    server.event_type("a").await;
    for wrong in [json!({"name": "b"}), json!({"name": "b", "description": ""})] {
        assert_eq!(places(&server.client.patch("/event-type/a", wrong.to_string()).await), ["body.name"]);
    }
    let renamed = r#"{"name": "b", "description": ""}"#;
    assert_eq!(places(&server.client.put("/event-type/a", renamed).await), ["body.name"]);
    let unchecked = r#"{"schemas": null, "validate": true}"#;
    assert_eq!(places(&server.client.patch("/event-type/a", unchecked).await), ["body.validate"]);
    assert_eq!(names(&server.client.get("/event-type").await.expect(200)), ["a"]);
}

#[tokio::test]
async fn hostile_schemas_are_refused_at_once() {
    let server = Running::start().await;
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"properties": {"a": deep}});
    }
    let chain: serde_json::Map<_, _> = (0..3_000)
        .map(|n| (format!("a{n}"), json!({"allOf": [{"$ref": format!("#/$defs/a{}", (n + 1) % 3_000)}]})))
        .collect();
    for (schema, place) in [
        (json!({"$ref": "http://127.0.0.1:1/schema.json"}), "$ref"),
        (json!({"$ref": "file:///etc/passwd"}), "$ref"),
        (json!({"properties": {"a": {"$ref": "https://example.com/a#/b"}}}), "properties.a.$ref"),
        (json!({"$schema": "http://127.0.0.1:1/schema.json"}), "$schema"),
        (json!({"$ref": "#"}), ""),
        (json!({"$defs": chain}), "$defs"),
        (json!({"properties": {"a": {"pattern": "((x{1000}){1000}){1000}"}}}), "properties.a.pattern"),
        (json!({"properties": {"a": {"pattern": "(a+)+$".repeat(1000)}}}), "properties.a"),
        (json!({"properties": {"a": {"pattern": "^(?!b)"}}}), "properties.a.pattern"),
    ] {
        let body = json!({"name": "a", "description": "", "schemas": {"1": schema}});
        let found = places(&server.client.post("/event-type", body.to_string()).await);
        assert!(found[0].starts_with(format!("body.schemas.1.{place}").trim_end_matches('.')), "{found:?}");
    }
    let fine = json!({"name": "a", "description": "", "schemas": {"1": deep}});
    server.client.post("/event-type", fine.to_string()).await.expect(201);
    let nested = format!("{}{}", r#"{"not":"#.repeat(5_000), "}".repeat(5_000));
    let nested = format!(r#"{{"name": "b", "description": "", "schemas": {{"1": {nested}}}}}"#);
    server.client.post("/event-type", nested).await.expect(422);
}

#[tokio::test]
async fn tokens_of_applications_read_what_their_flags_let_them_see() {
    let server = Running::start().await;
    let app = server.application().await;
    for (name, flags) in [("open", Value::Null), ("beta", json!(["beta"])), ("both", json!(["beta", "gold"]))]
    {
        let body = json!({"description": "", "featureFlags": flags}).to_string();
        server.client.put(&format!("/event-type/{name}"), body).await.expect(201);
    }
    for (flags, sees) in [
        (json!(null), vec!["open"]),
        (json!([]), vec!["open"]),
        (json!(["beta"]), vec!["beta", "both", "open"]),
        (json!(["gold", "silver"]), vec!["both", "open"]),
    ] {
        let claims = json!({"sub": app, "org": aldaba::DEFAULT_ORGANIZATION, "feature_flags": flags});
        let portal = server.client.with_token(&signed(&claims));
        assert_eq!(names(&portal.get("/event-type").await.expect(200)), sees, "{flags}");
        for name in ["open", "beta", "both"] {
            let status = if sees.contains(&name) { 200 } else { 404 };
            portal.get(&format!("/event-type/{name}")).await.expect(status);
            let body = json!({"url": "https://example.com/", "eventTypes": [name]}).to_string();
            let made = portal.post(&format!("/app/{app}/endpoint"), body).await;
            assert_eq!(made.status.as_u16(), if sees.contains(&name) { 201 } else { 422 }, "{flags} {name}");
        }
        let body = r#"{"name": "x", "description": ""}"#;
        portal.post("/event-type", body).await.expect(403);
        portal.put("/event-type/open", body).await.expect(403);
        portal.patch("/event-type/open", "{}").await.expect(403);
        portal.delete("/event-type/open").await.expect(403);
        portal.post("/event-type/import/openapi", "{}").await.expect(403);
    }
}

#[tokio::test]
async fn another_organization_has_event_types_of_its_own() {
    let server = Running::start().await;
    server.event_type("a").await;
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(names(&other.get("/event-type?include_archived=true").await.expect(200)), Vec::<&str>::new());
    other.get("/event-type/a").await.expect(404);
    other.patch("/event-type/a", "{}").await.expect(404);
    other.delete("/event-type/a?expunge=true").await.expect(404);
    other.put("/event-type/a", r#"{"description": "theirs"}"#).await.expect(201);
    assert_eq!(server.client.get("/event-type/a").await.expect(200)["description"], "");
    other.delete("/event-type/a?expunge=true").await.expect(204);
    server.client.get("/event-type/a").await.expect(200);
}

#[tokio::test]
async fn endpoints_ask_for_event_types_that_there_are_and_keep_those_they_have() {
    let server = Running::start().await;
    let app = server.application().await;
    let (path, url) = (format!("/app/{app}/endpoint"), "https://example.com/");
    for name in ["a", "b", "old"] {
        server.event_type(name).await;
    }
    server.client.delete("/event-type/old").await.expect(204);
    let refused = async |field: &str, asked: Value| {
        let reply = server.client.post(&path, json!({"url": url, field: asked}).to_string()).await;
        assert_eq!(places(&reply), [format!("body.{field}")]);
        reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned()
    };
    let message = refused("eventTypes", json!(["a", "x", "y"])).await;
    assert!(message.contains("`x`, `y`") && message.contains("POST /api/v1/event-type"), "{message}");
    assert!(refused("filterTypes", json!(["x"])).await.contains("`x`"));
    assert!(refused("eventTypes", json!(["old"])).await.contains("archived"));
    let many: Vec<_> = (0..500).map(|n| format!("x{n}")).collect();
    assert!(refused("eventTypes", json!(many)).await.ends_with("GET lists them"));

    let made = json!({"uid": "e", "url": url, "eventTypes": ["a", "b"]});
    server.client.post(&path, made.to_string()).await.expect(201);
    server.client.delete("/event-type/a").await.expect(204);
    server.client.delete("/event-type/b?expunge=true").await.expect(204);
    let one = format!("{path}/e");
    assert_eq!(server.client.get(&one).await.expect(200)["eventTypes"], json!(["a", "b"]));
    server.client.patch(&one, r#"{"description": "d"}"#).await.expect(200);
    server.client.patch(&one, r#"{"eventTypes": ["b"]}"#).await.expect(200);
    let put = json!({"uid": "e", "url": url, "eventTypes": ["b"]});
    server.client.put(&one, put.to_string()).await.expect(200);
    assert_eq!(
        places(&server.client.patch(&one, r#"{"eventTypes": ["a", "b"]}"#).await),
        ["body.eventTypes"]
    );
    let put = json!({"uid": "e", "url": url, "eventTypes": ["a"]}).to_string();
    assert_eq!(places(&server.client.put(&one, put).await), ["body.eventTypes"]);
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    other.put("/event-type/theirs", r#"{"description": ""}"#).await.expect(201);
    assert!(refused("eventTypes", json!(["theirs"])).await.contains("`theirs`"));
}

#[tokio::test]
async fn changes_of_event_types_are_in_the_audit_log() {
    let server = Running::start().await;
    server.client.post("/event-type", r#"{"name": "a", "description": ""}"#).await.expect(201);
    server.client.patch("/event-type/a", r#"{"deprecated": true, "groupName": "g"}"#).await.expect(200);
    server.client.delete("/event-type/a").await.expect(204);
    server.client.delete("/event-type/a").await.expect(204);
    server.client.delete("/event-type/a?expunge=true").await.expect(204);
    let spec = json!({"openapi": "3.1.0", "webhooks": {"b": {"post": {}}, "c": {"post": {}}}});
    let import = json!({ "spec": spec }).to_string();
    server.client.post("/event-type/import/openapi", import).await.expect(200);
    let log = server.client.get("/audit").await.expect(200);
    let rows = log["data"].as_array().unwrap();
    let expected = [
        ("event_type.create", json!([])),
        ("event_type.update", json!(["deprecated", "groupName"])),
        ("event_type.update", json!(["archived"])),
        ("event_type.delete", json!(["archived", "deprecated", "groupName"])),
        ("event_type.import", json!([])),
    ];
    assert_eq!(rows.len(), expected.len(), "{log}");
    for (action, fields) in expected {
        assert!(rows.iter().any(|row| row["action"] == action && row["fields"] == fields), "{action}: {log}");
    }
}

#[tokio::test]
async fn endpoints_of_the_organization_itself_ask_for_the_servers_own_events() {
    let server = Running::start().await;
    let path = "/operational-webhook/endpoint";
    let body = |name: &str| json!({"url": "https://example.com/", "eventTypes": [name]}).to_string();
    server.client.post(path, body("endpoint.created")).await.expect(201);
    server.event_type("mine").await;
    for other in ["endpoint.exploded", "mine"] {
        assert_eq!(places(&server.client.post(path, body(other)).await), ["body.eventTypes"]);
    }
    let app = server.application().await;
    let refused = server.client.post(&format!("/app/{app}/endpoint"), body("endpoint.created")).await;
    assert_eq!(places(&refused), ["body.eventTypes"]);
}
