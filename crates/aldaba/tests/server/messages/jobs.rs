//! The ends of jobs: document C's own list of tests, against the whole server and over sockets.

use crate::commands::command_line::{aldaba, text};
use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use crate::support::waiting::wait_until;
use aldaba::config::Config;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[expect(clippy::disallowed_methods, reason = "this is about real time")]
fn now() -> Instant {
    Instant::now()
}

fn local(config: &mut Config) {
    config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
}

async fn tell(server: &Running, app: &str, more: Value) -> Value {
    let mut job = json!({"jobId": "job-1", "jobType": "email.send", "status": "completed"});
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(202)
}

/// The record of a job once it is no longer pending.
async fn ended(server: &Running, app: &str, job: &str) -> Value {
    let is_pending = |record: &Value| {
        let pending = record["status"] == "pending";
        assert!(!pending || record["completedAt"].is_null(), "{record}");
        pending
    };
    server.client.get_until(&format!("/app/{app}/job/{job}"), |record| !is_pending(record)).await
}

/// The URL of something that sends everybody on.
async fn redirecting(to: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = [0; 4096];
            let _ = stream.read(&mut read).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    url
}

fn fields(record: &Value, names: [&str; 5]) -> [Value; 5] {
    names.map(|name| record[name].clone())
}

const STATE: [&str; 5] = ["status", "attempts", "maxAttempts", "lastStatusCode", "lastError"];

#[tokio::test]
async fn c1_without_a_url_nothing_happens_and_nothing_is_wrong() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let job = json!({"jobId": "job-1", "jobType": "email.send", "status": "completed"});
    for url in [None, Some(Value::Null), Some(json!(""))] {
        let mut job = job.clone();
        if let Some(url) = url {
            job["webhookUrl"] = url;
        }
        let answer = server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(200);
        assert_eq!(answer, json!({"dispatched": false}));
    }
    server.client.get(&format!("/app/{app}/job/job-1")).await.expect(404);
    assert_eq!(server.client.get(&format!("/app/{app}/job")).await.expect(200)["data"], json!([]));
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

/// The program in `docs/jobs.md` that checks a signature, as it stands there.
fn documented_check() -> String {
    let page = include_str!("../../../../../docs/jobs.md");
    let (_, program) = page.split_once("```python\n").expect("docs/jobs.md has a program in Python");
    program.split_once("```").expect("it has an end").0.to_owned()
}

/// What the documented program says of a request: the last line that it prints.
fn checked(program: &str, secret: &str, arrival: &crate::support::receiver::Arrival, body: &[u8]) -> String {
    let header = |name: &str| arrival.headers[name].to_str().unwrap().to_owned();
    let request = json!({
        "webhook-id": header("webhook-id"), "webhook-timestamp": header("webhook-timestamp"),
        "webhook-signature": header("webhook-signature"),
    });
    let call = format!(
        "{program}\nimport base64\nprint(is_genuine({secret:?}, {request}, base64.b64decode({body:?})))\n",
        body = BASE64_STANDARD.encode(body)
    );
    let ended = std::process::Command::new("python3").args(["-c", &call]).output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    text(&ended.stdout).trim().to_owned()
}

#[tokio::test]
async fn c2_a_jobs_webhook_is_signed_with_the_key_that_the_application_shows() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(503, "").await;
    tell(&server, &app, json!({"webhookUrl": receiver.url("/jobs")})).await;
    let secret = server.client.get(&format!("/app/{app}/dispatch/secret")).await.expect(200);
    let secret = secret["key"].as_str().unwrap();
    // Each attempt is signed again, with the same id.
    let (first, retry) = (receiver.next().await, receiver.next().await);
    for arrival in [&first, &retry] {
        standardwebhooks::Webhook::new(secret).unwrap().verify(&arrival.body, &arrival.headers).unwrap();
    }
    assert_eq!(first.headers["webhook-id"], retry.headers["webhook-id"]);
    let program = documented_check();
    let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDQUFB";
    assert_eq!(checked(&program, secret, &first, &first.body), "True");
    assert_eq!(checked(&program, other, &first, &first.body), "False");
    assert_eq!(checked(&program, secret, &first, b"{}"), "False");
    // Another application has another key.
    let others = server.application().await;
    let others = server.client.get(&format!("/app/{others}/dispatch/secret")).await.expect(200);
    assert_ne!(others["key"], secret);
}

#[tokio::test]
async fn c2_and_c4_a_success_goes_out_at_once_with_its_payload_headers_and_record() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(201, "thanks").await;
    let url = receiver.url("/hooks?job=1");
    let result = json!({"sent": true, "messageId": "abc123"});
    let began = now();
    let told = tell(&server, &app, json!({"webhookUrl": url, "result": result})).await;
    let arrival = receiver.next().await;
    assert!(now() - began < Duration::from_secs(2), "{:?}", now() - began);

    let headers = ["content-type", "x-webhook-event", "x-job-id"];
    let headers = headers.map(|name| arrival.headers[name].to_str().unwrap());
    assert_eq!(headers, ["application/json", "job.status", "job-1"]);
    assert_eq!(arrival.headers["webhook-id"], told["id"].as_str().unwrap());
    let payload: Value = serde_json::from_slice(&arrival.body).unwrap();
    let completed_at = payload["completedAt"].as_str().unwrap();
    assert_eq!((completed_at.len(), &completed_at[10..11], &completed_at[23..]), (24, "T", "Z"));
    assert_eq!(
        payload,
        json!({"jobId": "job-1", "jobType": "email.send", "status": "completed", "result": result,
               "error": null, "completedAt": completed_at})
    );
    assert_eq!(arrival.path, "/hooks?job=1");

    assert_eq!(fields(&told, STATE), [json!("pending"), json!(0), json!(3), Value::Null, Value::Null]);
    assert_eq!((&told["dispatched"], &told["url"], &told["payload"]), (&json!(true), &json!(url), &payload));
    let record = ended(&server, &app, "job-1").await;
    assert_eq!(fields(&record, STATE), [json!("success"), json!(1), json!(3), json!(201), Value::Null]);
    assert!(record["lastAttemptAt"].is_string() && record["completedAt"].is_string());
    let mut names: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut all = [
        "id",
        "jobId",
        "jobType",
        "url",
        "payload",
        "status",
        "attempts",
        "maxAttempts",
        "lastStatusCode",
        "lastError",
        "lastAttemptAt",
        "createdAt",
        "completedAt",
    ];
    all.sort_unstable();
    assert_eq!(names, all);
    for same in ["id", "jobId", "jobType", "url", "payload", "createdAt"] {
        assert_eq!(record[same], told[same], "{same}");
    }
    receiver.nothing_more().await;
}

#[tokio::test]
async fn c4_and_c6_an_http_failure_is_retried_with_growing_delays_until_the_attempts_are_used_up() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(503, "down").await;
    let error = json!("SMTP said no");
    let began = now();
    tell(&server, &app, json!({"status": "failed", "error": error, "webhookUrl": receiver.url("/")})).await;
    let mut times = Vec::new();
    for attempt in 1..=3 {
        let arrival = receiver.next().await;
        times.push((now() - began).as_secs_f64());
        let payload: Value = serde_json::from_slice(&arrival.body).unwrap();
        assert_eq!(
            (&payload["status"], &payload["error"], &payload["result"]),
            (&json!("failed"), &error, &Value::Null)
        );
        if attempt == 2 {
            let pending = server.client.get(&format!("/app/{app}/job/job-1")).await.expect(200);
            assert_eq!(
                (&pending["status"], &pending["lastError"]),
                (&json!("pending"), &json!("HTTP 503: Service Unavailable"))
            );
        }
    }
    let gaps = [times[1] - times[0], times[2] - times[1]];
    assert!((0.9..1.8).contains(&gaps[0]) && (1.9..2.8).contains(&gaps[1]), "{gaps:?}");
    let record = ended(&server, &app, "job-1").await;
    let expected = [json!("failed"), json!(3), json!(3), json!(503), json!("HTTP 503: Service Unavailable")];
    assert_eq!(fields(&record, STATE), expected);
    receiver.stays_quiet(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn c5_a_timeout_and_a_refused_connection_have_an_error_and_no_status() {
    let server = Running::with(|config| {
        local(config);
        config.overrides.job_timeout = Duration::from_millis(200);
        config.overrides.job_attempts = 2;
    })
    .await;
    let app = server.application().await;
    // Takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone: SocketAddr = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let silent = silent.local_addr().map(|address| (silent, address)).unwrap();
    tell(&server, &app, json!({"jobId": "slow", "webhookUrl": format!("http://{}/", silent.1)})).await;
    tell(&server, &app, json!({"jobId": "gone", "webhookUrl": format!("http://{gone}/")})).await;
    let slow = ended(&server, &app, "slow").await;
    let expected = [json!("failed"), json!(2), json!(2), Value::Null, json!("Request timeout")];
    assert_eq!(fields(&slow, STATE), expected);
    // The history says which part of the request it was.
    let path = format!("/app/{app}/attempt/msg/{}", slow["id"].as_str().unwrap());
    let attempts = server.client.get(&path).await.expect(200);
    let first = &attempts["data"][0];
    let expected = [json!("Request timeout"), json!("no answer came in time")];
    assert_eq!([&first["error"], &first["errorDetail"]], [&expected[0], &expected[1]]);
    assert_eq!(first["response"], "Request timeout: no answer came in time");
    let gone = ended(&server, &app, "gone").await;
    assert_eq!((&gone["status"], &gone["lastStatusCode"]), (&json!("failed"), &Value::Null));
    assert!(gone["lastError"].as_str().unwrap().to_lowercase().contains("refused"), "{gone}");
}

#[tokio::test]
async fn c4_records_are_found_by_status_and_by_job() {
    let server = Running::with(|config| {
        local(config);
        config.overrides.job_attempts = 1;
    })
    .await;
    let app = server.application().await;
    let good = Receiver::answering(200, "").await;
    let bad = Receiver::answering(500, "").await;
    for n in 0..5 {
        tell(&server, &app, json!({"jobId": format!("good/{n}"), "webhookUrl": good.url("/")})).await;
    }
    for _ in 0..2 {
        tell(&server, &app, json!({"jobId": "bad", "webhookUrl": bad.url("/")})).await;
    }
    // An event and a dispatch are no jobs.
    server.message(&app, "a").await;
    let dispatch = json!({"url": good.url("/"), "payload": 1}).to_string();
    server.client.post(&format!("/app/{app}/dispatch"), dispatch).await.expect(202);
    for n in 0..5 {
        ended(&server, &app, &format!("good%2F{n}")).await;
    }
    ended(&server, &app, "bad").await;
    let jobs = async |query: &str| {
        let page = server.client.get(&format!("/app/{app}/job?{query}")).await.expect(200);
        let data =
            page["data"].as_array().unwrap().iter().map(|job| job["jobId"].as_str().unwrap().to_owned());
        data.collect::<Vec<_>>()
    };
    let newest_first = ["bad", "bad", "good/4", "good/3", "good/2", "good/1", "good/0"];
    let mut everything = jobs("").await;
    assert_eq!(everything.len(), 7);
    assert_eq!(jobs("status=success").await.len(), 5);
    wait_until("two jobs have failed", async || jobs("status=failed").await.len() == 2).await;
    assert_eq!(jobs("status=failed").await, ["bad", "bad"]);
    assert_eq!(jobs("status=pending").await, Vec::<String>::new());
    assert_eq!(jobs("jobId=good%2F3").await, ["good/3"]);
    assert_eq!(jobs("jobId=bad&status=failed").await.len(), 2);
    assert_eq!(jobs("jobId=bad&status=success").await, Vec::<String>::new());
    everything.sort();
    let mut expected = newest_first.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(everything, expected);
    // Page by page, forth and back.
    let (mut paged, mut iterator) = (Vec::new(), String::new());
    loop {
        let page = server.client.get(&format!("/app/{app}/job?limit=3{iterator}")).await.expect(200);
        paged.extend(page["data"].as_array().unwrap().iter().map(|job| job["id"].clone()));
        if page["done"] == true {
            break;
        }
        iterator = format!("&iterator={}", page["iterator"].as_str().unwrap());
    }
    let all = server.client.get(&format!("/app/{app}/job")).await.expect(200);
    let ids: Vec<_> = all["data"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
    assert_eq!(paged, ids);
    server.client.get(&format!("/app/{app}/job?status=done")).await.expect(422);
    server.client.get(&format!("/app/{app}/job?limit=0")).await.expect(422);
}

#[tokio::test]
async fn a_repeat_under_its_key_is_one_webhook_and_another_time_is_another() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let job = json!({"jobId": "j", "jobType": "t", "status": "completed", "webhookUrl": receiver.url("/")});
    let path = format!("/app/{app}/job");
    let first = server.client.post_once(&path, "k", job.to_string()).await.expect(202);
    receiver.next().await;
    let again = server.client.post_once(&path, "k", job.to_string()).await.expect(202);
    assert_eq!((&again["id"], &again["dispatched"]), (&first["id"], &json!(true)));
    receiver.nothing_more().await;
    let other = server.client.post_once(&path, "l", job.to_string()).await.expect(202);
    assert_ne!(other["id"], first["id"]);
    receiver.next().await;
    let shown = server.client.get(&format!("/app/{app}/job/j")).await.expect(200);
    assert_eq!(shown["id"], other["id"], "the newest");
}

#[tokio::test]
async fn c8_redirects_are_followed_and_each_hop_is_vetted() {
    let server = Running::with(|config| {
        local(config);
        config.overrides.job_attempts = 1;
    })
    .await;
    let app = server.application().await;
    let mut end = Receiver::answering(200, "").await;
    let near = redirecting(&end.url("/there")).await;
    tell(&server, &app, json!({"jobId": "near", "webhookUrl": near})).await;
    assert_eq!(end.next().await.headers["x-job-id"], "near");
    assert_eq!(ended(&server, &app, "near").await["status"], "success");
    let far = redirecting("http://169.254.169.254/latest").await;
    tell(&server, &app, json!({"jobId": "far", "webhookUrl": far})).await;
    let record = ended(&server, &app, "far").await;
    assert_eq!((&record["status"], &record["lastStatusCode"]), (&json!("failed"), &Value::Null), "{record}");
}

#[tokio::test]
async fn an_invalid_job_is_explained_and_not_stored() {
    let server = Running::start().await;
    let app = server.application().await;
    let good =
        json!({"jobId": "j", "jobType": "t", "status": "completed", "webhookUrl": "https://example.com/"});
    let long = "x".repeat(257);
    for (field, wrong) in [
        ("jobId", json!(null)),
        ("jobId", json!(5)),
        ("jobId", json!("")),
        ("jobId", json!(" a")),
        ("jobId", json!("a\r\nX-Evil: 1")),
        ("jobId", json!("ñ")),
        ("jobId", json!(long)),
        ("jobType", json!("")),
        ("jobType", json!("a\u{0}")),
        ("jobType", json!(long)),
        ("jobType", json!([])),
        ("status", json!("done")),
        ("status", json!(true)),
        ("status", json!(null)),
        ("error", json!({"message": "no"})),
        ("error", json!("x".repeat(70_000))),
        ("webhookUrl", json!(" ")),
        ("webhookUrl", json!("ftp://example.com/")),
        ("webhookUrl", json!("http://127.0.0.1/")),
        ("webhookUrl", json!("http://169.254.169.254/latest")),
        ("webhookUrl", json!("http://[::ffff:10.0.0.1]/")),
        ("webhookUrl", json!(7)),
        ("completedAt", json!("yesterday")),
        ("completedAt", json!(1_700_000_000)),
        ("completedAt", json!("9999-12-31T23:59:59.999Z")),
        ("completedAt", json!("-000001-12-31T23:59:59Z")),
    ] {
        let mut job = good.clone();
        job[field] = wrong.clone();
        let refused = server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{wrong}");
    }
    for moment in ["0000-01-01T00:00:00.000Z", "9999-12-30T00:00:00.000Z"] {
        let mut job = good.clone();
        job["completedAt"] = json!(moment);
        job["webhookUrl"] = json!("https://example.com/later");
        let told = server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(202);
        assert_eq!(told["payload"]["completedAt"], moment, "what is taken goes out as it was given");
    }
    for field in ["jobId", "jobType", "status"] {
        let mut job = good.clone();
        job.as_object_mut().unwrap().remove(field);
        let refused = server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]));
    }
    let deep = format!(
        "{{\"jobId\":\"j\",\"jobType\":\"t\",\"status\":\"completed\",\"webhookUrl\":\"https://example.com/\",\"result\":{}{}}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    let status = server.client.post(&format!("/app/{app}/job"), deep).await.status;
    assert_eq!(status, 422);
    let mut large = good.clone();
    large["result"] = json!("x".repeat(1 << 20));
    server.client.post(&format!("/app/{app}/job"), large.to_string()).await.expect(413);
    for body in ["", "[]", "null", "{", "\"x\""] {
        assert_eq!(server.client.post(&format!("/app/{app}/job"), body).await.status, 422, "{body}");
    }
    server.client.post("/app/app_missing/job", good.to_string()).await.expect(404);
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    other.post(&format!("/app/{app}/job"), good.to_string()).await.expect(404);
    assert_eq!(server.stored(&app).await, [1, 0, 2]);
}

/// Without a URL no webhook is sent, so a misspelt field name would silently lose one.
#[tokio::test]
async fn a_field_that_is_misspelt_is_refused_and_not_taken_for_one_that_is_left_out() {
    let server = Running::start().await;
    let app = server.application().await;
    for misspelt in ["webhookURL", "webhook_url", "url"] {
        let job =
            json!({"jobId": "j", "jobType": "t", "status": "completed", misspelt: "https://example.com/"});
        let refused = server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", misspelt]));
        assert!(refused["detail"][0]["msg"].as_str().unwrap().contains("webhookUrl"), "{refused}");
    }
    let dispatch = json!({"url": "https://example.com/", "payload": 1, "event_type": "a", "channels": ["b"]});
    let refused = server.client.post(&format!("/app/{app}/dispatch"), dispatch.to_string()).await.expect(422);
    let places = ["channels", "event_type"].map(|field| json!(["body", field]));
    assert_eq!([&refused["detail"][0]["loc"], &refused["detail"][1]["loc"]], [&places[0], &places[1]]);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_is_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    for (body, words) in [
        ("[]", "expected a JSON object"),
        ("7", "expected a JSON object"),
        ("jobId=7", "invalid JSON: "),
        ("{\"jobId\": ", "invalid JSON: "),
        ("", "the body is empty; expected a JSON object"),
    ] {
        let refused = server.client.post(&format!("/app/{app}/job"), body).await.expect(422);
        assert!(refused["detail"][0]["msg"].as_str().unwrap().starts_with(words), "{body}: {refused}");
    }
}

#[tokio::test]
async fn schema_errors_of_a_job_name_the_fields_of_the_request() {
    let server = Running::start().await;
    let app = server.application().await;
    let schema = json!({"type": "object", "required": ["zzz"], "properties": {"result": {"type": "object",
        "properties": {"n": {"type": "string"}}}}});
    let described = json!({"description": "", "schemas": {"1": schema}, "validate": true}).to_string();
    server.client.put("/event-type/job.status", described).await.expect(201);
    let job = json!({"jobId": "j", "jobType": "t", "status": "completed", "webhookUrl": "https://example.com/",
        "result": {"n": 5}});
    let refused = server.client.post(&format!("/app/{app}/job"), job.to_string()).await.expect(422);
    let places: Vec<_> = refused["detail"].as_array().unwrap().iter().map(|one| one["loc"].clone()).collect();
    assert!(places.contains(&json!(["body", "result", "n"])), "{refused}");
    assert!(places.contains(&json!(["body"])) || places.contains(&json!(["body", "zzz"])), "{refused}");
    assert!(!refused.to_string().contains("\"payload\""), "{refused}");
}

#[test]
fn an_invalid_environment_variable_stops_the_start_with_an_explanation() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "WEBHOOK_TIMEOUT_MS",
        "WEBHOOK_MAX_ATTEMPTS",
        "WEBHOOK_RETRY_INTERVAL_MS",
        "WEBHOOK_BASE_DELAY_MS",
        "WEBHOOK_MAX_DELAY_MS",
    ] {
        for value in ["ten", "0", "-5", "1.5", "1e3", "99999999999999999999"] {
            let mut command = aldaba(folder.path());
            command.args(["serve", "--listen", "127.0.0.1:0"]).env(name, value);
            let ended = command.output().unwrap();
            assert_eq!(ended.status.code(), Some(2), "{name}={value}");
            let said = text(&ended.stderr);
            assert!(said.contains(&format!("{name}={value}: expected a whole number from 1 to ")), "{said}");
            assert_eq!(text(&ended.stdout), "");
        }
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was made");
}
