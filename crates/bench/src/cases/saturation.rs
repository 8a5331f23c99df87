//! Throughput through a server, as a share of what the machine can do without one.

use crate::clock::{self, Nanos, millis, seconds};
use crate::http1::Stream;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::numbers::{counted, percentile};
use crate::payload::Stamp;
use crate::receiver::{Behaviour, Receiver, different};
use crate::report::{Bar, Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use crate::{Error, Result};
use aldaba_signature::SigningKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

pub(super) const NAME: &str = "saturation";

const MESSAGES: usize = 20_000;
const CONNECTIONS: usize = 64;
const BYTES: usize = 1024;
/// Direct requests to the receiver are much faster: more messages make both measurements equally long.
const LIMIT_TIMES: usize = 4;
const MIN_SHARE: f64 = 0.15;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for second copies of messages.
const DUPLICATES: Duration = Duration::from_millis(500);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let messages = suite.count(MESSAGES, 100);
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        let (mut limit, mut run) = (f64::NAN, None);
        for side in alternating(round) {
            match side {
                Side::A => limit = straight(suite, messages)?,
                Side::B => run = Some(through(suite, messages)?),
            }
        }
        let Run { rate, cpu, posts, missing, doubled } = run.ok_or("no run")?;
        sheet.put("`limit`, requests/s", 0, limit);
        sheet.put("delivered/s", 0, rate);
        sheet.put("share of `limit`", 3, rate / limit);
        sheet.put("CPU of the server, µs a message", 0, cpu * 1e6 / messages as f64);
        sheet.put("answer to a POST, p50 ms", 1, percentile(&posts, 50.0));
        sheet.put("answer to a POST, p99 ms", 1, percentile(&posts, 99.0));
        sheet.put("missing", 0, missing as f64);
        sheet.put("doubled", 0, doubled as f64);
        suite.progress(NAME, round, &sheet);
    }
    let bars = vec![
        Bar::at_least("share of `limit`, median", MIN_SHARE, sheet.median("share of `limit`"), 3),
        Bar::none(&sheet, &["missing", "doubled"]),
    ];
    let about = format!(
        "{} messages of 1 KiB with an idempotency key each, over {CONNECTIONS} connections, to one \
         endpoint. `limit` is the same, signed, straight to the receiver.",
        counted(messages)
    );
    Ok(Report { about, sheet, bars })
}

struct Run {
    rate: f64,
    cpu: f64,
    posts: Vec<f64>,
    missing: usize,
    doubled: usize,
}

/// Through the server: from the first POST to the last arrival.
fn through(suite: &Suite, messages: usize) -> Result<Run> {
    let (folder, receiver) = (suite.empty_folder()?, suite.receiver()?);
    let server = suite.launch(&folder).start()?;
    let api = server.api()?;
    let endpoint = NewEndpoint::new(receiver.url(Behaviour::AtOnce, 0));
    let path = suite.load.block_on(application(api, vec![endpoint]))?;
    let traffic = Traffic { bytes: BYTES, keys: true, ..Traffic::to(&path) };

    let cpu = server.cpu()?;
    let sent = suite.load.block_on(closed(api, traffic, CONNECTIONS, Until::Count(messages as u64)))?;
    let arrived = receiver.wait_for_different(messages, WAIT_TIMEOUT);
    let cpu = server.cpu()? - cpu;
    all_accepted(&sent)?;
    receiver.wait_for(usize::MAX, DUPLICATES);
    let arrivals = receiver.arrivals();
    let began = sent.iter().map(|sent| sent.began).min().ok_or("nothing was sent")?;
    // The wait for second copies is not measured.
    let last = arrivals.iter().take(messages).map(|arrival| arrival.at).max().ok_or("nothing arrived")?;
    Ok(Run {
        rate: arrived as f64 / seconds(last.saturating_sub(began)),
        cpu,
        posts: sent.iter().map(|sent| millis(sent.took())).collect(),
        missing: messages.saturating_sub(arrived),
        doubled: arrivals.len() - different(&arrivals),
    })
}

/// The same payloads, signed, sent directly to the receiver: requests per second without a server.
pub(super) fn straight(suite: &Suite, messages: usize) -> Result<f64> {
    let receiver = suite.receiver()?;
    let took = suite.load.block_on(send_signed(&receiver, (messages * LIMIT_TIMES) as u64))?;
    Ok(receiver.count() as f64 / seconds(took))
}

/// Returns the duration, not counting the connects.
async fn send_signed(receiver: &Receiver, messages: u64) -> Result<Nanos> {
    let (address, path) = (receiver.address, Behaviour::AtOnce.path(0));
    let key = Arc::new(SigningKey::generate_hmac(*b"only for the benchmarks!"));
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        streams.push(Stream::connect(address).await?);
    }
    let began = clock::now();
    for mut stream in streams {
        let (key, next, path) = (Arc::clone(&key), Arc::clone(&next), path.clone());
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= messages {
                    return Ok::<_, Error>(());
                }
                stream.write(&signed(&key, &path, number)).await?;
                let head = stream.head().await?.ok_or("the receiver hung up")?;
                stream.body(head.length, 0).await?;
            }
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked??;
    }
    Ok(clock::now() - began)
}

fn signed(key: &SigningKey, path: &str, number: u64) -> Vec<u8> {
    let payload = Stamp { sent_at: clock::now(), number }.payload(BYTES);
    let (id, timestamp) = (format!("msg_{number}"), clock::unix_seconds());
    let signature = key.sign(&id, timestamp, payload.as_bytes());
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: receiver\r\ncontent-type: application/json\r\nwebhook-id: {id}\r\n\
         webhook-timestamp: {timestamp}\r\nwebhook-signature: {signature}\r\ncontent-length: {BYTES}\r\n\r\n{payload}"
    );
    request.into_bytes()
}
