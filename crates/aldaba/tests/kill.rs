//! `kill -9` under load: nothing that was accepted is lost, and nothing needs a hand.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SENDERS: usize = 16;
const KILLS: usize = 3;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Tells the senders when a killed server is back.
#[derive(Default)]
struct Incarnation {
    number: Mutex<usize>,
    changed: Condvar,
}

impl Incarnation {
    fn current(&self) -> usize {
        *self.number.lock().expect("no panic")
    }

    fn begin_next(&self) {
        *self.number.lock().expect("no panic") += 1;
        self.changed.notify_all();
    }

    fn wait_past(&self, seen: usize) {
        let number = self.number.lock().expect("no panic");
        let (_number, timeout) =
            self.changed.wait_timeout_while(number, WAIT_TIMEOUT, |n| *n <= seen).expect("no panic");
        assert!(!timeout.timed_out(), "the server did not come back");
    }
}

/// Refuses every second message twice before it takes it.
fn refusing_half_twice() -> Receiver {
    let mut seen: HashMap<String, u32> = HashMap::new();
    Receiver::start(move |_, message| {
        let times = seen.entry(message.to_owned()).or_default();
        *times += 1;
        let refused = message.bytes().last().is_some_and(|byte| byte % 2 == 0);
        if refused && *times <= 2 { 500 } else { 200 }
    })
}

#[test]
fn every_accepted_message_arrives_after_kill_9_while_accepting() {
    let messages: usize =
        std::env::var("ALDABA_KILL_MESSAGES").map_or(200, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let receiver = refusing_half_twice();
    let token = token(folder.path());
    let mut server = Server::start(folder.path(), address);
    let app = make_endpoint(address, &token, &format!("http://{}/hook", receiver.address));

    let (next, accepted) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(HashMap::new())));
    let incarnation = Arc::new(Incarnation::default());
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (next, accepted, incarnation) = (next.clone(), accepted.clone(), incarnation.clone());
            let (token, path) = (token.clone(), format!("/app/{app}/msg"));
            std::thread::spawn(move || send(address, &token, &path, messages, &next, &accepted, &incarnation))
        })
        .collect();

    let mut arrived: HashSet<String> = HashSet::new();
    let mut duplicates = 0;
    let mut kills = 0;
    while arrived.len() < messages {
        if kills < KILLS && next.load(Ordering::Relaxed) >= messages * (kills + 1) / (KILLS + 1) {
            kills += 1;
            server.kill();
            server = restart(folder.path(), address, &incarnation);
        }
        let arrival = receiver.next(WAIT_TIMEOUT);
        let arrival = arrival.unwrap_or_else(|| panic!("only {} of {messages} arrived", arrived.len()));
        if arrival.status == 200 && !arrived.insert(arrival.message) {
            duplicates += 1;
        }
    }
    senders.into_iter().for_each(|sender| sender.join().expect("a sender failed"));

    assert_eq!(kills, KILLS);
    let accepted = accepted.lock().expect("no panic");
    assert_eq!(accepted.len(), messages, "every key was accepted");
    let lost: Vec<_> = accepted.values().filter(|message| !arrived.contains(*message)).collect();
    assert!(lost.is_empty(), "accepted and never delivered: {lost:?}");
    assert_eq!(arrived.len(), messages, "a key was accepted twice");
    println!("{messages} messages, {kills} kills: 0 lost, {duplicates} delivered again after a crash");
    assert_eq!(server.stop(), Some(0), "a stop by hand is clean");
}

fn restart(data: &Path, address: SocketAddr, incarnation: &Incarnation) -> Server {
    let server = Server::start(data, address);
    incarnation.begin_next();
    server
}

fn make_endpoint(address: SocketAddr, token: &str, url: &str) -> String {
    make_endpoint_as(address, token, &format!(r#"{{"url": "{url}", "policy": "quick"}}"#))
}

fn make_endpoint_as(address: SocketAddr, token: &str, body: &str) -> String {
    let mut client = Client::connect(address, token).expect("the server listens");
    let app = client.post("/app", None, r#"{"name": "kill"}"#).expect("an answer");
    let app = app.body["id"].as_str().expect("an application").to_owned();
    let endpoint = client.post(&format!("/app/{app}/endpoint"), None, body).expect("an answer");
    assert_eq!(endpoint.status, 201, "{}", endpoint.body);
    app
}

/// Sends until all are sent. A message whose answer was lost is sent again under the same key.
fn send(
    address: SocketAddr,
    token: &str,
    path: &str,
    messages: usize,
    next: &AtomicUsize,
    accepted: &Mutex<HashMap<usize, String>>,
    incarnation: &Incarnation,
) {
    let mut client = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= messages {
            return;
        }
        let body = format!(r#"{{"eventType": "kill.test", "payload": {{"n": {number}}}}}"#);
        let message = loop {
            let Some(connected) = &mut client else {
                let seen = incarnation.current();
                match Client::connect(address, token) {
                    Ok(fresh) => client = Some(fresh),
                    Err(_) => incarnation.wait_past(seen),
                }
                continue;
            };
            match connected.post(path, Some(&format!("key-{number}")), &body) {
                Ok(answer) if answer.status == 202 => {
                    break answer.body["id"].as_str().expect("an id").to_owned();
                }
                Ok(answer) => panic!("{}: {}", answer.status, answer.body),
                // The server that it was connected to is gone; the next may be there already.
                Err(_) => client = None,
            }
        };
        accepted.lock().expect("no panic").insert(number, message);
    }
}

/// The messages of one sender, by their number, to an ordered endpoint.
const IN_ORDER: usize = 120;

#[test]
fn an_ordered_endpoint_gets_one_after_the_other_across_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let mut seen: HashSet<String> = HashSet::new();
    // Every thirtieth or so is refused once, and everything behind it waits for its retry.
    let receiver = Receiver::start(move |_, message| {
        let first = seen.insert(message.to_owned());
        if first && message.bytes().last().is_some_and(|byte| byte % 30 == 0) { 500 } else { 200 }
    });
    let token = token(folder.path());
    let mut server = Server::start(folder.path(), address);
    let ordered =
        format!(r#"{{"url": "http://{}/", "policy": "quick", "ordering": "fifo"}}"#, receiver.address);
    let app = make_endpoint_as(address, &token, &ordered);
    let (next, accepted) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(HashMap::new())));
    let incarnation = Arc::new(Incarnation::default());
    let sender = {
        let (incarnation, path) = (incarnation.clone(), format!("/app/{app}/msg"));
        std::thread::spawn(move || send(address, &token, &path, IN_ORDER, &next, &accepted, &incarnation))
    };
    // How many have been taken: the number of the next one.
    let (mut taken, mut kills, mut again) = (0, 0, 0);
    while taken < IN_ORDER {
        let arrival =
            receiver.next(WAIT_TIMEOUT).unwrap_or_else(|| panic!("only {taken} of {IN_ORDER} arrived"));
        let body: serde_json::Value = serde_json::from_slice(&arrival.body).expect("what was sent");
        let number = usize::try_from(body["n"].as_u64().expect("a number")).expect("a small one");
        // A crash between the answer and its record has the last one sent again, never a later one first.
        assert!(number == taken || number + 1 == taken, "number {number} came where {taken} was next");
        again += usize::from(number < taken);
        if number == taken && arrival.status == 200 {
            taken += 1;
        }
        if kills < KILLS && taken > IN_ORDER * (kills + 1) / (KILLS + 1) {
            kills += 1;
            server.kill();
            server = restart(folder.path(), address, &incarnation);
        }
    }
    sender.join().expect("the sender failed");
    assert_eq!(kills, KILLS);
    println!("{IN_ORDER} messages in order, {kills} kills, {again} delivered again after a crash");
    assert_eq!(server.stop(), Some(0));
}
