//! The soak: a steady load for many minutes, with endpoints that work, fail at first, answer slowly, refuse connections and
//! never answer, while retention removes what is older than half a minute. What the server uses must stay flat.

mod samples;
mod verdict;

use crate::Result;
use crate::api::{Api, Post};
use crate::background::free_address;
use crate::clock::{self, seconds};
use crate::document::replace_between;
use crate::hole::Hole;
use crate::load::{Schedule, Traffic, all_accepted, open};
use crate::numbers::{counted, percentile, shown};
use crate::receiver::{Behaviour, Receiver, different, url};
use crate::suite::Suite;
use crate::tenants::{NewEndpoint, application};
use samples::Sampler;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use verdict::Verdict;

/// Messages a second. Each goes to every endpoint.
const RATE: f64 = 100.0;
const CONNECTIONS: usize = 64;
const PAYLOAD_BYTES: usize = 1024;
/// A slow answer.
const SLOW_MILLIS: u64 = 300;
/// Endpoints that answer at once.
const QUICK: usize = 3;
/// How long what waits may take to end after the load: the policies end after 30 s.
const END_TIMEOUT: Duration = Duration::from_secs(120);
/// The interval between two looks at what is pending.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Nothing is refused on a busy machine, or the rate would not be steady.
const QUEUE_MILLIS: usize = 30_000;

/// A policy whose retries, holds and retention periods are short. `gate`: as in docs/policies.md.
fn policy(name: &str, gate: &serde_json::Value) -> String {
    json!({
        "name": name, "schedule": {"type": "list", "delays": ["1s", "2s", "4s"]},
        "limit": {"attempts": 4, "stopAfter": "30s"},
        "timeouts": {"connect": "2s", "answer": "2s", "total": "2s"},
        "gate": gate, "endpointFails": {"type": "never"},
        "retention": {"delivered": {"for": "30s"}, "dead": {"for": "30s"}},
    })
    .to_string()
}

const APART: &str = "soak";
const HELD: &str = "soak-held";

/// What a soak has found.
pub(crate) struct Soak {
    minutes: f64,
    messages: usize,
    attempts: usize,
    latency_ms: [f64; 2],
    verdict: Verdict,
}

/// Runs the load for so many minutes.
pub(crate) fn run(suite: &Suite, minutes: f64) -> Result<Soak> {
    let (folder, receiver) = (suite.empty_folder()?, suite.receiver()?);
    let (closed, silent) = (free_address()?, free_address()?);
    let _hole = Hole::start(silent)?;
    let server = suite.launch(&folder).with("ALDABA_QUEUE_MILLISECONDS", QUEUE_MILLIS).start()?;
    let api = server.api()?.clone();
    let endpoints = endpoints(&receiver, closed, silent);
    let heard = heard(&endpoints);
    let path = suite.load.block_on(async {
        make_policies(&api).await?;
        application(&api, endpoints).await
    })?;
    let sampler = Sampler::start(server.pid(), folder.path(), minutes)?;
    let schedule = Schedule {
        begin: clock::now(),
        a_second: RATE,
        seconds: minutes * 60.0,
        connections: CONNECTIONS,
        ends_sharply: false,
    };
    let traffic = Traffic { bytes: PAYLOAD_BYTES, ..Traffic::to(&path) };
    let sent = suite.load.block_on(open(&api, traffic, schedule))?;
    all_accepted(&sent)?;
    let samples = sampler.stop()?;
    suite.load.block_on(until_nothing_waits(&api, &path))?;
    let arrivals = receiver.arrivals();
    let arrived = different(&arrivals);
    if arrived != sent.len() * heard {
        return Err(format!(
            "{} messages were accepted for {heard} endpoints that answer, and {arrived} deliveries have arrived",
            sent.len()
        )
        .into());
    }
    server.stop()?;
    let quick = arrivals.iter().filter(|arrival| arrival.lane < QUICK);
    let latencies: Vec<f64> = quick.map(|arrival| clock::millis(arrival.latency())).collect();
    Ok(Soak {
        minutes,
        messages: sent.len(),
        attempts: arrivals.len(),
        latency_ms: [50.0, 99.0].map(|percent| percentile(&latencies, percent)),
        verdict: Verdict::of(&samples, minutes),
    })
}

/// An endpoint of each kind; those that answer with success in the end come first.
fn endpoints(
    receiver: &Receiver,
    closed: std::net::SocketAddr,
    silent: std::net::SocketAddr,
) -> Vec<NewEndpoint> {
    let mut all: Vec<_> = (0..QUICK).map(|lane| receiver.url(Behaviour::AtOnce, lane)).collect();
    all.push(receiver.url(Behaviour::After(SLOW_MILLIS), QUICK));
    all.push(receiver.url(Behaviour::Fails { every: 5, tries: 1 }, QUICK + 1));
    all.push(url(closed, Behaviour::AtOnce, QUICK + 2));
    all.push(url(silent, Behaviour::AtOnce, QUICK + 3));
    let endpoint = |url: String| {
        let works = url.contains(&receiver.address.to_string());
        NewEndpoint::new(url).policy(if works { APART } else { HELD })
    };
    all.into_iter().map(endpoint).collect()
}

/// How many of them get every message in the end.
fn heard(endpoints: &[NewEndpoint]) -> usize {
    endpoints.iter().filter(|endpoint| endpoint.policy == APART).count()
}

async fn make_policies(api: &Api) -> Result<()> {
    let gate = json!({"type": "hostFailures", "inARow": 5, "first": "1s", "longest": "4s"});
    for body in [policy(APART, &json!({"type": "apart"})), policy(HELD, &gate)] {
        let post = Post { path: "/policy".into(), key: None, body };
        let answer = api.connect().await?.post(&post).await?;
        if answer.status != 201 {
            return Err(format!("policy: {}", String::from_utf8_lossy(&answer.body)).into());
        }
    }
    Ok(())
}

/// Every delivery ends: delivered, or in the dead letter.
async fn until_nothing_waits(api: &Api, messages: &str) -> Result<()> {
    let begun = clock::now();
    let pending = messages.replace("/msg", "/delivery?state=pending&limit=1");
    loop {
        let answer = api.connect().await?.get(&pending).await?;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status == 200 && said.contains("\"data\":[]") {
            return Ok(());
        }
        if seconds(clock::now() - begun) > END_TIMEOUT.as_secs_f64() {
            return Err(format!("deliveries have not ended: {said}").into());
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

impl Soak {
    pub(crate) fn is_flat(&self) -> bool {
        self.verdict.is_flat()
    }

    pub(crate) fn markdown(&self) -> String {
        let [median, late] = self.latency_ms.map(|millis| shown(millis, 1));
        format!(
            "{} minutes at {} messages a second: {} accepted, {} requests arrived at the receiver, none lost, and every \
             delivery ended. POST to arrival: {median} ms (p50), {late} ms (p99).\n\n{}",
            shown(self.minutes, 0),
            shown(RATE, 0),
            counted(self.messages),
            counted(self.attempts),
            self.verdict.markdown(),
        )
    }

    /// Puts the figures between the markers of the document.
    pub(crate) fn write(&self, document: &Path) -> Result<()> {
        replace_between(document, "<!-- soak:begin -->", "<!-- soak:end -->", &self.markdown())
    }
}
