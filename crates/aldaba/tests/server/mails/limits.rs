//! One address gets so many mails on a day, and a digest in place of a flood.

use super::stage::{MailStage, OWNER, header, text};
use crate::support::waiting::wait_until;
use bytes::Bytes;
use http::Method;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn many_endpoints_of_one_owner_that_fail_together_become_one_digest() {
    let stage = MailStage::with(|config| config.mail.delay = Duration::from_secs(3)).await;
    for n in 0..30 {
        stage.endpoint(json!({"name": format!("Door {n}")})).await;
    }
    stage.send().await;
    wait_until("a mail", async || !stage.smtp.mails().is_empty()).await;
    // For another one that may come, after the time for which the first has waited.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let count = stage.smtp.mails().len();
    assert!((1..=3).contains(&count), "{count} mails about 60 things");
    let mails = stage.mails(count).await;
    let digest = &mails[0];
    assert_eq!(digest["to"], json!([OWNER]));
    let subject = header(digest, "Subject");
    assert!(subject.ends_with(" messages about your webhooks"), "{subject}");
    assert!(text(digest, "text").contains("Webhook 'Door 7' "), "{digest}");
    // One for each, and one for all.
    assert_eq!(text(digest, "text").matches("https://hooks.example.com/mail/unsubscribe/").count(), 31);
    let all: String = mails.iter().map(|mail| text(mail, "text")).collect();
    for n in 0..30 {
        assert!(all.contains(&format!("Webhook 'Door {n}' has failed after 5 retries")), "{n}");
    }
    // The button of mail programs is for all that is in it.
    let list = header(digest, "List-Unsubscribe");
    let link = list.trim_matches(['<', '>']).replacen("https://hooks.example.com", "/", 1);
    assert_eq!(header(digest, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let client = stage.server.client.anonymous();
    let reply = client.send(Method::POST, &link, &[], Bytes::from("List-Unsubscribe=One-Click")).await;
    let page = String::from_utf8(reply.body.to_vec()).unwrap();
    assert!(reply.status == 200 && page.contains("no more mails about any webhook"), "{page}");
    let endpoint = stage.endpoint(json!({"name": "Another door"})).await;
    stage.send().await;
    stage.becomes(&endpoint, "failed").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.stays_at(count).await;
    stage.server.stop().await;
}

#[tokio::test]
async fn an_address_gets_20_mails_a_day_and_the_last_one_has_all_that_waits() {
    let stage = MailStage::new().await;
    // One after the other: together they would be joined.
    for n in 0..9 {
        let endpoint = stage.endpoint(json!({"name": format!("Door {n}")})).await;
        stage.send().await;
        stage.mails(2 * (n + 1)).await;
        let path = format!("/app/{}/endpoint/{endpoint}", stage.app);
        stage.server.client.delete(&path).await.expect(204);
    }
    // 18 so far. The next is the 19th; with the 20th goes what waits, and then there is silence.
    for n in 9..12 {
        stage.endpoint(json!({"name": format!("Door {n}")})).await;
        stage.send().await;
    }
    wait_until("the last mail of the day", async || stage.smtp.mails().len() >= 20).await;
    stage.stays_at(20).await;
    stage.server.stop().await;
}
