//! An outage of receivers: what A7 and D10 watch, and what follows from it.

use crate::black_box::{Client, Receiver, Server, free_address, token, wait_at_most};
use crate::watch::{LIMIT, Watch};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

pub(crate) const RULES: [&str; 10] = [
    "delivery-failure-rate",
    "delivery-success-rate",
    "retry-rate",
    "average-retries",
    "attempt-duration-p99",
    "delivery-latency-p95",
    "queue-length",
    "oldest-waiting",
    "failed-endpoints",
    "dead-letter-size",
];
/// The thresholds are those that everybody gets, but for two, which an outage reaches after a day and with a thousand deliveries.
const SETTINGS: &str = "delivery-failure-rate > 0.1 for 5s; delivery-success-rate < 0.95 for 5s; retry-rate > 0.2 for 5s; \
    average-retries > 1.5 for 5s; attempt-duration-p99 > 25 for 5s; delivery-latency-p95 > 10 for 5s; queue-length > 100 for 5s; \
    failed-endpoints > 10 for 5s; dead-letter-size > 100 for 5s; oldest-waiting > 20 for 5s";
const CHANGES: [(&str, &str); 4] = [
    ("> 1000\n", "> 100\n"),
    ("> 800 and", "> 80 and"),
    ("> 86400\n", "> 20\n"),
    ("> 43200 and", "> 10 and"),
];
/// Slower than the threshold of a slow attempt, and within the timeout of the policy.
const SLOW_ANSWER: Duration = Duration::from_secs(27);

/// Answers 200 after a while, each connection in a thread of its own.
fn slow_receiver(slow: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let slow = slow.clone();
            std::thread::spawn(move || drop(answer_slowly(stream, &slow)));
        }
    });
    address
}

fn answer_slowly(stream: TcpStream, slow: &AtomicBool) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while {
        line.clear();
        stream.read_line(&mut line)? > 2
    } {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    stream.read_exact(&mut vec![0; length])?;
    if slow.load(Ordering::Relaxed) {
        std::thread::sleep(SLOW_ANSWER);
    }
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

struct Outage {
    client: Client,
}

impl Outage {
    fn post(&mut self, path: &str, body: &Value) -> Value {
        let answer = self.client.post(path, None, &body.to_string()).expect("an answer");
        assert!((200..300).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
        answer.body
    }

    fn application(&mut self) -> String {
        self.post("/app", &json!({"name": "outage"}))["id"].as_str().expect("an id").to_owned()
    }

    fn endpoints(&mut self, app: &str, count: usize, receiver: SocketAddr, policy: &str) -> Vec<String> {
        let body = json!({"url": format!("http://{receiver}/"), "policy": policy});
        let mut made = Vec::new();
        for _ in 0..count {
            let endpoint = self.post(&format!("/app/{app}/endpoint"), &body);
            made.push(endpoint["id"].as_str().expect("an id").to_owned());
        }
        made
    }

    fn messages(&mut self, app: &str, count: usize) {
        let message = json!({"eventType": "a", "payload": {}});
        for _ in 0..count {
            self.post(&format!("/app/{app}/msg"), &message);
        }
    }
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask alerts` installs it"]
fn a7_and_d10_every_rule_fires_and_is_resolved_in_an_outage_here_and_in_prometheus() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let address = free_address();
    let user = token(&data);
    let settings = [
        ("ALDABA_ALERT_RULES", SETTINGS),
        ("ALDABA_ALERT_INTERVAL_SECONDS", "1"),
        // A connection of the script may wait for long between two requests.
        ("ALDABA_HEADER_SECONDS", "600"),
    ];
    let serve = || Server::start_with(&data, address, &settings);
    let (mut watch, _server) = Watch::start(folder.path(), address, &RULES, &CHANGES, serve);
    let mut outage = Outage { client: Client::connect(address, &user).expect("the server listens") };

    let (status, slow) = (Arc::new(AtomicU16::new(500)), Arc::new(AtomicBool::new(true)));
    let said = status.clone();
    let receiver = Receiver::start(move |_, _| said.load(Ordering::Relaxed)).address;
    let late = slow_receiver(slow.clone());
    let policy = |name: &str, fails: &str| {
        json!({
            "name": name, "schedule": {"type": "list", "delays": ["100ms", "100ms"]}, "limit": {"attempts": 3},
            "jitter": {"type": "none"}, "gate": {"type": "apart"}, "probe": null, "endpointFails": {"type": fails},
        })
    };
    outage.post("/policy", &policy("strict", "whenExhausted"));
    outage.post("/policy", &policy("lenient", "never"));

    let patient = json!({
        "name": "patient", "schedule": {"type": "list", "delays": ["1h"]}, "limit": {"attempts": 2},
        "jitter": {"type": "none"}, "gate": {"type": "apart"}, "endpointFails": {"type": "never"},
    });
    outage.post("/policy", &patient);

    // Twelve endpoints fail.
    let failing = outage.application();
    let failed = outage.endpoints(&failing, 12, receiver, "strict");
    outage.messages(&failing, 1);
    let gone = |outage: &mut Outage| {
        let page = outage.client.get(&format!("/app/{failing}/endpoint")).expect("an answer").body;
        let list = page["data"].as_array().expect("a list");
        list.iter().all(|endpoint| endpoint["health"]["status"] == "failed")
    };
    assert!(wait_at_most(LIMIT, || gone(&mut outage)), "the endpoints fail");
    // More than a hundred deliveries wait for another attempt.
    let waiting = outage.application();
    outage.endpoints(&waiting, 1, receiver, "patient");
    outage.messages(&waiting, 120);
    // More than a hundred deliveries end without success, each after two retries.
    let dying = outage.application();
    outage.endpoints(&dying, 1, receiver, "lenient");
    outage.messages(&dying, 120);
    // Some succeed, late.
    let slowly = outage.application();
    outage.endpoints(&slowly, 20, late, "quick");
    outage.messages(&slowly, 1);

    watch.all_fire();

    // Everything works again: what waits is cancelled, the dead letter is emptied, and thousands of deliveries succeed at once.
    status.store(200, Ordering::Relaxed);
    slow.store(false, Ordering::Relaxed);
    for endpoint in failed {
        outage.post(&format!("/app/{failing}/endpoint/{endpoint}/resume"), &json!({}));
    }
    for app in [&failing, &dying] {
        outage.post(&format!("/app/{app}/delivery/discard"), &json!({}));
    }
    let deleted = outage.client.delete(&format!("/app/{waiting}")).expect("an answer");
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    let healthy = outage.application();
    outage.endpoints(&healthy, 40, receiver, "quick");
    watch.all_are_resolved(|| outage.messages(&healthy, 5));
    assert_eq!(watch.panels_without_data(), Vec::<String>::new());
    watch.both_agree();
}
