//! Deliveries that are given up, with an attempt and without one.

use super::stage::{MailStage, header, subjects, text};
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use serde_json::json;
use std::time::Duration;

/// Never gives the endpoint up.
fn lasting(name: &str, delays: &[&str], stop_after: Option<&str>) -> String {
    let policy = json!({
        "name": name, "schedule": {"type": "list", "delays": delays}, "jitter": {"type": "none"},
        "gate": {"type": "apart"}, "endpointFails": {"type": "never"}, "probe": null,
        "limit": {"attempts": delays.len() + 1, "stopAfter": stop_after},
    });
    policy.to_string()
}

#[tokio::test]
async fn the_owner_is_told_once_in_an_outage_that_deliveries_are_given_up_and_how_to_send_them_again() {
    let stage = MailStage::new().await;
    let client = &stage.server.client;
    client.post("/policy", lasting("lasting", &["50ms"; 4], None)).await.expect(201);
    let endpoint = stage.endpoint(json!({"policy": "lasting", "name": "A"})).await;
    stage.send().await;
    let mails = stage.mails(2).await;
    assert_eq!(header(&mails[0], "Subject"), "Webhook 'A' is failing: 3 failures in a row");
    let given_up = &mails[1];
    assert_eq!(header(given_up, "Subject"), "Webhook 'A' still fails: a delivery was given up");
    let said = text(given_up, "text");
    let command = format!("https://hooks.example.com/api/v1/app/{}/endpoint/{endpoint}/recover", stage.app);
    for expected in ["dead letter", "HTTP 503: Service Unavailable", "--json '{\"since\": \"20", &command] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    stage.send().await;
    client.list_until("/dead-letter", 2).await;
    stage.stays_at(2).await;
    // As the mail says.
    stage.receiver.answer(200);
    let begin = said.find("{\"since\"").unwrap();
    let since = &said[begin..begin + said[begin..].find('}').unwrap() + 1];
    client
        .post(&format!("/app/{}/endpoint/{endpoint}/recover", stage.app), since.to_owned())
        .await
        .expect(202);
    let mails = stage.mails(3).await;
    assert_eq!(header(&mails[2], "Subject"), "Webhook 'A' works again");
    wait_until("all are delivered", async || {
        client.get("/dead-letter").await.expect(200)["data"].as_array().unwrap().is_empty()
    })
    .await;
    stage.server.stop().await;
}

#[tokio::test]
async fn the_owner_is_told_of_a_stop_date_that_passes_between_two_attempts_and_of_the_block_that_follows() {
    let stage = MailStage::new().await;
    let policy = lasting("limited", &["50ms", "50ms", "4s"], Some("6s"));
    stage.server.client.post("/policy", policy).await.expect(201);
    for more in [
        json!({"name": "Ordered", "ordering": "fifo", "onExhausted": "block"}),
        json!({"name": "Other", "metadata": {"mailLanguage": "es"}}),
    ] {
        let mut body = json!({"policy": "limited"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stage.endpoint(body).await;
    }
    stage.send().await;
    stage.mails(2).await;
    let MailStage { server, smtp, app, receiver } = stage;
    // The server is away when the stop date passes.
    let folder = server.stop().await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let server = Running::within(folder, super::stage::through(&smtp)).await;
    wait_until("both mails", async || smtp.mails().len() >= 4).await;
    let mails = super::stage::parsed(&smtp, 4);
    assert_eq!(
        subjects(&mails[2..]),
        [
            "El webhook 'Other' sigue fallando: se ha abandonado una entrega",
            "Webhook 'Ordered' is blocked: a delivery has ended without success",
        ]
    );
    for mail in &mails[2..] {
        assert!(text(mail, "text").contains("HTTP 503: Service Unavailable"), "the last error: {mail}");
        let action = if header(mail, "Subject").contains("Ordered") { "/resume" } else { "/recover" };
        assert!(text(mail, "text").contains(&format!("/api/v1/app/{app}/endpoint/")), "{mail}");
        assert!(text(mail, "text").contains(action), "{action}: {mail}");
    }
    drop(receiver);
    server.stop().await;
}
