//! A machine that shows a wrong time: nothing is removed, revived or buried by it.

use crate::commands::command_line::{Started, aldaba, text};
use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::running::{JWT_SECRET, Running, jwt_secret, token};
use crate::support::waiting::wait_until;
use aldaba::DEFAULT_ORGANIZATION;
use aldaba::config::Config;
use aldaba::server::{Server, Threads, listen};
use aldaba_engine::{Clock, SteppedClock, SystemClock};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;

const HOUR: i64 = 3_600_000;
const DAYS_400: i64 = 400 * 24 * HOUR;
const YEARS_8: i64 = 8 * 365 * 24 * HOUR;
const YEARS_20: i64 = 20 * 365 * 24 * HOUR;
/// The time of many rounds of retention.
const ROUNDS: Duration = Duration::from_millis(1500);

/// Delivers to this machine, and runs retention often.
fn tidy(config: &mut Config) {
    config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.engine.retention.interval = Duration::from_millis(50);
}

fn clock(offset_millis: i64) -> Arc<SteppedClock> {
    Arc::new(SteppedClock::new(Arc::new(SystemClock::new()), offset_millis))
}

async fn start(folder: TempDir, offset_millis: i64) -> Running {
    Running::on_clock(folder, clock(offset_millis), tidy).await
}

async fn clock_status(server: &Running) -> String {
    let health = server.client.anonymous().get("/health").await.expect(200);
    health["clock"]["status"].as_str().unwrap().to_owned()
}

async fn count(client: &Client, path: &str) -> usize {
    client.get(path).await.expect(200)["data"].as_array().unwrap().len()
}

/// Lets many rounds of retention pass, in which nothing must be removed.
async fn rounds_pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits for the next second: tokens have a resolution of one second.
async fn next_second() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

/// An application with a delivered message and a dead one.
async fn history(server: &Running) -> String {
    let (mut good, mut bad) = (Receiver::answering(200, "ok").await, Receiver::answering(410, "no").await);
    let app = server.application().await;
    server.endpoint(&app, json!({"url": good.url("/"), "filterTypes": ["good"]})).await;
    server.endpoint(&app, json!({"url": bad.url("/"), "filterTypes": ["bad"]})).await;
    server.message(&app, "good").await;
    server.message(&app, "bad").await;
    good.next().await;
    bad.next().await;
    let dead = "/dead-letter";
    wait_until("one is dead", async || count(&server.client, dead).await == 1).await;
    app
}

/// The messages of the last hour, by a clock that is right: without bounds a list reaches back 90 days from now.
fn messages(app: &str) -> String {
    let hour_ago = SystemClock::new().now().before(Duration::from_secs(3600));
    let after = jiff::Timestamp::from_millisecond(hour_ago.millis()).unwrap();
    format!("/app/{app}/msg?after={after}")
}

/// Messages, dead letters and rows of the audit log.
async fn kept(server: &Running, app: &str) -> [usize; 3] {
    let paths = [messages(app), "/dead-letter".into(), "/audit".into()];
    let mut counts = [0; 3];
    for (counted, path) in counts.iter_mut().zip(paths) {
        *counted = count(&server.client, &path).await;
    }
    counts
}

#[tokio::test]
async fn a_start_400_days_ahead_removes_nothing_until_the_operator_trusts_the_clock() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    assert_eq!(clock_status(&server).await, "ok");
    let app = history(&server).await;
    let all = kept(&server, &app).await;
    assert_eq!(all[..2], [2, 1]);

    let server = start(server.stop().await, DAYS_400).await;
    rounds_pass(ROUNDS).await;
    assert_eq!(clock_status(&server).await, "not_trusted");
    assert_eq!(kept(&server, &app).await, all);
    // A restart changes nothing about that.
    let server = start(server.stop().await, DAYS_400 + HOUR).await;
    rounds_pass(ROUNDS).await;
    assert_eq!(clock_status(&server).await, "not_trusted");
    assert_eq!(kept(&server, &app).await, all);

    let data = server.data();
    let run = move |arguments: &'static [&'static str]| {
        let data = data.clone();
        async move {
            let command =
                move || aldaba(&data).arg("clock").args(arguments).arg("--data").arg(&data).output();
            let output = tokio::task::spawn_blocking(command).await.unwrap().unwrap();
            (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
        }
    };
    let (code, out, err) = run(&["trust"]).await;
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("trusted"), "{out}");
    assert_eq!(clock_status(&server).await, "ok");
    let messages = messages(&app);
    wait_until("what is over is removed now", async || count(&server.client, &messages).await == 0).await;
}

#[tokio::test]
async fn the_clock_is_trusted_though_the_operator_asks_before_the_server_serves() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder, 0).await;
    let data = server.data();
    let _folder = server.stop().await;
    let mut config = Config::default();
    config.store.folder.clone_from(&data);
    config.jwt_secret = Some(jwt_secret());
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let server = Server::start_with_clock(listener, config, clock(DAYS_400)).await.unwrap();
    let client = Client { address: server.address(), authorization: None };
    let mut command = aldaba(&data);
    let request = data.join("clock.trust");
    let asking = tokio::task::spawn_blocking(move || {
        command.args(["clock", "trust", "--data"]).arg(&data).output().unwrap()
    });
    wait_until("it has asked", async || request.exists()).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(server.run(Threads::one(), async move { drop(stopped.await) }));
    let output = asking.await.unwrap();
    assert!(text(&output.stdout).starts_with("trusted"), "{}", text(&output.stderr));
    assert_eq!(client.get("/health").await.expect(200)["clock"]["status"], "ok");
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_clock_that_was_20_hours_ahead_at_the_start_is_followed_once_it_is_corrected() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "ok").await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let access = server.client.post(&format!("/auth/app-portal-access/{app}"), r#"{"expiry": 3600}"#).await;
    let token = access.expect(200)["token"].as_str().unwrap().to_owned();
    let clock = clock(20 * HOUR);
    let server = Running::on_clock(server.stop().await, clock.clone(), tidy).await;
    assert_eq!(clock_status(&server).await, "ok", "a server may have been off for so long");
    server.client.with_token(&token).get(&format!("/app/{app}")).await.expect(401);
    server.message(&app, "a").await;
    receiver.next().await;

    clock.set_offset(0);
    let moment = |hours: i64| {
        let now = SystemClock::new().now().millis();
        jiff::Timestamp::from_millisecond(now + hours * HOUR).unwrap().to_string()
    };
    let path = format!("/app/{app}/msg");
    let sooner = json!({"eventType": "b", "payload": {}});
    server.client.post(&path, sooner.to_string()).await.expect(202);
    receiver.next().await;
    let later = json!({"eventType": "a", "payload": {}, "deliverAt": moment(1)});
    server.client.post(&path, later.to_string()).await.expect(202);
    rounds_pass(ROUNDS / 3).await;
    assert!(due_in(&server, &app).await > 3500, "what is asked for in an hour is not sent before");
    server.client.with_token(&token).get(&format!("/app/{app}")).await.expect(200);

    let server = start(server.stop().await, 0).await;
    assert_eq!(clock_status(&server).await, "ok", "a right clock is trusted after a restart too");
}

/// The program itself on the folder of a server, and a client of it.
fn serve(folder: &TempDir, more: &[(&str, &str)]) -> (Started, Client) {
    let mut command = aldaba(folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data"]);
    command.env("ALDABA_JWT_SECRET", JWT_SECRET).envs(more.iter().copied());
    let (started, hello) = Started::logging(&mut command, &folder.path().join("log"));
    let address = hello[0].strip_prefix("Aldaba listens on http://").unwrap().parse().unwrap();
    (started, Client { address, authorization: Some(format!("Bearer {}", token(DEFAULT_ORGANIZATION))) })
}

#[tokio::test]
async fn the_log_says_that_the_clock_is_not_trusted_and_for_how_long_that_is_a_setting() {
    let folder = start(tempfile::tempdir().unwrap(), -DAYS_400).await.stop().await;
    let (server, client) = serve(&folder, &[("ALDABA_CLOCK_TRUST_HOURS", "2")]);
    let clock = client.get("/health").await.expect(200)["clock"].clone();
    assert_eq!(clock["status"], "not_trusted");
    let left = clock["trustedInSeconds"].as_u64().unwrap();
    assert!((7000..=7200).contains(&left), "{clock}");
    drop(server);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let line = log.lines().find(|line| line.contains("is not trusted")).unwrap_or_else(|| panic!("{log}"));
    for words in ["WARN", "400 days ahead", "aldaba clock trust", "trusted after 2 h"] {
        assert!(line.contains(words), "{line} has not {words}");
    }
}

#[tokio::test]
async fn what_a_killed_server_has_accepted_25_hours_ahead_is_sent_when_the_clock_is_right() {
    let server = start(tempfile::tempdir().unwrap(), -25 * HOUR).await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let app = server.application().await;
    // One a second: most of them are not tried before the kill.
    server.endpoint(&app, json!({"url": receiver.url("/"), "throttleRate": 1})).await;
    let folder = server.stop().await;
    let (ahead, client) = serve(&folder, &[("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8")]);
    assert_eq!(client.get("/health").await.expect(200)["clock"]["status"], "not_trusted");
    let mut waiting = BTreeSet::new();
    for _ in 0..4 {
        let message = json!({"eventType": "a", "payload": {}}).to_string();
        let sent = client.post(&format!("/app/{app}/msg"), message).await.expect(202);
        waiting.insert(sent["id"].as_str().unwrap().to_owned());
    }
    // SIGKILL: it cannot store anything more.
    drop(ahead);
    for arrival in receiver.all_there() {
        waiting.remove(arrival.headers["webhook-id"].to_str().unwrap());
    }
    assert!(waiting.len() >= 2, "{} were left", waiting.len());
    let server = start(folder, -25 * HOUR).await;
    assert_eq!(clock_status(&server).await, "ok");
    while !waiting.is_empty() {
        waiting.remove(receiver.next().await.headers["webhook-id"].to_str().unwrap());
    }
}

#[tokio::test]
async fn no_payload_goes_by_a_clock_that_is_not_trusted() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    let app = server.application().await;
    let body = json!({"eventType": "a", "payload": {"a": 1}, "payloadRetentionHours": 1});
    let sent = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
    let path = format!("/app/{app}/msg/{}", sent["id"].as_str().unwrap());

    let server = start(server.stop().await, DAYS_400).await;
    rounds_pass(ROUNDS).await;
    assert_eq!(clock_status(&server).await, "not_trusted");
    assert_eq!(server.client.get(&path).await.expect(200)["payload"], json!({"a": 1}));

    let server = start(server.stop().await, 2 * HOUR).await;
    assert_eq!(clock_status(&server).await, "ok");
    let gone = json!({"expired": true});
    wait_until("its time is over", async || server.client.get(&path).await.expect(200)["payload"] == gone)
        .await;
}

#[tokio::test]
async fn a_clock_that_leaps_while_the_server_runs_is_not_trusted_and_one_that_is_mended_is() {
    let clock = clock(0);
    let server = Running::on_clock(tempfile::tempdir().unwrap(), clock.clone(), tidy).await;
    let app = history(&server).await;
    let all = kept(&server, &app).await;
    for offset in [DAYS_400, YEARS_8, 25 * HOUR, -25 * HOUR] {
        clock.set_offset(offset);
        rounds_pass(ROUNDS / 2).await;
        assert_eq!(clock_status(&server).await, "not_trusted", "{offset}");
        assert_eq!(kept(&server, &app).await, all, "{offset}");
        clock.set_offset(0);
        assert_eq!(clock_status(&server).await, "ok", "{offset}");
        assert_eq!(kept(&server, &app).await, all, "{offset}");
    }
    // It delivers, on every clock.
    let mut receiver = Receiver::answering(200, "ok").await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "filterTypes": ["next"]})).await;
    for offset in [0, DAYS_400, 0, -DAYS_400, 0] {
        clock.set_offset(offset);
        server.message(&app, "next").await;
        receiver.next().await;
    }
}

#[tokio::test]
async fn a_step_of_an_hour_is_everyday_and_trusted() {
    for hours in [1, -1] {
        let server = start(tempfile::tempdir().unwrap(), 0).await;
        let server = start(server.stop().await, hours * HOUR).await;
        assert_eq!(clock_status(&server).await, "ok");
    }
}

#[tokio::test]
async fn a_token_that_was_ended_stays_ended_though_the_clock_was_20_years_ahead_meanwhile() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    let app = server.application().await;
    let access = server.client.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
    let token = access["token"].as_str().unwrap().to_owned();
    let portal = server.client.with_token(&token);
    portal.get(&format!("/app/{app}")).await.expect(200);
    portal.post("/auth/logout", "").await.expect(204);
    portal.get(&format!("/app/{app}")).await.expect(401);

    let server = start(server.stop().await, YEARS_20).await;
    rounds_pass(ROUNDS).await;
    let server = start(server.stop().await, 0).await;
    server.client.with_token(&token).get(&format!("/app/{app}")).await.expect(401);
    assert_eq!(clock_status(&server).await, "ok", "mended");
}

#[tokio::test]
async fn tokens_that_expire_all_has_ended_stay_ended_when_the_clock_goes_back_25_hours() {
    let server = start(tempfile::tempdir().unwrap(), 25 * HOUR).await;
    let app = server.application().await;
    let access = async |server: &Running| {
        let given = server.client.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
        given["token"].as_str().unwrap().to_owned()
    };
    let token = access(&server).await;
    // A token issued in the same second counts as issued after the end.
    next_second().await;
    server.client.post(&format!("/auth/app/{app}/expire-all"), "{}").await.expect(204);
    let path = format!("/app/{app}");
    server.client.with_token(&token).get(&path).await.expect(401);

    let server = start(server.stop().await, 0).await;
    server.client.with_token(&token).get(&path).await.expect(401);
    let fresh = access(&server).await;
    server.client.with_token(&fresh).get(&path).await.expect(200);
}

#[tokio::test]
async fn expire_all_ends_new_tokens_after_one_on_a_clock_that_was_ahead() {
    for offset in [HOUR, 23 * HOUR, DAYS_400] {
        let server = start(tempfile::tempdir().unwrap(), 0).await;
        let app = server.application().await;
        let server = start(server.stop().await, offset).await;
        let (access, expire) =
            (format!("/auth/app-portal-access/{app}"), format!("/auth/app/{app}/expire-all"));
        server.client.post(&expire, "{}").await.expect(204);

        let server = start(server.stop().await, 0).await;
        let token = async |body: &'static str| {
            let given = server.client.post(&access, body).await.expect(200);
            server.client.with_token(given["token"].as_str().unwrap())
        };
        let (of_all, of_session) = (token("{}").await, token(r#"{"sessionId": "s"}"#).await);
        let path = format!("/app/{app}");
        of_session.get(&path).await.expect(200);
        server.client.post(&expire, r#"{"sessionIds": ["s"]}"#).await.expect(204);
        of_session.get(&path).await.expect(401);
        of_all.get(&path).await.expect(200);
        let again = token(r#"{"sessionId": "s"}"#).await;
        again.get(&path).await.expect(200);
        server.client.post(&expire, r#"{"expiry": 3600}"#).await.expect(204);
        again.get(&path).await.expect(200);
        server.client.post(&expire, "{}").await.expect(204);
        of_all.get(&path).await.expect(401);
        again.get(&path).await.expect(401);
        token("{}").await.get(&path).await.expect(200);
    }
}

#[tokio::test]
async fn tokens_can_be_ended_on_a_clock_that_is_behind() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    let app = server.application().await;
    let given = server.client.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
    let token = given["token"].as_str().unwrap().to_owned();
    next_second().await;
    let server = start(server.stop().await, -25 * HOUR).await;
    server.client.post(&format!("/auth/app/{app}/expire-all"), "{}").await.expect(204);
    let path = format!("/app/{app}");
    server.client.with_token(&token).get(&path).await.expect(401);
    let server = start(server.stop().await, 0).await;
    server.client.with_token(&token).get(&path).await.expect(401);
}

#[tokio::test]
async fn a_key_is_accepted_once_though_the_clock_is_25_hours_ahead() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let message = r#"{"eventType":"a","payload":{},"eventId":"e"}"#;
    let first = server.client.post_once(&path, "k", message).await.expect(202);
    let mut folder = server.stop().await;
    for offset in [25 * HOUR, DAYS_400, -25 * HOUR, 24 * HOUR, 0] {
        let server = start(folder, offset).await;
        rounds_pass(ROUNDS / 3).await;
        let again = server.client.post_once(&path, "k", message).await.expect(202);
        assert_eq!(again["id"], first["id"], "{offset}");
        let taken = server.client.post_once(&path, "other", message).await;
        assert_eq!(taken.status, 409, "{offset}: the event id");
        assert_eq!(count(&server.client, &messages(&app)).await, 1, "{offset}");
        folder = server.stop().await;
    }
}

#[tokio::test]
async fn messages_accepted_while_the_clock_was_ahead_are_sent_when_it_is_right() {
    for offset in [25 * HOUR, DAYS_400, YEARS_8] {
        let server = start(tempfile::tempdir().unwrap(), offset).await;
        let mut receiver = Receiver::answering(200, "ok").await;
        let app = server.application().await;
        // One a second: most of them are not tried before the end.
        server.endpoint(&app, json!({"url": receiver.url("/"), "throttleRate": 1})).await;
        for _ in 0..4 {
            server.message(&app, "a").await;
        }
        let later = json!({"eventType": "a", "payload": {}, "deliverAt": "2099-01-01T00:00:00Z"});
        let _ = server.client.post(&format!("/app/{app}/msg"), later.to_string()).await;
        let _server = start(server.stop().await, 0).await;
        for _ in 0..4 {
            receiver.next().await;
        }
    }
}

/// Seconds from now, by a clock that is right, until the one waiting delivery of an application is due.
async fn due_in(server: &Running, app: &str) -> i64 {
    let list = server.client.get(&format!("/app/{app}/delivery")).await.expect(200);
    let mut waiting = list["data"].as_array().unwrap().iter().filter_map(|one| one["nextAttempt"].as_str());
    let next: jiff::Timestamp = waiting.next().expect("one waits").parse().unwrap();
    (next.as_millisecond() - SystemClock::new().now().millis()) / 1000
}

async fn failing_delivery(server: &Running, policy: &str) -> String {
    let mut receiver = Receiver::answering(503, "no").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": policy})).await;
    server.message(&app, "a").await;
    receiver.next().await;
    let path = format!("/app/{app}/delivery");
    wait_until("it waits for a retry", async || {
        server.client.get(&path).await.expect(200)["data"][0]["attemptCount"] == 1
    })
    .await;
    app
}

#[tokio::test]
async fn retries_that_were_planned_400_days_ahead_come_within_the_longest_delay_of_their_policy() {
    let server = start(tempfile::tempdir().unwrap(), DAYS_400).await;
    let mut apps = Vec::new();
    for (policy, longest) in [("standard", 12 * 3600), ("persistent", 4096), ("public-api", 3438)] {
        apps.push((failing_delivery(&server, policy).await, policy, longest));
    }
    let data = server.data();
    let folder = server.stop().await;
    // Only the operator can say that this clock is right: the folder has seen no other.
    assert_eq!(
        aldaba(&data).arg("clock").arg("trust").arg("--data").arg(&data).status().unwrap().code(),
        Some(0)
    );
    let server = start(folder, 0).await;
    for (app, policy, longest) in apps {
        wait_until(policy, async || due_in(&server, &app).await <= longest).await;
    }
}

#[tokio::test]
async fn a_retry_keeps_its_moment_over_a_restart_though_its_policy_has_become_a_faster_one() {
    let server = start(tempfile::tempdir().unwrap(), 0).await;
    for (name, delay) in [("long", "5h"), ("short", "10s")] {
        let policy = json!({
            "name": name, "schedule": {"type": "list", "delays": [delay, delay]}, "gate": {"type": "apart"}
        });
        server.client.post("/policy", policy.to_string()).await.expect(201);
    }
    let app = failing_delivery(&server, "long").await;
    let endpoints = server.client.get(&format!("/app/{app}/endpoint")).await.expect(200);
    let endpoint = endpoints["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/app/{app}/endpoint/{endpoint}");
    server.client.patch(&path, r#"{"policy": "short"}"#).await.expect(200);
    let server = start(server.stop().await, 0).await;
    rounds_pass(ROUNDS).await;
    assert!(due_in(&server, &app).await > 4 * 3600);
}

#[tokio::test]
async fn starts_that_are_each_within_a_day_are_not_trusted_when_they_add_up_to_more() {
    let mut folder = tempfile::tempdir().unwrap();
    for (hours, status) in [(0, "ok"), (23, "ok"), (46, "not_trusted"), (69, "not_trusted"), (1, "ok")] {
        let server = start(folder, hours * HOUR).await;
        assert_eq!(clock_status(&server).await, status, "{hours} h");
        folder = server.stop().await;
    }
}

#[test]
fn the_clock_command_makes_nothing_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let output = aldaba(data).arg("clock").arg("--data").arg(data).output().unwrap();
    assert!(!output.status.success(), "there is no installation: {}", text(&output.stdout));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(std::fs::read_dir(data).unwrap().count(), 0);
}

#[tokio::test]
async fn the_clock_command_shows_and_trusts_the_clock_of_a_stopped_server() {
    let server = start(tempfile::tempdir().unwrap(), -DAYS_400).await;
    let data = server.data();
    let folder = server.stop().await;
    let run = |arguments: &[&str]| {
        let output = aldaba(&data).arg("clock").args(arguments).arg("--data").arg(&data).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let shown = run(&[]);
    assert!(shown.contains("does not trust it") && shown.contains("aldaba clock trust"), "{shown}");
    assert!(run(&["trust"]).starts_with("trusted"));
    let shown = run(&[]);
    assert!(shown.contains("a server that starts now trusts it"), "{shown}");
    let server = start(folder, 0).await;
    assert_eq!(clock_status(&server).await, "ok");
}
