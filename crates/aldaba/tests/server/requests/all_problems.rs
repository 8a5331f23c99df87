//! All that is wrong with a body is said at once, and no field is given twice.

use crate::requests::bad_input::places;
use crate::requests::matrix::{ids_for, operations, tenant};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::{Value, json};

#[tokio::test]
async fn every_body_names_all_that_is_wrong_with_it() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({"uid": "door"})).await;
    let door = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    let replay = json!({
        "since": "soon", "until": 1, "channel": "a b", "tag": "", "ratePerSecond": 0, "dryRun": null, "eventTypes": ["a b"],
    });
    let in_replay = "since until eventTypes.[0] channel tag ratePerSecond dryRun";
    let mut bulk = replay.clone();
    bulk["status"] = json!(3);
    bulk["statusCodeClass"] = json!(250);
    for (path, body, wrong) in [
        (
            format!("/auth/app-portal-access/{app}"),
            json!({"application": {"uid": "a b"}, "capabilities": ["All"], "expiry": 1, "readOnly": 1, "sessionId": ""}),
            "application.name application.uid capabilities.[0] expiry readOnly sessionId",
        ),
        (
            format!("/auth/app/{app}/expire-all"),
            json!({"expiry": -1, "sessionIds": [1]}),
            "expiry sessionIds.[0]",
        ),
        (
            "/api-key".into(),
            json!({"name": "", "scope": "all", "appId": 1, "expiresAt": "2020-01-01T00:00:00Z"}),
            "name scope appId expiresAt",
        ),
        (format!("{door}/recover"), replay.clone(), in_replay),
        (format!("{door}/bulk-replay"), bulk, &format!("{in_replay} status statusCodeClass")),
        (
            format!("/app/{app}/delivery/discard"),
            json!({"state": "delivered", "endpoint": 1, "eventType": "a b", "reason": "none", "before": "soon"}),
            "state endpoint eventType reason before",
        ),
        (
            format!("/app/{app}/job"),
            json!({"jobId": " a", "status": "done", "error": 1, "webhookUrl": "ftp://example.com", "completedAt": "x"}),
            "jobId jobType status error webhookUrl completedAt",
        ),
        (
            format!("/app/{app}/dispatch"),
            json!({"url": "ftp://example.com", "eventType": "a b", "policy": "none", "profile": "none", "headers": {"host": "a"},
                   "secret": "x", "eventId": "msg_1", "deliverAt": "x", "tags": []}),
            "url payload eventType policy profile headers.host secret eventId deliverAt tags",
        ),
        (
            format!("/app/{app}/msg"),
            json!({"eventType": "a b", "payload": {}, "version": -1, "headers": {"a b": "c"}, "deliverAt": "x",
                   "transformationsParams": {"rawPayload": 1, "headers": {"a": "b"}, "raw": 1}, "application": {"uid": 1}}),
            "eventType version headers.a b deliverAt application.name application.uid transformationsParams.headers \
             transformationsParams.raw transformationsParams.rawPayload",
        ),
        (
            format!("/app/{app}/msg/search"),
            json!({"limit": 0, "channel": "a b", "event_types": ["a b"], "before": "x", "with_content": 1}),
            "limit channel event_types.[0] before with_content",
        ),
        (
            "/event-type/import/openapi".into(),
            json!({"spec": [], "specRaw": 1, "dryRun": 1, "replaceAll": null}),
            "spec specRaw dryRun replaceAll",
        ),
        (
            "/ingest/source".into(),
            json!({"name": "", "type": "hmac", "config": {"secret": 1, "colour": "red"}, "toleranceSeconds": 0}),
            "name config.secret config.colour toleranceSeconds",
        ),
    ] {
        let reply = server.client.post(&path, body.to_string()).await;
        reply.expect(422);
        let mut expected: Vec<_> = wrong.split(' ').map(|place| format!("body.{place}")).collect();
        if let Some(at) = expected.iter().position(|place| place == "body.headers.a") {
            expected[at] = "body.headers.a b".into();
            expected.remove(at + 1);
        }
        let found = places(&reply);
        for place in &expected {
            assert!(found.contains(place), "{path}: {place} is not among {found:?}");
        }
    }
    server.stop().await;
}

/// A body with its first field given once more.
fn repeated(body: &Value) -> (String, String) {
    let (name, value) = body.as_object().unwrap().iter().next().expect("an example has a field");
    let text = body.to_string();
    (name.clone(), format!("{}, {}: {value}}}", &text[..text.len() - 1], json!(name)))
}

#[tokio::test]
async fn a_field_that_is_given_twice_is_refused_by_every_route() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let ids = tenant(&server.client, &receiver).await;
    let mut refused = 0;
    for operation in operations(&server).await.iter().filter(|operation| operation.has_body) {
        let example = &operation.described["requestBody"]["content"]["application/json"]["example"];
        let (name, body) = repeated(example);
        let path = operation.filled(&ids_for(operation, &ids));
        let reply = server.client.send(operation.method.clone(), &path, &[], body.into()).await;
        assert_eq!(reply.status, 422, "{} {path}: {:?}", operation.method, reply.body);
        assert!(reply.json().to_string().contains(&name), "{} {path}: {}", operation.method, reply.json());
        refused += 1;
    }
    assert!(refused > 40, "{refused}");
    let app = server.application().await;
    for (path, body, place) in [
        (
            "/app".to_owned(),
            r#"{"name": "n", "metadata": {"a": "1", "b": "2", "a": "3"}}"#,
            "body.metadata.a",
        ),
        (
            format!("/app/{app}/endpoint"),
            r#"{"url": "https://example.com/", "headers": {"x-a": "1", "x-a": "2"}}"#,
            "body.headers.x-a",
        ),
        (
            "/ingest/source".into(),
            r#"{"name": "n", "type": "github", "config": {"secret": "a", "secret": "b"}}"#,
            "body.config",
        ),
    ] {
        let reply = server.client.post(&path, body).await;
        assert!(places(&reply).contains(&place.to_owned()), "{path}: {:?}", places(&reply));
    }
    // A payload is passed on as it came.
    let message = r#"{"eventType": "a", "payload": {"a": 1, "a": 2}}"#;
    server.client.post(&format!("/app/{app}/msg"), message).await.expect(202);
    server.stop().await;
}

#[tokio::test]
async fn the_names_that_were_meant_are_looked_for_in_few_messages_of_a_batch() {
    let server = Running::start().await;
    let app = server.application().await;
    let fields = (0..21).map(|n| (format!("eventTypo{n}"), json!(1)));
    let message = Value::Object(fields.collect());
    let batch = json!({"messages": vec![message; 1000]}).to_string();
    let reply = server.client.post(&format!("/app/{app}/msg/batch"), batch).await.expect(202);
    let results = reply["results"].as_array().unwrap();
    let problems = |result: &Value| result["error"]["detail"].as_array().unwrap().clone();
    assert_eq!((results.len(), &reply["accepted"]), (1000, &json!(0)));
    assert_eq!(problems(&results[0]).len(), 21);
    assert!(problems(&results[0])[0]["msg"].as_str().unwrap().contains("did you mean"));
    let last = problems(&results[999]);
    assert_eq!(last.len(), 2, "{last:?}");
    assert_eq!(last[0]["msg"], "unknown field");
    assert_eq!(last[1]["msg"], "and 22 more problems that are not listed");
    let explained = results.iter().filter(|result| problems(result).len() > 2).count();
    assert_eq!(explained, 50);
    server.stop().await;
}

#[tokio::test]
async fn a_moment_before_the_year_0_is_none() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({})).await;
    let door = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    for moment in ["-000001-12-31T23:59:59Z", "-009999-01-01T00:00:00Z", "0000-01-01T00:00:00%2B12:00"] {
        for path in [format!("{door}/stats"), format!("/app/{app}/stats/attempts")] {
            for name in ["since", "until"] {
                let reply = server.client.get(&format!("{path}?{name}={moment}")).await;
                assert_eq!(places(&reply), [format!("query.{name}")], "{path} {moment}");
            }
        }
        let moment = moment.replace("%2B", "+");
        let body = json!({"since": moment}).to_string();
        assert_eq!(places(&server.client.post(&format!("{door}/recover"), body).await), ["body.since"]);
    }
    server.stop().await;
}
