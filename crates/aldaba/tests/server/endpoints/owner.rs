//! The name of an endpoint, and who answers for it.

use crate::requests::bad_input::places;
use crate::support::running::Running;
use serde_json::{Value, json};

#[tokio::test]
async fn an_endpoint_has_a_name_and_an_owner_however_they_are_set() {
    let server = Running::start().await;
    let app = server.application().await;
    let list = format!("/app/{app}/endpoint");
    let path = format!("{list}/door");
    let shown = |reply: &Value| (reply["name"].clone(), reply["ownerEmail"].clone());
    let url = "https://example.com/";

    let without = server.client.post(&list, json!({"url": url, "uid": "door"}).to_string()).await.expect(201);
    assert_eq!(shown(&without), (Value::Null, Value::Null));
    let set = json!({"url": url, "name": "Accounting", "ownerEmail": "webhooks@example.com"});
    let put = server.client.put(&path, set.to_string()).await.expect(200);
    assert_eq!(shown(&put), (json!("Accounting"), json!("webhooks@example.com")));
    assert_eq!(server.client.get(&list).await.expect(200)["data"][0], put);

    let patched = server.client.patch(&path, r#"{"name": "Billing"}"#).await.expect(200);
    assert_eq!(shown(&patched), (json!("Billing"), json!("webhooks@example.com")), "the owner stays");
    let access = server.client.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
    let guest = server.client.with_token(access["token"].as_str().unwrap());
    let cleared = guest.patch(&path, r#"{"ownerEmail": null}"#).await.expect(200);
    assert_eq!(shown(&cleared), (json!("Billing"), Value::Null));
    let whole = server.client.put(&path, json!({"url": url}).to_string()).await.expect(200);
    assert_eq!(shown(&whole), (Value::Null, Value::Null), "PUT sets what is left out to its default");

    let log = server.client.get("/audit?action=endpoint.update&limit=1").await.expect(200);
    let change =
        log["data"][0]["changes"].as_array().unwrap().iter().find(|change| change["field"] == "name");
    assert_eq!((&change.unwrap()["before"], &change.unwrap()["after"]), (&json!("Billing"), &Value::Null));
    server.stop().await;
}

#[tokio::test]
async fn a_name_is_short_and_an_owner_is_one_mail_address() {
    let server = Running::start().await;
    let app = server.application().await;
    let list = format!("/app/{app}/endpoint");
    for (field, value) in [
        ("name", json!("")),
        ("name", json!("é".repeat(257))),
        ("name", json!("a\u{0}")),
        ("name", json!(7)),
        ("name", json!(" ")),
        ("name", json!("x\r\nBcc: people@example.com")),
        ("name", json!("\u{1b}[31m")),
        ("name", json!("a\u{2028}b")),
        ("ownerEmail", json!("nobody")),
        ("ownerEmail", json!("mailto:people@example.com")),
        ("ownerEmail", json!("people@example.com?cc=others@example.com")),
        ("ownerEmail", json!("-oX@example.com")),
        ("ownerEmail", json!("a@b..c")),
        ("ownerEmail", json!("a@b\u{200b}.c")),
        ("ownerEmail", json!("Accounting <webhooks@example.com>")),
        ("ownerEmail", json!(format!("{}@example.com", "a".repeat(250)))),
    ] {
        let body = json!({"url": "https://example.com/", field: value}).to_string();
        assert_eq!(places(&server.client.post(&list, body).await), [format!("body.{field}")], "{value}");
    }
    let most = json!({"url": "https://example.com/", "name": "é".repeat(256)}).to_string();
    server.client.post(&list, most).await.expect(201);
    server.stop().await;
}
