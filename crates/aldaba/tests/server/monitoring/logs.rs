//! What the log says, in both formats, and how it is filtered.

use crate::commands::command_line::{Started, aldaba, text};
use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::waiting::wait_until;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use std::path::Path;

/// A server as a program, with its log in a file.
pub(crate) struct LoggingServer {
    pub(crate) client: Client,
    _program: Started,
    folder: tempfile::TempDir,
}

impl LoggingServer {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = aldaba(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.env("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8").envs(settings.iter().copied());
        let (program, hello) = Started::logging(&mut command, &folder.path().join("log"));
        let address =
            hello[0].strip_prefix("Aldaba listens on http://").expect("the address").parse().unwrap();
        let mut create = aldaba(folder.path());
        let created = create.args(["token", "create"]).envs(settings.iter().copied()).output().unwrap();
        let token = text(&created.stdout).trim().to_owned();
        let client = Client { address, authorization: None }.with_token(&token);
        Self { client, _program: program, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(crate) async fn application(&self) -> String {
        let made = self.client.post("/app", r#"{"name": "a"}"#).await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// A message for an endpoint whose only attempts, three of them, fail.
    async fn failing_delivery(&self, receiver: &Receiver) -> (String, String) {
        let app = self.application().await;
        let endpoint = json!({"url": receiver.url("/"), "policy": "job-status"}).to_string();
        let endpoint = self.client.post(&format!("/app/{app}/endpoint"), endpoint).await.expect(201);
        let message = r#"{"eventType": "a", "payload": {}}"#;
        let message = self.client.post(&format!("/app/{app}/msg"), message).await.expect(202);
        wait_until("it is dead", async || {
            let dead = self.client.get("/dead-letter").await.expect(200);
            !dead["data"].as_array().unwrap().is_empty()
        })
        .await;
        let id = |of: &Value| of["id"].as_str().unwrap().to_owned();
        (id(&endpoint), id(&message))
    }
}

const FAILED: &str = "Webhook delivery failed";

#[tokio::test]
async fn a4_each_failed_attempt_is_a_line_with_the_fields_of_the_document_in_both_formats() {
    let receiver = Receiver::answering(503, "").await;
    for format in ["json", "text"] {
        let server = LoggingServer::start(&[("ALDABA_LOG_FORMAT", format)]);
        let (endpoint, message) = server.failing_delivery(&receiver).await;
        let log = server.log();
        let lines: Vec<_> = log.lines().filter(|line| line.contains(FAILED)).collect();
        assert_eq!(lines.len(), 3, "{log}");
        for (line, attempt) in lines.iter().zip(1..) {
            let will_retry = attempt < 3;
            let error = "HTTP 503: Service Unavailable";
            if format == "text" {
                let fields = format!(
                    "aldaba_engine::recording::decide: {FAILED} endpoint={endpoint} message_id={message} \
                     attempt={attempt} maxAttempts=3 willRetry={will_retry} error={error}"
                );
                assert!(line.contains(" WARN ") && line.contains(&fields), "{line} has not {fields}");
                continue;
            }
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["level"], "WARN");
            let expected = json!({
                "message": FAILED, "endpoint": endpoint, "message_id": message, "attempt": attempt,
                "maxAttempts": 3, "willRetry": will_retry, "error": error,
            });
            assert_eq!(line["fields"], expected);
        }
        if format == "json" {
            assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
        }
    }
}

#[tokio::test]
async fn the_lines_of_failed_attempts_can_be_turned_off_and_the_rest_stays() {
    let receiver = Receiver::answering(503, "").await;
    let server = LoggingServer::start(&[("ALDABA_LOG", "info,aldaba_engine::recording=error")]);
    server.failing_delivery(&receiver).await;
    let log = server.log();
    assert!(!log.contains(FAILED) && log.contains("listening"), "{log}");
}

#[tokio::test]
async fn requests_are_logged_by_route_with_an_id_where_that_is_asked_for() {
    let server =
        LoggingServer::start(&[("ALDABA_LOG", "warn,aldaba::requests=debug"), ("ALDABA_LOG_FORMAT", "json")]);
    let app = server.application().await;
    let path = format!("/app/{app}");
    let get = async |id: &str| {
        server.client.send(Method::GET, &path, &[("x-request-id", id)], Bytes::new()).await.headers
            ["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(get("mine-1").await, "mine-1");
    let made = get("not an id").await;
    server.client.get("/app/none").await.expect(404);
    let log = server.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let fields = |id: &str| {
        let line = lines.iter().find(|line| line["fields"]["requestId"] == id);
        line.unwrap_or_else(|| panic!("{id}: {log}"))["fields"].clone()
    };
    for id in ["mine-1", &made] {
        let fields = fields(id);
        assert_eq!((&fields["method"], &fields["status"]), (&json!("GET"), &json!(200)));
        assert_eq!(fields["route"], "/api/v1/app/{app_id}");
        assert!(fields["took_ms"].as_f64().unwrap() >= 0.0);
    }
    assert!(lines.iter().any(|line| line["fields"]["status"] == 404), "{log}");
    assert!(!log.contains(&app), "the path is not there");
}

#[tokio::test]
async fn without_asking_there_is_neither_a_line_nor_an_id() {
    let server = LoggingServer::start(&[]);
    let app = server.application().await;
    let path = format!("/app/{app}");
    let reply = server.client.send(Method::GET, &path, &[("x-request-id", "mine")], Bytes::new()).await;
    assert!(!reply.headers.contains_key("x-request-id"));
    assert!(!server.log().contains("aldaba::requests"));
}
