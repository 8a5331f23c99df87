//! Encryption and authentication, with the command that tests them.

use super::stage::header;
use crate::support::secure_receiver::Authority;
use serde_json::Value;
use std::process::{Command, Output};
use test_servers::{Smtp, SmtpTls};

/// `aldaba mail test`, with these settings.
fn test(address: &str, settings: &[(&str, &str)]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_aldaba"))
        .args(["mail", "test"])
        .args((!address.is_empty()).then_some(address))
        .env("ALDABA_MAIL_FROM", "hooks@example.com")
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output, said)
}

fn got(smtp: &Smtp) -> Vec<Value> {
    smtp.mails().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_test_mail_goes_through_every_kind_of_connection() {
    let authority = Authority::new();
    let certificate = authority.identity().concat();
    let ca = authority.file();
    let user = Some(("me@example.com", "p:ss/word"));
    let kinds = [
        (SmtpTls::None, None, "smtp://127.0.0.1:PORT", false),
        (SmtpTls::None, user, "smtp://me%40example.com:p%3Ass%2Fword@127.0.0.1:PORT", false),
        (SmtpTls::StartTls, None, "smtp://localhost:PORT?starttls=required", true),
        (SmtpTls::StartTls, user, "smtp://me%40example.com:p%3Ass%2Fword@localhost:PORT", true),
        (SmtpTls::Implicit, user, "smtps://me%40example.com:p%3Ass%2Fword@localhost:PORT", true),
    ];
    for (tls, user, url, encrypted) in kinds {
        let smtp = Smtp::start_with(tls, &certificate, user);
        let url = url.replace("PORT", &smtp.port().to_string());
        let settings = [("ALDABA_SMTP_URL", &url[..]), ("ALDABA_CA_FILE", ca.to_str().unwrap())];
        let (output, said) = test("people@example.com", &settings);
        assert!(output.status.success(), "{url}: {said}");
        assert!(said.contains("has taken a test mail"), "{said}");
        assert!(!said.contains("p:ss") && !said.contains("p%3A"), "{said}");
        let mails = got(&smtp);
        assert_eq!(mails.len(), 1);
        assert_eq!(header(&mails[0], "Subject"), "A test mail of Aldaba");
        assert_eq!(mails[0]["encrypted"], encrypted || tls == SmtpTls::Implicit, "{url}");
        assert_eq!(mails[0]["user"].as_str(), user.map(|(name, _)| name));
    }
}

#[test]
fn a_test_mail_says_what_is_wrong_with_the_mail_server_or_the_settings() {
    let authority = Authority::new();
    let certificate = authority.identity().concat();
    let ca = authority.file();
    let ca = ("ALDABA_CA_FILE", ca.to_str().unwrap());
    let secured = Smtp::start_with(SmtpTls::StartTls, &certificate, Some(("me", "secret-of-me")));
    let plain = Smtp::start();
    let at = |url: &str, smtp: &Smtp| url.replace("PORT", &smtp.port().to_string());
    for (url, more, address, code, said) in [
        (at("smtp://localhost:PORT", &secured), None, "a@example.com", 69, "STARTTLS: "),
        (at("smtp://me:wrong-secret@localhost:PORT", &secured), Some(ca), "a@example.com", 69, "AUTH: "),
        (
            at("smtp://127.0.0.1:PORT?starttls=required", &plain),
            None,
            "a@example.com",
            69,
            "does not offer STARTTLS",
        ),
        (at("smtps://127.0.0.1:PORT", &plain), None, "a@example.com", 69, "cannot connect"),
        ("smtp://127.0.0.1:1".into(), None, "a@example.com", 69, "refused"),
        (at("smtp://127.0.0.1:PORT", &plain), None, "never@example.com", 69, "RCPT TO: "),
        (at("smtp://127.0.0.1:PORT", &plain), None, "nobody", 2, "must be one plain mail address"),
        (at("smtp://127.0.0.1:PORT", &plain), None, "", 2, "ALDABA_OPERATOR_EMAIL"),
    ] {
        let settings: Vec<_> = [("ALDABA_SMTP_URL", &url[..])].into_iter().chain(more).collect();
        let (output, found) = test(address, &settings);
        assert_eq!(output.status.code(), Some(code), "{url}: {found}");
        assert!(found.contains(said), "{url}: {found}");
        assert!(!found.contains("wrong-secret"), "{found}");
    }
}
