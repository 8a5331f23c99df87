//! Every route that is declared, with every kind of wrong request: what the answers have in common.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::requests::matrix::{Operation, ids_for, operations, tenant};
use crate::support::client::{Client, Reply};
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The page that lists all codes.
const PAGE: &str = include_str!("../../../../../docs/errors.md");

/// The codes and the statuses that the page lists.
fn listed() -> BTreeMap<&'static str, BTreeSet<u16>> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &'static str| {
        let (code, rest) = row.split_once("` | ").unwrap();
        let statuses = rest.split(" | ").next().unwrap().split(", ");
        (code, statuses.map(|status| status.parse().unwrap()).collect())
    };
    rows.map(row).collect()
}

/// What every answer that says no has.
#[track_caller]
fn check(what: &str, reply: &Reply) -> Value {
    let (body, status) = (reply.json(), reply.status.as_u16());
    assert!(status >= 400, "{what}: {status} {body}");
    assert_eq!(reply.headers["content-type"], "application/json", "{what}");
    let code = body["code"].as_str().unwrap_or_else(|| panic!("{what}: no code in {body}"));
    let listed = listed();
    let statuses = listed.get(code).unwrap_or_else(|| panic!("{what}: docs/errors.md lacks {code}"));
    assert!(statuses.contains(&status), "{what}: docs/errors.md does not say {status} of {code}");
    if status != 422 {
        is_sentence(what, &body["detail"]);
        return body;
    }
    let problems = body["detail"].as_array().unwrap_or_else(|| panic!("{what}: no list in {body}"));
    assert!(!problems.is_empty(), "{what}");
    for problem in problems {
        let members: Vec<_> = problem.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["loc", "msg", "type"], "{what}: {problem}");
        assert!(problem["msg"].as_str().is_some_and(|msg| !msg.is_empty()), "{what}: {problem}");
        let loc = problem["loc"].as_array().unwrap();
        assert!(loc.iter().all(Value::is_string), "{what}: SDKs read strings: {problem}");
        assert!(["body", "query", "path"].contains(&loc[0].as_str().unwrap()), "{what}: {problem}");
        // A name that ends with an index would be another style of the same thing.
        let joined = |part: &Value| {
            part.as_str().is_some_and(|part| part.len() > 3 && !part.starts_with('[') && part.ends_with(']'))
        };
        assert!(!loc.iter().any(joined), "{what}: {problem}");
    }
    body
}

#[track_caller]
fn is_sentence(what: &str, detail: &Value) {
    let detail = detail.as_str().unwrap_or_else(|| panic!("{what}: no sentence: {detail}"));
    let begins = detail
        .chars()
        .next()
        .is_some_and(|first| first.is_uppercase() || first == '`' || first.is_ascii_digit());
    assert!(begins && detail.split(' ').count() >= 3, "{what}: {detail}");
}

struct Stage {
    server: Running,
    ids: BTreeMap<&'static str, String>,
    operations: Vec<Operation>,
    _receiver: Receiver,
}

impl Stage {
    async fn new() -> Self {
        let server = Running::delivering().await;
        let receiver = Receiver::answering(200, "").await;
        let ids = tenant(&server.client, &receiver).await;
        let mut operations = operations(&server).await;
        // Deletions last: they take away what others are about.
        operations.sort_by_key(|operation| {
            (operation.method == Method::DELETE, operation.path.matches('{').count())
        });
        Self { server, ids, operations, _receiver: receiver }
    }

    fn path(&self, operation: &Operation) -> String {
        operation.filled(&ids_for(operation, &self.ids))
    }
}

async fn send(client: &Client, method: &Method, path: &str, body: &str) -> (String, Reply) {
    let reply = client.send(method.clone(), path, &[], body.to_owned().into()).await;
    let shown = path.chars().take(200).collect::<String>();
    (format!("{method} {shown} {}", body.chars().take(40).collect::<String>()), reply)
}

#[tokio::test]
async fn a_405_names_the_methods_of_its_route_in_its_text_and_in_allow() {
    let stage = Stage::new().await;
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for operation in &stage.operations {
        methods.entry(&operation.path).or_default().insert(operation.method.as_str());
    }
    for operation in &stage.operations {
        let there = &methods[operation.path.as_str()];
        let wrong =
            ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter().find(|method| !there.contains(method));
        let Some(wrong) = wrong else { continue };
        let path = stage.path(operation);
        let (what, reply) = send(&stage.server.client, &wrong.parse().unwrap(), &path, "{}").await;
        let body = check(&what, &reply);
        assert_eq!((reply.status.as_u16(), &body["code"]), (405, &json!("method_not_allowed")), "{what}");
        let allow: BTreeSet<_> = reply.headers["allow"].to_str().unwrap().split(", ").collect();
        let mut expected = there.clone();
        if expected.contains("GET") {
            expected.insert("HEAD");
        }
        assert_eq!(allow, expected, "{what}");
        let detail = body["detail"].as_str().unwrap();
        assert!(
            allow.iter().all(|method| detail.contains(method)) && detail.contains(wrong),
            "{what}: {detail}"
        );
    }
    for (path, allow) in
        [("//docs", "GET, HEAD"), ("/openapi.json", "GET, HEAD"), ("//docs/guides/errors", "GET, HEAD")]
    {
        let (what, reply) = send(&stage.server.client, &Method::PUT, path, "").await;
        check(&what, &reply);
        assert_eq!(reply.headers["allow"], allow, "{what}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_route_names_the_one_that_was_meant() {
    let stage = Stage::new().await;
    for operation in &stage.operations {
        // The last word with one letter more, as a hand slips.
        let Some(word) = operation.path.split('/').rfind(|part| part.len() > 2 && !part.starts_with('{'))
        else {
            continue;
        };
        let slip = operation.path.replacen(&format!("/{word}"), &format!("/{word}x"), 1);
        if stage.operations.iter().any(|other| fits(&other.path, &slip)) {
            continue;
        }
        let path = Operation {
            path: slip,
            described: Value::Null,
            access: String::new(),
            method: operation.method.clone(),
            has_body: false,
        };
        let (what, reply) =
            send(&stage.server.client, &operation.method, &path.filled(&ids_for(&path, &stage.ids)), "{}")
                .await;
        let body = check(&what, &reply);
        assert_eq!((reply.status.as_u16(), &body["code"]), (404, &json!("not_found")), "{what}");
        let detail = body["detail"].as_str().unwrap();
        let meant = format!("{} /api/v1{}", operation.method, operation.path);
        assert!(detail.contains(&meant), "{what}: `{meant}` is not in {detail}");
        assert!(detail.matches("/api/v1").count() <= 4, "{what}: three at most: {detail}");
    }
    let (what, reply) = send(&stage.server.client, &Method::GET, "//nothing/like/it", "").await;
    let body = check(&what, &reply);
    assert!(body["detail"].as_str().unwrap().contains("/docs lists its routes"), "{body}");
}

/// Whether a route takes a path in which parameters still have their names.
fn fits(route: &str, path: &str) -> bool {
    let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let (route, path) = (parts(route), parts(path));
    route.len() == path.len()
        && route.iter().zip(&path).all(|(name, part)| name.starts_with('{') || name == part)
}

#[tokio::test]
async fn every_route_explains_missing_and_foreign_credentials() {
    let stage = Stage::new().await;
    let stranger = stage.server.client.with_token(&token(OTHER_ORGANIZATION));
    let nobody = stage.server.client.anonymous();
    let nonsense = stage.server.client.with_token("nonsense");
    for operation in stage.operations.iter().filter(|operation| operation.access != "open") {
        let path = stage.path(operation);
        for client in [&nobody, &nonsense] {
            let (what, reply) = send(client, &operation.method, &path, "{}").await;
            let body = check(&what, &reply);
            assert_eq!(
                (reply.status.as_u16(), &body["code"]),
                (401, &json!("authentication_failed")),
                "{what}"
            );
        }
        if operation.names().next().is_some() {
            let (what, reply) = send(&stranger, &operation.method, &path, "{}").await;
            check(&what, &reply);
        }
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_a_422_and_one_that_is_too_large_names_the_setting() {
    let stage = Stage::new().await;
    let large = " ".repeat((1 << 20) + (64 << 10) + 1);
    for operation in stage.operations.iter().filter(|operation| operation.has_body) {
        let path = stage.path(operation);
        for wrong in ["{", "[1, 2", "nonsense", "\"text\""] {
            let (what, reply) = send(&stage.server.client, &operation.method, &path, wrong).await;
            let body = check(&what, &reply);
            assert_eq!((reply.status.as_u16(), &body["code"]), (422, &json!("validation")), "{what}: {body}");
        }
        if path.ends_with("/msg/batch") {
            continue;
        }
        let (what, reply) = send(&stage.server.client, &operation.method, &path, &large).await;
        let body = check(&what, &reply);
        assert_eq!(reply.status.as_u16(), 413, "{what}: {body}");
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains("1114112 bytes") && detail.contains("`payload_bytes`"), "{what}: {detail}");
    }
    let app = &stage.ids["app_id"];
    let message = json!({"eventType": "a", "payload": {"a": "x".repeat(1 << 20)}}).to_string();
    let (what, reply) = send(&stage.server.client, &Method::POST, &format!("/app/{app}/msg"), &message).await;
    let body = check(&what, &reply);
    let detail = body["detail"].as_str().unwrap();
    assert_eq!(reply.status.as_u16(), 413);
    assert!(detail.contains("may have 1048576") && detail.contains("`payload_bytes`"), "{detail}");
    let batch = " ".repeat((16 << 20) + 1);
    let (what, reply) =
        send(&stage.server.client, &Method::POST, &format!("/app/{app}/msg/batch"), &batch).await;
    let body = check(&what, &reply);
    assert!(body["detail"].as_str().unwrap().contains("16777216 bytes: no setting"), "{body}");
}

#[tokio::test]
async fn a_query_parameter_that_cannot_be_read_is_a_422_that_names_it() {
    let stage = Stage::new().await;
    let mut tried = 0;
    for operation in &stage.operations {
        for parameter in operation.described["parameters"].as_array().unwrap() {
            let schema = &parameter["schema"];
            let has_form = ["integer", "boolean"].contains(&schema["type"].as_str().unwrap_or_default())
                || schema["format"] == "date-time"
                || schema["enum"].is_array();
            if parameter["in"] != "query" || !has_form {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            for wrong in ["abc", "", "%00", "1.5"] {
                let path = format!("{}?{name}={wrong}", stage.path(operation));
                let (what, reply) = send(&stage.server.client, &operation.method, &path, "{}").await;
                let body = check(&what, &reply);
                assert_eq!(reply.status.as_u16(), 422, "{what}: {body}");
                assert_eq!(body["detail"][0]["loc"], json!(["query", name]), "{what}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
    let limit = async |text: &str| stage.server.client.get(&format!("/app?limit={text}")).await.expect(422);
    assert_eq!(limit("abc").await["detail"][0]["loc"], limit("1000").await["detail"][0]["loc"]);
}

#[tokio::test]
async fn conflicts_name_the_thing_that_is_in_the_way_and_its_id() {
    let stage = Stage::new().await;
    let client = &stage.server.client;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let conflict = async |method: Method, path: &str, body: Value, named: &str| {
        let (what, reply) = send(client, &method, path, &body.to_string()).await;
        let body = check(&what, &reply);
        assert_eq!(reply.status.as_u16(), 409, "{what}: {body}");
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains(named), "{what}: {named} is not in {detail}");
    };
    let app = text(&client.post("/app", r#"{"name": "a", "uid": "taken"}"#).await.expect(201)["id"]);
    conflict(Method::POST, "/app", json!({"name": "b", "uid": "taken"}), &app).await;
    let other = &stage.ids["app_id"];
    conflict(Method::PATCH, &format!("/app/{other}"), json!({"uid": "taken"}), &app).await;
    conflict(Method::PUT, &format!("/app/{other}"), json!({"name": "b", "uid": "taken"}), &app).await;
    conflict(Method::PUT, "/app/unheard-of", json!({"name": "b", "uid": "taken"}), &app).await;

    let endpoints = format!("/app/{app}/endpoint");
    let endpoint =
        json!({"url": "https://example.com/", "uid": "taken", "policy": "theirs", "profile": "theirs"});
    let id = text(&client.post(&endpoints, endpoint.to_string()).await.expect(201)["id"]);
    conflict(Method::POST, &endpoints, endpoint.clone(), &id).await;
    conflict(Method::PUT, &format!("{endpoints}/another"), endpoint, &id).await;
    let second = text(&client.post(&endpoints, r#"{"url": "https://example.com/"}"#).await.expect(201)["id"]);
    conflict(Method::PATCH, &format!("{endpoints}/{second}"), json!({"uid": "taken"}), &id).await;
    conflict(Method::DELETE, "/policy/theirs", json!({}), &id).await;
    conflict(Method::DELETE, "/profile/theirs", json!({}), &id).await;
    conflict(
        Method::POST,
        "/policy",
        json!({"name": "theirs", "schedule": {"type": "list", "delays": ["1s"]}}),
        "`theirs`",
    )
    .await;
    conflict(Method::POST, "/event-type", json!({"name": "theirs", "description": ""}), "`theirs`").await;

    let source = json!({"name": "s", "type": "generic-webhook", "uid": "taken"});
    let made = client.post("/ingest/source", source.to_string()).await.expect(201);
    conflict(Method::POST, "/ingest/source", source, made["id"].as_str().unwrap()).await;

    let message = json!({"eventType": "a", "payload": {}, "eventId": "once"});
    let messages = format!("/app/{app}/msg");
    let id = text(&client.post(&messages, message.to_string()).await.expect(202)["id"]);
    conflict(Method::POST, &messages, message, &id).await;

    let key = r#"{"name": "k", "scope": "read"}"#;
    let made = client.post_once("/api-key", "one", key).await.expect(201);
    let again = client.post_once("/api-key", "one", key).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains(made["id"].as_str().unwrap()), "{again}");
    let made = client.post_once("/app", "two", r#"{"name": "gone"}"#).await.expect(201);
    let id = made["id"].as_str().unwrap();
    client.delete(&format!("/app/{id}")).await.expect(204);
    let again = client.post_once("/app", "two", r#"{"name": "gone"}"#).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains(id), "{again}");
    client.patch(&format!("{endpoints}/{second}"), r#"{"disabled": true}"#).await.expect(200);
    conflict(Method::POST, &format!("{endpoints}/{second}/resume"), json!({}), &second).await;
}

#[tokio::test]
async fn an_item_of_a_list_has_the_same_index_everywhere() {
    let stage = Stage::new().await;
    let (client, app) = (&stage.server.client, &stage.ids["app_id"]);
    for (path, body, place) in [
        (
            format!("/app/{app}/endpoint"),
            json!({"url": "https://a.example/", "channels": ["ok", "a b"]}),
            json!(["body", "channels", "[1]"]),
        ),
        (
            "/policy".into(),
            json!({"name": "a", "schedule": {"type": "list", "delays": ["1s", "soon"]}}),
            json!(["body", "schedule", "delays", "[1]"]),
        ),
        (
            "/policy".into(),
            json!({"name": "a", "schedule": {"type": "list", "delays": ["1s"]}, "rejects": ["no"]}),
            json!(["body", "rejects", "[0]"]),
        ),
        (
            "/ingest/source".into(),
            json!({"name": "s", "type": "generic-webhook", "forwardHeaders": ["x", "a b"]}),
            json!(["body", "forwardHeaders", "[1]"]),
        ),
    ] {
        let (what, reply) = send(client, &Method::POST, &path, &body.to_string()).await;
        let refused = check(&what, &reply);
        let places: Vec<_> =
            refused["detail"].as_array().unwrap().iter().map(|problem| &problem["loc"]).collect();
        assert!(places.contains(&&place), "{what}: {refused}");
    }
}

#[tokio::test]
async fn a_missing_field_has_one_type_and_one_wording_on_every_route() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({})).await;
    let recover = format!("/app/{app}/endpoint/{}/recover", made["id"].as_str().unwrap());
    for (path, body) in [
        ("/app".to_owned(), json!({})),
        (format!("/app/{app}/endpoint"), json!({})),
        (format!("/app/{app}/msg"), json!({"eventType": "a"})),
        (format!("/app/{app}/dispatch"), json!({"url": "https://example.com/", "eventType": "a"})),
        (recover, json!({})),
        ("/policy".to_owned(), json!({"name": "p"})),
        ("/policy".to_owned(), json!({"schedule": {"type": "list", "delays": ["1s"]}})),
        ("/profile".to_owned(), json!({"name": "p"})),
        ("/profile".to_owned(), json!({"headers": {"X": "a"}})),
        ("/api-key".to_owned(), json!({"name": "k"})),
        ("/event-type".to_owned(), json!({})),
    ] {
        let refused = server.client.post(&path, body.to_string()).await.expect(422);
        let problems = refused["detail"].as_array().unwrap();
        assert!(!problems.is_empty(), "{path}");
        let missing = problems.iter().find(|problem| {
            problem["msg"].as_str().is_some_and(|said| said.starts_with("this field is required"))
        });
        let missing = missing.unwrap_or_else(|| panic!("{path}: {refused}"));
        assert_eq!(missing["type"], "value_error", "{path}: {refused}");
    }
}

#[tokio::test]
async fn errors_explain_the_problem() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({})).await;
    let endpoint = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    let said = async |path: &str, body: &str| {
        let refused = server.client.post(path, body.to_owned()).await.expect(422);
        let problem = &refused["detail"][0];
        format!("{}: {}", problem["loc"][1].as_str().unwrap_or_default(), problem["msg"].as_str().unwrap())
    };
    let scope = said("/api-key", r#"{"name": "k"}"#).await;
    assert!(
        scope.starts_with("scope: this field is required: `admin`") && scope.contains("`read`"),
        "{scope}"
    );
    let future = said(&format!("{endpoint}/recover"), r#"{"since": "2099-01-01T00:00:00Z"}"#).await;
    assert!(future.starts_with("since: lies in the future"), "{future}");
    let both = r#"{"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}"#;
    assert_eq!(said(&format!("{endpoint}/recover"), both).await, "until: lies before `since`");
    let portal = said(&format!("/auth/app-portal-access/{app}"), "").await;
    assert!(portal.contains("send `{}`"), "{portal}");
    // Nothing has to be said to rotate a key.
    server.client.post(&format!("{endpoint}/secret/rotate"), "").await.expect(200);
    for header in ["abc", "Basic abc", ""] {
        let client = Client { authorization: Some(header.into()), ..server.client.clone() };
        let refused = client.get("/app").await.expect(401);
        assert!(refused["detail"].as_str().unwrap().contains("does not begin with `Bearer `"), "{refused}");
    }
    let refused = server.client.anonymous().get("/app").await.expect(401);
    assert!(refused["detail"].as_str().unwrap().contains("there is none"), "{refused}");
    server.client.put("/app/shop", r#"{"name": "Shop"}"#).await.expect(201);
    let unnamed = server.client.anonymous().get("/app/shop/jwks.json").await.expect(404);
    assert!(unnamed["detail"].as_str().unwrap().contains("ids (app_…) only"), "{unnamed}");
}
