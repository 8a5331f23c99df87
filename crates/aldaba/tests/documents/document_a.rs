//! Document A: Webhook Retry Strategy. Policy `quick`.

use crate::stage::{HOUR, Stage, assert_gaps, play, retry_after, status};
use aldaba_delivery::{FailureKind, Outcome};
use http::Method;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;
use std::time::Duration;
use tracing::Level;

const URL: &str = "https://receiver.example/hook";

#[test]
fn a1_six_attempts_after_1_2_4_8_16_s_and_up_to_a_second() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let (app, _, message) = stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        let bounds = [(1.0, 2.0), (2.0, 3.0), (4.0, 5.0), (8.0, 9.0), (16.0, 17.0)];
        assert_gaps(&stage.seconds(URL), &bounds);
        assert_eq!(stage.attempts(&app, &message).await.len(), 6);
        assert_eq!(stage.destination(&app, &message).await["status"], 2);
    });
}

#[test]
fn a2_a_request_has_30_s() {
    play(async {
        let stage = Stage::new(|_| Outcome::failed(FailureKind::Timeout, "Request timeout")).await;
        stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        let wire = stage.wire();
        assert_eq!(wire.len(), 6);
        assert!(wire.iter().all(|arrival| arrival.timeouts.total == Duration::from_secs(30)));
        // A timeout is retried, and its 30 s come on top of the delay.
        let gap = (wire[1].at - wire[0].at).as_secs_f64();
        assert!((31.0..32.1).contains(&gap), "{gap}");
    });
}

#[test]
fn a3_what_is_delivered_what_fails_at_once_and_what_is_retried() {
    play(async {
        for (answer, requests) in [
            (200, 1),
            (204, 1),
            (299, 1),
            (400, 1),
            (404, 1),
            (410, 1),
            (422, 1),
            (429, 6),
            (300, 6),
            (500, 6),
            (503, 6),
        ] {
            let stage = Stage::new(move |_| status(answer)).await;
            let (app, _, message) = stage.one_message(URL, "quick").await;
            stage.wait(HOUR).await;
            assert_eq!(stage.wire().len(), requests, "{answer}");
            let fine = (200..300).contains(&answer);
            let shown = stage.destination(&app, &message).await["status"].clone();
            assert_eq!(shown, if fine { 0 } else { 2 }, "{answer}");
        }
        for failure in [FailureKind::Connect, FailureKind::Dns, FailureKind::Broken] {
            let stage = Stage::new(move |_| Outcome::failed(failure, "on purpose")).await;
            stage.one_message(URL, "quick").await;
            stage.wait(HOUR).await;
            assert_eq!(stage.wire().len(), 6, "{failure:?}");
        }
    });
}

#[test]
fn a3_retry_after_may_lengthen_the_delay_of_a_429() {
    play(async {
        let stage =
            Stage::new(
                |arrival| {
                    if arrival.at < Duration::from_secs(5) { retry_after(429, 20) } else { status(200) }
                },
            )
            .await;
        stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        assert_gaps(&stage.seconds(URL), &[(20.0, 20.0)]);
    });
}

#[test]
fn a4_after_the_sixth_attempt_it_is_failed_and_stays_so() {
    play(async {
        let mut stage = Stage::new(|_| status(500)).await;
        let (app, _, message) = stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        stage.answers(|_| status(200));
        stage.crash().await;
        stage.wait(HOUR * 24).await;
        assert_eq!(stage.wire().len(), 6);
        assert_eq!(stage.destination(&app, &message).await["statusText"], "fail");
        let last = stage.attempts(&app, &message).await.pop().unwrap();
        assert_eq!((&last["status"], &last["responseStatusCode"]), (&json!(2), &json!(500)));
    });
}

#[test]
fn a4_each_failed_attempt_is_a_warning_in_the_log_and_the_last_one_says_that_no_retry_follows() {
    let text = warnings_of(|| {
        play(async {
            let stage = Stage::new(|_| status(500)).await;
            stage.one_message(URL, "quick").await;
            stage.wait(HOUR).await;
        });
    });
    let lines: Vec<_> = text.lines().filter(|line| line.contains("Webhook delivery failed")).collect();
    assert_eq!(lines.len(), 6, "{text}");
    for (line, attempt) in lines.iter().zip(1..) {
        assert!(line.contains(" WARN "), "{line}");
        let (retry, error) = (attempt < 6, "HTTP 500: Internal Server Error");
        let fields = format!("attempt={attempt} maxAttempts=6 willRetry={retry} error={error}");
        assert!(line.contains(&fields), "{line} has not {fields}");
    }
}

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The log of this thread, from level warn.
///
/// One subscriber serves the whole program. One for a single thread misses events that another thread has logged before:
/// `tracing` remembers then that nobody wants them.
fn warnings_of(run: impl FnOnce()) -> String {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let to_thread =
            tracing_subscriber::fmt().with_ansi(false).with_max_level(Level::WARN).with_writer(|| ThreadLog);
        tracing::subscriber::set_global_default(to_thread.finish()).unwrap();
    });
    LOGGED.take();
    run();
    String::from_utf8(LOGGED.take()).unwrap()
}

struct ThreadLog;

impl Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|log| log.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a5_the_state_of_a_delivery_is_visible_while_it_waits_and_after() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let (app, _, message) = stage.one_message(URL, "quick").await;
        stage.wait(Duration::from_millis(500)).await;
        let shown = stage.destination(&app, &message).await;
        assert!(shown["nextAttempt"].is_string(), "{shown}");
        stage.answers(|_| status(200));
        stage.wait(HOUR).await;
        let shown = stage.destination(&app, &message).await;
        assert_eq!((&shown["status"], shown["nextAttempt"].is_null()), (&json!(0), true));
    });
}

#[test]
fn a8_another_tenants_failures_change_nothing() {
    play(async {
        let well = "https://well.example/hook";
        let stage = Stage::new(move |arrival| {
            if arrival.url == well { status(200) } else { Outcome::failed(FailureKind::Timeout, "silent") }
        })
        .await;
        let (dead, fine) = (stage.application().await, stage.application().await);
        for number in 0..20 {
            let url = format!("https://dead.example/{number}");
            stage.endpoint(&dead, &url, json!({"policy": "quick"})).await;
        }
        stage.endpoint(&fine, well, json!({"policy": "quick"})).await;
        for _ in 0..50 {
            stage.message(&dead).await;
            stage.message(&fine).await;
            stage.wait(Duration::from_millis(100)).await;
        }
        let arrived = stage.wire().iter().filter(|arrival| arrival.url == well).count();
        assert_eq!(arrived, 50, "each within the tenth of a second before the next");
    });
}

#[test]
fn a8_another_tenants_backlog_delays_nothing() {
    play(async {
        let quiet = "https://well.example/hook";
        let stage = Stage::new(move |arrival| {
            if arrival.url == quiet { status(200) } else { Outcome::failed(FailureKind::Timeout, "silent") }
        })
        .await;
        let (loud, fine) = (stage.application().await, stage.application().await);
        for number in 0..50 {
            let url = format!("https://slow-{number}.example/hook");
            stage.endpoint(&loud, &url, json!({"policy": "quick"})).await;
        }
        stage.endpoint(&fine, quiet, json!({"policy": "quick"})).await;
        let messages = vec![json!({"eventType": "invoice.paid", "payload": {}}); 100];
        stage.post(&format!("/app/{loud}/msg/batch"), json!({"messages": messages}), 202).await;
        stage.wait(Duration::from_secs(1)).await;
        let pending = stage.get(&format!("/app/{loud}/delivery?state=pending&limit=250")).await;
        assert_eq!(pending["data"].as_array().unwrap().len(), 250, "of 5,000");
        for sent in 1..=20 {
            stage.message(&fine).await;
            stage.wait(Duration::from_millis(100)).await;
            let arrived = stage.wire().iter().filter(|arrival| arrival.url == quiet).count();
            assert_eq!(arrived, sent, "each before the next is sent");
        }
    });
}

#[test]
fn a5_delivered_ones_are_kept_for_24_h_and_failed_ones_until_they_are_removed() {
    play(async {
        let stage = Stage::new(|_| status(200)).await;
        let (app, _, delivered) = stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        stage.answers(|_| status(400));
        let failed = stage.message(&app).await;
        stage.wait(HOUR * 22).await;
        stage.get(&format!("/app/{app}/msg/{delivered}")).await;
        stage.wait(HOUR * 24 * 30).await;
        let (gone, _) = stage.call(Method::GET, &format!("/app/{app}/msg/{delivered}"), Value::Null).await;
        assert_eq!(gone, 404);
        assert_eq!(stage.destination(&app, &failed).await["status"], 2);
        assert_eq!(stage.get("/dead-letter").await["data"].as_array().unwrap().len(), 1);
    });
}
