//! Names, errors, payloads and secrets of others in mails: inert, or not there at all.

use super::stage::{MailStage, header, text};
use serde_json::{Value, json};

const CANARIES: [&str; 6] =
    ["canary-payload", "canary-header", "canary-password", "canary-path", "canary-query", "canary-secret"];

#[tokio::test]
async fn markup_and_line_ends_in_names_stay_inert_and_secrets_are_in_no_mail() {
    let stage = MailStage::new().await;
    let client = &stage.server.client;
    let rename = json!({"name": "App <script>alert(1)</script>\r\nBcc: other@example.com"});
    client.patch(&format!("/app/{}", stage.app), rename.to_string()).await.expect(200);
    let url = stage.receiver.url("/canary-path?key=canary-query").replacen(
        "http://",
        "http://user:canary-password@",
        1,
    );
    let named = json!({
        "url": url, "name": "\"><img src=x onerror=alert(1)> & 'co' ñ 日本", "headers": {"x-key": "canary-header"},
        "metadata": {"note": "canary-secret"},
    });
    stage.endpoint(named).await;
    let body = json!({"eventType": "a", "payload": {"text": "canary-payload"}}).to_string();
    client.post(&format!("/app/{}/msg", stage.app), body).await.expect(202);
    for mail in &stage.mails(2).await {
        assert_eq!(mail["defects"], json!([]), "{mail}");
        assert_eq!(mail["to"], json!(["owner@example.com"]));
        assert_eq!(header(mail, "Bcc"), "");
        assert!(header(mail, "Subject").contains("\"><img src=x onerror=alert(1)> & 'co' ñ 日本"), "{mail}");
        let html = text(mail, "html");
        assert!(!html.contains("<img") && !html.contains("<script"), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; Bcc: other@example.com"), "{html}");
        let text = text(mail, "text");
        let application = "  Application: App <script>alert(1)</script> Bcc: other@example.com";
        assert!(text.lines().any(|line| line.trim_end() == application), "{text}");
        for part in ["raw", "text", "html"] {
            for canary in CANARIES {
                assert!(!mail[part].as_str().unwrap().contains(canary), "{canary} in {part}");
            }
        }
        let headers: Vec<&Value> =
            mail["headers"].as_array().unwrap().iter().map(|header| &header[0]).collect();
        let known = [
            "Message-ID",
            "From",
            "To",
            "Subject",
            "Auto-Submitted",
            "Content-Language",
            "List-Unsubscribe",
            "List-Unsubscribe-Post",
            "MIME-Version",
            "Date",
            "Content-Type",
        ];
        assert!(headers.iter().all(|name| known.contains(&name.as_str().unwrap())), "{headers:?}");
    }
    stage.server.stop().await;
}

#[tokio::test]
async fn very_long_names_are_cut_in_mails() {
    let stage = MailStage::new().await;
    let long = "ñ".repeat(256);
    stage.endpoint(json!({"name": long})).await;
    stage.send().await;
    for mail in &stage.mails(2).await {
        let subject = header(mail, "Subject");
        assert!(subject.chars().count() <= 151 && subject.contains('…'), "{subject}");
        let raw = mail["raw"].as_str().unwrap();
        assert!(raw.lines().all(|line| line.len() <= 998), "a line is longer than SMTP allows");
    }
    stage.server.stop().await;
}
