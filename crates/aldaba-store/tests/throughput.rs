//! How many lifecycles (accept and record) a second the store does through its real queue.
//!
//! `cargo test --release -p aldaba-store --test throughput -- --ignored --nocapture`

use aldaba_store::conformance::{Scene, at};
use aldaba_store::sqlite::{Options, SqliteStore};
use aldaba_store::{Accepted, Content, Record, Recorded, Tenant};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIFECYCLES: usize = 100_000;
const PRODUCERS: usize = 64;
const ENDPOINTS: usize = 100;
const PAYLOAD_BYTES: usize = 1024;

#[test]
#[ignore = "a measurement, not a claim"]
#[expect(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
fn lifecycles_per_second() {
    for in_flight in [1, 16, 64] {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&Options::new(folder.path())).unwrap());
        let scene = Arc::new(Scene::new(store.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (elapsed, cpu) = runtime.block_on(async {
            let tenant = Arc::new(scene.with_endpoints(ENDPOINTS).await);
            let (begin, cpu) = (Instant::now(), writer_cpu());
            let local = tokio::task::LocalSet::new();
            for producer in 0..PRODUCERS * in_flight {
                let (scene, tenant) = (Arc::clone(&scene), Arc::clone(&tenant));
                let rounds = LIFECYCLES / (PRODUCERS * in_flight);
                local.spawn_local(async move { produce(&scene, &tenant, producer, rounds).await });
            }
            local.await;
            (begin.elapsed(), writer_cpu().saturating_sub(cpu))
        });
        let done = LIFECYCLES / (PRODUCERS * in_flight) * PRODUCERS * in_flight;
        println!(
            "{PRODUCERS} producers with {in_flight} in flight each: {:.0} lifecycles/s, {:.1} µs of the \
             writer's CPU each; log of {} pages",
            done as f64 / elapsed.as_secs_f64(),
            cpu.as_secs_f64() * 1e6 / done as f64,
            store.log_pages(),
        );
    }
}

async fn produce(scene: &Scene, tenant: &Tenant, producer: usize, rounds: usize) {
    let payload = Bytes::from(vec![b'x'; PAYLOAD_BYTES]);
    for round in 0..rounds {
        let mut event = scene.event(tenant);
        event.message.content = Arc::new(Content::new("invoice.paid", payload.clone()));
        event.deliveries = vec![event.deliveries[(producer + round) % ENDPOINTS]];
        event.message.created_at = at(0);
        let accepted = scene.accept(vec![event.clone()]).await;
        let [Accepted::New { first }] = accepted[..] else { panic!("{accepted:?}") };
        let record = Record { at: at(round as i64 / 10), ..scene.delivered(&event, first) };
        assert_eq!(scene.record(vec![record]).await, [Recorded::Applied]);
    }
}

/// The time that the writer's thread was on a CPU; zero where the system does not say.
fn writer_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|task| {
        let named = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        (named.trim() == "aldaba-writer").then(|| times.split(' ').next()?.parse::<u64>().ok())?
    });
    Duration::from_nanos(nanos.max().unwrap_or(0))
}
