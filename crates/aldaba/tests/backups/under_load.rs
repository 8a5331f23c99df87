//! Backups while messages are accepted: what was accepted before a backup began is in it, and accepting stays quick.

use super::{Stage, messages};
use crate::black_box::{Client, Server, free_address};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SENDERS: usize = 4;
/// How much is in the database before, so that a backup lasts.
const PAST_MESSAGES: usize = 150;
const PAST_BYTES: usize = 500_000;
/// How long accepting is measured without a backup, each time.
const MEASURED: Duration = Duration::from_secs(2);
/// Among other tests the times say little; by itself (`cargo xtask backups`) a few milliseconds more or less say nothing.
const NOISE_AMONG_OTHERS: Duration = Duration::from_millis(250);
const NOISE: Duration = Duration::from_millis(5);

/// What the senders have done: in the order of the answers.
#[derive(Default)]
struct Accepted {
    ids: Mutex<Vec<String>>,
    times: Mutex<Vec<Duration>>,
    stop: AtomicBool,
    next: AtomicUsize,
}

impl Accepted {
    fn count(&self) -> usize {
        self.ids.lock().expect("no panic").len()
    }

    /// The times since the last call.
    fn take_times(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.times.lock().expect("no panic"))
    }
}

fn send(address: SocketAddr, token: &str, app: &str, accepted: &Accepted) {
    let mut client = Client::connect(address, token).expect("the server listens");
    let path = format!("/app/{app}/msg");
    while !accepted.stop.load(Ordering::Relaxed) {
        let number = accepted.next.fetch_add(1, Ordering::Relaxed);
        let body =
            format!(r#"{{"eventType": "a", "payload": {{"n": {number}, "x": "{}"}}}}"#, "y".repeat(400));
        let begun = now();
        let answer = client.post(&path, None, &body).expect("an answer");
        let took = now().duration_since(begun);
        assert_eq!(answer.status, 202, "{}", answer.body);
        let id = answer.body["id"].as_str().expect("an id").to_owned();
        accepted.ids.lock().expect("no panic").push(id);
        accepted.times.lock().expect("no panic").push(took);
        // A steady rate: at saturation a queue would be measured.
        std::thread::sleep(Duration::from_millis(8));
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

fn p99(times: &mut [Duration]) -> Duration {
    assert!(times.len() > 50, "too few to say anything: {}", times.len());
    times.sort();
    times[times.len() * 99 / 100]
}

#[test]
fn every_message_accepted_before_a_backup_began_is_in_it_and_accepting_stays_quick() {
    let asked = std::env::var("ALDABA_BACKUPS").ok();
    let noise = if asked.is_some() { NOISE } else { NOISE_AMONG_OTHERS };
    let backups: usize = asked.map_or(2, |text| text.parse().expect("a number"));
    let (stage, server) = Stage::quiet();
    let past = format!(r#"{{"eventType": "a", "payload": {{"x": "{}"}}}}"#, "z".repeat(PAST_BYTES));
    for _ in 0..PAST_MESSAGES {
        let path = format!("/app/{}/msg", stage.app);
        assert_eq!(stage.client(stage.address).post(&path, None, &past).expect("an answer").status, 202);
    }
    let accepted = Arc::new(Accepted::default());
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (accepted, token, app, address) =
                (accepted.clone(), stage.token.clone(), stage.app.clone(), stage.address);
            std::thread::spawn(move || send(address, &token, &app, &accepted))
        })
        .collect();
    let (mut without, mut during) = (Vec::new(), Vec::new());
    for number in 0..backups {
        accepted.take_times();
        std::thread::sleep(MEASURED);
        without.extend(accepted.take_times());
        let before = accepted.count();
        let begun = now();
        let backup = stage.backup(&format!("backup-{number}"));
        let took = now().duration_since(begun);
        during.extend(accepted.take_times());
        let promised: Vec<String> = accepted.ids.lock().expect("no panic")[..before].to_vec();
        let name = format!("restored-{number}");
        let folder = stage.restore(&backup, &name);
        let restored = Server::start(&folder, free_address());
        let found: HashSet<String> = messages(&stage, restored.address).into_iter().collect();
        let lost: Vec<_> = promised.iter().filter(|id| !found.contains(*id)).collect();
        assert!(lost.is_empty(), "backup {number}: {} of {before} are missing: {lost:?}", lost.len());
        assert_eq!(restored.stop(), Some(0));
        println!("backup {number}: {took:?}, {before} accepted before, {} in it", found.len());
        for folder in [backup, folder] {
            std::fs::remove_dir_all(folder).expect("it is ours");
        }
    }
    accepted.stop.store(true, Ordering::Relaxed);
    senders.into_iter().for_each(|sender| sender.join().expect("a sender failed"));
    let (without, during) = (p99(&mut without), p99(&mut during));
    println!(
        "{backups} backups: nothing is missing; accept p99 {without:?} without, {during:?} during a backup"
    );
    assert!(during <= (without * 2).max(noise), "{during:?} is more than twice {without:?}");
    let log = stage.data.join("aldaba.db-wal").metadata().expect("a log").len();
    assert!(log < 512 << 20, "the log has grown to {log} bytes and stays so");
    assert_eq!(server.stop(), Some(0));
}
