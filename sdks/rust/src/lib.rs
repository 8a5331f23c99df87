//! What every test of the SDK works with: the SDK as a client, and a receiver of webhooks.
//!
//! `ALDABA_URL` and `ALDABA_TOKEN` say which server, and as whom.

mod receiver;

pub use receiver::{Hook, Received, hook};

use chrono::{DateTime, TimeDelta, Utc};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use svix::api::{Svix, SvixOptions};
use svix::error::Error;
use svix::models::{
    ApplicationIn, EndpointIn, EndpointOut, EventTypeIn, MessageAttemptOut, MessageIn, MessageOut,
    MessageStatus,
};

/// How long anything may take that the server does by itself, in looks of 20 ms.
const WAIT_TIMEOUT: usize = 750;
const LOOK: Duration = Duration::from_millis(20);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// The SDK without retries: a 5xx must fail a test, not be hidden by the next try.
pub fn client() -> Svix {
    client_with(variable("ALDABA_TOKEN"))
}

pub fn client_with(token: String) -> Svix {
    let options =
        SvixOptions { server_url: Some(variable("ALDABA_URL")), num_retries: Some(0), ..Default::default() };
    Svix::new(token, Some(options))
}

pub fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{number}", Utc::now().timestamp_micros())
}

pub fn minutes_ago(minutes: i64) -> DateTime<Utc> {
    Utc::now() - TimeDelta::minutes(minutes)
}

/// A change of an endpoint without the SDK, for what only Aldaba has.
fn patch(path: &str, body: &str) {
    let url = variable("ALDABA_URL");
    let address = url.strip_prefix("http://").expect("a plain URL");
    let mut stream = TcpStream::connect(address).expect("the server is there");
    let (token, length) = (variable("ALDABA_TOKEN"), body.len());
    write!(
        stream,
        "PATCH /api/v1{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .expect("a request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer comes");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// What `look` finds, as soon as it finds something.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..WAIT_TIMEOUT {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("never seen: {what}");
}

/// The status and the code of an error that is no 422.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String) {
    match result {
        Err(Error::Http(error)) => {
            (error.status.as_u16(), error.payload.expect("the SDK understands the error").code)
        }
        other => panic!("an HTTP error was expected: {other:?}"),
    }
}

/// The places that a 422 names.
#[track_caller]
pub fn invalid<T: std::fmt::Debug>(result: Result<T, Error>) -> Vec<Vec<String>> {
    match result {
        Err(Error::Validation(error)) => {
            let problems = error.payload.expect("the SDK understands the error").detail;
            problems.into_iter().map(|problem| problem.loc).collect()
        }
        other => panic!("a validation error was expected: {other:?}"),
    }
}

/// An application of one test, and what it does there.
pub struct Scene {
    pub svix: Svix,
    pub app: String,
}

impl Scene {
    pub async fn open(name: &str) -> Self {
        let svix = client();
        let made = svix.application().create(ApplicationIn::new(name.into()), None).await;
        Self { svix, app: made.expect("an application").id }
    }

    pub fn app(&self) -> String {
        self.app.clone()
    }

    pub async fn endpoint(&self, hook: &Hook) -> EndpointOut {
        self.endpoint_as(EndpointIn::new(hook.url.clone())).await
    }

    pub async fn endpoint_as(&self, endpoint: EndpointIn) -> EndpointOut {
        self.svix.endpoint().create(self.app(), endpoint, None).await.expect("an endpoint")
    }

    /// Under this policy a 4xx ends a delivery at once.
    pub async fn quick_endpoint(&self, hook: &Hook) -> EndpointOut {
        let endpoint = self.endpoint(hook).await;
        self.set(&endpoint, r#"{"policy": "quick"}"#);
        endpoint
    }

    pub fn set(&self, endpoint: &EndpointOut, fields: &str) {
        patch(&format!("/app/{}/endpoint/{}", self.app, endpoint.id), fields);
    }

    pub async fn secret(&self, endpoint: &EndpointOut) -> String {
        self.svix.endpoint().get_secret(self.app(), endpoint.id.clone()).await.expect("a secret").key
    }

    pub async fn send(&self) -> MessageOut {
        self.send_as(message("invoice.paid")).await
    }

    pub async fn send_as(&self, message: MessageIn) -> MessageOut {
        self.svix.message().create(self.app(), message, None).await.expect("an accepted message")
    }

    pub async fn event_type(&self) -> String {
        let name = unique("invoice");
        let kind = EventTypeIn::new(name.clone(), "An invoice".into());
        self.svix.event_type().create(kind, None).await.expect("an event type");
        name
    }

    /// Waits until an attempt of the message has ended so.
    pub async fn attempt(&self, message: &MessageOut, status: MessageStatus) -> MessageAttemptOut {
        eventually("an attempt", async || {
            let api = self.svix.message_attempt();
            let found = api.list_by_msg(self.app(), message.id.clone(), None).await.expect("attempts");
            found.data.into_iter().find(|attempt| attempt.status == status)
        })
        .await
    }
}

pub fn message(event_type: &str) -> MessageIn {
    MessageIn::new(event_type.into(), serde_json::json!({"invoice": 42}))
}
