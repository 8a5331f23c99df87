//! Background tasks that panic, as an operator sees them.

use aldaba::config::Config;
use aldaba_delivery::Timestamp;
use aldaba_delivery::policy::Overrides;
use aldaba_engine::{Engine, Options, Parts, Policies, Sending, Transport, Vault, WireRequest, WireResponse};
use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use simulation::entropy::{Dice, SeededEntropy};
use simulation::process::Process;
use simulation::store::{Faults, SimStore, Span};
use std::sync::Arc;
use std::time::Duration;
use tower::Service;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

struct Nobody;

impl Transport for Nobody {
    fn send(&self, _: WireRequest) -> Sending {
        Box::pin(std::future::pending::<WireResponse>())
    }
}

#[tokio::test(start_paused = true)]
async fn health_lists_restarted_tasks_and_stays_ok() {
    let process = Process::new(0, START);
    let active = Span { from: START, to: START + Duration::from_secs(10) };
    let faults = Faults { active, panicking_reads: 100, ..Faults::none() };
    let (disk, log) = (Arc::default(), Arc::default());
    let store = SimStore::start(disk, log, process.clone(), faults, Dice::new(7));
    let entropy = Arc::new(SeededEntropy::new(Dice::new(8)));
    let parts = Parts {
        store: Arc::new(store),
        transport: Arc::new(Nobody),
        clock: process.clock.clone(),
        entropy: entropy.clone(),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).unwrap(),
    };
    let engine = Engine::start(parts, Options::default()).await.unwrap();
    let jwt_secret = Some(crate::support::running::jwt_secret());
    let config = Config { jwt_secret, ..Config::default() };
    let mut router = aldaba::server::api(&engine, &*entropy, &config).await.unwrap();
    let mut health = async || -> Value {
        let request = http::Request::get("/api/v1/health").body(Body::empty()).unwrap();
        let response = router.call(request).await.unwrap();
        assert_eq!(response.status(), 200, "a task that is restarted is no reason to go elsewhere");
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    };
    process.sleep_until(START + Duration::from_millis(1500)).await;
    let restarting = [
        "alerts",
        "due-times",
        "erasures",
        "operational-webhooks",
        "orphans",
        "places",
        "stop-dates",
        "store-watch",
        "sweep",
    ];
    let restarting = restarting.map(|name| json!({"name": name, "restarts": 2}));
    let ok = json!({"status": "ok"});
    let expected = json!({
        "database": ok, "queue": ok, "cache": ok,
        "background": {"status": "error", "restarting": restarting},
        "tokens": {"status": "ok", "expiring": 0, "firstExpiresAt": null},
        "delivering": {"status": "ok", "backupMadeAt": null},
    });
    let mut found = health().await;
    assert_eq!(found.as_object_mut().unwrap().remove("clock").unwrap()["status"], "ok");
    assert_eq!(found, expected);
    process.sleep_until(START + Duration::from_secs(3600)).await;
    assert_eq!(health().await["background"], json!({"status": "ok", "restarting": []}));
    engine.shutdown(Duration::from_secs(5)).await;
}
