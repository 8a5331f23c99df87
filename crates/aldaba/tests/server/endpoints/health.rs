use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::Running;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

/// Fails the endpoint with the first exhausted delivery, which is after two attempts.
fn strict() -> Value {
    json!({
        "name": "strict",
        "schedule": {"type": "list", "delays": ["1s"]},
        "jitter": {"type": "none"},
        "gate": {"type": "apart"},
        "endpointFails": {"type": "whenExhausted"},
        "probe": null,
    })
}

struct Patient {
    server: Running,
    receiver: Receiver,
    app: String,
    path: String,
}

impl Patient {
    /// An endpoint under a policy, and a receiver that answers 500.
    async fn failing(policy: Value, more: Value) -> Self {
        Self::behind(Receiver::answering(500, "no").await, policy, more).await
    }

    async fn behind(receiver: Receiver, policy: Value, more: Value) -> Self {
        let server = Running::delivering().await;
        let name = policy["name"].clone();
        if !policy["schedule"].is_null() {
            server.client.post("/policy", policy.to_string()).await.expect(201);
        }
        let app = server.application().await;
        let mut body = json!({"url": receiver.url("/hook"), "policy": name});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let endpoint = server.endpoint(&app, body).await;
        let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
        Self { server, receiver, app, path }
    }

    async fn endpoint(&self) -> Value {
        self.server.client.get(&self.path).await.expect(200)
    }

    /// Waits for a status.
    async fn becomes(&self, status: &str) -> Value {
        self.server.client.get_until(&self.path, |endpoint| endpoint["health"]["status"] == status).await
    }

    async fn send(&self) -> String {
        self.server.message(&self.app, "a").await
    }

    async fn destination(&self, message: &str) -> Value {
        let path = format!("/app/{}/msg/{message}/endpoint", self.app);
        self.server.client.get(&path).await.expect(200)["data"][0].clone()
    }

    async fn delivers(&self, message: &str) {
        let path = format!("/app/{}/msg/{message}/endpoint", self.app);
        self.server.client.get_until(&path, |page| page["data"][0]["status"] == 0).await;
    }

    async fn changes(&self) -> Vec<(String, String, String)> {
        let path = format!("{}/health?order=ascending", self.path);
        let list = self.server.client.get(&path).await.expect(200);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let change = |one: &Value| (text(&one["from"]), text(&one["to"]), text(&one["reason"]));
        list["data"].as_array().unwrap().iter().map(change).collect()
    }

    async fn resume(&self) -> Value {
        self.server.client.post(&format!("{}/resume", self.path), "").await.expect(200)
    }

    async fn patch(&self, change: Value) -> Value {
        self.server.client.patch(&self.path, change.to_string()).await.expect(200)
    }
}

fn step(from: &str, to: &str, reason: &str) -> (String, String, String) {
    (from.into(), to.into(), reason.into())
}

#[tokio::test]
async fn d4_d5_a_failed_endpoint_holds_its_messages_until_it_is_resumed() {
    let mut patient = Patient::failing(strict(), json!({})).await;
    let fresh = patient.endpoint().await;
    assert_eq!((&fresh["health"]["status"], &fresh["health"]["text"]), (&json!("active"), &json!("Active")));
    assert_eq!(
        (&fresh["health"]["since"], &fresh["health"]["lastError"]),
        (&fresh["createdAt"], &Value::Null)
    );
    assert_eq!(fresh["whenDisabled"], "skip");

    let exhausted = patient.send().await;
    patient.receiver.next().await;
    let degraded = patient.becomes("degraded").await;
    assert_eq!(degraded["health"]["failureCount"], 1);
    assert_eq!(degraded["health"]["text"], "Recent delivery failures (retrying)");
    assert_eq!(degraded["health"]["lastError"]["text"], "HTTP 500: Internal Server Error");
    assert_eq!(degraded["health"]["lastError"]["statusCode"], 500);
    assert_eq!(degraded["disabled"], false);
    patient.receiver.next().await;
    let failed = patient.becomes("failed").await;
    assert_eq!(failed["health"]["text"], "Webhook failed (requires manual intervention)");
    assert_eq!((&failed["disabled"], &failed["health"]["nextProbeAt"]), (&json!(true), &Value::Null));
    assert!(failed["health"]["failingSince"].is_string());
    let listed = patient.server.client.get(&format!("/app/{}/endpoint", patient.app)).await.expect(200);
    assert_eq!(listed["data"][0], failed);

    patient.receiver.answer(200);
    let held = patient.send().await;
    patient.receiver.stays_quiet(Duration::from_millis(700)).await;
    let destination = patient.destination(&held).await;
    assert_eq!((&destination["status"], &destination["nextAttempt"]), (&json!(1), &Value::Null));

    let resumed = patient.resume().await;
    assert_eq!(
        (&resumed["changed"], &resumed["failingSince"]),
        (&json!(true), &failed["health"]["failingSince"])
    );
    assert_eq!(resumed["endpoint"]["health"]["status"], "active");
    assert_eq!(resumed["endpoint"]["health"]["failureCount"], 0);
    assert_eq!(resumed["endpoint"]["disabled"], false);
    let arrived = patient.receiver.next().await;
    assert_eq!(arrived.headers["webhook-id"], held.as_str());
    patient.receiver.stays_quiet(Duration::from_millis(300)).await;
    let dead = patient.destination(&exhausted).await;
    assert_eq!((&dead["status"], &dead["reason"]), (&json!(2), &json!("exhausted")), "it stays dead");
    assert_eq!(
        patient.changes().await,
        [step("active", "failed", "failures"), step("failed", "active", "resumed")]
    );
    let page = patient.server.client.get(&format!("{}/health?limit=1", patient.path)).await.expect(200);
    assert_eq!((&page["data"][0]["to"], &page["done"]), (&json!("active"), &json!(false)));
    let next = format!("{}/health?iterator={}", patient.path, page["iterator"].as_str().unwrap());
    let next = patient.server.client.get(&next).await.expect(200);
    assert_eq!(next["data"][0]["detail"], "HTTP 500: Internal Server Error");
}

#[tokio::test]
async fn a_useless_or_impossible_resume_is_explained() {
    let patient = Patient::failing(json!({"name": "standard"}), json!({})).await;
    let before = patient.endpoint().await;
    let resumed = patient.resume().await;
    assert_eq!((&resumed["changed"], &resumed["failingSince"]), (&json!(false), &Value::Null));
    assert_eq!(resumed["endpoint"], before);
    let client = &patient.server.client;
    let path = format!("{}/resume", patient.path);
    let resumed = client.post(&path, r#"{"recover": true}"#).await.expect(200);
    assert_eq!((&resumed["changed"], resumed.get("task")), (&json!(false), None), "there was no outage");
    client.post(&path, r#"{"recover": 7}"#).await.expect(422);
    patient.patch(json!({"disabled": true})).await;
    let refused = client.post(&path, "{}").await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("`disabled`"), "{refused}");
    client.post(&format!("/app/{}/endpoint/other/resume", patient.app), "").await.expect(404);
    client.get(&format!("/app/{}/endpoint/other/health", patient.app)).await.expect(404);
    client.get(&format!("{}/health?iterator=x", patient.path)).await.expect(422);
}

#[tokio::test]
async fn setting_disabled_to_false_resumes_a_failed_endpoint_and_to_true_changes_nothing() {
    let mut patient = Patient::failing(strict(), json!({})).await;
    patient.send().await;
    patient.becomes("failed").await;
    let same = patient.patch(json!({"disabled": true, "description": "sent back"})).await;
    assert_eq!((&same["disabled"], &same["health"]["status"]), (&json!(true), &json!("failed")));
    patient.receiver.answer(200);
    let held = patient.send().await;
    let resumed = patient.patch(json!({"disabled": false})).await;
    assert_eq!((&resumed["disabled"], &resumed["health"]["status"]), (&json!(false), &json!("active")));
    while patient.receiver.next().await.headers["webhook-id"] != held.as_str() {}
}

#[tokio::test]
async fn standard_turns_an_endpoint_off_at_410_and_a_resume_enables_it() {
    let mut patient = Patient::failing(json!({"name": "standard"}), json!({})).await;
    patient.receiver.answer(410);
    let gone = patient.send().await;
    patient.receiver.next().await;
    let off = patient.becomes("disabled").await;
    assert_eq!((&off["disabled"], &off["health"]["lastError"]["statusCode"]), (&json!(true), &json!(410)));
    assert_eq!(patient.destination(&gone).await["reason"], "endpoint_gone");
    patient.receiver.answer(200);
    let held = patient.send().await;
    patient.receiver.stays_quiet(Duration::from_millis(500)).await;
    patient.resume().await;
    assert_eq!(patient.receiver.next().await.headers["webhook-id"], held.as_str());
    assert_eq!(
        patient.changes().await,
        [step("active", "disabled", "gone"), step("disabled", "active", "resumed")]
    );
}

#[tokio::test]
async fn an_endpoint_is_probed_and_recovers_if_the_policy_allows_it() {
    let mut policy = strict();
    policy["probe"] = json!({"firstGap": "1s", "longestGap": "4s"});
    let mut patient = Patient::failing(policy, json!({})).await;
    patient.send().await;
    let failed = patient.becomes("failed").await;
    assert!(failed["health"]["nextProbeAt"].is_string());
    assert_eq!(failed["health"]["text"], "Webhook failed (waiting for a probe to succeed)");
    // One delivery probes and fails; the other two wait for it.
    let mut waiting = [patient.send().await, patient.send().await, patient.send().await];
    for _ in 0..3 {
        patient.receiver.next().await;
    }
    patient.receiver.stays_quiet(Duration::from_millis(500)).await;
    patient.receiver.answer(200);
    let recovered = patient.becomes("active").await;
    assert_eq!((&recovered["disabled"], &recovered["health"]["failureCount"]), (&json!(false), &json!(0)));
    let mut arrived = Vec::new();
    for _ in 0..3 {
        arrived.push(patient.receiver.next().await.headers["webhook-id"].to_str().unwrap().to_owned());
    }
    arrived.sort();
    waiting.sort();
    assert_eq!(arrived, waiting);
    assert_eq!(
        patient.changes().await,
        [step("active", "failed", "failures"), step("failed", "active", "recovered")]
    );
}

#[tokio::test]
async fn messages_for_a_disabled_endpoint_are_skipped_with_the_reason() {
    let mut patient = Patient::failing(json!({"name": "quick"}), json!({"disabled": true})).await;
    patient.receiver.answer(200);
    let off = patient.endpoint().await;
    assert_eq!((&off["disabled"], &off["health"]["status"]), (&json!(true), &json!("disabled")));
    assert_eq!(off["health"]["text"], "Turned off");
    let skipped = patient.send().await;
    let destination = patient.destination(&skipped).await;
    assert_eq!((&destination["reason"], &destination["status"]), (&json!("endpoint_disabled"), &json!(2)));
    patient.patch(json!({"disabled": false})).await;
    let sent = patient.send().await;
    assert_eq!(patient.receiver.next().await.headers["webhook-id"], sent.as_str());
    patient.receiver.stays_quiet(Duration::from_millis(300)).await;
    assert_eq!(patient.changes().await, [step("disabled", "active", "turned_on")]);
}

#[tokio::test]
async fn pending_deliveries_stay_while_their_endpoint_is_turned_off() {
    let mut policy = strict();
    policy["schedule"] = json!({"type": "list", "delays": ["1s", "1s", "1s", "1s"]});
    let mut patient = Patient::failing(policy, json!({})).await;
    let waits = patient.send().await;
    patient.receiver.next().await;
    patient.becomes("degraded").await;
    patient.patch(json!({"disabled": true})).await;
    patient.receiver.stays_quiet(Duration::from_millis(1500)).await;
    assert_eq!(patient.destination(&waits).await["nextAttempt"], Value::Null);
    let listed = patient.server.client.get(&format!("{}/msg", patient.path)).await.expect(200);
    assert_eq!((&listed["data"][0]["id"], listed["data"][0].get("nextAttempt")), (&json!(waits), None));
    patient.receiver.answer(200);
    patient.patch(json!({"disabled": false})).await;
    assert_eq!(patient.receiver.next().await.headers["webhook-id"], waits.as_str());
}

#[tokio::test]
async fn held_messages_wait_for_a_disabled_endpoint_across_a_restart() {
    let mut patient = Patient::failing(strict(), json!({"whenDisabled": "hold", "disabled": true})).await;
    patient.receiver.answer(200);
    let before = patient.send().await;
    patient.receiver.stays_quiet(Duration::from_millis(300)).await;
    let folder = patient.server.stop().await;
    let allow = |config: &mut aldaba::config::Config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    };
    patient.server = Running::within(folder, allow).await;
    let after = patient.send().await;
    patient.receiver.stays_quiet(Duration::from_millis(500)).await;
    assert_eq!(patient.destination(&before).await["status"], 1);
    patient.patch(json!({"disabled": false})).await;
    let mut arrived = Vec::new();
    for _ in 0..2 {
        arrived.push(patient.receiver.next().await.headers["webhook-id"].to_str().unwrap().to_owned());
    }
    assert_eq!(arrived, [before, after]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_success_does_not_shorten_the_recovered_outage() {
    let first = Arc::new(OnceLock::new());
    let (well, gate) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
    // The first message fails. The second is answered with success after the endpoint has failed.
    let judge = {
        let (well, gate) = (well.clone(), gate.clone());
        move |arrival: &Arrival| {
            let id = arrival.headers["webhook-id"].clone();
            if well.load(Ordering::Acquire) {
                return 200;
            }
            if *first.get_or_init(|| id.clone()) == id {
                return 500;
            }
            tokio::task::block_in_place(|| gate.wait());
            200
        }
    };
    let receiver = Receiver::judging("127.0.0.1:0".parse().unwrap(), "", judge).await;
    let mut patient = Patient::behind(receiver, strict(), json!({})).await;
    let exhausted = patient.send().await;
    patient.receiver.next().await;
    let late = patient.send().await;
    let failed = patient.becomes("failed").await;
    well.store(true, Ordering::Release);
    tokio::task::block_in_place(|| gate.wait());
    patient.delivers(&late).await;
    let still = patient.becomes("failed").await;
    assert_eq!(still["health"]["failingSince"], failed["health"]["failingSince"]);
    let path = format!("{}/resume", patient.path);
    let resumed = patient.server.client.post(&path, r#"{"recover": true}"#).await.expect(200);
    assert_eq!(resumed["failingSince"], failed["health"]["failingSince"]);
    patient.delivers(&exhausted).await;
}

#[tokio::test]
async fn resume_with_recover_starts_no_task_where_nothing_has_died() {
    let mut patient = Patient::failing(strict(), json!({})).await;
    patient.send().await;
    patient.becomes("failed").await;
    let client = &patient.server.client;
    let discard = format!("/app/{}/delivery/discard", patient.app);
    assert_eq!(client.post(&discard, r#"{"reason": "exhausted"}"#).await.expect(200)["discarded"], 1);
    let path = format!("{}/resume", patient.path);
    let resumed = client.post(&path, r#"{"recover": true}"#).await.expect(200);
    assert_eq!((&resumed["changed"], resumed.get("task")), (&json!(true), None));
    patient.receiver.all_there();
    patient.receiver.nothing_more().await;
}

#[tokio::test]
async fn resume_with_recover_also_sends_what_died_in_the_outage() {
    let mut patient = Patient::failing(strict(), json!({})).await;
    let exhausted = patient.send().await;
    for _ in 0..2 {
        patient.receiver.next().await;
    }
    patient.becomes("failed").await;
    let held = patient.send().await;
    patient.receiver.answer(200);
    let path = format!("{}/resume", patient.path);
    let client = &patient.server.client;
    let resumed = client.post_once(&path, "once", r#"{"recover": true}"#).await.expect(200);
    assert_eq!((&resumed["changed"], &resumed["task"]["task"]), (&json!(true), &json!("endpoint.recover")));
    let repeated = client.post_once(&path, "once", r#"{"recover": true}"#).await.expect(200);
    for field in ["changed", "failingSince"] {
        assert_eq!(repeated[field], resumed[field], "{field}");
    }
    assert_eq!(repeated["task"]["id"], resumed["task"]["id"], "the same key is the same recovery");
    let later = client.post(&path, r#"{"recover": true}"#).await.expect(200);
    assert_eq!((&later["changed"], later.get("task")), (&json!(false), None));
    let arrived = [patient.receiver.next().await, patient.receiver.next().await];
    let ids = arrived.map(|one| one.headers["webhook-id"].to_str().unwrap().to_owned());
    assert!(ids.contains(&exhausted) && ids.contains(&held), "{ids:?}");
}
