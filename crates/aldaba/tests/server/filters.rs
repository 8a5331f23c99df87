//! Endpoints that want only some messages, by what is in them.

use crate::receiver::Receiver;
use crate::running::Running;
use serde_json::{Value, json};

/// Sends a message with this payload and these fields beside it; its id.
async fn send(server: &Running, app: &str, payload: &str, more: Value) -> String {
    let mut fields = more.as_object().unwrap().clone();
    fields.entry("eventType").or_insert(json!("invoice.paid"));
    let fields = Value::Object(fields).to_string();
    let body = format!("{},\"payload\":{payload}}}", fields.strip_suffix('}').unwrap());
    let sent = server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    sent["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_goes_to_the_endpoints_whose_filters_it_passes() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    for (path, filter) in [
        ("/all", Value::Null),
        ("/large", json!({"payload": "$.amount", "gte": 100})),
        ("/eu", json!({"all": [{"tag": "eu"}, {"not": {"payload": "$.test", "eq": true}}]})),
        ("/south", json!({"header": "X-Region", "in": ["south", "east"]})),
        ("/invoices", json!({"any": [{"eventType": {"startsWith": "invoice."}}, {"channel": "money"}]})),
    ] {
        server.endpoint(&app, json!({"url": receiver.url(path), "filter": filter})).await;
    }
    for (payload, more, paths) in [
        (r#"{"amount": 99}"#, json!({}), vec!["/all", "/invoices"]),
        (r#"{"amount": 1e2}"#, json!({"eventType": "user.left"}), vec!["/all", "/large"]),
        (r#"{"amount": "100"}"#, json!({"tags": ["eu"]}), vec!["/all", "/eu", "/invoices"]),
        (r#"{"test": true}"#, json!({"tags": ["eu"], "eventType": "a"}), vec!["/all"]),
        ("{}", json!({"headers": {"x-region": "south"}, "eventType": "a"}), vec!["/all", "/south"]),
        ("{}", json!({"channels": ["money"], "eventType": "a"}), vec!["/all", "/invoices"]),
        (
            r#"{"amount": 7, "amount": 100000000000000000000000001}"#,
            json!({"eventType": "a"}),
            vec!["/all", "/large"],
        ),
    ] {
        send(&server, &app, payload, more).await;
        let mut arrived = Vec::new();
        for _ in &paths {
            let arrival = receiver.next().await;
            assert_eq!(arrival.body, payload);
            assert!(!arrival.headers.contains_key("x-region"), "headers of messages are not sent");
            arrived.push(arrival.path);
        }
        arrived.sort_unstable();
        assert_eq!(arrived, paths, "{payload}");
    }
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_gets_nothing_says_which_condition_did_not_hold() {
    let server = Running::start().await;
    let app = server.application().await;
    let filter = json!({"all": [{"tag": "eu"}, {"payload": "$.amount", "gte": 100}]});
    server.endpoint(&app, json!({"uid": "large", "filter": filter})).await;
    let message = send(&server, &app, r#"{"amount": 5}"#, json!({"tags": ["eu"]})).await;
    let path = format!("/app/{app}/msg/{message}/endpoint");
    assert_eq!(server.client.get(&path).await.expect(200)["data"], json!([]));
    let told = server.client.get(&format!("{path}?all=true")).await.expect(200);
    let one = &told["data"][0];
    assert_eq!(one["reason"], "filtered", "{one}");
    assert_eq!(
        one["explanation"],
        "Not sent: the endpoint's filter keeps it back. At all[1].payload: `$.amount` is 5, and the filter asks \
         for at least 100 (as it is now)"
    );
    // As it is now, it would pass.
    server.client.patch(&format!("/app/{app}/endpoint/large"), r#"{"filter": null}"#).await.expect(200);
    let told = server.client.get(&format!("{path}?all=true")).await.expect(200);
    assert_eq!(told["data"][0]["reason"], "subscription_changed");
    server.stop().await;
}

#[tokio::test]
async fn a_filter_is_shown_as_it_was_given_and_can_be_changed_and_cleared() {
    let server = Running::start().await;
    let app = server.application().await;
    let plain = server.endpoint(&app, json!({})).await;
    assert_eq!(plain.get("filter"), Some(&Value::Null));
    let list = format!("/app/{app}/endpoint");
    let exact = r#"{"payload":"$.id","eq":123456789012345678901234567890}"#;
    let body = format!("{{\"url\":\"https://example.com\",\"uid\":\"mine\",\"filter\": {exact} }}");
    let made = server.client.post(&list, body).await;
    made.expect(201);
    let holds = |body: &[u8], text: &str| {
        let body = std::str::from_utf8(body).unwrap();
        assert!(body.contains(&format!("\"filter\":{text},")), "{body}");
    };
    holds(&made.body, exact);
    let mine = format!("{list}/mine");
    let changed = server.client.patch(&mine, r#"{"description": "other"}"#).await;
    changed.expect(200);
    holds(&changed.body, exact);
    let exact = r#"{"payload":"$.id","lt":1.50}"#;
    let changed = server.client.patch(&mine, format!("{{\"filter\": {exact}}}")).await;
    changed.expect(200);
    holds(&changed.body, exact);
    holds(&server.client.get(&mine).await.body, exact);
    let cleared = server.client.patch(&mine, r#"{"filter": null}"#).await.expect(200);
    assert_eq!(cleared["filter"], Value::Null);
    let put = format!("{{\"url\":\"https://example.com\",\"uid\":\"mine\",\"filter\":{exact}}}");
    holds(&server.client.put(&mine, put).await.body, exact);
    let without = r#"{"url":"https://example.com","uid":"mine"}"#;
    assert_eq!(server.client.put(&mine, without).await.expect(200)["filter"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn a_bad_filter_is_refused_with_its_places_and_what_is_allowed() {
    let server = Running::start().await;
    let app = server.application().await;
    let list = format!("/app/{app}/endpoint");
    server.endpoint(&app, json!({"uid": "mine", "filter": {"tag": "eu"}})).await;
    let deep = (0..200).fold(json!({"tag": "a"}), |inner, _| json!({"not": inner}));
    for (filter, loc, why) in [
        (json!(1), json!(["body", "filter"]), "expected an object"),
        (json!([]), json!(["body", "filter"]), "expected an object"),
        (json!({}), json!(["body", "filter"]), "expected one of all, any, not"),
        (
            json!({"all": [{"tag": "a"}, {"payload": "$.a", "is": 1}]}),
            json!(["body", "filter", "all", "[1]", "is"]),
            "expected one of eq, ne",
        ),
        (
            json!({"not": {"payload": "amount", "eq": 1}}),
            json!(["body", "filter", "not", "payload"]),
            "a path begins with `$`",
        ),
        (
            json!({"payload": "$.a", "in": [1, {}]}),
            json!(["body", "filter", "in", "[1]"]),
            "a text, a number, true, false or null",
        ),
    ] {
        let body = json!({"url": "https://example.com", "filter": filter}).to_string();
        let change = json!({"filter": filter}).to_string();
        for reply in [
            server.client.post(&list, body.clone()).await,
            server.client.put(&format!("{list}/mine"), body).await,
            server.client.patch(&format!("{list}/mine"), change).await,
        ] {
            let problem = &reply.expect(422)["detail"][0];
            assert_eq!(problem["loc"], loc, "{problem}");
            assert!(problem["msg"].as_str().unwrap().contains(why), "{problem}");
        }
    }
    let twice = r#"{"url":"https://example.com","filter":{"tag":"a"},"filter":{"tag":"b"}}"#;
    for reply in [
        server.client.post(&list, twice).await,
        server.client.patch(&format!("{list}/mine"), twice).await,
        server.client.post(&list, json!({"url": "https://example.com", "filter": deep}).to_string()).await,
    ] {
        reply.expect(422);
    }
    // The address and the filter are both wrong, and both are named.
    let both = server.client.post(&list, r#"{"url":"ftp://a","filter":{"tag":1}}"#).await.expect(422);
    assert_eq!(both["detail"].as_array().unwrap().len(), 2, "{both}");
    let mine = server.client.get(&format!("{list}/mine")).await.expect(200);
    assert_eq!(mine["filter"], json!({"tag": "eu"}), "nothing was changed");
    server.stop().await;
}

#[tokio::test]
async fn a_changed_filter_holds_for_the_next_message() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "filter": {"tag": "a"}})).await;
    let path = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    for round in ["b", "c", "b", "c"] {
        server.client.patch(&path, json!({"filter": {"tag": round}}).to_string()).await.expect(200);
        let payload = format!("{{\"round\":\"{round}\"}}");
        send(&server, &app, &payload, json!({"tags": ["d"]})).await;
        send(&server, &app, &payload, json!({"tags": [round]})).await;
        assert_eq!(receiver.next().await.body, payload);
    }
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn what_a_filter_has_kept_back_is_not_missing_until_it_is_changed() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let filter = json!({"header": "x-region", "eq": "south"});
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "filter": filter})).await;
    let path = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    send(&server, &app, r#"{"n":1}"#, json!({"headers": {"x-region": "north"}})).await;
    send(&server, &app, r#"{"n":2}"#, json!({})).await;
    let replay = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    server.client.post(&format!("{path}/replay-missing"), replay.clone()).await.expect(202);
    receiver.nothing_more().await;
    let wider = json!({"filter": {"header": "x-region", "exists": true}});
    server.client.patch(&path, wider.to_string()).await.expect(200);
    server.client.post(&format!("{path}/replay-missing"), replay).await.expect(202);
    assert_eq!(receiver.next().await.body, r#"{"n":1}"#);
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn headers_of_a_message_are_kept_and_bad_ones_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let body = |headers: Value| json!({"eventType": "a", "payload": {}, "headers": headers}).to_string();
    let sent = server.client.post(&path, body(json!({"X-Region": "Süd", "x-empty": ""}))).await.expect(202);
    let kept = json!({"x-empty": "", "x-region": "Süd"});
    assert_eq!(sent["headers"], kept);
    let shown = server.client.get(&format!("{path}/{}", sent["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(shown["headers"], kept);
    assert_eq!(server.client.post(&path, body(Value::Null)).await.expect(202)["headers"], Value::Null);
    let many: serde_json::Map<_, _> = (0..17).map(|n| (format!("x-{n}"), json!("a"))).collect();
    for (headers, loc) in [
        (json!([]), json!(["body", "headers"])),
        (json!("a"), json!(["body", "headers"])),
        (json!(many), json!(["body", "headers"])),
        (json!({"x-a": 1}), json!(["body", "headers", "x-a"])),
        (json!({"x-a": null}), json!(["body", "headers", "x-a"])),
        (json!({"x a": "b"}), json!(["body", "headers", "x a"])),
        (json!({"": "b"}), json!(["body", "headers", ""])),
        (json!({"x-a": "b\r\nc"}), json!(["body", "headers", "x-a"])),
        (json!({"x-a": "\u{0}"}), json!(["body", "headers", "x-a"])),
        (json!({"x-a": "b".repeat(1025)}), json!(["body", "headers", "x-a"])),
        (json!({"X-A": "b", "x-a": "c"}), json!(["body", "headers", "x-a"])),
    ] {
        let problem = server.client.post(&path, body(headers.clone())).await.expect(422);
        assert_eq!(problem["detail"][0]["loc"], loc, "{headers}: {problem}");
    }
    assert_eq!(server.stored(&app).await[2], 2);
    server.stop().await;
}

#[tokio::test]
async fn a_condition_inside_seven_others_is_taken_and_inside_eight_is_not() {
    let server = Running::start().await;
    let app = server.application().await;
    let nested = |nots: usize| (0..nots).fold(json!({"tag": "a"}), |inner, _| json!({"not": inner}));
    server.endpoint(&app, json!({"filter": nested(7)})).await;
    let body = json!({"url": "https://example.com", "filter": nested(8)}).to_string();
    let refused = server.client.post(&format!("/app/{app}/endpoint"), body).await.expect(422);
    assert!(refused["detail"][0]["msg"].as_str().unwrap().contains("8 levels"), "{refused}");
}
