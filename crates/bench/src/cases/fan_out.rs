//! Messages to fifty endpoints of one host.

use super::saturation::straight;
use crate::Result;
use crate::clock::{millis, seconds};
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::numbers::{counted, percentile};
use crate::receiver::{Behaviour, different};
use crate::report::{Bar, Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::time::Duration;

pub(super) const NAME: &str = "fan-out";

const MESSAGES: usize = 500;
const ENDPOINTS: usize = 50;
const CONNECTIONS: usize = 64;
const MIN_SHARE: f64 = 0.30;
const MAX_P99_MS: f64 = 250.0;
/// The default limit of an organization for one host.
const MAX_CONNECTIONS: f64 = 128.0;
/// The count for `limit`, large enough to measure.
const LIMIT_MESSAGES: usize = 20_000;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for second copies of messages.
const DUPLICATES: Duration = Duration::from_millis(500);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let (messages, of_limit) = (suite.count(MESSAGES, 20), suite.count(LIMIT_MESSAGES, 1_000));
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        let (mut limit, mut rate) = (f64::NAN, f64::NAN);
        for side in alternating(round) {
            match side {
                Side::A => limit = straight(suite, of_limit)?,
                Side::B => rate = through(suite, messages, &mut sheet)?,
            }
        }
        sheet.put("`limit`, requests/s", 0, limit);
        sheet.put("share of `limit`", 3, rate / limit);
        suite.progress(NAME, round, &sheet);
    }
    let p99 = "POST to arrival, p99 ms";
    let most = |row| sheet.values(row).iter().copied().fold(0.0, f64::max);
    let bars = vec![
        Bar::at_least("share of `limit`, median", MIN_SHARE, sheet.median("share of `limit`"), 3),
        Bar::at_most("POST to arrival, p99, median, ms", MAX_P99_MS, sheet.median(p99), 0),
        Bar::at_most("connections, most of all rounds", MAX_CONNECTIONS, most("connections"), 0),
        Bar::none(&sheet, &["refused", "missing", "doubled"]),
    ];
    let about = format!(
        "{} messages of 1 KiB, over {CONNECTIONS} connections, to {ENDPOINTS} endpoints of one application at one host. \
         `limit` is requests of the same size, signed, straight to the receiver.",
        counted(messages)
    );
    Ok(Report { about, sheet, bars })
}

/// Deliveries per second, from the first POST to the last arrival.
fn through(suite: &Suite, messages: usize, sheet: &mut Sheet) -> Result<f64> {
    let (folder, receiver) = (suite.empty_folder()?, suite.receiver()?);
    let server = suite.launch(&folder).start()?;
    let api = server.api()?;
    let endpoints = (0..ENDPOINTS).map(|lane| NewEndpoint::new(receiver.url(Behaviour::AtOnce, lane)));
    let path = suite.load.block_on(application(api, endpoints.collect()))?;
    let (cpu, deliveries) = (server.cpu()?, messages * ENDPOINTS);
    let until = Until::Count(messages as u64);
    let sent = suite.load.block_on(closed(api, Traffic::to(&path), CONNECTIONS, until))?;
    let arrived = receiver.wait_for_different(deliveries, WAIT_TIMEOUT);
    let cpu = server.cpu()? - cpu;
    all_accepted(&sent)?;
    receiver.wait_for(usize::MAX, DUPLICATES);
    let arrivals = receiver.arrivals();
    let began = sent.iter().map(|sent| sent.began).min().ok_or("nothing was sent")?;
    let last = arrivals.iter().take(deliveries).map(|arrival| arrival.at).max().ok_or("nothing arrived")?;
    let latencies: Vec<_> = arrivals.iter().map(|arrival| millis(arrival.latency())).collect();
    let rate = arrived as f64 / seconds(last.saturating_sub(began));
    sheet.put("delivered/s", 0, rate);
    sheet.put("CPU of the server, µs a delivery", 0, cpu * 1e6 / deliveries as f64);
    sheet.put("POST to arrival, p50 ms", 0, percentile(&latencies, 50.0));
    sheet.put("POST to arrival, p99 ms", 0, percentile(&latencies, 99.0));
    sheet.put("connections", 0, receiver.connections() as f64);
    sheet.put("refused", 0, sent.iter().map(|sent| f64::from(sent.refusals)).sum());
    sheet.put("missing", 0, deliveries.saturating_sub(arrived) as f64);
    sheet.put("doubled", 0, (arrivals.len() - different(&arrivals)) as f64);
    Ok(rate)
}
