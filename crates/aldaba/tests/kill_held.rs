//! `kill -9` while an endpoint is failed, and again right after a resume: held deliveries stay held, and resumed ones
//! arrive.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const MESSAGES: usize = 40;
/// The delay after a 503.
const RETRY_DELAY: Duration = Duration::from_millis(100);
const STRICT: &str = r#"{"name": "strict", "schedule": {"type": "list", "delays": ["1s"]},
    "jitter": {"type": "none"}, "gate": {"type": "apart"}, "endpointFails": {"type": "whenExhausted"},
    "probe": null}"#;

fn id(answer: &Value) -> String {
    answer["id"].as_str().unwrap_or_else(|| panic!("no id: {answer}")).to_owned()
}

#[test]
fn held_deliveries_and_a_resume_survive_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let status = Arc::new(AtomicU16::new(500));
    let said = status.clone();
    let receiver = Receiver::start(move |_, _| said.load(Ordering::Relaxed));
    let token = token(folder.path());
    let server = Server::start(folder.path(), address);
    let mut client = Client::connect(address, &token).expect("the server listens");
    let post = |client: &mut Client, path: &str, body: &str| {
        loop {
            let answer = client.post(path, None, body).expect("an answer");
            match answer.status {
                200..300 => return answer.body,
                // Others use the machine too; nothing was stored.
                503 => std::thread::sleep(RETRY_DELAY),
                status => panic!("{path}: {status} {}", answer.body),
            }
        }
    };
    post(&mut client, "/policy", STRICT);
    let app = id(&post(&mut client, "/app", r#"{"name": "kill"}"#));
    let body = format!(r#"{{"url": "http://{}/hook", "policy": "strict"}}"#, receiver.address);
    let endpoint = id(&post(&mut client, &format!("/app/{app}/endpoint"), &body));
    let (endpoint, messages) = (format!("/app/{app}/endpoint/{endpoint}"), format!("/app/{app}/msg"));
    let event = r#"{"eventType": "kill.test", "payload": {}}"#;
    post(&mut client, &messages, event);
    for _ in 0..2 {
        receiver.next(Duration::from_secs(30)).expect("an attempt");
    }
    let health = |client: &mut Client| client.get(&endpoint).expect("an answer").body["health"].clone();
    wait_until("the endpoint has failed", || health(&mut client)["status"] == "failed");
    let failed = health(&mut client);
    let held: BTreeSet<_> = (0..MESSAGES).map(|_| id(&post(&mut client, &messages, event))).collect();
    server.kill();

    let server = Server::start(folder.path(), address);
    let mut client = Client::connect(address, &token).expect("the server listens");
    assert_eq!(health(&mut client), failed, "nothing is forgotten");
    status.store(200, Ordering::Relaxed);
    assert!(receiver.next(Duration::from_millis(500)).is_none(), "it still waits for its owner");
    assert_eq!(post(&mut client, &format!("{endpoint}/resume"), "")["changed"], true);
    server.kill();

    let _server = Server::start(folder.path(), address);
    let mut arrived = BTreeSet::new();
    while arrived.len() < MESSAGES {
        let arrival = receiver.next(Duration::from_secs(30));
        arrived.insert(arrival.unwrap_or_else(|| panic!("only {} arrived", arrived.len())).message);
    }
    assert_eq!(arrived, held);
}
