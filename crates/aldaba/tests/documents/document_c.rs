//! The sending part of document C: webhooks for jobs. Policy `job-status`.

use crate::stage::{HOUR, Stage, assert_gaps, play, status};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{FailureKind, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

const URL: &str = "https://receiver.example/hook";

#[test]
fn c3_timeout_attempts_and_delays_are_the_documents_unless_they_are_set() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        stage.one_message(URL, "job-status").await;
        stage.wait(HOUR).await;
        let wire = stage.wire();
        assert_eq!((wire.len(), wire[0].timeouts.total), (3, Duration::from_secs(10)));

        let set = |name: &str| match name {
            "WEBHOOK_TIMEOUT_MS" => Some("2500".into()),
            "WEBHOOK_MAX_ATTEMPTS" => Some("5".into()),
            "WEBHOOK_BASE_DELAY_MS" => Some("3000".into()),
            "WEBHOOK_MAX_DELAY_MS" => Some("10000".into()),
            _ => None,
        };
        let stage = Stage::with(Overrides::read(set).unwrap(), |_| status(500)).await;
        stage.one_message(URL, "job-status").await;
        stage.wait(HOUR).await;
        let wire = stage.wire();
        assert_eq!((wire.len(), wire[0].timeouts.total), (5, Duration::from_millis(2500)));
        assert_gaps(&stage.seconds(URL), &[3.0, 6.0, 10.0, 10.0].map(|s| (s, s)));
    });
}

#[test]
fn c5_the_first_goes_out_at_once_and_errors_read_as_they_should() {
    play(async {
        type Case = (fn() -> Outcome, &'static str, Value);
        let cases: [Case; 3] = [
            (|| Outcome::failed(FailureKind::Timeout, "no answer came in time"), "Request timeout", 0.into()),
            (|| status(503), "HTTP 503: Service Unavailable", 503.into()),
            (|| Outcome::failed(FailureKind::Connect, "connection refused"), "connection refused", 0.into()),
        ];
        for (outcome, error, code) in cases {
            let stage = Stage::new(move |_| outcome()).await;
            let (app, _, message) = stage.one_message(URL, "job-status").await;
            stage.wait(Duration::from_millis(100)).await;
            assert!(stage.wire()[0].at < Duration::from_millis(100));
            stage.wait(HOUR).await;
            let first = stage.attempts(&app, &message).await.remove(0);
            assert_eq!(first["error"], error, "{first}");
            let part = if error == "Request timeout" { json!("no answer came in time") } else { Value::Null };
            assert_eq!(first["errorDetail"], part, "{first}");
            assert_eq!(first["responseStatusCode"], code, "{first}");
        }
    });
}

#[test]
fn c6_one_second_then_two_then_four_up_to_300_s() {
    play(async {
        let many = Overrides::read(|name| (name == "WEBHOOK_MAX_ATTEMPTS").then(|| "12".into()));
        let stage = Stage::with(many.unwrap(), |_| status(404)).await;
        stage.one_message(URL, "job-status").await;
        stage.wait(HOUR).await;
        let delays = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0];
        assert_gaps(&stage.seconds(URL), &delays.map(|s| (s, s)));
    });
}

#[test]
fn c8_2xx_is_success_and_all_else_is_retried() {
    play(async {
        for (answer, requests) in [(200, 1), (204, 1), (400, 3), (404, 3), (410, 3), (500, 3)] {
            let stage = Stage::new(move |_| status(answer)).await;
            stage.one_message(URL, "job-status").await;
            stage.wait(HOUR).await;
            assert_eq!(stage.wire().len(), requests, "{answer}");
        }
    });
}

#[test]
fn c2_the_headers_of_a_jobs_webhook() {
    play(async {
        let stage = Stage::new(|_| status(200)).await;
        let app = stage.application().await;
        let more = json!({"policy": "job-status", "profile": "job-status"});
        stage.endpoint(&app, URL, more).await;
        let payload = json!({"jobId": "job-7", "jobType": "export", "status": "completed", "error": null});
        let message = json!({"eventType": "job.status", "payload": payload});
        stage.post(&format!("/app/{app}/msg"), message, 202).await;
        stage.wait(Duration::from_secs(1)).await;
        let wire = stage.wire();
        let headers = ["content-type", "x-webhook-event", "x-job-id"].map(|name| wire[0].header(name));
        assert_eq!(headers, ["application/json", "job.status", "job-7"]);
        assert!(wire[0].header("webhook-signature").starts_with("v1,"), "signed like all others");
        assert_eq!(serde_json::from_slice::<Value>(&wire[0].body).unwrap(), payload);
    });
}
