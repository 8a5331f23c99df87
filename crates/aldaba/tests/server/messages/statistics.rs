//! Numbers of attempts.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use aldaba_engine::{Clock, SystemClock};
use serde_json::{Value, json};

fn moment(seconds: i64) -> String {
    let now = SystemClock::new().wall().millis() + seconds * 1000;
    jiff::Timestamp::from_millisecond(now).unwrap().to_string()
}

const DAY: i64 = 24 * 3600;

#[tokio::test]
async fn attempts_are_counted_by_endpoint_and_by_event_type_also_over_a_restart() {
    let local = |config: &mut aldaba::config::Config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    };
    let begun = moment(-60);
    let server = Running::with(local).await;
    let (good, bad) = (Receiver::answering(200, "ok").await, Receiver::answering(500, "no").await);
    let app = server.application().await;
    server.endpoint(&app, json!({"url": good.url("/"), "uid": "good"})).await;
    // Failed deliveries are retried after the test.
    let patient = json!({"name": "patient", "schedule": {"type": "list", "delays": ["1h"]}});
    server.client.post("/policy", patient.to_string()).await.expect(201);
    server.endpoint(&app, json!({"url": bad.url("/"), "uid": "bad", "policy": "patient"})).await;
    for event_type in ["type.a", "type.a", "type.b"] {
        server.message(&app, event_type).await;
    }
    let stats = async |server: &Running, rest: &str| {
        server.client.get(&format!("/app/{app}{rest}")).await.expect(200)
    };
    let of = |success: u64, fail: u64| json!({"success": success, "fail": fail, "pending": 0, "sending": 0, "canceled": 0});
    wait_until("all attempts are counted", async || {
        let (good, bad) = ("/endpoint/good/stats", "/endpoint/bad/stats");
        (stats(&server, good).await, stats(&server, bad).await) == (of(3, 0), of(0, 3))
    })
    .await;
    let check = async |server: &Running| {
        assert_eq!(stats(server, "/endpoint/good/stats").await, of(3, 0));
        assert_eq!(stats(server, "/endpoint/bad/stats").await, of(0, 3));
        let all = stats(server, "/stats/attempts").await;
        let types = json!({
            "type.a": {"success": 2, "failure": 2, "canceled": 0},
            "type.b": {"success": 1, "failure": 1, "canceled": 0},
        });
        assert_eq!(all["by_event_type"], types);
        assert_eq!((&all["total_success"], &all["total_failure"]), (&json!(3), &json!(3)));
        assert_eq!(all["total_canceled"], 0);
        let one =
            stats(server, &format!("/stats/attempts?event_types=type.b&since={begun}&until={}", moment(0)))
                .await;
        assert_eq!((&one["total_success"], &one["total_failure"]), (&json!(1), &json!(1)));
        assert!(one["since"].as_str() < one["until"].as_str());
        let before = format!("until={}", moment(-7200));
        assert_eq!(stats(server, &format!("/endpoint/good/stats?{before}")).await, of(0, 0));
        let none = stats(server, &format!("/stats/attempts?{before}")).await;
        assert_eq!((&none["by_event_type"], &none["total_success"]), (&json!({}), &json!(0)));
    };
    check(&server).await;
    let server = Running::within(server.stop().await, local).await;
    check(&server).await;
}

#[tokio::test]
async fn a_range_has_28_days_at_most_and_lies_in_the_past() {
    let server = Running::start().await;
    let app = server.application().await;
    server.endpoint(&app, json!({"uid": "e"})).await;
    for path in [format!("/app/{app}/endpoint/e/stats"), format!("/app/{app}/stats/attempts")] {
        for (since, until) in [(-28 * DAY, 0), (-28 * DAY - 240, 0), (-60 * DAY, -33 * DAY), (-1, 0), (0, 0)]
        {
            let query = format!("since={}&until={}", moment(since), moment(until));
            server.client.get(&format!("{path}?{query}")).await.expect(200);
        }
        for (since, until) in [(-28 * DAY - 400, 0), (-365 * DAY, -1), (-DAY, DAY), (-DAY, -2 * DAY)] {
            let query = format!("since={}&until={}", moment(since), moment(until));
            let refused = server.client.get(&format!("{path}?{query}")).await.expect(400);
            assert_eq!(refused["code"], "invalid_range", "{since} {until}");
        }
        let refused = server.client.get(&format!("{path}?since={}", moment(-29 * DAY))).await.expect(400);
        assert_eq!(refused["code"], "invalid_range");
        for bad in ["since=yesterday", "until=2026-01-01", "since=", "until=%00"] {
            let refused = server.client.get(&format!("{path}?{bad}")).await.expect(422);
            let name = bad.split('=').next();
            assert_eq!(refused["detail"][0]["loc"], json!(["query", name]), "{bad}");
        }
        for far in
            ["since=-009999-01-01T00:00:00Z", "until=9999-12-31T00:00:00Z", "until=-009999-01-02T00:00:00Z"]
        {
            let status = server.client.get(&format!("{path}?{far}")).await.status.as_u16();
            assert!(matches!(status, 200 | 400 | 422), "{far}: {status}");
        }
    }
    let refused =
        server.client.get(&format!("/app/{app}/stats/attempts?event_types=a%20b")).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["query", "event_types"]));
    let nobody: Value = server.client.get("/app/nobody/stats/attempts").await.expect(404);
    assert_eq!(nobody["code"], "not_found");
}
