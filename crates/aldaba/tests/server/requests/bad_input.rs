//! The answer explains every problem of a request, and nothing is stored.

use crate::support::client::Reply;
use crate::support::running::Running;
use http::Method;
use serde_json::{Value, json};

/// The places that a 422 complains about.
#[track_caller]
pub(crate) fn places(reply: &Reply) -> Vec<String> {
    let problems = reply.expect(422);
    let problems = problems["detail"].as_array().expect("a list of problems");
    for problem in problems {
        assert!(problem["msg"].as_str().is_some_and(|msg| !msg.is_empty()), "{problem}");
        assert!(problem["type"].as_str().is_some_and(|kind| kind.starts_with("value_error")), "{problem}");
    }
    let place = |problem: &Value| {
        let parts: Vec<_> =
            problem["loc"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
        parts.join(".")
    };
    problems.iter().map(place).collect()
}

#[track_caller]
fn says(reply: &Reply, status: u16, code: &str) {
    let body = reply.expect(status);
    assert_eq!(body["code"], code, "{body}");
    assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
    assert_eq!(reply.headers["content-type"], "application/json");
}

#[tokio::test]
async fn bodies_that_are_no_json_objects_are_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    for path in ["/app".to_owned(), format!("/app/{app}/endpoint"), format!("/app/{app}/msg")] {
        for body in
            ["", "  ", "{", "nonsense", "[]", "\"text\"", "{\"name\":}", "{\"name\":\"a\"} x", "\u{0}"]
        {
            assert_eq!(places(&server.client.post(&path, body).await), ["body"], "{path} {body:?}");
        }
        let not_text =
            server.client.post(&path, &b"{\"name\":\"\xff\",\"eventType\":\"a\",\"url\":\"\xff\"}"[..]).await;
        assert_eq!(places(&not_text), ["body"], "{path}");
    }
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn messages_that_are_not_acceptable_are_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let long = "x".repeat(257);
    for (body, place) in [
        (json!({"payload": {}}), "body.eventType"),
        (json!({"eventType": null, "payload": {}}), "body.eventType"),
        (json!({"eventType": 5, "payload": {}}), "body.eventType"),
        (json!({"eventType": "", "payload": {}}), "body.eventType"),
        (json!({"eventType": "a b", "payload": {}}), "body.eventType"),
        (json!({"eventType": long, "payload": {}}), "body.eventType"),
        (json!({"eventType": "a"}), "body.payload"),
        (json!({"eventType": "a", "payload": null}), "body.payload"),
        (json!({"eventType": "a", "payload": []}), "body.payload"),
        (json!({"eventType": "a", "payload": "text"}), "body.payload"),
        (json!({"eventType": "a", "data": 5}), "body.data"),
        (json!({"eventType": "a", "payload": {}, "data": {}}), "body.payload"),
        (json!({"eventType": "a", "payload": {}, "eventId": "a/b"}), "body.eventId"),
        (json!({"eventType": "a", "payload": {}, "eventId": "msg_mine"}), "body.eventId"),
        (json!({"eventType": "a", "payload": {}, "channels": []}), "body.channels"),
        (json!({"eventType": "a", "payload": {}, "channels": "x"}), "body.channels"),
        (json!({"eventType": "a", "payload": {}, "channels": ["x", "a b"]}), "body.channels.[1]"),
        (json!({"eventType": "a", "payload": {}, "channels": ["x", 7]}), "body.channels.[1]"),
        (json!({"eventType": "a", "payload": {}, "channels": vec!["x"; 11]}), "body.channels"),
        (json!({"eventType": "a", "payload": {}, "deliverAt": "soon"}), "body.deliverAt"),
        (json!({"eventType": "a", "payload": {}, "deliverAt": 1893456000}), "body.deliverAt"),
        (json!({"eventType": "a", "payload": {}, "deliverAt": "9999-01-01T00:00:00Z"}), "body.deliverAt"),
        (json!({"eventType": "a", "payload": {}, "tags": ["x", "a b"]}), "body.tags.[1]"),
        (
            json!({"eventType": "a", "payload": {}, "payloadRetentionPeriod": 91}),
            "body.payloadRetentionPeriod",
        ),
        (
            json!({"eventType": "a", "payload": {}, "payloadRetentionHours": 2161}),
            "body.payloadRetentionHours",
        ),
        (
            json!({"eventType": "a", "payload": {}, "payloadRetentionPeriod": 7, "payloadRetentionHours": 9}),
            "body.payloadRetentionHours",
        ),
        (
            json!({"eventType": "a", "payload": {}, "transformationsParams": {"headers": {}}}),
            "body.transformationsParams.headers",
        ),
    ] {
        let reply = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await;
        assert_eq!(places(&reply), [place], "{body}");
    }
    let twice = r#"{"eventType":"a","payload":{},"payload":{}}"#;
    assert_eq!(places(&server.client.post(&format!("/app/{app}/msg"), twice).await), ["body.payload"]);
    let deep = format!(r#"{{"eventType":"a","payload":{{"a":{}{}}}}}"#, "[".repeat(128), "]".repeat(128));
    assert_eq!(places(&server.client.post(&format!("/app/{app}/msg"), deep).await), ["body.payload"]);
    let all_at_once = json!({"eventType": "a b", "payload": [], "channels": []}).to_string();
    let reply = server.client.post(&format!("/app/{app}/msg"), all_at_once).await;
    assert_eq!(places(&reply), ["body.eventType", "body.payload", "body.channels"]);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn fields_that_are_null_count_as_absent() {
    let server = Running::start().await;
    let app = server.application().await;
    let body = json!({"eventType": "a", "payload": {}, "eventId": null, "channels": null, "tags": null,
        "deliverAt": null, "application": null, "transformationsParams": null,
        "payloadRetentionPeriod": null, "payloadRetentionHours": null});
    server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
}

#[tokio::test]
async fn a_payload_over_one_mebibyte_is_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg?with_content=false");
    let body = |payload: usize| {
        format!(r#"{{"eventType":"a","payload":{{"a":"{}"}}}}"#, "x".repeat(payload - r#"{"a":""}"#.len()))
    };
    server.client.post(&path, body(1 << 20)).await.expect(202);
    says(&server.client.post(&path, body((1 << 20) + 1)).await, 413, "payload_too_large");
    // Larger than any request may be: the answer arrives although the body is still being sent.
    says(&server.client.post(&path, body(5 << 20)).await, 413, "payload_too_large");
    assert_eq!(server.stored(&app).await, [1, 0, 1]);
}

#[tokio::test]
async fn an_unknown_application_endpoint_or_message_is_not_found() {
    let server = Running::start().await;
    let app = server.application().await;
    let nobody = "app_23rb8YdGqMT0qIzpgGwdXfHirMu";
    let message = r#"{"eventType":"a","payload":{}}"#;
    for unknown in [nobody, "no-such-uid", "app_short"] {
        says(&server.client.post(&format!("/app/{unknown}/msg"), message).await, 404, "not_found");
        // It is reported before problems of the body.
        says(&server.client.post(&format!("/app/{unknown}/msg"), "{").await, 404, "not_found");
        says(&server.client.post(&format!("/app/{unknown}/endpoint"), "{").await, 404, "not_found");
        for path in ["", "/endpoint", "/msg", "/attempt/msg/x", "/attempt/endpoint/x", "/endpoint/x/secret"] {
            says(&server.client.get(&format!("/app/{unknown}{path}")).await, 404, "not_found");
        }
        says(&server.client.delete(&format!("/app/{unknown}")).await, 404, "not_found");
    }
    for path in
        ["endpoint/x", "endpoint/x/secret", "msg/x", "msg/x/endpoint", "attempt/msg/x", "attempt/endpoint/x"]
    {
        says(&server.client.get(&format!("/app/{app}/{path}")).await, 404, "not_found");
    }
    says(&server.client.delete(&format!("/app/{app}/endpoint/x")).await, 404, "not_found");
    says(&server.client.get("/app/%ff").await, 404, "not_found");
    let strange = server.client.post("/app/a%20b/msg", message).await;
    assert_eq!(places(&strange), ["path.app_id_or_uid"]);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn unknown_routes_and_methods_have_a_json_body_too() {
    let server = Running::start().await;
    says(&server.client.get("/nothing/here").await, 404, "not_found");
    says(&server.client.get("//nothing").await, 404, "not_found");
    says(
        &server.client.send(Method::PUT, "/health", &[], bytes::Bytes::new()).await,
        405,
        "method_not_allowed",
    );
    says(&server.client.delete("/app").await, 405, "method_not_allowed");
}

#[tokio::test]
async fn endpoint_urls_that_lead_inside_are_refused_in_every_spelling() {
    let server = Running::start().await;
    let app = server.application().await;
    for url in [
        "http://127.0.0.1/",
        "http://127.0.0.1:8071/api",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::10.0.0.1]/",
        "http://localhost/",
        "http://LOCALHOST:99/",
        "http://a.localhost/",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://172.16.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://168.63.129.16/",
        "http://0.0.0.0/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://user:pass@127.0.0.1/",
        "http://example.com@127.0.0.1/",
        "http://１２７.０.０.１/",
        "http://%31%32%37.0.0.1/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "/only/a/path",
        "example.com",
        "http://",
        "http://exa\u{7f}mple.com/\r\nx: y",
        "",
    ] {
        let reply =
            server.client.post(&format!("/app/{app}/endpoint"), json!({"url": url}).to_string()).await;
        assert_eq!(places(&reply), ["body.url"], "{url}");
    }
    let long = json!({"url": format!("https://example.com/{}", "x".repeat(9000))}).to_string();
    assert_eq!(places(&server.client.post(&format!("/app/{app}/endpoint"), long).await), ["body.url"]);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn endpoints_that_are_not_acceptable_are_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    server.event_type("a").await;
    let large = json!({"metadata": {"a": "x".repeat(4096)}});
    for (more, place) in [
        (json!({"url": null}), "body.url"),
        (json!({"url": 5}), "body.url"),
        (json!({"policy": "eager"}), "body.policy"),
        (json!({"policy": 5}), "body.policy"),
        (json!({"profile": "acme"}), "body.profile"),
        (json!({"description": null}), "body.description"),
        (json!({"description": "a\u{0}b"}), "body.description"),
        (json!({"disabled": null}), "body.disabled"),
        (json!({"disabled": "yes"}), "body.disabled"),
        (json!({"uid": "ep_mine"}), "body.uid"),
        (json!({"uid": ""}), "body.uid"),
        (json!({"version": 0}), "body.version"),
        (json!({"rateLimit": 0}), "body.rateLimit"),
        (json!({"throttleRate": 65536}), "body.throttleRate"),
        (json!({"throttleRate": "5"}), "body.throttleRate"),
        (json!({"eventTypes": []}), "body.eventTypes"),
        (json!({"eventTypes": ["a b"]}), "body.eventTypes.[0]"),
        (json!({"eventTypes": ["a", "nothing"]}), "body.eventTypes"),
        (json!({"eventTypes": ["a"], "filterTypes": ["a"]}), "body.eventTypes"),
        (json!({"channels": ["a/b"]}), "body.channels.[0]"),
        (json!({"metadata": {"a": 1}}), "body.metadata.a"),
        (json!({"metadata": []}), "body.metadata"),
        (large, "body.metadata"),
        (json!({"secret": "short"}), "body.secret"),
        (json!({"secret": "whsec_c2hvcnQ="}), "body.secret"),
        (json!({"headers": {"host": "b"}}), "body.headers.host"),
    ] {
        let mut body = json!({"url": "https://example.com/"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = server.client.post(&format!("/app/{app}/endpoint"), body.to_string()).await;
        assert_eq!(places(&reply), [place], "{more}");
    }
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn an_unknown_policy_is_refused_with_the_names_of_those_there_are() {
    let server = Running::start().await;
    let app = server.application().await;
    let body = json!({"url": "https://example.com/", "policy": "eager"}).to_string();
    let problem = server.client.post(&format!("/app/{app}/endpoint"), body).await.expect(422);
    let message = problem["detail"][0]["msg"].as_str().unwrap();
    for name in ["eager", "standard", "quick", "persistent", "job-status", "public-api"] {
        assert!(message.contains(name), "{message}");
    }
}

#[tokio::test]
async fn applications_that_are_not_acceptable_are_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    for (body, place) in [
        (json!({}), "body.name"),
        (json!({"name": null}), "body.name"),
        (json!({"name": ""}), "body.name"),
        (json!({"name": "a\u{1}"}), "body.name"),
        (json!({"name": "a", "uid": "app_mine"}), "body.uid"),
        (json!({"name": "a", "uid": "a b"}), "body.uid"),
        (json!({"name": "a", "uid": "x".repeat(257)}), "body.uid"),
        (json!({"name": "a", "metadata": {"a": null}}), "body.metadata.a"),
        (json!({"name": "a", "throttleRate": 0}), "body.throttleRate"),
        (json!({"name": "a", "throttleRate": 65536}), "body.throttleRate"),
        (json!({"name": "a", "rateLimit": "5"}), "body.rateLimit"),
    ] {
        assert_eq!(places(&server.client.post("/app", body.to_string()).await), [place], "{body}");
    }
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn queries_are_checked_once_the_token_is_known() {
    let server = Running::start().await;
    let app = server.application().await;
    let (caller, nobody) = (&server.client, server.client.anonymous());
    let msg = format!("/app/{app}/msg");
    for path in ["/app?limit=many".to_owned(), format!("{msg}?with_content=maybe")] {
        nobody.get(&path).await.expect(401);
    }
    let refused = caller.post("/app?get_if_exists=perhaps", "{}").await;
    assert_eq!(places(&refused), ["query.get_if_exists"]);
    for (path, place) in [
        ("/app?limit=many".to_owned(), "query.limit"),
        ("/app?limit=-1".to_owned(), "query.limit"),
        ("/app?order=upwards".to_owned(), "query.order"),
        (format!("{msg}?with_content=maybe"), "query.with_content"),
        ("/app?limit=251".to_owned(), "query.limit"),
        ("/app?limit=0".to_owned(), "query.limit"),
        ("/app?iterator=nonsense".to_owned(), "query.iterator"),
        ("/app?iterator=ep_23rb8YdGqMT0qIzpgGwdXfHirMu".to_owned(), "query.iterator"),
        ("/app?iterator=app_!!!b8YdGqMT0qIzpgGwdXfHirMu".to_owned(), "query.iterator"),
    ] {
        assert_eq!(places(&caller.get(&path).await), [place], "{path}");
    }
}

#[tokio::test]
async fn an_event_id_or_a_uid_is_taken_once() {
    let server = Running::start().await;
    let app = server.application().await;
    let message = r#"{"eventType":"a","payload":{},"eventId":"once"}"#;
    let msg = format!("/app/{app}/msg");
    server.client.post(&msg, message).await.expect(202);
    says(&server.client.post(&msg, message).await, 409, "conflict");
    let endpoint = r#"{"url":"https://example.com/","uid":"mine"}"#;
    server.client.post(&format!("/app/{app}/endpoint"), endpoint).await.expect(201);
    says(&server.client.post(&format!("/app/{app}/endpoint"), endpoint).await, 409, "conflict");
    let application = r#"{"name":"a","uid":"mine"}"#;
    server.client.post("/app", application).await.expect(201);
    says(&server.client.post("/app", application).await, 409, "conflict");
    assert_eq!(server.stored(&app).await, [2, 1, 1]);
}

/// An object with so many entries that are no strings.
fn numbers(count: usize) -> String {
    let entries: Vec<_> = (0..count).map(|number| format!("\"{number:x}\":1")).collect();
    format!("{{{}}}", entries.join(","))
}

#[tokio::test]
async fn the_answer_is_short_however_many_problems_there_are() {
    let server = Running::start().await;
    let app = server.application().await;
    let url = "https://example.com/";
    let many = numbers(70_000);
    for (path, body, place) in [
        ("/app".to_owned(), format!(r#"{{"name":"a","metadata":{many}}}"#), "body.metadata"),
        (format!("/app/{app}/endpoint"), format!(r#"{{"url":"{url}","headers":{many}}}"#), "body.headers"),
        (format!("/app/{app}/endpoint"), format!(r#"{{"url":"{url}","metadata":{many}}}"#), "body.metadata"),
        (
            format!("/app/{app}/msg"),
            format!(r#"{{"eventType":"a","payload":{{}},"headers":{many}}}"#),
            "body.headers",
        ),
    ] {
        let reply = server.client.post(&path, body).await;
        assert_eq!(places(&reply), [place]);
        assert!(
            reply.json()["detail"][0]["msg"].as_str().unwrap().contains("it has 70000"),
            "{:?}",
            reply.body
        );
    }
    let (headers, channels) = (numbers(1_000_000), format!("[{}1]", "1,".repeat(1_000_000)));
    let bad = |field: &str, value: &str| format!(r#"{{"eventType":"a","payload":{{}},"{field}":{value}}}"#);
    let batch = format!(r#"{{"messages":[{},{}]}}"#, bad("headers", &headers), bad("channels", &channels));
    let reply = server.client.post(&format!("/app/{app}/msg/batch"), batch).await;
    let results = reply.expect(202);
    assert!(reply.body.len() < 1000, "{results}");
    assert!(results["results"][0]["error"]["detail"][0]["msg"].as_str().unwrap().contains("it has 1000000"));
    let batch = async |body: String| server.client.post(&format!("/app/{app}/msg/batch"), body).await;
    let reply = batch(format!(r#"{{"messages":{channels}}}"#)).await;
    assert!(reply.expect(422)["detail"][0]["msg"].as_str().unwrap().contains("it has 1000001"));
    let reply = batch(format!(r#"{{"messages":[],"more":{channels}}}"#)).await;
    assert_eq!(places(&reply), ["body.more", "body.messages"]);
    // As many as a body may have, none of them known.
    let unknown = (0..1000).map(|number| format!(r#""{}{number}":1"#, "x".repeat(60))).collect::<Vec<_>>();
    let reply = server.client.post(&format!("/app/{app}/msg"), format!("{{{}}}", unknown.join(","))).await;
    assert_eq!(places(&reply).len(), 21);
    assert!(reply.body.len() < 16 << 10, "{}", reply.body.len());
    // Of those that are looked at one by one the first are named.
    let names: Vec<_> = (0..500).map(|number| format!("no name {number}")).collect();
    let body = json!({"url": url, "eventTypes": names}).to_string();
    let reply = server.client.post(&format!("/app/{app}/endpoint"), body).await;
    assert_eq!(places(&reply).len(), 21);
    let detail = reply.json();
    assert_eq!(detail["detail"][19]["loc"], json!(["body", "eventTypes", "[19]"]));
    assert_eq!(detail["detail"][20]["msg"], "and 480 more problems that are not listed");
    // Long invalid values are not repeated in full.
    let long = "x".repeat(100_000);
    let body = json!({"name": "a", "metadata": {long.as_str(): 1}}).to_string();
    assert!(server.client.post("/app", body).await.body.len() < 1000);
    let body = json!({"eventType": "a", "payload": {}, "deliverAt": long}).to_string();
    assert!(server.client.post(&format!("/app/{app}/msg"), body).await.body.len() < 5000);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn an_empty_id_is_not_found_by_any_method() {
    let server = Running::start().await;
    let document = server.client.get("/openapi.json").await.expect(200);
    let mut asked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some((before, _)) = path.strip_suffix('}').and_then(|path| path.rsplit_once('{')) else {
            continue;
        };
        let Some(path) = before.strip_prefix("/api/v1") else { continue };
        // Whatever the segments before contain.
        let path: Vec<_> =
            path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
        for (method, operation) in operations.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let body = if method == Method::GET { "" } else { "{}" };
            let path = path.join("/");
            let reply = server.client.send(method.clone(), &path, &[], body.into()).await;
            let documented = operation["responses"].get(reply.status.as_str()).is_some();
            assert!(documented, "{method} {path}: {} {:?}", reply.status, reply.body);
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked}");
    for path in ["/policy/", "/app/", "/event-type//"] {
        let reply = server.client.put(path, "{}").await;
        says(&reply, 404, "not_found");
    }
}

#[tokio::test]
async fn an_invalid_message_does_not_create_its_application() {
    let server = Running::start().await;
    let schema = json!({"1": {"type": "object", "required": ["amount"]}});
    let described = json!({"description": "", "schemas": schema, "validate": true});
    server.client.put("/event-type/strict", described.to_string()).await.expect(201);
    let inline = json!({"name": "Shop", "uid": "shop"});
    let send = async |more: Value| {
        let mut body = json!({"eventType": "a", "payload": {}, "application": inline});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.client.post("/app/shop/msg", body.to_string()).await
    };
    for (wrong, place) in [
        (json!({"eventType": "a b"}), "body.eventType"),
        (json!({"payload": 5}), "body.payload"),
        (json!({"eventType": "strict"}), "body.payload"),
        (json!({"deliverAt": "2999-01-01T00:00:00Z"}), "body.deliverAt"),
        (json!({"application": {"uid": "shop"}}), "body.application.name"),
    ] {
        let refused = send(wrong.clone()).await;
        refused.expect(422);
        assert!(places(&refused)[0].starts_with(place), "{wrong}: {:?}", places(&refused));
        server.client.get("/app/shop").await.expect(404);
    }
    // Without any credentials the answer says so.
    send(json!({"eventType": "a b", "application": null})).await.expect(404);
    server.client.post("/app/shop/msg", "no json").await.expect(404);
    send(json!({"eventType": "strict", "payload": {"amount": 1}})).await.expect(202);
    server.client.get("/app/shop").await.expect(200);
}

#[tokio::test]
async fn a_change_of_an_endpoint_has_its_event_types_once() {
    let server = Running::start().await;
    let app = server.application().await;
    server.event_type("a").await;
    server.event_type("b").await;
    let path = format!("/app/{app}/endpoint/e");
    server.endpoint(&app, json!({"uid": "e", "eventTypes": ["a"]})).await;
    let both = json!({"eventTypes": ["a"], "filterTypes": ["b"]});
    let refused = server.client.patch(&path, both.to_string()).await;
    refused.expect(422);
    assert_eq!(places(&refused), ["body.eventTypes"]);
    assert_eq!(server.client.get(&path).await.expect(200)["eventTypes"], json!(["a"]));
    let older = server.client.patch(&path, json!({"filterTypes": ["b"]}).to_string()).await.expect(200);
    assert_eq!(older["eventTypes"], json!(["b"]));
    let cleared = server.client.patch(&path, json!({"filterTypes": null}).to_string()).await.expect(200);
    assert_eq!(cleared["eventTypes"], Value::Null);
}

#[tokio::test]
async fn times_are_valid_until_the_end_of_the_year_9999() {
    let server = Running::start().await;
    let app = server.application().await;
    server.message(&app, "a").await;
    for last in [
        "9999-12-30T21:59:59Z",
        "9999-12-30T22:00:01Z",
        "9999-12-31T23:59:59.999Z",
        "9999-12-31T23:59:59%2B00:00",
    ] {
        for path in [
            format!("/app/{app}/msg?after=2020-01-01T00:00:00Z&before={last}"),
            format!("/audit?before={last}"),
        ] {
            let page = server.client.get(&path).await.expect(200);
            assert!(!page["data"].as_array().unwrap().is_empty(), "{path}: {page}");
        }
    }
    for wrong in ["9999-12-31", "9999-12-31T23:59:59", "9999-12-32T00:00:00Z", "10000-01-01T00:00:00Z"] {
        server.client.get(&format!("/app/{app}/msg?before={wrong}")).await.expect(422);
    }
    // It is a moment, but too far ahead: the answer says that.
    let body = json!({"eventType": "a", "payload": {}, "deliverAt": "9999-12-31T23:59:59Z"});
    let refused = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(422);
    assert!(refused["detail"][0]["msg"].as_str().unwrap().contains("366"), "{refused}");
}
