//! Tens of thousands of endpoints that accept connections and never answer, next to ten endpoints that answer.

use super::beside::{Steady, bars};
use crate::Result;
use crate::background::free_address;
use crate::clock;
use crate::hole::Hole;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::numbers::counted;
use crate::receiver::{Behaviour, url};
use crate::report::{Bar, Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "black-holes";

const APPLICATIONS: usize = 8;
/// The hosts: one host alone would be limited by its own cap (ADR 16).
const HOSTS: usize = 64;
const ENDPOINTS: usize = 40_000;
/// Connections to silent endpoints that must be open before the measurement. One organization may have 1,536: three
/// quarters of the half of the cap that lanes share which are not known to answer (ADR 4).
const OPEN: usize = 1_450;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const SETTLE: Duration = Duration::from_secs(2);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let steady = Steady { endpoints: 10, a_second: 50.0, seconds: suite.seconds(10.0, 2.0) };
    let endpoints = suite.count(ENDPOINTS, APPLICATIONS * 10);
    let wanted = suite.count(OPEN, 20);
    let addresses = addresses()?;
    let receiver = suite.receiver()?;
    suite.say(NAME, &format!("creating {} endpoints", counted(endpoints)));
    let prepared = prepare(suite, &addresses, endpoints)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        for side in alternating(round) {
            let hole = Hole::at_all(&addresses)?;
            let folder = if side == Side::A { suite.empty_folder()? } else { suite.copy(&prepared)? };
            let server = suite.launch(&folder).start()?;
            if side == Side::B {
                fill(&hole, wanted);
            }
            sleep(SETTLE);
            let open = hole.open();
            let latency = steady.measure(suite, server.api()?, &receiver, Vec::new())?;
            latency.put(&mut sheet, side);
            if side == Side::B {
                sheet.put("connections to black holes", 0, open as f64);
                sheet.put("memory of the server beside, MB", 0, server.resident()? / 1e6);
            }
            server.kill();
        }
        suite.progress(NAME, round, &sheet);
    }
    let least = sheet.values("connections to black holes").iter().copied().fold(f64::INFINITY, f64::min);
    let mut bars = bars(&sheet);
    bars.push(Bar::at_least("connections to black holes in every round", wanted as f64, least, 0));
    let Steady { endpoints: healthy, a_second, seconds } = steady;
    let about = format!(
        "{a_second} messages/s for {seconds} s to {healthy} new endpoints, alone and beside {} endpoints of \
         {APPLICATIONS} applications at {HOSTS} hosts that never answer. POST (when it was due) to arrival.",
        counted(endpoints)
    );
    Ok(Report { about, sheet, bars })
}

/// Addresses of this machine with one port that is free on the first.
fn addresses() -> Result<Vec<SocketAddr>> {
    let port = free_address()?.port();
    Ok((1..=HOSTS)
        .map(|host| SocketAddr::from(([127, 0, 1, u8::try_from(host).unwrap_or(1)], port)))
        .collect())
}

fn fill(hole: &Hole, wanted: usize) {
    let until = clock::now() + clock::nanos(WAIT_TIMEOUT);
    while hole.open() < wanted && clock::now() < until {
        sleep(Duration::from_millis(20));
    }
}

/// A folder where every endpoint has one pending delivery.
fn prepare(suite: &Suite, addresses: &[SocketAddr], endpoints: usize) -> Result<TempDir> {
    let (folder, _hole) = (suite.empty_folder()?, Hole::at_all(addresses)?);
    suite.fill(&folder, async |api| {
        let mut paths = Vec::new();
        for app in 0..APPLICATIONS {
            let lanes = (app..endpoints).step_by(APPLICATIONS);
            let endpoints = lanes.map(|lane| {
                let address = addresses[lane / APPLICATIONS % addresses.len()];
                NewEndpoint::new(url(address, Behaviour::AtOnce, lane))
            });
            paths.push(application(api, endpoints.collect()).await?);
        }
        let traffic = Traffic { paths, bytes: 256, keys: false, first: 0 };
        let sent = closed(api, traffic, 1, Until::Count(APPLICATIONS as u64)).await?;
        all_accepted(&sent)
    })?;
    Ok(folder)
}
