//! The conversation with mail servers that hang, that take several commands at once, and that cheat.

use super::stage::{MailStage, OWNER, subjects};
use crate::support::waiting::wait_until;
use aldaba::mail::SmtpTimeouts;
use aldaba_engine::{Clock, SystemClock};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

#[tokio::test]
async fn a_mail_server_that_hangs_at_any_step_loses_no_mail_and_gets_none_twice() {
    let second = Duration::from_secs(1);
    let timeouts = SmtpTimeouts { hello: second, recipient: second, end: second };
    let stage = MailStage::with(|config| config.mail.timeouts = timeouts).await;
    for (number, step) in (1..).zip(["hello", "sender", "recipient", "end"]) {
        stage.smtp.hang_at(Some(step));
        let endpoint = stage.endpoint(json!({"name": step})).await;
        stage.send().await;
        stage.becomes(&endpoint, "failed").await;
        wait_until("it hangs", async || stage.smtp.hangs().iter().any(|seen| seen == step)).await;
        stage.smtp.hang_at(None);
        stage.mails(2 * number).await;
        let path = format!("/app/{}/endpoint/{endpoint}", stage.app);
        stage.server.client.delete(&path).await.expect(204);
    }
    stage.stays_at(8).await;
    stage.server.stop().await;
}

#[tokio::test]
async fn a_server_that_takes_several_commands_at_once_gets_the_same_mails_over_one_connection() {
    let stage = MailStage::new().await;
    stage.smtp.pipeline();
    for name in ["never", "good", "later", "better"] {
        stage.endpoint(json!({"name": name, "ownerEmail": format!("{name}@example.com")})).await;
    }
    stage.send().await;
    let mails = stage.mails(4).await;
    let of = |name: &str| {
        let warning = format!("Webhook '{name}' is failing: 3 failures in a row");
        [format!("Webhook '{name}' has failed after 5 retries"), warning]
    };
    assert_eq!(subjects(&mails), [of("better"), of("good")].concat());
    let peers: BTreeSet<_> = mails.iter().map(|mail| mail["peer"].as_u64()).collect();
    assert_eq!(peers.len(), 1, "the refused ones do not end it");
    stage.stays_at(4).await;
    stage.server.stop().await;
}

/// A mail server that offers encryption and puts answers of its own behind the last one in the clear, as somebody on the way
/// could. Returns its port, and what came after that.
fn cheating() -> (u16, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        stream.write_all(b"220 mail.example.com\r\n").unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with("EHLO "), "{line}");
        stream.write_all(b"250-mail.example.com\r\n250 STARTTLS\r\n").unwrap();
        line.clear();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "STARTTLS\r\n");
        stream
            .write_all(b"220 go ahead\r\n250-mail.example.com\r\n250 AUTH PLAIN\r\n235 welcome\r\n")
            .unwrap();
        let mut rest = Vec::new();
        lines.read_to_end(&mut rest).unwrap_or_default();
        rest
    });
    (port, heard)
}

#[test]
fn answers_that_come_before_the_encryption_begins_are_not_taken_for_encrypted_ones() {
    let (port, heard) = cheating();
    let output = Command::new(env!("CARGO_BIN_EXE_aldaba"))
        .args(["mail", "test", OWNER])
        .env("ALDABA_MAIL_FROM", "hooks@example.com")
        .env("ALDABA_SMTP_URL", format!("smtp://me:hidden-secret@localhost:{port}?starttls=required"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("STARTTLS: ") && said.contains("corrupt"), "{said}");
    let heard = heard.join().unwrap();
    assert_eq!(heard.first(), Some(&0x16), "a handshake, and no command");
    assert!(!heard.windows(4).any(|part| part == b"AUTH"));
}

#[tokio::test]
async fn a_burst_leaves_within_seconds_over_one_connection() {
    const OWNERS: usize = 100;
    let stage = MailStage::new().await;
    stage.smtp.pipeline();
    for n in 0..OWNERS {
        stage.endpoint(json!({"ownerEmail": format!("owner{n}@example.com")})).await;
    }
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    stage.send().await;
    let mails = stage.mails(2 * OWNERS).await;
    let took = clock.monotonic().saturating_sub(begun);
    println!("{} mails in {took:?}", mails.len());
    assert!(took < Duration::from_secs(30), "{took:?}");
    let peers: BTreeSet<_> = mails.iter().map(|mail| mail["peer"].as_u64()).collect();
    assert_eq!(peers.len(), 1);
    stage.server.stop().await;
}
