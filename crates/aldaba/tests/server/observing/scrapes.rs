//! A scrape is quick and reads nothing from the store, however many endpoints there are.

use aldaba::config::{Config, Secret};
use aldaba_delivery::policy::Overrides;
use aldaba_engine::{
    Clock, Engine, Options, Parts, Policies, Sending, SystemClock, SystemEntropy, Transport, Vault,
    WireRequest, WireResponse,
};
use aldaba_store::operations::{Monotonic, Op, Reply, Result};
use aldaba_store::sqlite::{self, SqliteStore};
use aldaba_store::{Backend, BackendReads, LiveCounts, Read, Store, StoreOptions};
use axum::Router;
use axum::body::Body;
use futures_util::StreamExt;
use futures_util::stream;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tower::ServiceExt;

/// The longest scrape.
const LIMIT: Duration = Duration::from_millis(50);
const TOKEN: &str = "a token for the metrics";

/// Counts what is read.
struct CountedReads {
    store: SqliteStore,
    reads: AtomicUsize,
}

impl Backend for CountedReads {
    fn write(&self, op: Op, reply: Reply) {
        self.store.write(op, reply);
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static,
    {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.read(read)
    }

    fn clock(&self) -> &Monotonic {
        self.store.clock()
    }

    fn count_time(&self) -> Duration {
        self.store.count_time()
    }
}

impl Store for CountedReads {
    fn live_counts(&self) -> LiveCounts {
        self.store.live_counts()
    }

    fn check(&self) -> Read<()> {
        self.store.check()
    }

    fn close(&self) -> Read<()> {
        self.store.close()
    }
}

struct Nobody;

impl Transport for Nobody {
    fn send(&self, _: WireRequest) -> Sending {
        Box::pin(std::future::pending::<WireResponse>())
    }
}

async fn ask(router: &Router, request: Request<Body>) -> (u16, Vec<u8>) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

async fn post(router: &Router, path: &str, body: Value) -> Value {
    let authorization = format!("Bearer {}", crate::support::running::token(aldaba::DEFAULT_ORGANIZATION));
    let request = Request::post(format!("/api/v1{path}"))
        .header("authorization", authorization)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    let (status, body) = ask(router, request).await;
    assert!(matches!(status, 201 | 202), "{status} {:?}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

fn scrape() -> Request<Body> {
    let request = Request::get("/metrics").header("authorization", format!("Bearer {TOKEN}"));
    request.body(Body::empty()).unwrap()
}

/// `ALDABA_SCRAPE_ENDPOINTS=100000` for ten times as many.
#[tokio::test]
async fn a_scrape_takes_at_most_50_ms_and_reads_nothing_from_the_store() {
    let endpoints: usize =
        std::env::var("ALDABA_SCRAPE_ENDPOINTS").map_or(10_000, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { queue_wait: Duration::from_secs(60), ..StoreOptions::new(folder.path()) };
    let store = SqliteStore::open(&sqlite::Options::of(options)).unwrap();
    let store = Arc::new(CountedReads { store, reads: AtomicUsize::new(0) });
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy::new()));
    let parts = Parts {
        store: store.clone(),
        transport: Arc::new(Nobody),
        clock: clock.clone(),
        entropy: entropy.clone(),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).unwrap(),
    };
    // What reads in the background is not part of a scrape.
    let quiet = Duration::from_secs(24 * 3600);
    let options = Options { store_watch_interval: None, sweep_interval: quiet, ..Options::default() };
    let engine = Engine::start(parts, options).await.unwrap();
    let config = Config {
        jwt_secret: Some(crate::support::running::jwt_secret()),
        metrics_token: Some(Secret(TOKEN.into())),
        ..Config::default()
    };
    let router = aldaba::server::api(&engine, &*entropy, &config).await.unwrap();
    for _ in 0..endpoints.div_ceil(1000) {
        let app = post(&router, "/app", json!({"name": "many"})).await["id"].as_str().unwrap().to_owned();
        let path = format!("/app/{app}/endpoint");
        let make = |number: usize| {
            let (router, path) = (&router, &path);
            let body = json!({"url": format!("https://example.com/{number}")});
            async move { drop(post(router, path, body).await) }
        };
        stream::iter((0..1000).map(make)).buffer_unordered(256).collect::<Vec<_>>().await;
        post(&router, &format!("/app/{app}/msg"), json!({"eventType": "a", "payload": {}})).await;
    }
    engine.stop_sending();
    // What has just begun to be sent may still read.
    let mut last = usize::MAX;
    while std::mem::replace(&mut last, store.reads.load(Ordering::SeqCst)) != last {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let began = clock.monotonic();
        let (status, text) = ask(&router, scrape()).await;
        longest = longest.max(clock.monotonic() - began);
        assert_eq!(status, 200);
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(&format!("\nwebhook_queue_length {}\n", endpoints.div_ceil(1000) * 1000)),
            "{text}"
        );
    }
    assert_eq!(store.reads.load(Ordering::SeqCst), last, "a scrape has read from the store");
    assert!(longest <= LIMIT, "{longest:?}");
    println!("{endpoints} endpoints: a scrape takes {longest:?} at most");
    engine.shutdown(Duration::ZERO).await;
}
