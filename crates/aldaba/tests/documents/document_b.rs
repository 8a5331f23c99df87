//! Document B: retries with host control. Policy `persistent`.

use crate::stage::{Arrival, HOUR, Stage, assert_gaps, play, status};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{FailureKind, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

const URL: &str = "https://receiver.example/hook";
const DAYS: Duration = Duration::from_secs(24 * 3600);

#[test]
fn b1_and_b4_two_to_the_n_seconds_up_to_4096_and_158_attempts_the_last_at_602110_s() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let (app, _, message) = stage.one_message(URL, "persistent").await;
        stage.wait(DAYS * 8).await;
        let times = stage.seconds(URL);
        assert_eq!(times.len(), 158);
        let late = times[157] - 602_110.0;
        assert!((0.0..=1.0).contains(&late), "{late} s late");
        let doubling = (1..=12).map(|n| f64::from(1 << n)).map(|s| (s, s));
        let bounds: Vec<_> = doubling.chain(std::iter::repeat_n((4096.0, 4096.0), 145)).collect();
        assert_gaps(&times, &bounds);
        // Into history with every attempt and the final state.
        assert_eq!(stage.attempts(&app, &message).await.len(), 158);
        assert_eq!(stage.destination(&app, &message).await["status"], 2);
    });
}

#[test]
fn b2_while_a_host_looks_down_it_gets_only_probes_and_others_are_not_held() {
    play(async {
        let other = "https://other.example/hook";
        let down = |arrival: &Arrival| arrival.url.starts_with("https://down.example/");
        let stage = Stage::new(move |arrival| {
            if down(arrival) { Outcome::failed(FailureKind::Connect, "refused") } else { status(200) }
        })
        .await;
        let app = stage.application().await;
        for number in 0..50 {
            let url = format!("https://down.example/{number}");
            stage.endpoint(&app, &url, json!({"policy": "persistent"})).await;
        }
        stage.endpoint(&app, other, json!({"policy": "persistent"})).await;
        stage.message(&app).await;
        // 2 + 4 + 8 + 16 s later the next delay is 32 s: the host is held.
        stage.wait(Duration::from_secs(40)).await;
        let before = stage.wire().len();
        stage.message(&app).await;
        stage.wait(Duration::from_secs(10)).await;
        let since: Vec<_> = stage.wire().drain(before..).collect();
        let held: Vec<_> = since.iter().filter(|arrival| down(arrival)).collect();
        assert!(held.is_empty(), "{} requests to a held host", held.len());
        assert_eq!(since.iter().filter(|arrival| arrival.url == other).count(), 1);
        // The host recovers slowly: one probe goes first, and nothing else is sent meanwhile. Then everything arrives.
        let mut probed = false;
        stage.answers(move |_| match std::mem::replace(&mut probed, true) {
            false => Outcome::failed(FailureKind::Timeout, "Request timeout"),
            true => status(200),
        });
        stage.wait(HOUR * 4).await;
        let sent: Vec<_> = stage.wire().into_iter().skip(before).filter(down).collect();
        assert_eq!(sent.len(), 1 + 100, "the probe, and two messages to each of the fifty endpoints");
        let under_way = sent[0].at..sent[0].at + sent[0].timeouts.total;
        assert!(!under_way.contains(&sent[1].at), "{:?} left beside the probe of {under_way:?}", sent[1].at);
    });
}

#[test]
fn b2_quick_job_status_and_public_api_neither_set_nor_obey_a_hold() {
    play(async {
        let apart = ["quick", "job-status", "public-api"];
        let stage = Stage::new(|_| Outcome::failed(FailureKind::Connect, "refused")).await;
        let app = stage.application().await;
        let url = |policy: &str| format!("https://down.example/{policy}");
        for policy in apart {
            stage.endpoint(&app, &url(policy), json!({"policy": policy})).await;
        }
        stage.message(&app).await;
        stage.wait(HOUR * 2).await;
        assert_eq!(stage.get("/host").await["data"], json!([]), "they set none");
        // Another endpoint there has the host held, for more than an hour in the end.
        stage.endpoint(&app, &url("persistent"), json!({"policy": "persistent"})).await;
        stage.message(&app).await;
        stage.wait(HOUR * 24).await;
        assert_ne!(stage.get("/host").await["data"], json!([]), "the host is held");
        let before = stage.wire().len();
        // An endpoint that `public-api` has failed waits for its owner, held or not.
        let endpoints = stage.get(&format!("/app/{app}/endpoint")).await;
        let failed = endpoints["data"].as_array().unwrap().iter().find(|one| one["url"] == url("public-api"));
        let failed = failed.unwrap()["id"].as_str().unwrap();
        stage.post(&format!("/app/{app}/endpoint/{failed}/resume"), json!({}), 200).await;
        stage.message(&app).await;
        stage.wait(Duration::from_secs(60)).await;
        let since: Vec<_> = stage.wire().drain(before..).collect();
        let count = |policy: &str| since.iter().filter(|arrival| arrival.url == url(policy)).count();
        // Of `public-api` three for this message, and three for the one that was released.
        assert_eq!(apart.map(count), [6, 3, 6], "what their schedules have in a minute");
        assert_eq!(count("persistent"), 0, "it is held");
    });
}

#[test]
fn b2_a_hold_of_one_tenants_answers_does_not_hold_another() {
    play(async {
        let stage = Stage::new(|arrival| status(if arrival.url.ends_with("/bad") { 500 } else { 200 })).await;
        let (bad, good) = (stage.application().await, stage.application().await);
        stage.endpoint(&bad, "https://shared.example/bad", json!({"policy": "persistent"})).await;
        let url = "https://shared.example/good";
        stage.endpoint(&good, url, json!({"policy": "persistent"})).await;
        stage.message(&bad).await;
        stage.wait(Duration::from_secs(100)).await;
        for _ in 0..10 {
            stage.message(&good).await;
            stage.wait(Duration::from_secs(1)).await;
        }
        assert_eq!(stage.seconds(url).len(), 10);
    });
}

#[test]
fn b3_the_stop_date_can_be_set_and_the_next_attempt_is_visible() {
    play(async {
        let read = Overrides::read(|name| (name == "RETRY_STOP_DATE_AFTER_MINUTES").then(|| "1".into()));
        let stage = Stage::with(read.unwrap(), |_| status(500)).await;
        let (app, _, message) = stage.one_message(URL, "persistent").await;
        stage.wait(Duration::from_secs(1)).await;
        assert!(stage.destination(&app, &message).await["nextAttempt"].is_string());
        stage.wait(HOUR).await;
        assert_gaps(&stage.seconds(URL), &[2.0, 4.0, 8.0, 16.0].map(|s| (s, s)));
    });
}

#[test]
fn b5_and_b7_only_200_is_success_and_all_else_is_retried() {
    play(async {
        for answer in [201, 204, 301, 302, 400, 404, 410, 429, 500] {
            let first = Duration::from_millis(500);
            let stage =
                Stage::new(move |arrival| status(if arrival.at < first { answer } else { 200 })).await;
            let (app, _, message) = stage.one_message(URL, "persistent").await;
            stage.wait(HOUR).await;
            assert_gaps(&stage.seconds(URL), &[(2.0, 2.0)]);
            assert_eq!(stage.destination(&app, &message).await["status"], 0, "{answer}");
        }
    });
}

#[test]
fn b7_every_network_error_is_retried_and_a_request_has_30_s_of_them_5_to_connect() {
    play(async {
        for failure in [
            FailureKind::Dns,
            FailureKind::Connect,
            FailureKind::ConnectTimeout,
            FailureKind::Timeout,
            FailureKind::Broken,
            FailureKind::Malformed,
        ] {
            let first = Duration::from_millis(500);
            let stage = Stage::new(move |arrival| {
                if arrival.at < first { Outcome::failed(failure, "on purpose") } else { status(200) }
            })
            .await;
            let (app, _, message) = stage.one_message(URL, "persistent").await;
            stage.wait(HOUR).await;
            let wire = stage.wire();
            assert_eq!(wire.len(), 2, "{failure:?}");
            assert_eq!(stage.destination(&app, &message).await["status"], 0, "{failure:?}");
            let timeouts = wire[0].timeouts;
            assert_eq!((timeouts.total.as_secs(), timeouts.connect.as_secs()), (30, 5));
        }
    });
}

#[test]
fn b1_and_b4_everything_holds_after_a_crash_in_the_middle() {
    play(async {
        let mut stage = Stage::new(|_| status(500)).await;
        stage.one_message(URL, "persistent").await;
        for _ in 0..20 {
            stage.wait(Duration::from_secs(20_000)).await;
            stage.crash().await;
        }
        stage.wait(DAYS * 4).await;
        let times = stage.seconds(URL);
        // A restart neither skips an attempt nor adds one.
        assert_eq!(times.len(), 158);
        assert!((602_110.0..602_111.0).contains(&times[157]), "{}", times[157]);
    });
}

#[test]
fn b3_and_b6_pending_and_history_are_lists_of_their_own_and_show_the_dates() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let (app, ..) = stage.one_message(URL, "persistent").await;
        stage.wait(Duration::from_secs(1)).await;
        let list = async |state: &str| {
            let page = stage.get(&format!("/app/{app}/delivery?state={state}")).await;
            page["data"].as_array().unwrap().clone()
        };
        let [pending] = &list("pending").await[..] else { panic!("one waits") };
        assert!(pending["nextAttempt"].is_string(), "{pending}");
        let (made, stops) = (moment(&pending["createdAt"]), moment(&pending["stopDate"]));
        assert_eq!(stops - made, 7 * 24 * 3600, "{pending}");
        assert!(list("history").await.is_empty());
        stage.answers(|_| status(200));
        stage.wait(HOUR).await;
        assert!(list("pending").await.is_empty());
        let [delivered] = &list("history").await[..] else { panic!("one has ended") };
        assert_eq!(delivered["state"], "delivered");
    });
}

/// Seconds since the epoch.
fn moment(text: &Value) -> i64 {
    text.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).expect("a moment").as_second()
}
