//! A restored folder accepts and sends nothing until the operator says so.

use super::{Stage, aldaba, said};
use crate::black_box::{Receiver, Server, free_address, wait_until};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// In this time nothing must arrive. A server that is not paused sends within milliseconds.
const QUIET: Duration = Duration::from_secs(3);
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A backup with messages that wait, and the receiver that takes them from now on.
fn backup_of_waiting(messages: usize) -> (Stage, std::path::PathBuf, Receiver, BTreeSet<String>) {
    let status = Arc::new(AtomicU16::new(503));
    let answer = status.clone();
    let receiver = Receiver::start(move |_, _| answer.load(Ordering::SeqCst));
    let (stage, server) = Stage::start(&format!("http://{}/", receiver.address));
    let waiting = (0..messages).map(|number| stage.send(stage.address, number)).collect();
    for _ in 0..messages {
        receiver.next(WAIT_TIMEOUT).expect("a first attempt");
    }
    let backup = stage.backup("backup");
    server.kill();
    while receiver.next(Duration::from_millis(200)).is_some() {}
    status.store(200, Ordering::SeqCst);
    (stage, backup, receiver, waiting)
}

fn text_of(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").expect("it is sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

fn assert_paused(stage: &Stage, server: &Server) {
    let health = stage.client(server.address).get("/health").expect("an answer");
    assert_eq!((health.status, &health.body["delivering"]["status"]), (200, &"paused".into()));
    assert!(health.body["delivering"]["backupMadeAt"].is_string(), "{}", health.body);
    let ready = stage.client(server.address).get("/health/ready").expect("an answer");
    assert_eq!(ready.status, 200, "messages are accepted, so load balancers must send them: {}", ready.body);
    let checks = ready.body["checks"].as_array().expect("a list");
    let delivering = checks.iter().find(|check| check["name"] == "delivering").expect("the check");
    assert_eq!(delivering["state"], "warning");
    assert!(delivering["detail"].as_str().expect("text").contains("restored from a backup"), "{delivering}");
    assert!(text_of(server.address, "/metrics").contains("\naldaba_sending_paused 1\n"));
}

fn arrived(receiver: &Receiver, expected: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    while found.len() < expected {
        let arrival = receiver.next(WAIT_TIMEOUT);
        found.insert(arrival.unwrap_or_else(|| panic!("only {} of {expected}", found.len())).message);
    }
    found
}

#[test]
fn nothing_is_sent_until_the_operator_resumes_across_restarts_and_kills() {
    let (stage, backup, receiver, mut waiting) = backup_of_waiting(4);
    let folder = stage.restore(&backup, "restored");
    for number in 0..3 {
        let server = Server::start(&folder, free_address());
        waiting.insert(stage.send(server.address, 10 + number));
        assert_paused(&stage, &server);
        assert!(receiver.next(QUIET).is_none(), "something was sent");
        match number {
            0 => server.kill(),
            _ => assert_eq!(server.stop(), Some(0)),
        }
    }
    let server = Server::start(&folder, free_address());
    let output = aldaba(&["restore", "--resume", "--data"], &folder, &[]);
    assert!(
        output.status.success() && said(&output).contains("the server sends what waits"),
        "{}",
        said(&output)
    );
    assert_eq!(arrived(&receiver, waiting.len()), waiting);
    let health = stage.client(server.address).get("/health").expect("an answer");
    assert_eq!(health.body["delivering"]["status"], "ok");
    assert!(text_of(server.address, "/metrics").contains("\naldaba_sending_paused 0\n"));
    // A kill just after the resume must not pause it again.
    server.kill();
    let server = Server::start(&folder, free_address());
    let sent = stage.send(server.address, 99);
    wait_until("a new message arrives", || {
        receiver.next(WAIT_TIMEOUT).is_some_and(|arrival| arrival.message == sent)
    });
}

#[test]
fn a_stopped_folder_is_resumed_and_the_next_start_sends() {
    let (stage, backup, receiver, waiting) = backup_of_waiting(2);
    let folder = stage.restore(&backup, "restored");
    let output = aldaba(&["restore", "--resume", "--data"], &folder, &[]);
    assert!(output.status.success() && said(&output).contains("Resumed"), "{}", said(&output));
    let output = aldaba(&["restore", "--resume", "--data"], &folder, &[]);
    assert!(output.status.success() && said(&output).contains("nothing to resume"), "{}", said(&output));
    let _server = Server::start(&folder, free_address());
    assert_eq!(arrived(&receiver, waiting.len()), waiting);
}

#[test]
fn serve_with_resume_sends_from_its_start_on() {
    let (stage, backup, receiver, waiting) = backup_of_waiting(2);
    let folder = stage.restore(&backup, "restored");
    let _server = Server::start_arguments(&folder, free_address(), &["--resume"]);
    assert_eq!(arrived(&receiver, waiting.len()), waiting);
}

#[test]
fn a_backup_that_is_copied_by_hand_is_paused_too() {
    let (stage, backup, receiver, _) = backup_of_waiting(2);
    let folder = stage.path("by-hand");
    std::fs::create_dir(&folder).expect("a folder");
    for name in ["aldaba.db", "encryption.key", "jwt.secret"] {
        std::fs::copy(backup.join(name), folder.join(name)).expect("a copy");
    }
    let server = Server::start(&folder, free_address());
    assert_paused(&stage, &server);
    assert!(receiver.next(QUIET).is_none(), "something was sent");
}

#[test]
fn a_resend_by_hand_is_refused_while_sending_is_paused_and_its_answer_says_so() {
    let (stage, backup, receiver, waiting) = backup_of_waiting(1);
    let server = Server::start(&stage.restore(&backup, "restored"), free_address());
    let path = format!("/app/{}/endpoint?limit=250", stage.app);
    let endpoint = super::all(&stage, server.address, &path, "id").remove(0);
    let message = waiting.first().expect("a message");
    let path = format!("/app/{}/msg/{message}/endpoint/{endpoint}/resend", stage.app);
    let answer = stage.client(server.address).post(&path, None, "").expect("an answer");
    assert_eq!((answer.status, &answer.body["code"]), (503, &"paused".into()), "{}", answer.body);
    assert!(receiver.next(QUIET).is_none(), "something was sent");
}

/// Waits until so many mails are queued in a data folder.
fn wait_for_mail(data: &std::path::Path) {
    wait_until("a mail is queued", || {
        let connection = rusqlite::Connection::open(data.join("aldaba.db")).expect("a database");
        let count: i64 =
            connection.query_row("SELECT count(*) FROM mail", (), |row| row.get(0)).expect("a table");
        count > 0
    });
}

#[test]
fn mails_wait_for_the_resume_too() {
    let receiver = Receiver::start(|_, _| 410);
    let (stage, server) = Stage::start(&format!("http://{}/unused", receiver.address));
    drop(server);
    let closed = format!("smtp://{}", free_address());
    let mails = |url: &str| {
        let settings = [("ALDABA_SMTP_URL", url.to_owned()), ("ALDABA_MAIL_FROM", "a@example.com".into())];
        settings.into_iter().chain([("ALDABA_MAIL_DELAY_SECONDS", "0".to_owned())]).collect::<Vec<_>>()
    };
    let start = |data: &std::path::Path, url: &str| {
        let settings = mails(url);
        let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start_with(data, free_address(), &settings)
    };
    let server = start(&stage.data, &closed);
    let owner = format!(
        r#"{{"url": "http://{}/", "policy": "standard", "ownerEmail": "owner@example.com"}}"#,
        receiver.address
    );
    let made = stage.client(server.address).post(&format!("/app/{}/endpoint", stage.app), None, &owner);
    assert_eq!(made.expect("an answer").status, 201);
    // It is gone, which its owner is told.
    stage.send(server.address, 1);
    wait_for_mail(&stage.data);
    let backup = stage.backup("backup");
    server.kill();
    let mail_server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    mail_server.set_nonblocking(true).expect("a socket");
    let url = format!("smtp://{}", mail_server.local_addr().expect("it has one"));
    let folder = stage.restore(&backup, "restored");
    let _server = start(&folder, &url);
    // A server that is not paused connects within milliseconds.
    std::thread::sleep(QUIET);
    assert!(mail_server.accept().is_err(), "a mail was about to leave");
    assert!(aldaba(&["restore", "--resume", "--data"], &folder, &[]).status.success());
    wait_until("the mail is about to leave", || mail_server.accept().is_ok());
}
