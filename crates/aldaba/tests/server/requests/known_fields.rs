//! Every body field of the API of Svix is known, and what is not known is refused.

use crate::requests::bad_input::places;
use crate::requests::matrix::{ids_for, operations, tenant};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use aldaba_api::read::UnknownFields;
use http::Method;
use serde_json::{Value, json};

/// A method, a path of ours, and the fields that the document of Svix names for the same operation.
const SVIX_FIELDS: &str = include_str!("svix_body_fields.txt");

#[tokio::test]
async fn every_body_field_of_svix_is_known() {
    let server = Running::start().await;
    let document = server.client.get("/openapi.json").await.expect(200);
    let (mut operations, mut compared) = (0, 0);
    for line in SVIX_FIELDS.lines() {
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let body = &document["paths"][path][method]["requestBody"]["content"]["application/json"];
        let name = body["schema"]["$ref"].as_str().unwrap_or_else(|| panic!("{method} {path} takes no body"));
        let schema = &document["components"]["schemas"][name.rsplit('/').next().unwrap()];
        for field in words {
            assert!(schema["properties"][field].is_object(), "{method} {path} does not know {field}");
            compared += 1;
        }
        operations += 1;
    }
    assert!(operations > 35 && compared > 149, "{operations} {compared}");
    server.stop().await;
}

#[tokio::test]
async fn every_route_with_a_body_refuses_a_field_that_it_does_not_know() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let ids = tenant(&server.client, &receiver).await;
    let mut refused = 0;
    for operation in operations(&server).await.iter().filter(|operation| operation.has_body) {
        let mut body = operation.described["requestBody"]["content"]["application/json"]["example"].clone();
        body["zzUnknown"] = json!(1);
        let path = operation.filled(&ids_for(operation, &ids));
        let reply = server.client.send(operation.method.clone(), &path, &[], body.to_string().into()).await;
        let places = places(&reply);
        assert!(places.contains(&"body.zzUnknown".to_owned()), "{} {path}: {places:?}", operation.method);
        refused += 1;
    }
    assert!(refused > 40, "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn older_names_of_fields_are_known() {
    let server = Running::start().await;
    let app = server.application().await;
    server.event_type("a").await;
    let endpoint = json!({"url": "https://example.com/", "filterTypes": ["a"], "rateLimit": 5, "version": 2});
    let made = server.client.post(&format!("/app/{app}/endpoint"), endpoint.to_string()).await.expect(201);
    assert_eq!(
        (&made["eventTypes"], &made["throttleRate"], &made["version"]),
        (&json!(["a"]), &json!(5), &json!(2))
    );
    let message = r#"{"eventType": "a", "data": {}, "version": 3}"#;
    let sent = server.client.post(&format!("/app/{app}/msg"), message).await.expect(202);
    assert_eq!(sent["version"], "3");
    let application = server.client.post("/app", r#"{"name": "n", "rateLimit": 7}"#).await.expect(201);
    assert_eq!(application["throttleRate"], 7);
    let event_type = r#"{"name": "b", "description": "", "featureFlag": "f"}"#;
    let event_type = server.client.post("/event-type", event_type).await.expect(201);
    assert_eq!(event_type["featureFlags"], json!(["f"]));
    server.stop().await;
}

#[tokio::test]
async fn what_was_read_can_be_sent_back() {
    let server = Running::start().await;
    let app = server.application().await;
    server.event_type("a").await;
    let endpoint = json!({"uid": "door", "eventTypes": ["a"], "throttleRate": 5});
    server.endpoint(&app, endpoint).await;
    let source = r#"{"name": "s", "uid": "s", "type": "generic-webhook"}"#;
    server.client.post("/ingest/source", source).await.expect(201);
    server.client.patch(&format!("/app/{app}"), r#"{"throttleRate": 9, "uid": "acme"}"#).await.expect(200);
    let door = format!("/app/{app}/endpoint/door");
    for path in [door.clone(), "/app/acme".into(), "/event-type/a".into(), "/ingest/source/s".into()] {
        let shown = server.client.get(&path).await.expect(200);
        for method in [Method::PUT, Method::PATCH] {
            let reply = server.client.send(method.clone(), &path, &[], shown.to_string().into()).await;
            let mut after = reply.expect(200);
            after["updatedAt"] = shown["updatedAt"].clone();
            assert_eq!(after, shown, "{method} {path}");
        }
    }
    let headers = format!("{door}/headers");
    server.client.put(&headers, r#"{"headers": {"x-team": "a", "authorization": "b"}}"#).await.expect(204);
    let shown = server.client.get(&headers).await.expect(200);
    assert_eq!(shown["sensitive"], json!(["authorization"]));
    // Its value is not shown, and is not lost in passing.
    assert_eq!(places(&server.client.put(&headers, shown.to_string()).await), ["body.sensitive"]);
    assert_eq!(server.client.get(&headers).await.expect(200), shown);
    server.client.put(&headers, r#"{"headers": {"x-team": "b"}, "sensitive": []}"#).await.expect(204);
    server.stop().await;
}

#[tokio::test]
async fn a_setting_passes_over_what_is_not_known() {
    let server = Running::with(|config| config.limits.unknown_fields = UnknownFields::Ignore).await;
    let app = server.application().await;
    let accepted = async |method: Method, path: &str, mut body: Value| {
        body["zzUnknown"] = json!({"any": ["thing"]});
        let reply = server.client.send(method, path, &[], body.to_string().into()).await;
        assert!(reply.status.is_success(), "{path}: {:?}", reply.body);
    };
    let endpoint = format!("/app/{app}/endpoint");
    accepted(Method::POST, "/app", json!({"name": "n", "uid": "n"})).await;
    accepted(Method::PATCH, "/app/n", json!({"name": "m"})).await;
    accepted(Method::POST, &endpoint, json!({"url": "https://example.com/", "uid": "door"})).await;
    accepted(Method::PUT, &format!("{endpoint}/door"), json!({"url": "https://example.com/"})).await;
    accepted(Method::PATCH, &format!("{endpoint}/door"), json!({"http2": true})).await;
    accepted(Method::POST, "/event-type", json!({"name": "a", "description": ""})).await;
    let parameters = json!({"rawPayload": "text", "zzUnknown": 1});
    let message = json!({"eventType": "a", "payload": {}, "transformationsParams": parameters});
    accepted(Method::POST, &format!("/app/{app}/msg"), message.clone()).await;
    accepted(Method::POST, &format!("/app/{app}/msg/batch"), json!({"messages": [message]})).await;
    accepted(
        Method::POST,
        "/ingest/source",
        json!({"name": "s", "type": "generic-webhook", "answer": {"zz": 1}}),
    )
    .await;
    // What is known is checked as ever, and what would leave out a check of senders is refused.
    let wrong = json!({"url": 5, "zzUnknown": 1}).to_string();
    assert_eq!(places(&server.client.post(&endpoint, wrong).await), ["body.url"]);
    let misplaced = json!({"name": "s", "type": "generic-webhook", "secret": "x"}).to_string();
    assert_eq!(places(&server.client.post("/ingest/source", misplaced).await), ["body.secret"]);
    server.stop().await;
}
