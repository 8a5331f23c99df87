//! Endpoints that get only messages with certain contents.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Sends a message with this payload and these fields; returns its id.
async fn send(server: &Running, app: &str, payload: &str, more: Value) -> String {
    let mut fields = more.as_object().unwrap().clone();
    fields.entry("eventType").or_insert(json!("invoice.paid"));
    let fields = Value::Object(fields).to_string();
    let body = format!("{},\"payload\":{payload}}}", fields.strip_suffix('}').unwrap());
    let sent = server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    sent["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_is_sent_to_endpoints_whose_filters_match() {
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
async fn a_filtered_message_names_the_failed_condition() {
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
    // The present filter would match it.
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
async fn an_invalid_filter_is_refused_with_its_paths_and_the_allowed_values() {
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
async fn filtered_messages_count_as_missing_only_after_the_filter_changes() {
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
async fn headers_of_a_message_are_stored_and_invalid_ones_refused() {
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

/// The longest that another request took while this one was under way. Server and test have one thread for all of them.
#[expect(clippy::disallowed_methods, reason = "this measures")]
async fn longest_wait<T>(server: &Running, request: impl Future<Output = T>) -> (Duration, T) {
    let (mut request, mut longest) = (std::pin::pin!(request), Duration::ZERO);
    loop {
        let begun = Instant::now();
        let ping = async {
            server.client.get("/health/ping").await.expect(204);
            // The pace of the measurement.
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        tokio::select! {
            biased;
            done = &mut request => return (longest.max(begun.elapsed()), done),
            () = ping => longest = longest.max(begun.elapsed()),
        }
    }
}

/// So much that a request waits because of others' work, on a machine that has much else to do.
const A_LITTLE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn slow_filters_do_not_delay_other_requests() {
    let server = Running::start().await;
    let app = server.application().await;
    for n in 0..100 {
        let condition = |m: usize| json!({"payload": "$.l[*]", "contains": format!("z{n}.{m}")});
        let filter = json!({"any": (0..60).map(condition).collect::<Vec<_>>()});
        server.endpoint(&app, json!({"uid": format!("e{n}"), "filter": filter})).await;
    }
    let mut items = vec!["y".repeat(1000); 1000];
    items[999].push_str("z42.17.");
    let payload = json!({ "l": items }).to_string();
    let (longest, message) = longest_wait(&server, send(&server, &app, &payload, json!({}))).await;
    assert!(longest < A_LITTLE, "sending: {longest:?}");
    let path = format!("/app/{app}/msg/{message}/endpoint");
    let told = server.client.get(&path).await.expect(200);
    assert_eq!((told["data"].as_array().unwrap().len(), &told["data"][0]["uid"]), (1, &json!("e42")));
    let all = format!("{path}?all=true&limit=250");
    let (longest, told) = longest_wait(&server, server.client.get(&all)).await;
    assert!(longest < A_LITTLE, "explaining: {longest:?}");
    let told = told.expect(200);
    let filtered = told["data"].as_array().unwrap().iter().filter(|one| one["reason"] == "filtered");
    assert_eq!(filtered.count(), 99);
    let why = told["data"][0]["explanation"].as_str().unwrap();
    assert!(why.contains("none of 60 alternatives holds: `$.l[*]` has 1000 values"), "{why}");
    server.stop().await;
}

#[tokio::test]
async fn filters_that_are_too_much_together_are_refused_when_they_are_given() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/endpoint");
    let filter = |n: usize| {
        let condition = |m: usize| {
            let values: Vec<_> = (0..8).map(|value| json!(format!("{n}.{m}.{value}"))).collect();
            json!({"payload": "$.l[*]", "in": values})
        };
        json!({"any": (0..64).map(condition).collect::<Vec<_>>()})
    };
    let body = |uid: &str, filter: &Value| {
        json!({"url": "https://example.com/", "uid": uid, "filter": filter}).to_string()
    };
    let mut taken = 0;
    let refused = loop {
        let made = server.client.post(&path, body(&format!("e{taken}"), &filter(taken))).await;
        if made.status != 201 {
            break made;
        }
        taken += 1;
        assert!(taken < 100, "none is refused");
    };
    assert!(taken > 10, "{taken}");
    let refused = refused.expect(422);
    let problem = &refused["detail"][0];
    assert_eq!(problem["loc"], json!(["body", "filter"]));
    let text = problem["msg"].as_str().unwrap();
    assert!(text.contains("those of all endpoints of the application may take 10000000 looks"), "{text}");
    // Equal conditions count once, cheap ones fit, and endpoints without a filter always do.
    server.client.post(&path, body("same", &filter(0))).await.expect(201);
    server.client.post(&path, body("small", &json!({"payload": "$.a", "eq": 1}))).await.expect(201);
    server.client.post(&path, body("none", &Value::Null)).await.expect(201);
    // Nor can it be reached by a change, which is otherwise free.
    let change = json!({"filter": filter(500)}).to_string();
    server.client.patch(&format!("{path}/small"), change.clone()).await.expect(422);
    server.client.patch(&format!("{path}/e1"), json!({"description": "x"}).to_string()).await.expect(200);
    server.client.patch(&format!("{path}/e1"), change.clone()).await.expect(200);
    server.client.patch(&format!("{path}/e2"), json!({"filter": null}).to_string()).await.expect(200);
    server
        .client
        .patch(&format!("{path}/small"), json!({"filter": filter(501)}).to_string())
        .await
        .expect(200);
    server
        .client
        .patch(&format!("{path}/none"), json!({"filter": filter(502)}).to_string())
        .await
        .expect(422);
    // A deleted endpoint frees its cost.
    server.client.delete(&format!("{path}/e3")).await.expect(204);
    server
        .client
        .patch(&format!("{path}/none"), json!({"filter": filter(502)}).to_string())
        .await
        .expect(200);
    // Other applications have their own.
    let other = server.application().await;
    server.client.post(&format!("/app/{other}/endpoint"), body("e", &filter(0))).await.expect(201);
    server.stop().await;
}

#[tokio::test]
async fn a_filter_that_is_too_much_alone_is_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let condition =
        |n: usize| json!({"payload": "$.l[*]", "in": (0..50).map(|m| n * 50 + m).collect::<Vec<_>>()});
    let filter = json!({"any": (0..40).map(condition).collect::<Vec<_>>()});
    let body = json!({"url": "https://example.com/", "filter": filter}).to_string();
    let refused = server.client.post(&format!("/app/{app}/endpoint"), body).await.expect(422);
    let text = refused["detail"][0]["msg"].as_str().unwrap();
    assert!(text.contains("this filter may take 2500000 looks") && text.contains("would take 6"), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn filters_that_come_at_once_are_counted_one_after_the_other() {
    let server = Running::start().await;
    let app = server.application().await;
    let create = |n: usize| {
        let values = |m: usize| (0..8).map(|v| json!(format!("{n}.{m}.{v}"))).collect::<Vec<_>>();
        let any: Vec<_> = (0..64).map(|m| json!({"payload": "$.l[*]", "in": values(m)})).collect();
        let body = json!({"url": "https://example.com/", "filter": {"any": any}}).to_string();
        let (client, path) = (&server.client, format!("/app/{app}/endpoint"));
        async move { client.post(&path, body).await.status }
    };
    let statuses = futures_util::future::join_all((0..40).map(create)).await;
    let made = statuses.iter().filter(|status| **status == 201).count();
    assert!((15..25).contains(&made), "{statuses:?}");
    server.stop().await;
}
