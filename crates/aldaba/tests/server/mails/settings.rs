//! Wrong settings of mails, and none.

use crate::support::running::Running;
use serde_json::json;
use std::process::Command;

/// What `serve` says that does not start, and its exit code.
fn refused(settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_aldaba"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn wrong_settings_of_mails_refuse_the_start_and_say_what_to_do() {
    let (url, from) = (("ALDABA_SMTP_URL", "smtp://127.0.0.1:1"), ("ALDABA_MAIL_FROM", "hooks@example.com"));
    for (settings, said) in [
        (vec![url], "set ALDABA_MAIL_FROM to the address that mails come from"),
        (vec![from], "Set ALDABA_SMTP_URL to your mail server"),
        (vec![("ALDABA_OPERATOR_EMAIL", "a@example.com")], "operator_email is set, and smtp_url is not"),
        (vec![from, ("ALDABA_SMTP_URL", "http://a:hidden-secret@b")], "it is not for mail"),
        (
            vec![from, ("ALDABA_SMTP_URL", "smtp://a:hidden-secret@b?starttls=perhaps")],
            "required, opportunistic or never",
        ),
        (
            vec![from, ("ALDABA_SMTP_URL", "smtp://a:hidden-secret@b.example?starttls=opportunistic")],
            "with a password it is starttls=required",
        ),
        (vec![url, ("ALDABA_MAIL_FROM", "nobody")], "expected a mail address, such as hooks@example.com"),
        (vec![url, from, ("ALDABA_OPERATOR_EMAIL", "a@b, c@d")], "expected a mail address"),
        (vec![url, from, ("ALDABA_MAIL_LANGUAGE", "de")], "expected en (English) or es (Spanish)"),
        (vec![url, from, ("ALDABA_MAIL_DELAY_SECONDS", "soon")], "a whole number from 0 to 3600"),
    ] {
        let (code, found) = refused(&settings);
        assert_eq!(code, Some(2), "{settings:?}: {found}");
        assert!(found.contains(said), "{settings:?}: {found}");
        assert!(!found.contains("hidden-secret"), "{found}");
    }
}

#[tokio::test]
async fn d4_without_a_mail_server_the_answers_say_plainly_that_nothing_is_sent() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/alert-email");
    let answer = server.client.patch(&path, r#"{"email": "people@example.com"}"#).await.expect(200);
    assert_eq!((&answer["email"], &answer["mailConfigured"]), (&json!("people@example.com"), &json!(false)));
    let note = answer["note"].as_str().unwrap();
    assert!(note.contains("nothing is sent") && note.contains("ALDABA_SMTP_URL"), "{note}");
    let endpoint = server.endpoint(&app, json!({"ownerEmail": "owner@example.com"})).await;
    assert_eq!(endpoint["ownerEmailNote"], note);
    let other = server.endpoint(&app, json!({})).await;
    assert!(other.get("ownerEmailNote").is_none(), "{other}");
    server.stop().await;
}
