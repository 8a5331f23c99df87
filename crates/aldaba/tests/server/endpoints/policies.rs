use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::{Value, json};

#[tokio::test]
async fn the_built_in_policies_are_listed_and_shown() {
    let server = Running::start().await;
    let list = server.client.get("/policy").await.expect(200);
    let names: Vec<_> =
        list["data"].as_array().expect("a list").iter().map(|policy| &policy["name"]).collect();
    assert_eq!(names, ["job-status", "persistent", "public-api", "quick", "standard"]);
    assert_eq!(list["done"], true);
    let shown = server.client.get("/policy/public-api").await.expect(200);
    assert_eq!(shown["builtIn"], true);
    assert_eq!(shown["schedule"], json!({"type": "exponential", "base": "5s", "factor": 5, "cap": "3125s"}));
    assert_eq!(shown["limit"], json!({"attempts": 6, "stopAfter": null}));
    server.client.get("/policy/eager").await.expect(404);
}

#[tokio::test]
async fn d1_b4_a_preview_plans_what_the_engine_does() {
    let server = Running::start().await;
    let plan = server.client.get("/policy/persistent/preview").await.expect(200);
    let attempts = plan["attempts"].as_array().expect("a list");
    assert_eq!((attempts.len(), &attempts[157]["at"]), (158, &json!(602_110.0)));
    assert_eq!((&plan["delivered"], &plan["reason"]), (&json!(false), &json!("stop_date")));
    let plan = server.client.get("/policy/persistent/preview?outage=90s").await.expect(200);
    assert_eq!(
        (&plan["arrivesAt"], &plan["delivered"], &plan["reason"]),
        (&json!(126.0), &json!(true), &Value::Null)
    );
    let plan =
        async |seed: u32| server.client.get(&format!("/policy/quick/preview?seed={seed}")).await.expect(200);
    assert_eq!(plan(1).await, plan(1).await);
    assert_ne!(plan(1).await["attempts"], plan(2).await["attempts"]);
}

#[tokio::test]
async fn an_impossible_preview_is_explained() {
    let server = Running::start().await;
    for (query, field) in [("outage=soon", "outage"), ("outage=90", "outage"), ("seed=-1", "seed")] {
        let refused = server.client.get(&format!("/policy/quick/preview?{query}")).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["query", field]), "{refused}");
    }
    server.client.get("/policy/eager/preview").await.expect(404);
}

fn patient() -> Value {
    json!({
        "name": "patient",
        "schedule": {"type": "list", "delays": ["1m", "1h"]},
        "jitter": {"type": "none"},
        "success": ["200-299"],
    })
}

#[tokio::test]
async fn d8_a_policy_of_ones_own_is_made_changed_and_deleted() {
    let server = Running::start().await;
    let made = server.client.post("/policy", patient().to_string()).await.expect(201);
    assert_eq!((&made["name"], &made["builtIn"]), (&json!("patient"), &json!(false)));
    assert_eq!(made["limit"], json!({"attempts": 3, "stopAfter": null}));
    assert_eq!(server.client.get("/policy/patient").await.expect(200), made);
    server.client.post("/policy", patient().to_string()).await.expect(409);
    let plan = server.client.get("/policy/patient/preview").await.expect(200);
    let at: Vec<_> =
        plan["attempts"].as_array().expect("a list").iter().map(|planned| &planned["at"]).collect();
    assert_eq!(at, [0.0, 60.0, 3660.0]);

    let app = server.application().await;
    let url = "https://example.com/";
    let endpoint = server.endpoint(&app, json!({"url": url, "policy": "patient"})).await;
    assert_eq!(endpoint["policy"], "patient");
    let in_use = server.client.delete("/policy/patient").await.expect(409);
    let user = format!("The endpoint {} uses the policy `patient`.", endpoint["id"].as_str().unwrap());
    assert!(in_use["detail"].as_str().unwrap().starts_with(&user), "{in_use}");

    // A representation can be sent back with a change.
    let mut changed = made.clone();
    changed["schedule"]["delays"] = json!(["5m"]);
    changed["limit"]["attempts"] = json!(2);
    assert_eq!(server.client.put("/policy/patient", changed.to_string()).await.expect(200), changed);
    let id = endpoint["id"].as_str().expect("an id");
    server.client.delete(&format!("/app/{app}/endpoint/{id}")).await.expect(204);
    server.client.delete("/policy/patient").await.expect(204);
    server.client.get("/policy/patient").await.expect(404);
}

#[tokio::test]
async fn a_put_makes_a_policy_that_is_not_there_and_replaces_one_that_is() {
    let server = Running::start().await;
    let made = server.client.put("/policy/patient", patient().to_string()).await.expect(201);
    assert_eq!(server.client.get("/policy/patient").await.expect(200), made);
    assert_eq!(server.client.put("/policy/patient", made.to_string()).await.expect(200), made);
    let mut unnamed = patient();
    unnamed.as_object_mut().unwrap().remove("name");
    assert_eq!(server.client.put("/policy/other", unnamed.to_string()).await.expect(201)["name"], "other");
    server.client.put("/policy/third", patient().to_string()).await.expect(422);
    server.client.put("/policy/no%20name", unnamed.to_string()).await.expect(422);
    server.client.put("/policy/quick", unnamed.to_string()).await.expect(409);
    let audit = server.client.get("/audit?resource_type=policy").await.expect(200);
    let actions: Vec<_> = audit["data"].as_array().unwrap().iter().map(|row| &row["action"]).collect();
    assert_eq!(actions.last(), Some(&&json!("policy.create")), "{audit}");
    assert_eq!(actions.iter().filter(|action| **action == "policy.create").count(), 2, "{audit}");
}

#[tokio::test]
async fn the_error_of_an_invalid_policy_names_the_field_and_the_reason() {
    let server = Running::start().await;
    let mut wrong = patient();
    wrong["schedule"]["delays"] = json!(["1m", "soon"]);
    wrong["retries"] = json!(5);
    let refused = server.client.post("/policy", wrong.to_string()).await.expect(422);
    let places: Vec<_> =
        refused["detail"].as_array().expect("a list").iter().map(|one| &one["loc"]).collect();
    assert_eq!(
        places,
        [&json!(["body", "retries"]), &json!(["body", "schedule", "delays", "[1]"])],
        "{refused}"
    );
    let mut wrong = patient();
    wrong["limit"] = json!({"attempts": 0});
    let refused = server.client.post("/policy", wrong.to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "limit", "attempts"]));
    assert_eq!(refused["detail"][0]["msg"], "must be between 1 and 10000; it is 0");
    server.client.post("/policy", "[]").await.expect(422);
    server.client.post("/policy", "{").await.expect(422);
    let mut built_in = patient();
    built_in["name"] = json!("standard");
    server.client.post("/policy", built_in.to_string()).await.expect(409);
    server.client.put("/policy/quick", patient().to_string()).await.expect(409);
    server.client.delete("/policy/quick").await.expect(409);
    let app = server.application().await;
    let body = json!({"url": "https://example.com/", "policy": "patient"});
    let refused = server.client.post(&format!("/app/{app}/endpoint"), body.to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "policy"]));
}

#[tokio::test]
async fn an_endpoint_is_changed_by_the_fields_that_are_given() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = json!({"url": "https://user:secret@example.com/", "uid": "door", "eventTypes": ["a", "b"]});
    let made = server.endpoint(&app, made).await;
    let path = format!("/app/{app}/endpoint/door");
    server.event_type("c").await;
    let change = json!({"policy": "quick", "throttleRate": 5, "description": "new", "filterTypes": ["c"]});
    let changed = server.client.patch(&path, change.to_string()).await.expect(200);
    let mut expected = made.clone();
    for (field, value) in [
        ("policy", json!("quick")),
        ("throttleRate", json!(5)),
        ("rateLimit", json!(5)),
        ("description", json!("new")),
        ("eventTypes", json!(["c"])),
        ("filterTypes", json!(["c"])),
        ("updatedAt", changed["updatedAt"].clone()),
    ] {
        expected[field] = value;
    }
    assert_eq!(changed, expected);
    assert_ne!(changed["updatedAt"], made["updatedAt"]);
    assert_eq!(server.client.get(&path).await.expect(200), changed);
    let back = server.client.patch(&path, r#"{"throttleRate": null, "eventTypes": null}"#).await.expect(200);
    assert_eq!((&back["throttleRate"], &back["eventTypes"]), (&Value::Null, &Value::Null));
    for wrong in [
        json!({"policy": "eager"}),
        json!({"url": "https://127.0.0.1/"}),
        json!({"whenDisabled": "drop"}),
        json!({"secret": "whsec_"}),
        json!([]),
    ] {
        server.client.patch(&path, wrong.to_string()).await.expect(422);
    }
    server.client.patch(&format!("/app/{app}/endpoint/other"), "{}").await.expect(404);
}

#[tokio::test]
async fn a_change_of_policy_holds_from_the_next_attempt_on() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(500, "no").await;
    let two =
        json!({"name": "two", "schedule": {"type": "list", "delays": ["2s"]}, "jitter": {"type": "none"}});
    server.client.post("/policy", two.to_string()).await.expect(201);
    let app = server.application().await;
    // One whose policy is exchanged, and one whose policy is rewritten, both while a retry waits.
    let exchanged =
        server.endpoint(&app, json!({"url": receiver.url("/exchanged"), "policy": "persistent"})).await;
    let _rewritten = server.endpoint(&app, json!({"url": receiver.url("/rewritten"), "policy": "two"})).await;
    let message = server.message(&app, "a").await;
    receiver.next().await;
    receiver.next().await;
    let path = format!("/app/{app}/endpoint/{}", exchanged["id"].as_str().expect("an id"));
    server.client.patch(&path, r#"{"policy": "two"}"#).await.expect(200);
    let three = json!({"name": "two", "schedule": {"type": "list", "delays": ["1s", "1s"]}, "jitter": {"type": "none"}});
    server.client.put("/policy/two", three.to_string()).await.expect(200);
    // Both had their second attempt planned before; both have three attempts now.
    let mut paths = Vec::new();
    for _ in 0..4 {
        paths.push(receiver.next().await.path);
    }
    paths.sort();
    assert_eq!(paths, ["/exchanged", "/exchanged", "/rewritten", "/rewritten"]);
    let failed = |list: &Value| {
        list["data"].as_array().expect("a list").iter().filter(|one| one["status"] == 2).count()
    };
    // The deliveries end after their third attempt.
    server.client.get_until(&format!("/app/{app}/msg/{message}/endpoint"), |list| failed(list) == 2).await;
}
