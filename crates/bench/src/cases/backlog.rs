//! A million pending deliveries of one endpoint: their memory, their effect on other endpoints, and the restart.

use crate::Result;
use crate::api::Api;
use crate::background::free_address;
use crate::clock::{self, SECOND, millis, seconds};
use crate::hole::Hole;
use crate::load::{Schedule, Traffic, Until, all_accepted, closed, open};
use crate::numbers::{counted, largest};
use crate::receiver::{Behaviour, Receiver, url};
use crate::report::{Bar, Report, Sheet};
use crate::server::Server;
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "backlog";

const WAITING: usize = 1_000_000;
const BYTES: usize = 128;
const CONNECTIONS: usize = 64;
const MAX_ROUNDS: usize = 3;
const MAX_GROWTH_MIB: f64 = 64.0;
const MAX_LATENCY_MS: f64 = 50.0;
const MAX_RESTART_SECONDS: f64 = 2.0;
const MESSAGES_TO_OTHERS: usize = 100;
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const MIB: f64 = 1024.0 * 1024.0;

/// The starting point of every round.
struct Prepared {
    /// The address of the backlog's receiver, which does not answer until told to.
    address: SocketAddr,
    without: TempDir,
    with: TempDir,
}

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let waiting = suite.count(WAITING, 2_000);
    let (running, drain) = (suite.seconds(20.0, 3.0), suite.seconds(5.0, 1.0));
    suite.say(NAME, &format!("creating {} pending deliveries", counted(waiting)));
    let prepared = prepare(suite, waiting)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds_up_to(MAX_ROUNDS) {
        let (mut without, mut with) = (f64::NAN, f64::NAN);
        let folder = suite.copy(&prepared.with)?;
        for side in alternating(round) {
            let _silent = Hole::start(prepared.address)?;
            match side {
                Side::A => {
                    let folder = suite.copy(&prepared.without)?;
                    let server = suite.launch(&folder).start()?;
                    without = memory_after(&server, running)?;
                }
                Side::B => {
                    let server = suite.launch(&folder).start()?;
                    with = memory_after(&server, running)?;
                    let latencies = to_others(suite, server.api()?)?;
                    sheet.put("POST to arrival at another endpoint, most of all, ms", 1, largest(&latencies));
                    sheet.put(
                        "missing at the other endpoint",
                        0,
                        (MESSAGES_TO_OTHERS - latencies.len()) as f64,
                    );
                }
            }
        }
        sheet.put("memory without, MiB", 1, without / MIB);
        sheet.put("memory with, MiB", 1, with / MIB);
        sheet.put("growth, MiB", 1, (with - without) / MIB);
        let (first, rate) = restart(suite, &folder, prepared.address, drain)?;
        sheet.put("restart to the first delivery, s", 2, first);
        sheet.put("then delivered/s", 0, rate);
        suite.progress(NAME, round, &sheet);
    }
    let slowest = largest(sheet.values("POST to arrival at another endpoint, most of all, ms"));
    let bars = vec![
        Bar::at_most("growth of memory, median, MiB", MAX_GROWTH_MIB, sheet.median("growth, MiB"), 1),
        Bar::at_most(
            "POST to arrival at another endpoint, most of all rounds, ms",
            MAX_LATENCY_MS,
            slowest,
            1,
        ),
        Bar::none(&sheet, &["missing at the other endpoint"]),
        Bar::at_most(
            "restart to the first delivery, median, s",
            MAX_RESTART_SECONDS,
            sheet.median("restart to the first delivery, s"),
            2,
        ),
    ];
    let about = format!(
        "{} deliveries wait for one endpoint whose receiver is silent. Memory {running} s after the start, \
         against the same folder without them; meanwhile {MESSAGES_TO_OTHERS} messages to an endpoint of another \
         application; then `kill -9`, and a restart with a receiver that answers.",
        counted(waiting)
    );
    Ok(Report { about, sheet, bars })
}

fn prepare(suite: &Suite, waiting: usize) -> Result<Prepared> {
    let address = free_address()?;
    let _silent = Hole::start(address)?;
    let without = suite.empty_folder()?;
    let mut path = String::new();
    suite.fill(&without, async |api| {
        // A policy without host control, so that no gate delays the first delivery after a restart.
        let endpoint = NewEndpoint::new(url(address, Behaviour::AtOnce, 0)).policy("quick");
        path = application(api, vec![endpoint]).await?;
        Ok(())
    })?;
    let with = suite.copy(&without)?;
    suite.fill(&with, async |api| {
        let traffic = Traffic { bytes: BYTES, ..Traffic::to(&path) };
        all_accepted(&closed(api, traffic, CONNECTIONS, Until::Count(waiting as u64)).await?)
    })?;
    Ok(Prepared { address, without, with })
}

fn memory_after(server: &Server, seconds: f64) -> Result<f64> {
    sleep(Duration::from_secs_f64(seconds));
    server.resident()
}

/// Sends messages to an endpoint of another application, one at a time; returns the latencies in milliseconds.
fn to_others(suite: &Suite, api: &Api) -> Result<Vec<f64>> {
    let receiver = suite.receiver()?;
    let endpoint = NewEndpoint::new(receiver.url(Behaviour::AtOnce, 1));
    let sent = suite.load.block_on(async {
        let path = application(api, vec![endpoint]).await?;
        let (begin, a_second) = (clock::now() + SECOND / 10, 20.0);
        let seconds = MESSAGES_TO_OTHERS as f64 / a_second;
        let schedule = Schedule { begin, a_second, seconds, connections: 16, ends_sharply: false };
        open(api, Traffic::to(&path), schedule).await
    })?;
    all_accepted(&sent)?;
    receiver.wait_for_different(MESSAGES_TO_OTHERS, WAIT_TIMEOUT);
    Ok(receiver.arrivals().iter().map(|arrival| millis(arrival.latency())).collect())
}

/// Seconds from the start of the process to its first delivery, and its deliveries per second after that.
fn restart(suite: &Suite, folder: &TempDir, address: SocketAddr, drain: f64) -> Result<(f64, f64)> {
    let receiver = Receiver::start(address)?;
    let server = suite.launch(folder).start()?;
    if !receiver.wait_for(1, WAIT_TIMEOUT) {
        return Ok((f64::INFINITY, 0.0));
    }
    let first = receiver.arrivals().first().map(|arrival| arrival.at).ok_or("nothing arrived")?;
    sleep(Duration::from_secs_f64(drain));
    let end = first + clock::nanos(Duration::from_secs_f64(drain));
    let drained = receiver.arrivals().iter().filter(|arrival| arrival.at < end).count();
    Ok((seconds(first.saturating_sub(server.spawned_at)), drained as f64 / drain))
}
