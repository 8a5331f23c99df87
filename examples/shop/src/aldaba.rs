//! A real Aldaba server with data of its own.

use crate::http::{Body, exchange};
use crate::process::{Process, free_address};
use crate::sample::program;
use crate::sender::{BRAND, SECRET};
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

#[derive(Debug)]
pub struct Aldaba {
    _process: Process,
    address: SocketAddr,
    token: String,
    app: String,
}

impl Aldaba {
    /// With one application.
    pub async fn start(folder: &Path) -> Self {
        let (address, data) = (free_address(), folder.join("aldaba"));
        let made = binary().args(["init", "--data"]).arg(&data).output().unwrap();
        assert!(made.status.success(), "no installation: {}", String::from_utf8_lossy(&made.stderr));
        let mut command = binary();
        command.args(["serve", "--listen", &address.to_string(), "--data"]).arg(&data);
        command
            .env("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8")
            .env("ALDABA_BRAND", BRAND)
            .env("ALDABA_LOG", "warn")
            // Tests share their disk and processors with others, and are not about that.
            .env("ALDABA_QUEUE_MILLISECONDS", "30000");
        let process = Process::start(command, &folder.join("aldaba.log"), address).await;
        let output = binary().args(["token", "create", "--data"]).arg(&data).output().unwrap();
        assert!(output.status.success(), "no token: {}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let mut aldaba = Self { _process: process, address, token, app: String::new() };
        let app = aldaba.call(Method::POST, "", json!({"name": "Shop"})).await;
        aldaba.app = format!("/{}", text(&app, "id"));
        aldaba
    }

    /// An endpoint at this URL that shares the samples' secret; its id.
    pub async fn add_endpoint(&self, url: &str, profile: &str) -> String {
        let endpoint = json!({"url": url, "secret": SECRET, "profile": profile, "policy": "quick"});
        text(&self.call(Method::POST, "/endpoint", endpoint).await, "id")
    }

    pub async fn disable(&self, endpoint: &str) {
        self.call(Method::PATCH, &format!("/endpoint/{endpoint}"), json!({"disabled": true})).await;
    }

    /// Sends an event to all endpoints; its id.
    pub async fn send(&self, payload: &Value) -> String {
        let message = json!({"eventType": "payment.success", "payload": payload});
        text(&self.call(Method::POST, "/msg", message).await, "id")
    }

    /// What the endpoint has answered to a message so far: statuses and bodies, the oldest first.
    pub async fn answers(&self, message: &str) -> Vec<(i64, Value)> {
        let attempts =
            self.call(Method::GET, &format!("/attempt/msg/{message}?limit=100"), Value::Null).await;
        let attempts = attempts["data"].as_array().unwrap().iter().rev();
        let answer = |attempt: &Value| {
            let body = serde_json::from_str(&text(attempt, "response")).unwrap_or_default();
            (attempt["responseStatusCode"].as_i64().unwrap(), body)
        };
        attempts.map(answer).collect()
    }

    /// Sends a message again, by hand.
    pub async fn resend(&self, message: &str, endpoint: &str) {
        let path = format!("/msg/{message}/endpoint/{endpoint}/resend");
        self.call(Method::POST, &path, Value::Null).await;
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let request = Request::builder().method(method).uri(format!("/api/v1/app{}{path}", self.app));
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let body: Body = Full::from(body).boxed();
        let request = request.header("content-type", "application/json").body(body).unwrap();
        let answer = exchange(self.address, request).await.expect("Aldaba does not answer");
        assert!(answer.status < 300, "{path}: {} {}", answer.status, answer.json);
        answer.json
    }
}

fn text(json: &Value, name: &str) -> String {
    json[name].as_str().unwrap_or_else(|| panic!("there is no {name} in {json}")).to_owned()
}

fn binary() -> Command {
    let mut command = Command::new(program("ALDABA_BIN"));
    // It would wonder what these are for.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ALDABA_")) {
        command.env_remove(name);
    }
    command
}
