//! Sending again: dead deliveries, messages that were never sent, and messages that a filter selects.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::messages::dead_letter::policy;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use crate::support::waiting::{next_id_moment, wait_for, wait_until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const LONG_AGO: &str = "2020-01-01T00:00:00Z";

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

async fn send(server: &Running, app: &str, more: Value) -> String {
    let mut message = json!({"eventType": "invoice.paid", "payload": {"n": 1}});
    for (name, value) in more.as_object().unwrap() {
        message[name] = value.clone();
    }
    let sent = server.client.post(&format!("/app/{app}/msg"), message.to_string()).await.expect(202);
    sent["id"].as_str().unwrap().to_owned()
}

async fn endpoint(server: &Running, app: &str, url: &str, policy: &str) -> String {
    let made = server.endpoint(app, json!({"url": url, "policy": policy})).await;
    made["id"].as_str().unwrap().to_owned()
}

/// The task once it has ended.
async fn over(server: &Running, task: &Value) -> Value {
    let path = format!("/background-task/{}", task["id"].as_str().unwrap());
    server.client.get_until(&path, |task| task["status"] != "running").await
}

/// The statuses of a message's deliveries, once none is pending.
async fn settled(server: &Running, app: &str, message: &str) -> Vec<Value> {
    let deliveries = |page: &Value| page["data"].as_array().unwrap().clone();
    let is_settled = |one: &Value| one["nextAttempt"].is_null() && one["status"] != 1;
    let path = format!("/app/{app}/msg/{message}/endpoint");
    let page = server.client.get_until(&path, |page| deliveries(page).iter().all(is_settled)).await;
    deliveries(&page).iter().map(|one| one["status"].clone()).collect()
}

#[tokio::test]
async fn recover_sends_what_has_died_with_the_same_id_and_nothing_else() {
    let server = Running::delivering().await;
    let app = server.application().await;
    // Under `quick` a 400 ends a delivery at once.
    let mut bad = Receiver::answering(400, "no").await;
    let address = bad.address;
    let id = endpoint(&server, &app, &bad.url("/"), "quick").await;
    let dead = send(&server, &app, json!({})).await;
    bad.next().await;
    assert_eq!(settled(&server, &app, &dead).await, [2]);
    bad.stop().await;
    let mut good = Receiver::at(address, 200, "yes").await;
    let fine = send(&server, &app, json!({})).await;
    assert_eq!(good.next().await.headers["webhook-id"], fine);
    assert_eq!(settled(&server, &app, &fine).await, [0]);

    let recover = format!("/app/{app}/endpoint/{id}/recover");
    let counted = server.client.post(&recover, json!({"since": LONG_AGO, "dryRun": true}).to_string()).await;
    assert_eq!(counted.expect(200), json!({"count": 1, "atLeast": false, "most": 1_000_000}));
    let task = server.client.post(&recover, json!({"since": LONG_AGO}).to_string()).await;
    let task = task.expect(202);
    assert_eq!((&task["task"], &task["status"]), (&json!("endpoint.recover"), &json!("running")));
    assert!(task["id"].as_str().unwrap().starts_with("qtask_"));
    assert_eq!(good.next().await.headers["webhook-id"], dead);
    let task = over(&server, &task).await;
    assert_eq!((&task["status"], &task["data"]["messagesSent"]), (&json!("finished"), &json!(1)));
    assert_eq!(task["data"]["progress"], 1.0);
    assert_eq!(settled(&server, &app, &dead).await, [0]);
    // The attempts of both rounds are in its history.
    let attempts = server.client.get(&format!("/app/{app}/attempt/msg/{dead}")).await.expect(200);
    let statuses: Vec<_> = attempts["data"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [0, 2]);
    good.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_new_endpoint_gets_what_it_has_missed_and_wants() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let first = send(&server, &app, json!({})).await;
    send(&server, &app, json!({"eventType": "other"})).await;
    let third = send(&server, &app, json!({})).await;
    let mut receiver = Receiver::answering(200, "").await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "eventTypes": ["invoice.paid"]})).await;
    let path = format!("/app/{app}/endpoint/{}/replay-missing", made["id"].as_str().unwrap());
    let task = server.client.post_once(&path, "once", json!({"since": LONG_AGO}).to_string()).await;
    let task = task.expect(202);
    assert_eq!(task["task"], "endpoint.replay");
    let arrived = [receiver.next().await, receiver.next().await].map(|one| one.headers["webhook-id"].clone());
    assert!(arrived.contains(&first.parse().unwrap()) && arrived.contains(&third.parse().unwrap()));
    assert_eq!(over(&server, &task).await["data"]["messagesSent"], 2);
    let again = server.client.post_once(&path, "once", json!({"since": LONG_AGO}).to_string()).await;
    assert_eq!(again.expect(202)["id"], task["id"], "the same key is the same replay");
    let anew = server.client.post(&path, json!({"since": LONG_AGO}).to_string()).await;
    assert_eq!(over(&server, &anew.expect(202)).await["data"]["messagesSent"], 0);
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_bulk_replay_selects_by_its_filter() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let id = endpoint(&server, &app, &receiver.url("/"), "standard").await;
    send(&server, &app, json!({})).await;
    let tagged = send(&server, &app, json!({"tags": ["a/b", "c"]})).await;
    let typed = send(&server, &app, json!({"eventType": "other"})).await;
    for _ in 0..3 {
        receiver.next().await;
    }
    settled(&server, &app, &typed).await;
    let shown = server.client.get(&format!("/app/{app}/msg/{tagged}")).await.expect(200);
    assert_eq!(shown["tags"], json!(["a/b", "c"]));
    let path = format!("/app/{app}/endpoint/{id}/bulk-replay");
    let count = async |more: Value| {
        let mut body = json!({"since": LONG_AGO, "dryRun": true});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        server.client.post(&path, body.to_string()).await.expect(200)["count"].clone()
    };
    assert_eq!(count(json!({})).await, 3);
    assert_eq!(count(json!({"status": 0})).await, 3);
    assert_eq!(count(json!({"status": 2})).await, 0);
    assert_eq!(count(json!({"statusCodeClass": 200})).await, 3);
    assert_eq!(count(json!({"eventTypes": ["other"]})).await, 1);
    assert_eq!(count(json!({"until": "2021-01-01T00:00:00Z"})).await, 0);
    let task = server.client.post(&path, json!({"since": LONG_AGO, "tag": "c"}).to_string()).await;
    assert_eq!(over(&server, &task.expect(202)).await["data"]["messagesSent"], 1);
    assert_eq!(receiver.next().await.headers["webhook-id"], tagged);
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_replay_keeps_to_its_rate_can_be_cancelled_and_goes_on_after_a_restart() {
    // For ten seconds, so that none of it is over before its time.
    const MESSAGES: usize = 100;
    let server = Running::delivering().await;
    let app = server.application().await;
    let messages = vec![json!({"eventType": "invoice.paid", "payload": {}}); MESSAGES];
    let batch = json!({ "messages": messages }).to_string();
    server.client.post(&format!("/app/{app}/msg/batch"), batch).await.expect(202);
    let mut receiver = Receiver::answering(200, "").await;
    let id = endpoint(&server, &app, &receiver.url("/"), "standard").await;
    let path = format!("/app/{app}/endpoint/{id}/replay-missing");
    let slow = json!({"since": LONG_AGO, "ratePerSecond": 10}).to_string();
    let begun = now();
    let task = server.client.post(&path, slow.clone()).await.expect(202);
    for _ in 0..9 {
        receiver.next().await;
    }
    let took = now() - begun;
    assert!(took >= Duration::from_millis(500), "nine at ten a second took {took:?}");
    // Opened deliveries were or will be delivered; the others were not opened yet.
    let folder = server.stop().await;
    let server = Running::within(folder, |config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let task = format!("/background-task/{}", task["id"].as_str().unwrap());
    assert_eq!(server.client.get(&task).await.expect(200)["status"], "running");
    receiver.next().await;
    let cancelled = server.client.post(&format!("{task}/cancel"), String::new()).await;
    let cancelled = cancelled.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["data"]["cancelled"]), (&json!("failed"), &json!(true)));
    server.client.post(&format!("{task}/cancel"), String::new()).await.expect(409);
    let sent = cancelled["data"]["messagesSent"].as_u64().unwrap();
    assert!((9..MESSAGES as u64).contains(&sent), "{sent}");
    let failed = server.client.get("/background-task?status=failed").await.expect(200);
    assert_eq!(failed["data"].as_array().unwrap().len(), 1);
    assert!(server.client.get("/background-task?status=running").await.expect(200)["data"] == json!([]));
    // Another one gets the rest: each message has arrived once in the end.
    let rest = server.client.post(&path, json!({"since": LONG_AGO}).to_string()).await;
    assert_eq!(over(&server, &rest.expect(202)).await["data"]["messagesSent"], MESSAGES as u64 - sent);
    server.stop().await;
}

#[tokio::test]
async fn an_application_has_a_hundred_running_replays_and_no_more() {
    // On a nearly full disk no replay advances, so all of them stay running.
    let server = Running::with(|config| config.store.low_space_bytes = 1 << 50).await;
    let (app, neighbour) = (server.application().await, server.application().await);
    let id = endpoint(&server, &app, "https://example.com/", "standard").await;
    let path = format!("/app/{app}/endpoint/{id}/recover");
    let body = json!({"since": LONG_AGO}).to_string();
    let first = server.client.post_once(&path, "first", body.clone()).await.expect(202);
    for _ in 1..100 {
        server.client.post(&path, body.clone()).await.expect(202);
    }
    let refused = server.client.post_once(&path, "more", body.clone()).await.expect(429);
    assert_eq!(refused["code"], "too_many_replays");
    assert!(refused["detail"].as_str().unwrap().contains("100 replays"), "{refused}");
    let again = server.client.post_once(&path, "first", body.clone()).await.expect(202);
    assert_eq!(again["id"], first["id"], "a repeat is answered as before");
    let other = endpoint(&server, &neighbour, "https://example.com/", "standard").await;
    let others = format!("/app/{neighbour}/endpoint/{other}/recover");
    server.client.post(&others, body.clone()).await.expect(202);
    let task = format!("/background-task/{}/cancel", first["id"].as_str().unwrap());
    server.client.post(&task, "").await.expect(200);
    server.client.post_once(&path, "more", body).await.expect(202);
    server.stop().await;
}

#[tokio::test]
async fn invalid_requests_are_refused_with_the_reason() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let id = endpoint(&server, &app, "http://127.0.0.1:9/", "standard").await;
    let path = format!("/app/{app}/endpoint/{id}/bulk-replay");
    for (body, field) in [
        (json!({}), "since"),
        (json!({"since": "yesterday"}), "since"),
        (json!({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}), "until"),
        (json!({"since": LONG_AGO, "ratePerSecond": 0}), "ratePerSecond"),
        (json!({"since": LONG_AGO, "ratePerSecond": 1_000_000}), "ratePerSecond"),
        (json!({"since": LONG_AGO, "status": 1}), "status"),
        (json!({"since": LONG_AGO, "statusCodeClass": 404}), "statusCodeClass"),
        (json!({"since": LONG_AGO, "tag": ""}), "tag"),
    ] {
        let reply = server.client.post(&path, body.to_string()).await;
        let problems = reply.expect(422)["detail"].as_array().unwrap().clone();
        assert!(problems.iter().any(|problem| problem["loc"][1] == field), "{body}: {problems:?}");
    }
    server.client.get("/background-task/qtask_000000000000000000000000000").await.expect(404);
    server.client.get("/background-task/nonsense").await.expect(404);
    server.client.get("/background-task?status=odd").await.expect(422);
    server.stop().await;
}

#[tokio::test]
async fn another_tenants_replays_are_not_there() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let id = endpoint(&server, &app, "http://127.0.0.1:9/", "standard").await;
    let path = format!("/app/{app}/endpoint/{id}/recover");
    let task = server.client.post(&path, json!({"since": LONG_AGO}).to_string()).await.expect(202);
    let stranger = server.client.with_token(&token(OTHER_ORGANIZATION));
    let task = format!("/background-task/{}", task["id"].as_str().unwrap());
    stranger.get(&task).await.expect(404);
    stranger.post(&format!("{task}/cancel"), String::new()).await.expect(404);
    stranger.post(&path, json!({"since": LONG_AGO}).to_string()).await.expect(404);
    assert_eq!(stranger.get("/background-task").await.expect(200)["data"], json!([]));
    server.stop().await;
}

/// The attempts of a message, oldest first: whether they were manual, and their status.
async fn history(server: &Running, app: &str, message: &str) -> Vec<(u64, u64)> {
    let page = server.client.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
    let number = |value: &Value| value.as_u64().unwrap();
    let attempts = page["data"].as_array().unwrap().iter().rev();
    attempts.map(|one| (number(&one["triggerType"]), number(&one["status"]))).collect()
}

/// The same, once a message has at least this many attempts.
async fn history_of(server: &Running, app: &str, message: &str, count: usize) -> Vec<(u64, u64)> {
    wait_for("the attempts of a message", async || {
        Some(history(server, app, message).await).filter(|attempts| attempts.len() >= count)
    })
    .await
}

#[tokio::test]
async fn the_first_attempts_of_recover_and_replays_are_manual_and_their_retries_are_not() {
    let server = Running::delivering().await;
    let policy =
        json!({"name": "two", "schedule": {"type": "list", "delays": ["100ms"]}, "jitter": {"type": "none"}});
    server.client.post("/policy", policy.to_string()).await.expect(201);
    let app = server.application().await;
    let missing = send(&server, &app, json!({})).await;
    let bad = Receiver::answering(500, "no").await;
    let id = endpoint(&server, &app, &bad.url("/"), "two").await;
    let dead = send(&server, &app, json!({})).await;
    assert_eq!(history_of(&server, &app, &dead, 2).await, [(0, 2), (0, 2)]);
    assert_eq!(settled(&server, &app, &dead).await, [2]);
    let path = format!("/app/{app}/endpoint/{id}");
    let since = json!({"since": LONG_AGO}).to_string();
    server.client.post(&format!("{path}/recover"), since.clone()).await.expect(202);
    assert_eq!(history_of(&server, &app, &dead, 4).await[2..], [(1, 2), (0, 2)]);
    server.client.post(&format!("{path}/replay-missing"), since.clone()).await.expect(202);
    assert_eq!(history_of(&server, &app, &missing, 2).await, [(1, 2), (0, 2)]);
    assert_eq!(settled(&server, &app, &dead).await, [2]);
    server.client.post(&format!("{path}/bulk-replay"), since).await.expect(202);
    assert_eq!(history_of(&server, &app, &dead, 6).await[4..], [(1, 2), (0, 2)]);
    server.stop().await;
}

#[tokio::test]
async fn resend_makes_one_attempt_of_what_is_delivered_dead_or_was_never_sent() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let never = send(&server, &app, json!({})).await;
    let mut bad = Receiver::answering(400, "no").await;
    let id = endpoint(&server, &app, &bad.url("/"), "quick").await;
    let dead = send(&server, &app, json!({})).await;
    bad.next().await;
    assert_eq!(settled(&server, &app, &dead).await, [2]);
    let resend = |message: &str| format!("/app/{app}/msg/{message}/endpoint/{id}/resend");
    // Failure changes nothing but the history.
    next_id_moment().await;
    let answer = server.client.post(&resend(&dead), "").await.expect(202);
    let made = &answer["attempt"];
    assert_eq!((&made["msgId"], &made["endpointId"]), (&json!(dead), &json!(id)));
    assert_eq!((&made["responseStatusCode"], &made["response"]), (&json!(400), &json!("no")));
    assert_eq!(
        (&made["status"], &made["statusText"], &made["triggerType"]),
        (&json!(2), &json!("fail"), &json!(1))
    );
    assert!(made["responseDurationMs"].is_u64() && made["error"].as_str().unwrap().contains("400"), "{made}");
    let shown =
        server.client.get(&format!("/app/{app}/msg/{dead}/attempt/{}", made["id"].as_str().unwrap())).await;
    assert_eq!(shown.expect(200), *made, "it is the one that is on disk");
    assert_eq!(bad.next().await.headers["webhook-id"], dead);
    assert_eq!(history(&server, &app, &dead).await, [(0, 2), (1, 2)]);
    assert_eq!(settled(&server, &app, &dead).await, [2]);
    let address = bad.address;
    bad.stop().await;
    let mut good = Receiver::at(address, 200, "").await;
    for message in [&dead, &never, &dead] {
        next_id_moment().await;
        let answer = server.client.post(&resend(message), "").await.expect(202);
        assert_eq!((&answer["attempt"]["status"], &answer["attempt"]["error"]), (&json!(0), &Value::Null));
        assert_eq!(good.next().await.headers["webhook-id"], **message);
        assert_eq!(settled(&server, &app, message).await, [0]);
    }
    assert_eq!(history(&server, &app, &dead).await, [(0, 2), (1, 2), (1, 0), (1, 0)]);
    // The third attempt has delivered it; that there was another one since changes nothing.
    let path = format!("/app/{app}/msg/{dead}/endpoint");
    let shown = server.client.get(&path).await.expect(200)["data"][0].clone();
    let text = shown["explanation"].as_str().unwrap();
    assert!(text.starts_with("Delivered by attempt 3 at "), "{text}");
    assert_eq!(history(&server, &app, &never).await, [(1, 0)]);
    server.client.post(&resend("msg_000000000000000000000000000"), "").await.expect(404);
    good.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_resend_of_a_pending_delivery_settles_it_or_keeps_its_schedule() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut bad = Receiver::answering(500, "no").await;
    // Under `standard` the second attempt comes after about 5 s, the third after 5 minutes.
    let id = endpoint(&server, &app, &bad.url("/"), "standard").await;
    let message = send(&server, &app, json!({})).await;
    bad.next().await;
    let planned = async {
        let path = format!("/app/{app}/msg/{message}/endpoint");
        // While an attempt is in flight or being recorded, there is no next one.
        let is_planned = |one: &Value| one["status"] == 2 && one["nextAttempt"].is_string();
        let page = server.client.get_until(&path, |page| is_planned(&page["data"][0])).await;
        page["data"][0]["nextAttempt"].clone()
    };
    let planned = planned.await;
    let path = format!("/app/{app}/msg/{message}/endpoint/{id}/resend");
    next_id_moment().await;
    server.client.post(&path, "").await.expect(202);
    bad.next().await;
    // When it is answered it is on disk, and the delivery waits again.
    assert_eq!(history(&server, &app, &message).await, [(0, 2), (1, 2)]);
    let page = server.client.get(&format!("/app/{app}/msg/{message}/endpoint")).await.expect(200);
    assert_eq!(page["data"][0]["nextAttempt"], planned, "the schedule is as it was");
    let address = bad.address;
    bad.stop().await;
    let mut good = Receiver::at(address, 200, "").await;
    next_id_moment().await;
    server.client.post(&path, "").await.expect(202);
    good.next().await;
    assert_eq!(settled(&server, &app, &message).await, [0]);
    assert_eq!(history(&server, &app, &message).await, [(0, 2), (1, 2), (1, 0)]);
    // After the successful manual attempt nothing is sent at the scheduled time.
    good.stays_quiet(Duration::from_secs(7)).await;
    server.stop().await;
}

#[tokio::test]
async fn a_forbidden_resend_is_refused_with_the_reason() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut bad = Receiver::answering(500, "no").await;
    let waits = async |more: Value| {
        let mut body = json!({"url": bad.url("/"), "policy": "standard"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = server.endpoint(&app, body).await["id"].as_str().unwrap().to_owned();
        (format!("/app/{app}/endpoint/{id}"), format!("endpoint/{id}/resend"))
    };
    let (ordinary, resend) = waits(json!({})).await;
    let (ordered, in_order) = waits(json!({"ordering": "fifo", "channels": ["ordered"]})).await;
    let message = send(&server, &app, json!({"channels": ["ordered"]})).await;
    for _ in 0..2 {
        bad.next().await;
    }
    let at = |what: &str| format!("/app/{app}/msg/{message}/{what}");
    let detail = async |path: String| {
        let refused = server.client.post(&path, "").await.expect(409);
        refused["detail"].as_str().unwrap().to_owned()
    };
    // Until the result is recorded, an attempt may be in flight.
    wait_until("the attempt is recorded", async || detail(at(&in_order)).await.contains("in order")).await;
    server.client.patch(&ordinary, json!({"disabled": true}).to_string()).await.expect(200);
    assert!(detail(at(&resend)).await.contains("disabled"));
    server.client.delete(&ordered).await.expect(204);
    server.client.post(&at(&in_order), "").await.expect(404);
    bad.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn resend_is_refused_while_another_of_the_same_is_under_way() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let never = send(&server, &app, json!({})).await;
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let id = endpoint(&server, &app, &url, "quick").await;
    let path = format!("/app/{app}/msg/{never}/endpoint/{id}/resend");
    let (first, second) = tokio::join!(server.client.post(&path, ""), async {
        let hangs_up_later = silent.accept().await.unwrap();
        let second = server.client.post(&path, "").await;
        drop(hangs_up_later);
        second
    });
    first.expect(202);
    second.expect(409);
    assert_eq!(history(&server, &app, &never).await, [(1, 2)]);
    server.stop().await;
}

#[tokio::test]
async fn resend_of_what_a_resume_has_let_go_is_no_conflict() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut bad = Receiver::answering(500, "no").await;
    policy(&server, "fails", json!({"endpointFails": {"type": "whenExhausted"}})).await;
    policy(&server, "later", json!({"schedule": {"type": "list", "delays": ["1h"]}})).await;
    let id = endpoint(&server, &app, &bad.url("/"), "fails").await;
    let path = format!("/app/{app}/endpoint/{id}");
    let dies = send(&server, &app, json!({})).await;
    for _ in 0..2 {
        bad.next().await;
    }
    assert_eq!(settled(&server, &app, &dies).await, [2]);
    let held = send(&server, &app, json!({})).await;
    server.client.patch(&path, json!({"policy": "later"}).to_string()).await.expect(200);
    server.client.post(&format!("{path}/resume"), "").await.expect(200);
    bad.next().await;
    let shown = format!("/app/{app}/msg/{held}/endpoint");
    server.client.get_until(&shown, |page| page["data"][0]["nextAttempt"].is_string()).await;
    server.client.post(&format!("{shown}/{id}/resend"), "").await.expect(202);
    bad.next().await;
    server.stop().await;
}
