//! Links in mails: to unsubscribe, and to confirm an address.

use super::stage::{MailStage, OWNER, header, path, subjects, text};
use crate::support::client::Client;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::json;

async fn page(client: &Client, method: Method, path: &str) -> (StatusCode, String) {
    let reply = client.anonymous().send(method, path, &[], Bytes::new()).await;
    assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
    assert!(reply.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
    assert_eq!(reply.headers["cache-control"], "no-store");
    (reply.status, String::from_utf8(reply.body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_link_unsubscribes_from_one_endpoint_with_a_post_and_a_get_changes_nothing() {
    let stage = MailStage::new().await;
    let client = &stage.server.client;
    let endpoint = stage.endpoint(json!({"name": "A"})).await;
    stage.send().await;
    let link = path(&stage.mails(2).await[1], "unsubscribe");
    for _ in 0..2 {
        let (status, html) = page(client, Method::GET, &link).await;
        assert_eq!(status, 200);
        assert!(html.contains("<form method=\"post\"") && html.contains(OWNER), "{html}");
    }
    let (status, html) = page(client, Method::POST, &link).await;
    assert_eq!(status, 200);
    assert!(html.contains("gets no more mails about this webhook"), "{html}");
    stage.receiver.answer(200);
    stage.resume(&endpoint).await;
    // Another endpoint of the same owner is another matter.
    stage.receiver.answer(503);
    stage.endpoint(json!({"name": "B"})).await;
    stage.send().await;
    stage.becomes(&endpoint, "failed").await;
    let mails = stage.mails(4).await;
    assert!(subjects(&mails[2..]).iter().all(|subject| subject.contains("'B'")), "{:?}", subjects(&mails));
    // The page undoes it.
    let (_, html) = page(client, Method::GET, &link).await;
    let undo = html.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
    let (status, html) = page(client, Method::POST, &format!("/{undo}")).await;
    assert_eq!(status, 200);
    assert!(html.contains("gets mails about this webhook again"), "{html}");
    let (_, html) = page(client, Method::GET, &link).await;
    assert!(html.contains("<form method=\"post\" action=\"/mail/unsubscribe/"), "{html}");
    stage.server.stop().await;
}

#[tokio::test]
async fn a_mail_program_unsubscribes_with_one_post_and_nothing_that_a_scanner_does_before_changes_anything() {
    let stage = MailStage::new().await;
    let client = stage.server.client.anonymous();
    stage.endpoint(json!({"name": "A"})).await;
    stage.send().await;
    let mail = &stage.mails(2).await[1];
    let list = header(mail, "List-Unsubscribe");
    let link = list.trim_matches(['<', '>']).replacen("https://hooks.example.com", "/", 1);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
        client.send(method, &link, &[], Bytes::new()).await;
    }
    let (status, html) = page(&client, Method::GET, &link).await;
    assert!(status == 200 && html.contains("action=\"/mail/unsubscribe/"), "{html}");
    // RFC 8058: no login, no cookie, no second step.
    assert_eq!(header(mail, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let reply = client.send(Method::POST, &link, &form, Bytes::from("List-Unsubscribe=One-Click")).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.headers.contains_key("location"), "a mail program follows no redirect");
    let (_, html) = page(&client, Method::GET, &link).await;
    assert!(html.contains("gets no more mails about this webhook"), "{html}");
    stage.server.stop().await;
}

#[tokio::test]
async fn a_link_that_was_changed_does_nothing() {
    let stage = MailStage::new().await;
    let client = &stage.server.client;
    stage.endpoint(json!({})).await;
    stage.send().await;
    let link = path(&stage.mails(2).await[1], "unsubscribe");
    let mut changed = link.clone();
    changed.truncate(link.len() - 2);
    let confirm = link.replace("unsubscribe", "confirm");
    for wrong in [changed.as_str(), confirm.as_str(), "//mail/unsubscribe/x", "//mail/confirm/AAAA"] {
        for method in [Method::GET, Method::POST] {
            let (status, html) = page(client, method, wrong).await;
            assert_eq!(status, 404, "{wrong}");
            assert!(html.contains("This link is incomplete") && html.contains("El enlace"), "{html}");
        }
    }
    stage.server.stop().await;
}

#[tokio::test]
async fn an_address_that_a_caller_of_the_portal_sets_is_confirmed_before_anything_else_is_sent_there() {
    let stage = MailStage::new().await;
    let endpoint =
        stage.endpoint(json!({"ownerEmail": null, "name": "<b>Buy now</b> at https://spam.example"})).await;
    let guest = stage.portal().await;
    let shown = format!("/app/{}/endpoint/{endpoint}", stage.app);
    guest.patch(&shown, r#"{"ownerEmail": "victim@example.com"}"#).await.expect(200);
    let mails = stage.mails(1).await;
    assert_eq!(mails[0]["to"], json!(["victim@example.com"]));
    assert_eq!(header(&mails[0], "Subject"), "Please confirm your mail address");
    assert!(!mails[0]["raw"].as_str().unwrap().contains("spam.example"), "{}", mails[0]);
    assert_eq!(header(&mails[0], "List-Unsubscribe"), "");
    stage.send().await;
    stage.becomes(&endpoint, "failed").await;
    stage.stays_at(1).await;
    // Set once more, it is not asked once more.
    guest.patch(&shown, r#"{"ownerEmail": null}"#).await.expect(200);
    guest.patch(&shown, r#"{"ownerEmail": "victim@example.com"}"#).await.expect(200);
    stage.stays_at(1).await;

    let link = path(&mails[0], "confirm");
    let client = &stage.server.client;
    let (status, html) = page(client, Method::GET, &link).await;
    assert!(status == 200 && html.contains("victim@example.com"), "{html}");
    stage.mails(1).await;
    let (status, html) = page(client, Method::POST, &link).await;
    assert!(status == 200 && html.contains("victim@example.com is confirmed"), "{html}");
    // What was held leaves.
    let mails = stage.mails(3).await;
    assert!(mails.iter().all(|mail| mail["to"] == json!(["victim@example.com"])));
    assert!(header(&mails[2], "Subject").contains("has failed after 5 retries"), "{mails:?}");
    assert!(text(&mails[2], "html").contains("&lt;b&gt;Buy now"), "{}", mails[2]);
    stage.server.stop().await;
}
