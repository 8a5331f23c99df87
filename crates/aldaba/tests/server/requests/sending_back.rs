//! What was read can be changed and sent back, as often as anybody likes.

use crate::requests::bad_input::places;
use crate::support::running::Running;
use http::Method;
use serde_json::{Value, json};

fn with(shown: &Value, more: Value) -> String {
    let mut body = shown.clone();
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body.to_string()
}

#[tokio::test]
async fn of_two_names_for_a_rate_the_one_that_changes_it_counts() {
    let server = Running::start().await;
    let app = server.application().await;
    server.client.patch(&format!("/app/{app}"), r#"{"uid": "acme", "throttleRate": 5}"#).await.expect(200);
    server.endpoint(&app, json!({"uid": "door", "throttleRate": 5})).await;
    for path in ["/app/acme".to_owned(), format!("/app/{app}/endpoint/door")] {
        let shown = server.client.get(&path).await.expect(200);
        assert_eq!((&shown["throttleRate"], &shown["rateLimit"]), (&json!(5), &json!(5)), "{path}");
        for method in [Method::PUT, Method::PATCH] {
            let send = async |body: String| server.client.send(method.clone(), &path, &[], body.into()).await;
            for (changed, expected) in [
                (json!({"rateLimit": 7}), 7),
                (json!({"throttleRate": 8, "rateLimit": 7}), 8),
                (json!({"throttleRate": 5, "rateLimit": 5}), 5),
                // Null by one name alone says nothing: SDKs send it unasked.
                (json!({"rateLimit": null}), 5),
                (json!({"throttleRate": null}), 5),
            ] {
                let after = send(with(&shown, changed.clone())).await.expect(200);
                assert_eq!(
                    (&after["throttleRate"], &after["rateLimit"]),
                    (&json!(expected), &json!(expected)),
                    "{method} {path} {changed}"
                );
            }
            let refused = send(with(&shown, json!({"throttleRate": 8, "rateLimit": 9}))).await;
            assert_eq!(places(&refused), ["body.throttleRate"], "{method} {path}");
            let why = refused.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
            assert!(why.contains("`rateLimit`"), "{why}");
            let none = json!({"throttleRate": null, "rateLimit": null});
            assert_eq!(send(with(&shown, none)).await.expect(200)["throttleRate"], Value::Null);
            send(with(&shown, json!({}))).await.expect(200);
        }
    }
    // Nothing is there yet that could tell which of the two is meant.
    let new = json!({"name": "n", "url": "https://example.com/", "throttleRate": 1, "rateLimit": 2});
    for (path, other) in [("/app".to_owned(), "url"), (format!("/app/{app}/endpoint"), "name")] {
        let mut body = new.clone();
        body.as_object_mut().unwrap().remove(other);
        let refused = server.client.post(&path, body.to_string()).await;
        assert_eq!(places(&refused), ["body.throttleRate"], "{path}");
        body["rateLimit"] = json!(1);
        assert_eq!(server.client.post(&path, body.to_string()).await.expect(201)["throttleRate"], 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_verified_source_can_be_sent_back_and_stays_verified() {
    let server = Running::start().await;
    for (kind, config) in [
        ("github", json!({"secret": "it's a secret to all"})),
        ("hmac", json!({"secret": "s", "header": "x-sign", "encoding": "hex", "algorithm": "sha256"})),
    ] {
        let new = json!({"name": "s", "uid": kind, "type": kind, "config": config});
        let made = server.client.post("/ingest/source", new.to_string()).await.expect(201);
        assert_eq!(made["verified"], true, "{kind}");
        assert!(made["config"].get("secret").is_none(), "{made}");
        let path = format!("/ingest/source/{kind}");
        for method in [Method::PATCH, Method::PUT] {
            let body = with(&made, json!({"name": "other"}));
            let after = server.client.send(method.clone(), &path, &[], body.into()).await.expect(200);
            assert_eq!(
                (&after["name"], &after["verified"], &after["config"]),
                (&json!("other"), &json!(true), &made["config"]),
                "{method} {kind}"
            );
        }
        // What is sent back with another type says nothing of how that one is verified.
        let other = with(&made, json!({"type": "stripe"}));
        server.client.patch(&path, other).await.expect(422);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_put_without_a_uid_makes_one_thing_however_often_it_comes() {
    let server = Running::start().await;
    let app = server.application().await;
    for (path, body) in [
        ("/app/shop".to_owned(), json!({"name": "n", "uid": null})),
        (format!("/app/{app}/endpoint/door"), json!({"url": "https://example.com/", "uid": null})),
        ("/ingest/source/spring".to_owned(), json!({"name": "n", "type": "generic-webhook", "uid": null})),
    ] {
        let made = server.client.put(&path, body.to_string()).await.expect(201);
        for _ in 0..2 {
            let again = server.client.put(&path, body.to_string()).await.expect(200);
            assert_eq!((&again["id"], &again["uid"]), (&made["id"], &made["uid"]), "{path}");
        }
        // Under its id it can lose the uid.
        let (folder, name) = path.rsplit_once('/').unwrap();
        assert_eq!(made["uid"], name);
        let by_id = format!("{folder}/{}", made["id"].as_str().unwrap());
        let bare = server.client.put(&by_id, body.to_string()).await.expect(200);
        assert!(bare.get("uid").is_none_or(Value::is_null), "{bare}");
    }
    server.stop().await;
}
