//! Document D: Webhook Retry Policy of a public API. Policy `public-api`.

use crate::stage::{HOUR, Stage, assert_gaps, play, retry_after, status};
use aldaba_delivery::{FailureKind, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

const URL: &str = "https://receiver.example/hook";
/// The bytes 0 to 31, and what they make of `{"invoice":42}` by HMAC-SHA256 (computed elsewhere).
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SIGNATURE: &str = "fdf317731ccd36f25dd830e8c4719636d69397e622d32c432a682147d089ee0b";
const POWERS: [f64; 5] = [5.0, 25.0, 125.0, 625.0, 3125.0];

#[test]
fn d1_five_retries_after_5_to_the_n_seconds_and_up_to_a_tenth() {
    play(async {
        let stage = Stage::new(|_| status(503)).await;
        stage.one_message(URL, "public-api").await;
        stage.wait(HOUR * 3).await;
        assert_gaps(&stage.seconds(URL), &POWERS.map(|s| (s, s * 1.1)));
    });
}

#[test]
fn d2_every_5xx_timeouts_dns_and_refused_connections_are_retried() {
    play(async {
        let failed = |kind| move || Outcome::failed(kind, "on purpose");
        let outcomes: Vec<Box<dyn Fn() -> Outcome + Send>> = vec![
            Box::new(|| status(500)),
            Box::new(|| status(502)),
            Box::new(|| status(599)),
            Box::new(|| status(429)),
            Box::new(failed(FailureKind::Timeout)),
            Box::new(failed(FailureKind::Dns)),
            Box::new(failed(FailureKind::Connect)),
            Box::new(failed(FailureKind::Broken)),
        ];
        for outcome in outcomes {
            let stage = Stage::new(move |_| outcome()).await;
            stage.one_message(URL, "public-api").await;
            stage.wait(HOUR * 3).await;
            assert_eq!(stage.wire().len(), 6);
        }
    });
}

#[test]
fn d2_the_retry_after_of_a_429_replaces_the_delay_and_counts() {
    play(async {
        let stage =
            Stage::new(
                |arrival| {
                    if arrival.at < Duration::from_secs(3) { retry_after(429, 2) } else { status(500) }
                },
            )
            .await;
        stage.one_message(URL, "public-api").await;
        stage.wait(HOUR * 3).await;
        // Two answers of 429 ask for 2 s each; then the third failure is followed by 125 s.
        let rest = [125.0, 625.0, 3125.0].map(|s| (s, s * 1.1));
        assert_gaps(&stage.seconds(URL), &[&[(2.0, 2.0), (2.0, 2.0)], &rest[..]].concat());
    });
}

#[test]
fn d3_what_fails_at_once_and_what_is_taken_as_success() {
    play(async {
        for (answer, shown) in
            [(400, 2), (401, 2), (403, 2), (404, 2), (405, 2), (418, 2), (301, 0), (304, 0)]
        {
            let stage = Stage::new(move |_| status(answer)).await;
            let (app, _, message) = stage.one_message(URL, "public-api").await;
            stage.wait(HOUR * 3).await;
            assert_eq!(stage.wire().len(), 1, "{answer}");
            assert_eq!(stage.destination(&app, &message).await["status"], shown, "{answer}");
        }
        let stage = Stage::new(|_| Outcome::failed(FailureKind::Malformed, "no HTTP")).await;
        stage.one_message(URL, "public-api").await;
        stage.wait(HOUR * 3).await;
        assert_eq!(stage.wire().len(), 1);
    });
}

#[test]
fn d8_an_endpoint_can_have_a_schedule_of_its_own() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let mut policy = stage.get("/policy/public-api").await;
        let fields = policy.as_object_mut().unwrap();
        fields.remove("builtIn");
        fields.insert("name".into(), json!("ours"));
        fields.insert("schedule".into(), json!({"type": "list", "delays": ["7s", "70s"]}));
        fields.insert("jitter".into(), json!({"type": "none"}));
        fields["limit"]["attempts"] = json!(3);
        stage.post("/policy", policy, 201).await;
        stage.one_message(URL, "ours").await;
        stage.wait(HOUR).await;
        assert_gaps(&stage.seconds(URL), &[(7.0, 7.0), (70.0, 70.0)]);
    });
}

#[test]
fn d9_the_signature_and_the_retry_number_are_on_every_request_and_the_version_stays() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let app = stage.application().await;
        let more = json!({"policy": "public-api", "profile": "x-webhook", "secret": SECRET});
        stage.endpoint(&app, URL, more).await;
        let message = json!({"eventType": "invoice.paid", "version": "2", "payload": {"invoice": 42}});
        stage.post(&format!("/app/{app}/msg"), message, 202).await;
        stage.wait(HOUR * 3).await;
        let wire = stage.wire();
        let retries: Vec<_> = wire.iter().map(|arrival| arrival.header("x-webhook-retry")).collect();
        assert_eq!(retries, ["0", "1", "2", "3", "4", "5"]);
        for arrival in &wire {
            assert_eq!(arrival.body, wire[0].body);
            assert_eq!(arrival.header("x-webhook-version"), "2");
            assert_eq!(arrival.header("x-webhook-signature"), SIGNATURE);
        }
    });
}

#[test]
fn d4_and_d5_a_failed_endpoint_holds_what_comes_until_it_is_resumed() {
    play(async {
        let mut stage = Stage::new(|_| status(500)).await;
        let (app, endpoint, exhausted) = stage.one_message(URL, "public-api").await;
        let path = format!("/app/{app}/endpoint/{endpoint}");
        for (span, count) in [(1, 1), (10, 2), (30, 3)] {
            stage.wait(Duration::from_secs(span)).await;
            let shown = stage.get(&path).await;
            assert_eq!((&shown["status"], &shown["failureCount"]), (&json!("active"), &json!(count)));
            let health = &shown["health"];
            assert_eq!((&health["status"], &health["failureCount"]), (&json!("degraded"), &json!(count)));
            assert_eq!(health["text"], "Recent delivery failures (retrying)");
        }
        stage.wait(HOUR * 3).await;
        let shown = stage.get(&path).await;
        assert_eq!((&shown["status"], &shown["health"]["status"]), (&json!("failed"), &json!("failed")));
        assert_eq!(shown["failureCount"], shown["health"]["failureCount"]);
        let health = &shown["health"];
        assert_eq!(health["text"], "Webhook failed (requires manual intervention)");
        // Nothing is sent by itself, over a crash too, and nothing is dropped.
        stage.answers(|_| status(200));
        let held = [stage.message(&app).await, stage.message(&app).await];
        stage.crash().await;
        stage.wait(HOUR * 24 * 7).await;
        assert_eq!(stage.wire().len(), 6);
        stage.post(&format!("{path}/resume"), json!({}), 200).await;
        stage.wait(HOUR).await;
        let shown = stage.get(&path).await;
        assert_eq!((&shown["status"], &shown["failureCount"]), (&json!("active"), &json!(0)));
        let health = &shown["health"];
        assert_eq!((&health["status"], &health["failureCount"]), (&json!("active"), &json!(0)));
        for message in &held {
            // There the status is that of the message, a number.
            assert_eq!(stage.destination(&app, message).await["status"], 0);
        }
        assert_eq!(stage.destination(&app, &exhausted).await["reason"], "exhausted", "it stays where it is");
        assert_eq!(stage.wire().len(), 8);
    });
}

#[test]
fn d4_a_success_sets_the_count_to_zero_and_a_rejection_ends_its_delivery_only() {
    play(async {
        let stage = Stage::new(|_| status(503)).await;
        let (app, endpoint, _) = stage.one_message(URL, "public-api").await;
        let path = format!("/app/{app}/endpoint/{endpoint}");
        let health = async || {
            let health = stage.get(&path).await["health"].clone();
            (health["status"].as_str().unwrap().to_owned(), health["failureCount"].as_u64().unwrap())
        };
        stage.wait(Duration::from_secs(10)).await;
        assert_eq!(health().await, ("degraded".into(), 2));
        stage.answers(|_| status(404));
        let rejected = stage.message(&app).await;
        stage.wait(Duration::from_secs(1)).await;
        assert_eq!(stage.destination(&app, &rejected).await["reason"], "rejected");
        assert_eq!(health().await, ("degraded".into(), 2));
        stage.answers(|_| status(200));
        stage.message(&app).await;
        stage.wait(Duration::from_secs(1)).await;
        assert_eq!(health().await, ("active".into(), 0));
    });
}

#[test]
fn d5_what_waited_for_a_retry_when_its_endpoint_failed_keeps_its_count_of_retries() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let app = stage.application().await;
        let more = json!({"policy": "public-api", "profile": "x-webhook"});
        let endpoint = stage.endpoint(&app, URL, more).await;
        let path = format!("/app/{app}/endpoint/{endpoint}");
        stage.message(&app).await;
        // The second one has made five attempts when the first one uses up its retries.
        stage.wait(Duration::from_secs(1500)).await;
        let second = stage.message(&app).await;
        stage.wait(HOUR * 24).await;
        assert_eq!(stage.get(&path).await["health"]["status"], "failed");
        assert_eq!(stage.attempts(&app, &second).await.len(), 5);
        let sent = stage.wire().len();
        stage.post(&format!("{path}/resume"), json!({}), 200).await;
        stage.wait(HOUR * 24).await;
        let wire = stage.wire();
        assert_eq!((wire.len(), wire[sent].header("x-webhook-retry")), (sent + 1, "5"));
        assert_eq!(stage.destination(&app, &second).await["reason"], "exhausted");
        assert_eq!(stage.attempts(&app, &second).await.len(), 6);
    });
}

#[test]
fn d6_a_request_has_5_s_to_connect_and_10_s_for_its_answer() {
    play(async {
        let stage = Stage::new(|_| status(200)).await;
        stage.one_message(URL, "public-api").await;
        stage.wait(Duration::from_secs(1)).await;
        let timeouts = stage.wire()[0].timeouts;
        assert_eq!((timeouts.connect.as_secs(), timeouts.answer.as_secs()), (5, 10));
    });
}

#[test]
fn d8_an_endpoint_recovers_by_itself_where_the_policy_probes() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let (app, endpoint, _) = stage.one_message(URL, "standard").await;
        let path = format!("/app/{app}/endpoint/{endpoint}");
        // Under `standard` it fails after 5 days without a success.
        for _ in 0..6 {
            stage.message(&app).await;
            stage.wait(HOUR * 24).await;
        }
        let failed = stage.get(&path).await;
        assert_eq!((&failed["health"]["status"], &failed["disabled"]), (&json!("failed"), &json!(true)));
        stage.answers(|_| status(200));
        stage.message(&app).await;
        stage.wait(HOUR * 48).await;
        let well = stage.get(&path).await;
        assert_eq!((&well["health"]["status"], &well["disabled"]), (&json!("active"), &json!(false)));
    });
}

#[test]
fn d11_a_delivery_shows_its_retries_and_its_reason() {
    play(async {
        let stage = Stage::new(|_| status(503)).await;
        let (app, endpoint, message) = stage.one_message(URL, "public-api").await;
        // In every list that tells of deliveries: raised when a retry is planned, not when it is made.
        let lists = [
            format!("/app/{app}/delivery"),
            format!("/app/{app}/msg/{message}/endpoint"),
            format!("/app/{app}/endpoint/{endpoint}/msg"),
        ];
        for (span, retries) in [(1, 1), (9, 2)] {
            stage.wait(Duration::from_secs(span)).await;
            for list in &lists {
                let one = stage.get(list).await["data"][0].clone();
                assert_eq!(
                    (&one["retryCount"], &one["statusCode"]),
                    (&json!(retries), &json!(503)),
                    "{list} {one}"
                );
                assert!(one["nextRetryAt"].is_string() && one["responseDurationMs"].is_u64(), "{list} {one}");
                assert_eq!(one["reasonText"], Value::Null, "{list} {one}");
            }
        }
        stage.wait(HOUR * 3).await;
        for list in lists.iter().chain(&[format!("/dead-letter?app={app}")]) {
            let one = stage.get(list).await["data"][0].clone();
            assert_eq!(one["reasonText"], "Max retries exhausted", "{list} {one}");
            assert_eq!((&one["retryCount"], &one["nextRetryAt"]), (&json!(5), &Value::Null), "{list} {one}");
        }

        let stage = Stage::new(|_| status(404)).await;
        let (app, ..) = stage.one_message(URL, "public-api").await;
        stage.wait(HOUR).await;
        let page = stage.get(&format!("/app/{app}/delivery?state=dead")).await;
        assert_eq!(page["data"][0]["reasonText"], "Non-retriable error", "{page}");
    });
}
