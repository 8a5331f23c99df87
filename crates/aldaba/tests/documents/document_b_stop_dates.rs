//! Document B: no delivery outlives its stop date, for any reason of waiting.

use crate::stage::{HOUR, Stage, id, play, status};
use aldaba_delivery::policy::Overrides;
use serde_json::{Value, json};
use std::time::Duration;

const URL: &str = "https://receiver.example/hook";
const DAYS: Duration = Duration::from_secs(24 * 3600);

/// Two endpoints of one application at an origin that answers with 500, under a stop date of two minutes. The first
/// one gets a message until its host is held; then the second one gets `count`.
async fn behind_a_hold(stage: &Stage, count: usize, more: Value) -> (String, Vec<String>) {
    let app = stage.application().await;
    for name in ["first", "second"] {
        stage.post("/event-type", json!({"name": name, "description": "for one of the two"}), 201).await;
    }
    let first = json!({"policy": "persistent", "filterTypes": ["first"]});
    stage.endpoint(&app, "https://down.example/1", first).await;
    let mut second = json!({"policy": "persistent", "filterTypes": ["second"]});
    second.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stage.endpoint(&app, "https://down.example/2", second).await;
    let send = async |kind: &str| {
        let body = json!({"eventType": kind, "payload": {}});
        id(&stage.post(&format!("/app/{app}/msg"), body, 202).await)
    };
    send("first").await;
    // 2 + 4 + 8 + 16 s later the next delay is 32 s, and the host is held.
    stage.wait(Duration::from_secs(31)).await;
    let mut messages = Vec::new();
    for _ in 0..count {
        messages.push(send("second").await);
    }
    (app, messages)
}

fn two_minutes() -> Overrides {
    let read = Overrides::read(|name| (name == "RETRY_STOP_DATE_AFTER_MINUTES").then(|| "2".into()));
    read.unwrap()
}

/// All of them are in the history as dead for their stop date, with every attempt, and nothing is pending.
async fn assert_ended(stage: &Stage, app: &str, messages: &[String]) {
    let pending = stage.get(&format!("/app/{app}/delivery?state=pending")).await;
    assert_eq!(pending["data"], json!([]));
    for message in messages {
        let told = stage.destination(app, message).await;
        assert_eq!((&told["status"], &told["reason"]), (&json!(2), &json!("stop_date")), "{told}");
        let delivery =
            stage.get(&format!("/app/{app}/delivery/{}", told["deliveryId"].as_str().unwrap())).await;
        let made = stage.attempts(app, message).await.len();
        assert_eq!(delivery["attemptCount"], json!(made));
    }
}

#[test]
fn b4_none_of_many_behind_a_hold_outlives_its_stop_date_tried_or_not() {
    play(async {
        let stage = Stage::with(two_minutes(), |_| status(500)).await;
        // More than a lane keeps in memory.
        let (app, messages) = behind_a_hold(&stage, 600, json!({})).await;
        let pending = async || {
            let page = stage.get(&format!("/app/{app}/delivery?state=pending&limit=250")).await;
            page["data"].as_array().unwrap().len()
        };
        stage.wait(Duration::from_secs(60)).await;
        assert_eq!(pending().await, 250);
        stage.wait(Duration::from_secs(63)).await;
        assert_eq!(pending().await, 0);
        let tried = stage.wire().iter().filter(|arrival| arrival.url.ends_with("/2")).count();
        assert!(tried < 10, "{tried} were tried while the host was held");
        assert_ended(&stage, &app, &messages[..20]).await;
    });
}

#[test]
fn b4_the_twenty_that_were_seen_to_wait_end_and_nothing_is_sent_for_them_any_more() {
    play(async {
        let stage = Stage::with(two_minutes(), |_| status(500)).await;
        let (app, messages) = behind_a_hold(&stage, 20, json!({})).await;
        stage.wait(Duration::from_secs(123)).await;
        assert_ended(&stage, &app, &messages).await;
        let dead = stage.get(&format!("/app/{app}/delivery?state=dead&reason=stop_date")).await;
        assert_eq!(dead["data"].as_array().unwrap().len(), 21, "and that of the first endpoint");
        let before = stage.wire().len();
        stage.wait(HOUR * 3).await;
        assert_eq!(stage.wire().len(), before);
    });
}

#[test]
fn b4_what_waits_behind_an_ordered_head_ends_at_its_stop_date() {
    play(async {
        let stage = Stage::with(two_minutes(), |_| status(500)).await;
        let app = stage.application().await;
        let more = json!({"policy": "persistent", "ordering": "fifo"});
        stage.endpoint(&app, URL, more).await;
        let mut messages = Vec::new();
        for _ in 0..20 {
            messages.push(stage.message(&app).await);
        }
        stage.wait(Duration::from_secs(123)).await;
        let pending = stage.get(&format!("/app/{app}/delivery?state=pending")).await;
        assert_eq!(pending["data"], json!([]));
        for message in &messages[1..] {
            assert_eq!(stage.destination(&app, message).await["reason"], "stop_date");
            assert_eq!(stage.attempts(&app, message).await.len(), 0, "the first one was in its way");
        }
    });
}

#[test]
fn b4_an_ordered_endpoint_that_blocks_stops_with_the_first_and_holds_the_others() {
    play(async {
        let stage = Stage::with(two_minutes(), |_| status(500)).await;
        let more = json!({"ordering": "fifo", "onExhausted": "block"});
        let (app, messages) = behind_a_hold(&stage, 3, more).await;
        stage.wait(Duration::from_secs(600)).await;
        let first = stage.destination(&app, &messages[0]).await;
        assert_eq!(first["reason"], "stop_date");
        let held = stage.get(&format!("/app/{app}/delivery?state=pending")).await;
        assert_eq!(held["data"].as_array().unwrap().len(), 2, "they wait for the owner");
        // The owner lets them go: each gets an attempt, long after it was accepted.
        stage.answers(|_| status(200));
        let endpoints = stage.get(&format!("/app/{app}/endpoint")).await;
        let second =
            endpoints["data"].as_array().unwrap().iter().find(|one| one["url"] == "https://down.example/2");
        let second = id(second.unwrap());
        stage.post(&format!("/app/{app}/endpoint/{second}/resume"), json!({}), 200).await;
        stage.wait(Duration::from_secs(120)).await;
        for message in &messages[1..] {
            assert_eq!(stage.destination(&app, message).await["status"], 0);
        }
    });
}

#[test]
fn b4_what_waits_for_a_rate_ends_at_its_stop_date() {
    play(async {
        let stage = Stage::with(two_minutes(), |_| status(200)).await;
        let app = stage.application().await;
        stage.endpoint(&app, URL, json!({"policy": "persistent", "throttleRate": 1})).await;
        for _ in 0..200 {
            stage.message(&app).await;
        }
        stage.wait(Duration::from_secs(123)).await;
        let pending = stage.get(&format!("/app/{app}/delivery?state=pending")).await;
        assert_eq!(pending["data"], json!([]));
        let sent = stage.seconds(URL);
        assert!((115..=125).contains(&sent.len()), "{} were sent, one a second", sent.len());
    });
}

#[test]
fn b4_after_a_server_that_was_off_what_is_past_its_stop_date_ends_unsent() {
    play(async {
        let mut stage = Stage::with(two_minutes(), |_| status(500)).await;
        let (app, _, tried) = stage.one_message(URL, "persistent").await;
        stage.wait(Duration::from_secs(40)).await;
        // The host is held: this one was never tried.
        let untried = stage.message(&app).await;
        stage.wait(Duration::from_secs(1)).await;
        let before = stage.wire().len();
        stage.off_for(Duration::from_secs(3600)).await;
        stage.answers(|_| status(200));
        stage.wait(Duration::from_secs(5)).await;
        for message in [&tried, &untried] {
            assert_eq!(stage.destination(&app, message).await["reason"], "stop_date");
        }
        assert_eq!(stage.attempts(&app, &untried).await.len(), 0);
        assert_eq!(stage.wire().len(), before, "nothing was sent");
        // New messages are delivered: the hold is over.
        let fresh = stage.message(&app).await;
        stage.wait(Duration::from_secs(5)).await;
        assert_eq!(stage.destination(&app, &fresh).await["status"], 0);
    });
}

#[test]
fn after_a_server_that_was_off_for_days_nothing_ends_by_a_clock_that_is_not_trusted() {
    play(async {
        let mut stage = Stage::new(|_| status(500)).await;
        let (app, _, message) = stage.one_message(URL, "persistent").await;
        stage.wait(Duration::from_secs(40)).await;
        stage.answers(|_| status(200));
        stage.off_for(DAYS * 8).await;
        stage.wait(Duration::from_secs(5)).await;
        let shown = stage.destination(&app, &message).await;
        assert_eq!(shown["status"], 0, "it was sent, and delivered: {shown}");
    });
}

#[test]
fn b4_a_shorter_stop_date_ends_what_waits_also_if_it_is_not_due_for_long() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let policy = |stop: &str| {
            json!({
                "name": "patient", "schedule": {"type": "list", "delays": ["10h", "10h"]},
                "jitter": {"type": "none"}, "limit": {"stopAfter": stop}
            })
        };
        stage.post("/policy", policy("2d"), 201).await;
        let (app, _, message) = stage.one_message(URL, "patient").await;
        stage.wait(HOUR).await;
        assert!(stage.destination(&app, &message).await["nextAttempt"].is_string());
        stage.expect(http::Method::PUT, "/policy/patient", policy("30m"), 200).await;
        stage.wait(Duration::from_secs(5)).await;
        assert_eq!(stage.destination(&app, &message).await["reason"], "stop_date");
        assert_eq!(stage.seconds(URL).len(), 1);
    });
}

#[test]
fn b4_a_replayed_delivery_gets_an_attempt_however_late() {
    play(async {
        let stage = Stage::with(two_minutes(), |_| status(500)).await;
        let (app, messages) = behind_a_hold(&stage, 1, json!({})).await;
        stage.wait(Duration::from_secs(123)).await;
        let before = stage.attempts(&app, &messages[0]).await.len();
        let told = stage.destination(&app, &messages[0]).await;
        let endpoints = stage.get(&format!("/app/{app}/endpoint")).await;
        let second =
            endpoints["data"].as_array().unwrap().iter().find(|one| one["url"] == "https://down.example/2");
        let second = id(second.unwrap());
        assert_eq!(told["reason"], "stop_date");
        let body = json!({"since": "2026-01-01T00:00:00Z"});
        stage.post(&format!("/app/{app}/endpoint/{second}/recover"), body, 202).await;
        stage.wait(HOUR * 3).await;
        assert!(stage.attempts(&app, &messages[0]).await.len() > before);
        assert_eq!(stage.destination(&app, &messages[0]).await["reason"], "stop_date");
    });
}

#[test]
fn b4_the_organization_is_notified_of_every_delivery_that_ends_by_its_stop_date() {
    play(async {
        let ops = "https://ops.example/hook";
        let answer = move |url: &str| status(if url == ops { 200 } else { 500 });
        let stage = Stage::with(two_minutes(), move |arrival| answer(&arrival.url)).await;
        stage.post("/operational-webhook/endpoint", json!({"url": ops}), 201).await;
        let (_, messages) = behind_a_hold(&stage, 5, json!({})).await;
        stage.wait(Duration::from_secs(130)).await;
        let heard: Vec<Value> = stage
            .wire()
            .iter()
            .filter(|arrival| arrival.url == ops)
            .map(|arrival| serde_json::from_slice(&arrival.body).unwrap())
            .filter(|event: &Value| event["type"] == "message.attempt.exhausted")
            .collect();
        for message in &messages {
            let of_it = |event: &&Value| event["data"]["msgId"] == message.as_str();
            assert_eq!(heard.iter().filter(of_it).count(), 1, "{heard:?}");
        }
        let untried = heard.iter().filter(|event| event["data"]["lastAttempt"].is_null()).count();
        assert!((3..=5).contains(&untried), "{untried} were never tried");
    });
}
