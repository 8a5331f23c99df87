//! The first seconds of every policy's schedule, on a real wire, to a receiver that always fails.
//! The long ones are shown on a simulated clock (`crates/simulation/tests/schedules.rs`).

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The delay that the machine may add, besides the time for which it hangs.
const LATE: f64 = 0.4;

/// When each attempt may come, in seconds after the one before: at the earliest and at the latest.
const SCHEDULES: [(&str, &[(f64, f64)]); 5] = [
    ("standard", &[(4.0, 6.0), (240.0, 360.0)]),
    ("quick", &[(1.0, 2.0), (2.0, 3.0), (4.0, 5.0), (8.0, 9.0), (16.0, 17.0)]),
    ("persistent", &[(2.0, 2.0), (4.0, 4.0), (8.0, 8.0), (16.0, 16.0), (32.0, 32.0)]),
    ("job-status", &[(1.0, 1.0), (2.0, 2.0)]),
    ("public-api", &[(5.0, 5.5), (25.0, 27.5), (125.0, 137.5)]),
];

#[test]
fn the_first_attempts_of_every_policy_are_on_time() {
    let seconds: f64 =
        std::env::var("ALDABA_SCHEDULE_SECONDS").map_or(8.0, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let receiver = Receiver::start(|_, _| 500);
    let token = token(folder.path());
    let server = Server::start(folder.path(), free_address());
    let mut client = Client::connect(server.address, &token).expect("the server listens");
    let app = client.post("/app", None, r#"{"name": "schedules"}"#).expect("an answer").body["id"].clone();
    let app = app.as_str().expect("an application");
    for (policy, _) in SCHEDULES {
        let body = format!(r#"{{"url": "http://{}/{policy}", "policy": "{policy}"}}"#, receiver.address);
        let made = client.post(&format!("/app/{app}/endpoint"), None, &body).expect("an answer");
        assert_eq!(made.status, 201, "{}", made.body);
    }
    let body = r#"{"eventType": "schedule.test", "payload": {}}"#;
    let sent = client.post(&format!("/app/{app}/msg"), None, body).expect("an answer");
    assert_eq!(sent.status, 202, "{}", sent.body);

    let longest = standstills();
    let arrivals = collect(&receiver, seconds);
    let late = LATE + Duration::from_millis(longest.load(Ordering::Relaxed)).as_secs_f64();
    for (policy, gaps) in SCHEDULES {
        let times = arrivals.get(policy).map(Vec::as_slice).unwrap_or_default();
        println!("{policy:<12} {times:.2?}");
        check(policy, gaps, times, seconds, late);
    }
}

/// The longest delay, in milliseconds, with which the machine wakes an idle thread.
fn standstills() -> Arc<AtomicU64> {
    const NAP: Duration = Duration::from_millis(10);
    let longest = Arc::new(AtomicU64::new(0));
    let measured = longest.clone();
    std::thread::spawn(move || {
        loop {
            let begun = now();
            std::thread::sleep(NAP);
            let late = now().duration_since(begun).saturating_sub(NAP);
            measured.fetch_max(u64::try_from(late.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    });
    longest
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

/// The arrivals by policy, in seconds after the first one of it.
fn collect(receiver: &Receiver, seconds: f64) -> HashMap<String, Vec<f64>> {
    let mut firsts: HashMap<String, Instant> = HashMap::new();
    let mut arrivals: HashMap<String, Vec<f64>> = HashMap::new();
    let mut latest: f64 = 0.0;
    while latest < seconds {
        let timeout = Duration::from_secs_f64(seconds - latest);
        let Some(arrival) = receiver.next(timeout) else { break };
        let policy = arrival.path.trim_start_matches('/').to_owned();
        let first = *firsts.entry(policy.clone()).or_insert(arrival.at);
        latest = arrival.at.duration_since(first).as_secs_f64();
        arrivals.entry(policy).or_default().push(latest);
    }
    arrivals
}

fn check(policy: &str, gaps: &[(f64, f64)], times: &[f64], seconds: f64, late: f64) {
    for (number, (pair, &(earliest, latest))) in times.windows(2).zip(gaps).enumerate() {
        let gap = pair[1] - pair[0];
        // A receiver sees an attempt a little before the sender has its answer and counts from it.
        assert!(
            gap >= earliest - 0.05 && gap <= latest + late,
            "{policy}: attempt {} came {gap:.3} s after the one before, not {earliest} to {latest}",
            number + 2
        );
    }
    let mut due = 0.0;
    let expected = 1 + gaps
        .iter()
        .take_while(|(_, latest)| {
            due += latest + late;
            due < seconds
        })
        .count();
    assert!(times.len() >= expected, "{policy}: {} attempts in {seconds} s, not {expected}", times.len());
    assert!(times.len() <= gaps.len() + 1, "{policy}: {} attempts are too many", times.len());
}
