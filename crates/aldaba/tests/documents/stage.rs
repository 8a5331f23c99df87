//! The API and the engine on a simulated clock, and a receiver that notes everything.

use aldaba::config::Config;
use aldaba::{DEFAULT_ORGANIZATION, JwtSecret, issue_token};
use aldaba_delivery::policy::{Overrides, Timeouts};
use aldaba_delivery::{FailureKind, Outcome, ResponseHead, RetryAfter, Timestamp};
use aldaba_engine::{Engine, Options, Parts, Policies, Sending, Transport, Vault, WireRequest, WireResponse};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use simulation::entropy::{Dice, SeededEntropy};
use simulation::process::Process;
use simulation::store::{Disk, Faults, SimStore};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
const SECRET: &str = "the secret of the documents' tests";
const START: Timestamp = Timestamp::from_millis(1_780_000_000_000);

fn secret() -> JwtSecret {
    JwtSecret::new(SECRET).unwrap()
}

/// One request on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Since the stage was set.
    pub(crate) at: Duration,
    pub(crate) url: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) timeouts: Timeouts,
}

impl Arrival {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

type Script = Box<dyn FnMut(&Arrival) -> Outcome + Send>;

/// The receivers of the world, under one script.
struct Receivers {
    script: Mutex<Script>,
    log: Mutex<Vec<Arrival>>,
}

/// The way to them of one life of the server.
struct Line {
    receivers: Arc<Receivers>,
    process: Arc<Process>,
}

impl Transport for Line {
    fn send(&self, request: WireRequest) -> Sending {
        if self.process.is_dead() {
            return Box::pin(std::future::pending());
        }
        let arrival = Arrival {
            at: self.process.now().since(START),
            url: request.url.to_string(),
            headers: request.headers,
            body: request.body,
            timeouts: request.timeouts,
        };
        let outcome = (self.receivers.script.lock())(&arrival);
        self.receivers.log.lock().push(arrival);
        Box::pin(async move {
            if matches!(&outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Timeout) {
                tokio::time::sleep(request.timeouts.total).await;
            }
            WireResponse { outcome, body: Bytes::new() }
        })
    }
}

pub(crate) fn status(status: u16) -> Outcome {
    let phrase = StatusPhrase(status).text().into();
    Outcome::Response(ResponseHead { status, phrase, retry_after: None })
}

pub(crate) fn retry_after(status: u16, seconds: u64) -> Outcome {
    let wish = RetryAfter::parse([seconds.to_string().as_bytes()]);
    Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: wish })
}

struct StatusPhrase(u16);

impl StatusPhrase {
    fn text(&self) -> &'static str {
        http::StatusCode::from_u16(self.0).ok().and_then(|code| code.canonical_reason()).unwrap_or("")
    }
}

pub(crate) struct Stage {
    engine: Engine,
    router: Router,
    receivers: Arc<Receivers>,
    disk: Arc<Mutex<Disk>>,
    process: Arc<Process>,
    lives: usize,
    overrides: Overrides,
}

/// Runs a case on a clock that jumps to the next event.
pub(crate) fn play<F: Future<Output = ()>>(case: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO").block_on(case);
}

impl Stage {
    /// A server whose receivers answer by `script`.
    pub(crate) async fn new(script: impl FnMut(&Arrival) -> Outcome + Send + 'static) -> Self {
        Self::with(Overrides::default(), script).await
    }

    pub(crate) async fn with(
        overrides: Overrides,
        script: impl FnMut(&Arrival) -> Outcome + Send + 'static,
    ) -> Self {
        let process = Process::new(0, START);
        let receivers = Arc::new(Receivers { script: Mutex::new(Box::new(script)), log: Mutex::default() });
        let disk: Arc<Mutex<Disk>> = Arc::default();
        let (engine, router) = start(&process, &disk, &receivers, &overrides).await;
        Self { engine, router, receivers, disk, process, lives: 1, overrides }
    }

    /// `kill -9` and a new start with the data on disk.
    pub(crate) async fn crash(&mut self) {
        self.off_for(Duration::ZERO).await;
    }

    /// The same, with a while in between.
    pub(crate) async fn off_for(&mut self, span: Duration) {
        self.process.die();
        let process = Process::new(self.lives, self.process.now() + span);
        self.lives += 1;
        let receivers = self.receivers.clone();
        let (engine, router) = start(&process, &self.disk, &receivers, &self.overrides).await;
        (self.engine, self.router, self.process) = (engine, router, process);
    }

    pub(crate) fn answers(&self, script: impl FnMut(&Arrival) -> Outcome + Send + 'static) {
        *self.receivers.script.lock() = Box::new(script);
    }

    pub(crate) async fn wait(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    /// Everything that has arrived so far.
    pub(crate) fn wire(&self) -> Vec<Arrival> {
        self.receivers.log.lock().clone()
    }

    /// The seconds between the first request to a URL and each of them.
    pub(crate) fn seconds(&self, url: &str) -> Vec<f64> {
        let log = self.wire();
        let times: Vec<_> =
            log.iter().filter(|arrival| arrival.url == url).map(|arrival| arrival.at).collect();
        times.iter().map(|at| (*at - times[0]).as_secs_f64()).collect()
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let token = issue_token(&secret(), DEFAULT_ORGANIZATION.parse().unwrap(), self.process.now());
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("authorization", format!("Bearer {token}"))
            .body(body)
            .unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let json = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        (parts.status.as_u16(), json)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> impl Future<Output = Value> {
        self.expect(Method::GET, path, Value::Null, 200)
    }

    pub(crate) fn post(&self, path: &str, body: Value, status: u16) -> impl Future<Output = Value> {
        self.expect(Method::POST, path, body, status)
    }

    pub(crate) async fn expect(&self, method: Method, path: &str, body: Value, expected: u16) -> Value {
        let (status, json) = self.call(method, path, body).await;
        assert_eq!(status, expected, "{path}: {json}");
        json
    }

    pub(crate) async fn application(&self) -> String {
        id(&self.post("/app", json!({"name": "a customer"}), 201).await)
    }

    pub(crate) async fn endpoint(&self, app: &str, url: &str, more: Value) -> String {
        let mut body = json!({"url": url});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        id(&self.post(&format!("/app/{app}/endpoint"), body, 201).await)
    }

    pub(crate) async fn message(&self, app: &str) -> String {
        let body = json!({"eventType": "invoice.paid", "payload": {"invoice": 42}});
        id(&self.post(&format!("/app/{app}/msg"), body, 202).await)
    }

    /// An application with one endpoint under a policy, and one message to it: their ids.
    pub(crate) async fn one_message(&self, url: &str, policy: &str) -> (String, String, String) {
        let app = self.application().await;
        let endpoint = self.endpoint(&app, url, json!({"policy": policy})).await;
        let message = self.message(&app).await;
        (app, endpoint, message)
    }

    /// How a message stands with its only endpoint.
    pub(crate) async fn destination(&self, app: &str, message: &str) -> Value {
        self.get(&format!("/app/{app}/msg/{message}/endpoint")).await["data"][0].clone()
    }

    /// The attempts of a message, the oldest first.
    pub(crate) async fn attempts(&self, app: &str, message: &str) -> Vec<Value> {
        let page = self.get(&format!("/app/{app}/attempt/msg/{message}?limit=250")).await;
        page["data"].as_array().unwrap().iter().rev().cloned().collect()
    }
}

async fn start(
    process: &Arc<Process>,
    disk: &Arc<Mutex<Disk>>,
    receivers: &Arc<Receivers>,
    overrides: &Overrides,
) -> (Engine, Router) {
    let (log, faults, dice) = (Arc::default(), Faults::none(), Dice::new(7));
    let store = SimStore::start(disk.clone(), log, process.clone(), faults, dice);
    let entropy = Arc::new(SeededEntropy::new(Dice::new(8 + process.number as u64)));
    let parts = Parts {
        store: Arc::new(store),
        transport: Arc::new(Line { receivers: receivers.clone(), process: process.clone() }),
        clock: process.clock.clone(),
        entropy: entropy.clone(),
        vault: Vault::new([9; 32]),
        policies: Policies::new(overrides).expect("the built-in policies are valid"),
    };
    let options = Options { max_sleep: HOUR * 10_000, ..Options::default() };
    let engine = Engine::start(parts, options).await.expect("it starts");
    let config = Config { jwt_secret: Some(secret()), ..Config::default() };
    let router = aldaba::server::api(&engine, &*entropy, &config).await.expect("a working store");
    (engine, router)
}

pub(crate) fn id(json: &Value) -> String {
    json["id"].as_str().expect("an id").to_owned()
}

/// Each gap within its bounds, to the few milliseconds that commits take.
#[track_caller]
pub(crate) fn assert_gaps(times: &[f64], bounds: &[(f64, f64)]) {
    let gaps: Vec<f64> =
        times.windows(2).map(|pair| ((pair[1] - pair[0]) * 1000.0).round() / 1000.0).collect();
    assert_eq!(gaps.len(), bounds.len(), "{gaps:?}");
    for (gap, (earliest, latest)) in gaps.iter().zip(bounds) {
        assert!(*gap >= *earliest && *gap <= latest + 0.1, "{gap} is not within {earliest} and {latest}");
    }
}
