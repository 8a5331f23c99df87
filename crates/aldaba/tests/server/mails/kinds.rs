//! Every kind of mail, in both languages.

use super::stage::{FROM, MailStage, OWNER, header, path, subjects, text};
use serde_json::{Value, json};

/// What every mail has, whatever it says.
fn is_in_order(mail: &Value, to: &str, language: &str) {
    assert_eq!(mail["defects"], json!([]), "{mail}");
    assert_eq!((&mail["from"], &mail["to"]), (&json!("hooks@example.com"), &json!([to])));
    assert_eq!((header(mail, "From"), header(mail, "To")), (FROM.to_owned(), to.to_owned()));
    assert_eq!(mail["type"], "multipart/alternative");
    assert_eq!(header(mail, "Auto-Submitted"), "auto-generated");
    assert_eq!(header(mail, "Content-Language"), language);
    assert_eq!(header(mail, "MIME-Version"), "1.0");
    let id = header(mail, "Message-ID");
    assert!(id.starts_with('<') && id.ends_with("@example.com>"), "{id}");
    assert!(!header(mail, "Date").is_empty());
    assert!(!text(mail, "text").trim().is_empty());
    assert!(text(mail, "html").contains(&format!("<html lang=\"{language}\">")), "{mail}");
}

#[tokio::test]
async fn d4_the_owner_of_an_endpoint_is_told_that_it_has_failed_after_its_retries_and_how_to_resume_it() {
    let stage = MailStage::new().await;
    let endpoint = stage.endpoint(json!({"name": "Accounting"})).await;
    stage.send().await;
    let mails = stage.mails(2).await;
    let failed = &mails[1];
    is_in_order(failed, OWNER, "en");
    assert_eq!(header(failed, "Subject"), "Webhook 'Accounting' has failed after 5 retries");
    for part in ["text", "html"] {
        let said = text(failed, part);
        for expected in [
            "HTTP 503: Service Unavailable",
            "Failing since",
            "an application",
            "Deliveries that wait",
            "New messages are kept",
            &format!("https://hooks.example.com/api/v1/app/{}/endpoint/{endpoint}/resume", stage.app),
            "https://hooks.example.com/docs/guides/health",
        ] {
            assert!(said.contains(expected), "{part}: {expected}\n{said}");
        }
    }
    let unsubscribe = path(failed, "unsubscribe").replacen('/', "https://hooks.example.com", 1);
    assert_eq!(header(failed, "List-Unsubscribe"), format!("<{unsubscribe}>"));
    assert_eq!(header(failed, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");

    stage.receiver.answer(200);
    stage.resume(&endpoint).await;
    let mails = stage.mails(3).await;
    is_in_order(&mails[2], OWNER, "en");
    assert_eq!(header(&mails[2], "Subject"), "Webhook 'Accounting' was resumed");
    stage.server.stop().await;
}

#[tokio::test]
async fn d7_the_owner_of_an_endpoint_is_warned_once_at_3_failures_in_a_row_and_told_of_the_recovery() {
    let stage = MailStage::new().await;
    let delays = ["50ms", "50ms", "50ms", "50ms", "50ms", "50ms", "10s"];
    let policy = json!({
        "name": "patient", "schedule": {"type": "list", "delays": delays},
        "jitter": {"type": "none"}, "gate": {"type": "apart"}, "probe": null,
    });
    stage.server.client.post("/policy", policy.to_string()).await.expect(201);
    let endpoint = stage.endpoint(json!({"policy": "patient", "name": "Accounting"})).await;
    stage.send().await;
    let mails = stage.mails(1).await;
    is_in_order(&mails[0], OWNER, "en");
    assert_eq!(header(&mails[0], "Subject"), "Webhook 'Accounting' is failing: 3 failures in a row");
    assert!(text(&mails[0], "text").contains("HTTP 503"), "{}", mails[0]);
    let shown = format!("/app/{}/endpoint/{endpoint}", stage.app);
    stage.server.client.get_until(&shown, |endpoint| endpoint["failureCount"].as_u64() >= Some(6)).await;
    stage.receiver.answer(200);
    stage.send().await;
    let mails = stage.mails(2).await;
    is_in_order(&mails[1], OWNER, "en");
    assert_eq!(header(&mails[1], "Subject"), "Webhook 'Accounting' works again");
    stage.server.stop().await;
}

#[tokio::test]
async fn an_endpoint_without_an_owner_concerns_the_people_of_its_application_and_is_called_by_its_host() {
    let stage = MailStage::new().await;
    let body = r#"{"email": "people@example.com"}"#;
    let answer =
        stage.server.client.patch(&format!("/app/{}/alert-email", stage.app), body).await.expect(200);
    assert_eq!(answer, json!({"email": "people@example.com", "mailConfigured": true}));
    stage.endpoint(json!({"ownerEmail": null})).await;
    stage.send().await;
    let mails = stage.mails(2).await;
    is_in_order(&mails[1], "people@example.com", "en");
    assert_eq!(header(&mails[1], "Subject"), "Webhook '127.0.0.1' has failed after 5 retries");
    stage.server.stop().await;
}

#[tokio::test]
async fn mails_are_in_spanish_where_the_server_the_application_or_the_endpoint_says_so() {
    let stage = MailStage::new().await;
    stage.endpoint(json!({"name": "Contabilidad", "metadata": {"mailLanguage": "es"}})).await;
    stage.send().await;
    let mails = stage.mails(2).await;
    is_in_order(&mails[1], OWNER, "es");
    assert_eq!(
        subjects(&mails),
        [
            "El webhook 'Contabilidad' está fallando: 3 fallos seguidos",
            "El webhook 'Contabilidad' ha fallado tras 5 reintentos",
        ]
    );
    for expected in ["Último error", "Falla desde", "reanude el webhook", "No recibir más correos"] {
        assert!(text(&mails[1], "text").contains(expected), "{expected}: {}", mails[1]);
    }
    stage.server.stop().await;

    let stage = MailStage::with(|config| config.mail.language = aldaba_delivery::Language::Spanish).await;
    let english = json!({"name": "an application", "metadata": {"mailLanguage": "en"}}).to_string();
    let endpoint = stage.endpoint(json!({"name": "A"})).await;
    stage.send().await;
    stage.mails(2).await;
    stage.receiver.answer(200);
    stage.resume(&endpoint).await;
    let mails = stage.mails(3).await;
    assert_eq!(header(&mails[2], "Subject"), "El webhook 'A' se ha reanudado");
    stage.server.client.put(&format!("/app/{}", stage.app), english).await.expect(200);
    stage.receiver.answer(503);
    stage.send().await;
    let mails = stage.mails(5).await;
    assert_eq!(header(&mails[4], "Subject"), "Webhook 'A' has failed after 5 retries");
    stage.server.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_and_a_block_are_told_in_their_words() {
    let stage = MailStage::new().await;
    let gone = json!({
        "name": "gone", "schedule": {"type": "list", "delays": ["50ms"]}, "jitter": {"type": "none"},
        "goneDisables": true, "gate": {"type": "apart"},
    });
    stage.server.client.post("/policy", gone.to_string()).await.expect(201);
    stage.receiver.answer(410);
    let first = stage.endpoint(json!({"policy": "gone", "name": "A"})).await;
    stage.send().await;
    let mails = stage.mails(1).await;
    assert_eq!(header(&mails[0], "Subject"), "Webhook 'A' has failed: its receiver is gone (410)");
    let path = format!("/app/{}/endpoint/{first}", stage.app);
    stage.server.client.delete(&path).await.expect(204);
    stage.receiver.answer(503);
    let ordered = json!({"policy": "quick-block", "name": "B", "ordering": "fifo", "onExhausted": "block"});
    let never = json!({
        "name": "quick-block", "schedule": {"type": "list", "delays": ["50ms"]}, "jitter": {"type": "none"},
        "gate": {"type": "apart"}, "endpointFails": {"type": "never"}, "probe": null,
    });
    stage.server.client.post("/policy", never.to_string()).await.expect(201);
    stage.endpoint(ordered).await;
    stage.send().await;
    let mails = stage.mails(2).await;
    let expected = "Webhook 'B' is blocked: a delivery has ended without success";
    assert_eq!(header(&mails[1], "Subject"), expected);
    stage.server.stop().await;
}
