//! SIGTERM: requests in flight may finish, and nothing else starts.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MESSAGES: usize = 300;
/// For each answer of the receiver; they come one after another.
const ANSWER: Duration = Duration::from_millis(20);
/// How long a request that had begun may take to arrive.
const UNDER_WAY: Duration = Duration::from_millis(250);
/// How long a slow client delays the stop.
const TRICKLE: Duration = Duration::from_millis(1500);
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn no_request_starts_after_sigterm_although_a_client_is_slow_and_more_is_due() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let receiver = Receiver::start(|_, _| {
        std::thread::sleep(ANSWER);
        200
    });
    let token = token(folder.path());
    let server = Server::start(folder.path(), address);
    let mut client = Client::connect(address, &token).expect("the server listens");
    let app = client.post("/app", None, r#"{"name": "stop"}"#).expect("an answer");
    let app = app.body["id"].as_str().expect("an application").to_owned();
    let endpoint = format!(r#"{{"url": "http://{}/"}}"#, receiver.address);
    assert_eq!(client.post(&format!("/app/{app}/endpoint"), None, &endpoint).expect("an answer").status, 201);
    // All at once: one by one they could take as long as the receiver takes for all of them.
    let messages: Vec<_> = (0..MESSAGES).map(|n| json!({"eventType": "a", "payload": {"n": n}})).collect();
    let batch = json!({"messages": messages}).to_string();
    let accepted = client.post(&format!("/app/{app}/msg/batch"), None, &batch).expect("an answer");
    assert_eq!((accepted.status, &accepted.body["accepted"]), (202, &json!(MESSAGES)));
    let mut slow = TcpStream::connect(address).expect("the server listens");
    let head = format!(
        "POST /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-length: 1000\r\n\r\n"
    );
    slow.write_all(head.as_bytes()).expect("it is read");
    receiver.next(WAIT_TIMEOUT).expect("deliveries have begun");

    let mut trickle = || {
        slow.write_all(b" ").expect("the request is still waited for");
        // The pace of a slow client.
        std::thread::sleep(Duration::from_millis(50));
    };
    server.terminate();
    // After the signal no connection is accepted.
    while TcpStream::connect(address).is_ok() {
        trickle();
    }
    let heard = now();
    while now() < heard + UNDER_WAY + TRICKLE {
        trickle();
    }
    drop(slow);
    assert_eq!(server.ended(), Some(0));
    let mut arrived = 1;
    while let Some(arrival) = receiver.next(Duration::from_millis(500)) {
        arrived += 1;
        assert!(arrival.at < heard + UNDER_WAY, "a request began {:?} after the signal", arrival.at - heard);
    }
    assert!(arrived < MESSAGES, "more was due");
}

#[test]
fn hangups_end_nothing_and_the_stop_after_them_drains() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = token(folder.path());
    let receiver = Receiver::start(|_, _| {
        std::thread::sleep(UNDER_WAY);
        200
    });
    let server = Server::start(folder.path(), free_address());
    for _ in 0..3 {
        server.signal("-HUP");
    }
    let mut client = Client::connect(server.address, &token).expect("the server listens");
    let app = client.post("/app", None, r#"{"name": "hangup"}"#).expect("an answer");
    let app = app.body["id"].as_str().expect("an application").to_owned();
    let endpoint = format!(r#"{{"url": "http://{}/"}}"#, receiver.address);
    assert_eq!(client.post(&format!("/app/{app}/endpoint"), None, &endpoint).expect("an answer").status, 201);
    let message = r#"{"eventType": "a", "payload": {}}"#;
    assert_eq!(client.post(&format!("/app/{app}/msg"), None, message).expect("an answer").status, 202);
    receiver.next(WAIT_TIMEOUT).expect("it is delivered");
    server.signal("-HUP");
    server.terminate();
    assert_eq!(server.ended(), Some(0), "the hangup has not ended it");
}

#[expect(clippy::disallowed_methods, reason = "a test has a clock of its own")]
fn now() -> Instant {
    Instant::now()
}
