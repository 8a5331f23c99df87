//! After an erasure nothing of the application is left, and nothing of others is touched.

use crate::support::canaries::Canaries;
use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use crate::support::waiting::wait_until;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Value, json};
use std::path::Path;

pub(super) async fn until_over(client: &Client, task: &Value) -> Value {
    let path = format!("/background-task/{}", task["id"].as_str().unwrap());
    client.get_until(&path, |task| task["status"] == "finished").await
}

/// An application with canaries wherever a customer's data can be.
async fn application(server: &Running, canaries: &mut Canaries, receiver: &mut Receiver) -> String {
    let (name, uid, plan) =
        (canaries.plant("app name"), canaries.plant("app uid"), canaries.plant("metadata"));
    let body = json!({"name": name, "uid": uid, "metadata": {"plan": plan}});
    let app =
        server.client.post("/app", body.to_string()).await.expect(201)["id"].as_str().unwrap().to_owned();
    let email = format!("{}@example.com", canaries.plant("alert email"));
    server
        .client
        .patch(&format!("/app/{app}/alert-email"), json!({"email": email}).to_string())
        .await
        .expect(200);
    let (path, header, value) =
        (canaries.plant("url"), canaries.plant("header name"), canaries.plant("header value"));
    let more = json!({
        "url": receiver.url(&format!("/{path}")), "uid": canaries.plant("endpoint uid"),
        "description": canaries.plant("description"), "headers": {header: value},
        "ownerEmail": format!("{}@example.com", canaries.plant("owner")),
    });
    let endpoint = server.endpoint(&app, more).await["id"].as_str().unwrap().to_owned();
    let change = json!({"description": canaries.plant("changed")});
    server.client.patch(&format!("/app/{app}/endpoint/{endpoint}"), change.to_string()).await.expect(200);
    // Held back: it waits, and has to be ended first.
    let held = json!({"url": format!("https://{}.example.com/", canaries.plant("host")), "disabled": true, "whenDisabled": "hold"});
    server.endpoint(&app, held).await;
    for large in [false, true] {
        let filler = if large { "x".repeat(50_000) } else { String::new() };
        let body = json!({
            "eventType": "invoice.paid", "eventId": canaries.plant("event id"), "tags": [canaries.plant("tag")],
            "payload": {"secret": canaries.plant("payload"), "filler": filler, "end": canaries.plant("payload end")},
        });
        let sent = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
        receiver.next().await;
        server.client.attempt_id(&app, sent["id"].as_str().unwrap()).await;
    }
    let key = json!({"name": canaries.plant("key name"), "scope": "admin", "appId": app});
    let key =
        server.client.post("/api-key", key.to_string()).await.expect(201)["id"].as_str().unwrap().to_owned();
    let renamed = json!({"name": canaries.plant("renamed key")});
    server.client.patch(&format!("/api-key/{key}"), renamed.to_string()).await.expect(200);
    let session = json!({"sessionIds": [canaries.plant("session")], "expiry": 3600});
    server.client.post(&format!("/auth/app/{app}/expire-all"), session.to_string()).await.expect(204);
    let replay = json!({"since": "2020-01-01T00:00:00Z", "tag": canaries.plant("replay tag")});
    server
        .client
        .post(&format!("/app/{app}/endpoint/{endpoint}/recover"), replay.to_string())
        .await
        .expect(202);
    app
}

/// All values of all rows of the database, as bytes.
fn live_rows(data: &Path) -> Vec<(String, Vec<u8>)> {
    let database = Connection::open(data.join("aldaba.db")).unwrap();
    let tables: Vec<String> = database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .unwrap()
        .query_map((), |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(tables.len() > 25, "{tables:?}");
    let mut all = Vec::new();
    for table in tables {
        let mut bytes = Vec::new();
        let mut rows = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let width = rows.column_count();
        let mut rows = rows.query(()).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..width {
                if let ValueRef::Text(value) | ValueRef::Blob(value) = row.get_ref(column).unwrap() {
                    bytes.extend_from_slice(value);
                    bytes.push(b'\n');
                }
            }
        }
        all.push((table, bytes));
    }
    all
}

fn found(canaries: &Canaries, outputs: &[(String, Vec<u8>)]) -> Vec<String> {
    let outputs: Vec<_> = outputs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    canaries.found_in(&outputs)
}

#[tokio::test]
async fn after_an_erasure_no_row_and_no_file_has_anything_of_the_application_and_others_are_untouched() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let (mut canaries, mut others) = (Canaries::default(), Canaries::default());
    others.plant("so that the two have no name in common");
    let app = application(&server, &mut canaries, &mut receiver).await;
    let planted = found(&canaries, &live_rows(&server.data()));
    assert!(planted.len() > 10, "the search finds what is there: {planted:#?}");

    let counted = server.client.post(&format!("/app/{app}/erase"), r#"{"dryRun": true}"#).await.expect(200);
    assert_eq!(
        (
            &counted["messages"],
            &counted["deliveries"],
            &counted["attempts"],
            &counted["endpoints"],
            &counted["atLeast"]
        ),
        (&json!(2), &json!(4), &json!(2), &json!(2), &json!(false))
    );
    let task = server.client.post(&format!("/app/{app}/erase"), "").await.expect(202);
    assert_eq!((&task["task"], &task["data"]["appId"]), (&json!("application.erase"), &json!(app)));
    // At once nothing is accepted any more.
    server.client.get(&format!("/app/{app}")).await.expect(404);
    let body = json!({"eventType": "a", "payload": {}}).to_string();
    server.client.post(&format!("/app/{app}/msg"), body).await.expect(404);
    let task = until_over(&server.client, &task).await;
    let removed = &task["data"];
    assert_eq!(
        (
            &removed["messages"],
            &removed["deliveries"],
            &removed["attempts"],
            &removed["endpoints"],
            &removed["progress"]
        ),
        (&json!(2), &json!(4), &json!(2), &json!(2), &json!(1.0))
    );
    receiver.nothing_more().await;

    // The audit log still says who did what, without the values; and that there was an erasure, with its counts.
    let audit = server.client.get(&format!("/audit?app_id={app}&limit=250")).await.expect(200);
    let rows = audit["data"].as_array().unwrap();
    let actions: Vec<_> = rows.iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(&actions[..2], ["application.erased", "application.erase"], "{actions:?}");
    assert!(actions.contains(&"endpoint.create") && actions.contains(&"application.create"), "{actions:?}");
    assert_eq!(rows[0]["actor"]["kind"], "organization_token");
    let count = rows[0]["changes"].as_array().unwrap().iter().find(|change| change["field"] == "messages");
    assert_eq!(count.unwrap()["before"], 2);
    let listed = server.client.get("/background-task?task=application.erase").await.expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    server.client.post(&format!("/app/{app}/erase"), "").await.expect(404);

    assert_eq!(found(&canaries, &live_rows(&server.data())), Vec::<String>::new(), "rows");
    // Nor have free pages and the log anything, while the server runs.
    wait_until("the log was emptied", async || {
        std::fs::metadata(server.data().join("aldaba.db-wal")).is_ok_and(|log| log.len() < 1 << 20)
    })
    .await;
    let files = ["aldaba.db", "aldaba.db-wal"];
    let contents =
        || files.map(|file| (file.to_owned(), std::fs::read(server.data().join(file)).unwrap_or_default()));
    let left = found(&canaries, &contents());
    assert_eq!(left, Vec::<String>::new(), "files");

    // Another application goes on as before.
    let other = application(&server, &mut others, &mut receiver).await;
    let lines = super::exporting::lines(&server.client, &format!("/app/{other}/export")).await;
    assert_eq!(lines.last().unwrap()["counts"]["messages"], 2);
}

#[tokio::test]
async fn an_erasure_leaves_another_application_and_another_organization_as_they_are() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let (mut canaries, mut others) = (Canaries::default(), Canaries::default());
    others.plant("so that the two have no name in common");
    let other = application(&server, &mut others, &mut receiver).await;
    let stranger = server.client.with_token(&token("org_00000000000000000000000009z"));
    let theirs =
        stranger.post("/app", r#"{"name": "theirs"}"#).await.expect(201)["id"].as_str().unwrap().to_owned();
    let body = json!({"eventType": "a", "payload": {"is": "theirs"}}).to_string();
    stranger.post(&format!("/app/{theirs}/msg"), body).await.expect(202);
    let app = application(&server, &mut canaries, &mut receiver).await;
    let export = async |client: &Client, app: &str| {
        let mut lines = super::exporting::lines(client, &format!("/app/{app}/export")).await;
        lines.remove(0);
        lines
    };
    let before = (export(&server.client, &other).await, export(&stranger, &theirs).await);
    let audit_path = format!("/audit?app_id={other}&action=endpoint.update");
    let audit_before = server.client.get(&audit_path).await.expect(200);

    // Who may not erase it changes nothing.
    stranger.post(&format!("/app/{app}/erase"), "").await.expect(404);
    for (scope, of) in [("read", None), ("send", None), ("read", Some(&app)), ("admin", Some(&app))] {
        let key = json!({"name": "k", "scope": scope, "appId": of});
        let key = server.client.post("/api-key", key.to_string()).await.expect(201);
        let key = server.client.with_token(key["key"].as_str().unwrap());
        assert_eq!(key.post(&format!("/app/{app}/erase"), "").await.status, 403, "{scope} {of:?}");
    }
    let task = server.client.post(&format!("/app/{app}/erase"), "").await.expect(202);
    stranger.get(&format!("/background-task/{}", task["id"].as_str().unwrap())).await.expect(404);
    until_over(&server.client, &task).await;

    assert_eq!(found(&canaries, &live_rows(&server.data())), Vec::<String>::new());
    let after = (export(&server.client, &other).await, export(&stranger, &theirs).await);
    assert_eq!(before, after);
    let audit_after = server.client.get(&audit_path).await.expect(200);
    assert_eq!(audit_before["data"], audit_after["data"]);
    let message = json!({"eventType": "invoice.paid", "payload": {}}).to_string();
    server.client.post(&format!("/app/{other}/msg"), message).await.expect(202);
    receiver.next().await;
}

#[tokio::test]
async fn a_repeated_request_is_one_erasure_and_a_deleted_application_can_be_erased_by_its_id() {
    let server = Running::start().await;
    let app = server.application().await;
    server.message(&app, "a").await;
    server.client.delete(&format!("/app/{app}")).await.expect(204);
    let path = format!("/app/{app}/erase");
    let task = server.client.post_once(&path, "once", "").await.expect(202);
    until_over(&server.client, &task).await;
    let again = server.client.post_once(&path, "once", "").await.expect(202);
    assert_eq!((&again["id"], &again["status"]), (&task["id"], &json!("finished")));
    let cancel = format!("/background-task/{}/cancel", task["id"].as_str().unwrap());
    assert_eq!(server.client.post(&cancel, "").await.status, 409);
    let misspelt = server.client.post(&path, r#"{"dry_run": true}"#).await;
    assert_eq!(misspelt.status, 422, "a misspelt field would erase");
}

#[tokio::test]
async fn an_erasure_takes_the_source_of_its_application_along() {
    let server = Running::start().await;
    let source = json!({"name": "shop", "type": "github", "config": {"secret": "s1"}});
    let made = server.client.post("/ingest/source", source.to_string()).await;
    let made = made.expect(201);
    let app = made["appId"].as_str().unwrap();
    let task = server.client.post(&format!("/app/{app}/erase"), "").await.expect(202);
    until_over(&server.client, &task).await;
    server.client.get(&format!("/ingest/source/{}", made["id"].as_str().unwrap())).await.expect(404);
}

#[tokio::test]
async fn an_erasure_goes_on_after_a_restart() {
    let server = Running::start().await;
    let app = server.application().await;
    for _ in 0..20 {
        let messages: Vec<_> = (0..500).map(|n| json!({"eventType": "a", "payload": {"n": n}})).collect();
        server
            .client
            .post(&format!("/app/{app}/msg/batch"), json!({"messages": messages}).to_string())
            .await
            .expect(202);
    }
    let task = server.client.post(&format!("/app/{app}/erase"), "").await.expect(202);
    assert_eq!(task["status"], "running");
    let folder = server.stop().await;
    let server = Running::within(folder, |_| {}).await;
    let task = until_over(&server.client, &task).await;
    assert_eq!(task["data"]["messages"], 10_000);
}
