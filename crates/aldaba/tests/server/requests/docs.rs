//! The API's document and the page that shows it.

use crate::support::running::Running;
use http::Method;
use serde_json::Value;
use std::collections::BTreeSet;

#[tokio::test]
async fn the_page_comes_whole_out_of_the_server() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    let page = nobody.get("//docs/index.html").await;
    assert_eq!(page.status, 200);
    let html = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(html.contains("<title>Aldaba API</title>"));
    assert!(!html.contains("http://") && !html.contains("https://"), "nothing is loaded from elsewhere");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self'") && !policy.contains("http"), "{policy}");
    let files: BTreeSet<_> = html.split('"').filter_map(|part| part.strip_prefix("./")).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(nobody.get(&format!("//docs/{file}")).await.status, 200, "{file}");
    }
    assert_eq!(nobody.get("//docs/no-such-file.js").await.status, 404);
    for (from, to) in [("/", "/dashboard"), ("/docs", "/docs/index.html"), ("/docs/", "/docs/index.html")] {
        let moved = nobody.get(&format!("/{from}")).await;
        assert_eq!((moved.status.as_u16(), moved.headers["location"].to_str().unwrap()), (307, to));
    }
}

#[tokio::test]
async fn the_document_names_every_operation_once_and_everything_it_refers_to() {
    let server = Running::start().await;
    let document = server.client.anonymous().get("/openapi.json").await.expect(200);
    let mut ids = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let place = format!("{method} {path}");
            let method: Method = method.to_uppercase().parse().unwrap();
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{place}: its id is taken"
            );
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{place}");
            let answers = operation["responses"].as_object().unwrap();
            assert!(answers.keys().any(|status| status.starts_with('2')), "{place}: no success");
            assert!(method != Method::GET || operation.get("requestBody").is_none(), "{place}");
        }
    }
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for part in text.split("\"$ref\":\"").skip(1) {
        let name = part.split('"').next().unwrap().strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "no schema {name}");
    }
    let described = |schema: &Value| {
        schema.get("type").is_some() || schema.get("allOf").is_some() || schema.get("oneOf").is_some()
    };
    for (name, schema) in schemas {
        assert!(described(schema), "{name}: {schema}");
    }
}

#[tokio::test]
async fn a_page_of_any_origin_may_use_the_api_with_a_token() {
    let server = Running::start().await;
    let asks = [
        ("origin", "https://page.example"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "authorization,content-type,x-a"),
    ];
    let nobody = server.client.anonymous();
    let leave = nobody.send(Method::OPTIONS, "/app/x", &asks, "".into()).await;
    assert_eq!(leave.status, 200);
    assert_eq!(leave.headers["access-control-allow-headers"], asks[2].1);
    assert_eq!(leave.headers["access-control-max-age"], "600");
    assert!(leave.headers["access-control-allow-methods"].to_str().unwrap().contains("PUT"));
    for client in [&server.client, &nobody] {
        let reply = client.send(Method::GET, "/app", &asks[..1], "".into()).await;
        assert_eq!(reply.headers["access-control-allow-origin"], "*", "errors can be read too");
        assert!(!reply.headers.contains_key("access-control-allow-credentials"));
    }
    assert!(!server.client.get("/app").await.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn an_idempotency_key_is_promised_only_where_it_is_honoured() {
    let server = Running::start().await;
    let document = server.client.anonymous().get("/openapi.json").await.expect(200);
    let mut promised = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().unwrap();
            if parameters.iter().any(|parameter| parameter["name"] == "idempotency-key") {
                promised.insert(operation["operationId"].as_str().unwrap().trim_start_matches("v1."));
            }
        }
    }
    // As docs/idempotency.md says.
    let honoured = [
        "api-key.create",
        "application.create",
        "application.erase",
        "application.update",
        "dispatch.create",
        "endpoint.bulk-replay",
        "endpoint.create",
        "endpoint.recover",
        "endpoint.replay-missing",
        "endpoint.resume",
        "endpoint.rotate-secret",
        "endpoint.send-example",
        "endpoint.update",
        "event-type.create",
        "event-type.import-openapi",
        "ingest.endpoint.create",
        "ingest.endpoint.rotate-secret",
        "ingest.endpoint.upsert",
        "ingest.source.create",
        "ingest.source.rotate-token",
        "ingest.source.upsert",
        "job.create",
        "message-attempt.resend",
        "message.create",
        "message.create-batch",
        "operational-webhook.endpoint.create",
        "operational-webhook.endpoint.rotate-secret",
        "operational-webhook.endpoint.update",
    ];
    assert_eq!(promised, honoured.into());
    // Policies are not among them: a repeat is refused with any key.
    let policy = r#"{"name": "p", "schedule": {"type": "list", "delays": ["1s"]}}"#;
    server.client.post_once("/policy", "k", policy).await.expect(201);
    server.client.post_once("/policy", "k", policy).await.expect(409);
}

#[tokio::test]
async fn every_field_of_a_policy_is_described() {
    let server = Running::start().await;
    let document = server.client.anonymous().get("/openapi.json").await.expect(200);
    let fields = document["components"]["schemas"]["PolicyIn"]["properties"].as_object().unwrap();
    for (name, field) in fields.iter().filter(|(name, _)| *name != "name") {
        assert!(field["description"].is_string(), "{name}: {field}");
    }
    let reason = &document["components"]["schemas"]["DeliveryOut"]["properties"]["reason"];
    assert!(reason["description"].as_str().unwrap().contains("`stop_date`"), "{reason}");
}
