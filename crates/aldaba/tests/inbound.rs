//! Webhooks of another sender through the door, a fifth of them repeats, with `kill -9` in between: each is forwarded,
//! and none twice but for requests that were in flight when the server died.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token};
use serde_json::json;
use standardwebhooks::Webhook;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SENDERS: usize = 16;
const KILLS: usize = 3;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// One request in so many repeats a former event.
const REPEATED: usize = 5;
/// Requests to one endpoint at once, at most.
const IN_FLIGHT: usize = 64;

/// What all senders share.
struct Sending {
    address: SocketAddr,
    path: String,
    webhook: Webhook,
    requests: usize,
    next: AtomicUsize,
    /// How often the server has been started, but for the first time.
    started: Mutex<usize>,
    came_back: Condvar,
    told: Mutex<AnswerCounts>,
}

/// What the senders have heard.
#[derive(Default)]
struct AnswerCounts {
    /// How often each event was answered as a new one.
    new: HashMap<usize, usize>,
    duplicates: usize,
    /// Answers that were lost with the server.
    lost: usize,
    took: Vec<Duration>,
}

/// The event that a request is about: a fifth of them are about one that was sent before, perhaps at this moment.
fn event_of(request: usize) -> usize {
    if request % REPEATED == REPEATED - 1 { event_of(request - 1 - request % 37 % request) } else { request }
}

impl Sending {
    fn run(&self) {
        let mut client = None;
        loop {
            let request = self.next.fetch_add(1, Ordering::Relaxed);
            if request >= self.requests {
                return;
            }
            self.send(event_of(request), &mut client);
        }
    }

    /// Until there is an answer, as senders do.
    fn send(&self, event: usize, client: &mut Option<Client>) {
        let body = format!(r#"{{"type": "order.paid", "n": {event}}}"#);
        let id = format!("evt_{event}");
        loop {
            let Some(connected) = client else {
                let seen = *self.started.lock().expect("no panic");
                match Client::connect(self.address, "") {
                    Ok(fresh) => *client = Some(fresh),
                    Err(_) => self.wait_past(seen),
                }
                continue;
            };
            let at = seconds();
            let signature = self.webhook.sign(&id, at, body.as_bytes()).expect("a signature");
            let mut headers = String::new();
            for (name, value) in [("id", &id), ("timestamp", &at.to_string()), ("signature", &signature)] {
                write!(headers, "webhook-{name}: {value}\r\n").expect("text");
            }
            let begun = now();
            let answer = connected.post_inbound(&self.path, &headers, &body);
            let mut told = self.told.lock().expect("no panic");
            match answer {
                Ok(answer) if answer.status == 200 && answer.body["received"] == true => {
                    told.took.push(now() - begun);
                    if answer.body["duplicate"] == true {
                        told.duplicates += 1;
                    } else {
                        *told.new.entry(event).or_default() += 1;
                    }
                    return;
                }
                // A server that has just begun may be busy.
                Ok(answer) if answer.status == 503 => {
                    drop(told);
                    // The delay before the copy.
                    std::thread::sleep(Duration::from_millis(100));
                }
                Ok(answer) => panic!("{}: {}", answer.status, answer.body),
                // The server that it was connected to is gone; the next may be there already.
                Err(_) => {
                    told.lost += 1;
                    *client = None;
                }
            }
        }
    }

    fn wait_past(&self, seen: usize) {
        let started = self.started.lock().expect("no panic");
        let (_started, timeout) = self
            .came_back
            .wait_timeout_while(started, WAIT_TIMEOUT, |started| *started <= seen)
            .expect("no panic");
        assert!(!timeout.timed_out(), "the server did not come back");
    }

    fn is_back(&self) {
        *self.started.lock().expect("no panic") += 1;
        self.came_back.notify_all();
    }
}

fn start(data: &Path, address: SocketAddr) -> Server {
    Server::start_with(data, address, &[("ALDABA_SOURCE_REQUESTS", "0")])
}

/// The source's id, and the path that its sender has.
fn make_source(address: SocketAddr, token: &str, url: &str) -> (String, String) {
    let mut client = Client::connect(address, token).expect("the server listens");
    let source = json!({"name": "orders", "type": "standard-webhooks", "config": {"secret": SECRET}});
    let source = client.post("/ingest/source", None, &source.to_string()).expect("an answer");
    assert_eq!(source.status, 201, "{}", source.body);
    let id = source.body["id"].as_str().expect("an id").to_owned();
    let endpoint = json!({"url": url, "policy": "quick"}).to_string();
    let endpoint = client.post(&format!("/ingest/source/{id}/endpoint"), None, &endpoint).expect("an answer");
    assert_eq!(endpoint.status, 201, "{}", endpoint.body);
    let inside = source.body["ingestUrl"].as_str().expect("a URL").split_once("/in/").expect("a path").1;
    (id, format!("/in/{inside}"))
}

#[test]
fn every_inbound_webhook_is_forwarded_once_across_kill_9() {
    let requests: usize =
        std::env::var("ALDABA_INBOUND_EVENTS").map_or(2000, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let receiver = Receiver::start(|_, _| 200);
    let token = token(folder.path());
    let mut server = start(folder.path(), address);
    let (source, path) = make_source(address, &token, &format!("http://{}/", receiver.address));
    let sending = Arc::new(Sending {
        address,
        path,
        webhook: Webhook::new(SECRET).expect("a secret"),
        requests,
        next: AtomicUsize::new(0),
        started: Mutex::new(0),
        came_back: Condvar::new(),
        told: Mutex::default(),
    });
    let begun = now();
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let sending = sending.clone();
            std::thread::spawn(move || sending.run())
        })
        .collect();

    let events: HashSet<_> = (0..requests).map(event_of).collect();
    // The message under which each event arrived, and how often.
    let mut arrived: HashMap<u64, (String, usize)> = HashMap::new();
    let mut kills = 0;
    while arrived.len() < events.len() {
        if kills < KILLS && sending.next.load(Ordering::Relaxed) >= requests * (kills + 1) / (KILLS + 1) {
            kills += 1;
            server.kill();
            server = start(folder.path(), address);
            sending.is_back();
        }
        let arrival = receiver.next(WAIT_TIMEOUT);
        let arrival = arrival.unwrap_or_else(|| panic!("only {} of {} arrived", arrived.len(), events.len()));
        note(&mut arrived, &arrival.message, &arrival.body);
    }
    senders.into_iter().for_each(|sender| sender.join().expect("a sender failed"));
    let took = now() - begun;
    // What else comes, comes at once.
    while let Some(arrival) = receiver.next(Duration::from_secs(2)) {
        note(&mut arrived, &arrival.message, &arrival.body);
    }

    assert_eq!(kills, KILLS);
    let again: usize = arrived.values().map(|(_, times)| times - 1).sum();
    assert!(again <= kills * IN_FLIGHT, "{again} were forwarded again; so many were never in flight");
    let mut told = sending.told.lock().expect("no panic");
    let twice: Vec<_> = told.new.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "answered as new twice: {twice:?}");
    assert_eq!(told.took.len(), requests, "every request was answered in the end");
    let mut client = Client::connect(address, &token).expect("the server listens");
    for status in ["processing", "failed"] {
        let left = client.get(&format!("/ingest/source/{source}/event?status={status}")).expect("an answer");
        assert_eq!(left.body["data"], json!([]), "{status}");
    }
    told.took.sort_unstable();
    let share = |percent: usize| told.took[(told.took.len() - 1) * percent / 100];
    println!(
        "{requests} webhooks, {} events, {kills} kills in {took:.1?}: 0 lost, {} answered as repeats, {} answers lost with \
         the server, {again} forwarded again after a crash; an answer took {:.1?} (p50), {:.1?} (p99)",
        events.len(),
        told.duplicates,
        told.lost,
        share(50),
        share(99),
    );
    assert_eq!(server.stop(), Some(0), "a stop by hand is clean");
}

/// An event has one message, however often it came in.
fn note(arrived: &mut HashMap<u64, (String, usize)>, message: &str, body: &[u8]) {
    let body: serde_json::Value = serde_json::from_slice(body).expect("what was sent");
    let event = body["n"].as_u64().expect("a number");
    let (first, times) = arrived.entry(event).or_insert_with(|| (message.to_owned(), 0));
    assert_eq!(first, message, "event {event} became two messages");
    *times += 1;
}

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    i64::try_from(since.as_secs()).expect("a moment")
}

#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
fn now() -> Instant {
    Instant::now()
}
