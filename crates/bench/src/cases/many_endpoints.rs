//! The memory for 100,000 endpoints, each with a delivery of a megabyte: with a receiver that answers, and with one that
//! never does.

use crate::Result;
use crate::background::free_address;
use crate::clock;
use crate::hole::Hole;
use crate::load::{Traffic, Until, all_accepted, closed};
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

pub(super) const NAME: &str = "many-endpoints";

/// Applications, and the endpoints of each: 100,000 in total, 217 messages.
const FAN_OUT: [(usize, usize); 4] = [(20, 1), (8, 10), (99, 100), (90, 1000)];
const BYTES: usize = 1 << 20;
/// Clients that post megabytes concurrently.
const CONNECTIONS: usize = 16;
const ANSWER_MILLIS: u64 = 5;
const SILENCE_SECONDS: f64 = 60.0;
const MAX_ROUNDS: usize = 2;
const MAX_MB: f64 = 250.0;
/// The time limit for sending a hundred gigabytes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(900);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let fan_out = FAN_OUT.map(|(apps, endpoints)| (suite.count(apps, 1), endpoints));
    let silence = suite.seconds(SILENCE_SECONDS, 5.0);
    let endpoints: usize = fan_out.iter().map(|(apps, endpoints)| apps * endpoints).sum();
    let address = free_address()?;
    suite.say(NAME, &format!("creating {} endpoints", counted(endpoints)));
    let (prepared, paths) = prepare(suite, address, &fan_out)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds_up_to(MAX_ROUNDS) {
        for side in alternating(round) {
            let folder = suite.copy(&prepared)?;
            let server = suite.launch(&folder).start()?;
            match side {
                Side::A => {
                    let receiver = Receiver::start(address)?;
                    let began = clock::now();
                    accept(suite, &server, &paths)?;
                    let arrived = receiver.wait_for_different(endpoints, WAIT_TIMEOUT);
                    sheet.put("taken: memory at its peak, MB", 0, server.peak()? / 1e6);
                    sheet.put("missing", 0, (endpoints - arrived) as f64);
                    sheet.put("taken: delivered/s", 0, arrived as f64 / clock::seconds(clock::now() - began));
                }
                Side::B => {
                    let hole = Hole::start(address)?;
                    accept(suite, &server, &paths)?;
                    sleep(Duration::from_secs_f64(silence));
                    sheet.put("never answered: memory at its peak, MB", 0, server.peak()? / 1e6);
                    sheet.put("never answered: connections", 0, hole.open() as f64);
                }
            }
            server.kill();
        }
        suite.progress(NAME, round, &sheet);
    }
    let peak = |row| largest(sheet.values(row));
    let bars = vec![
        Bar::at_most("memory at its peak, taken, MB", MAX_MB, peak("taken: memory at its peak, MB"), 0),
        Bar::at_most(
            "memory at its peak, never answered, MB",
            MAX_MB,
            peak("never answered: memory at its peak, MB"),
            0,
        ),
        Bar::none(&sheet, &["missing"]),
    ];
    let about = format!(
        "{} endpoints in {} applications of 1, 10, 100 and 1,000; a message of 1 MiB to each application. To \
         a receiver that answers after {ANSWER_MILLIS} ms, until all are delivered; and to one that never answers, \
         for {silence} s.",
        counted(endpoints),
        paths.len()
    );
    Ok(Report { about, sheet, bars })
}

/// Creates the endpoints without messages; returns the paths to post to.
fn prepare(suite: &Suite, address: SocketAddr, fan_out: &[(usize, usize)]) -> Result<(TempDir, Vec<String>)> {
    let (folder, mut paths) = (suite.empty_folder()?, Vec::new());
    suite.fill(&folder, async |api| {
        let mut lanes = 0..;
        for &(apps, endpoints) in fan_out {
            for _ in 0..apps {
                let urls = lanes.by_ref().take(endpoints);
                let urls = urls.map(|lane| url(address, Behaviour::After(ANSWER_MILLIS), lane));
                paths.push(application(api, urls.map(NewEndpoint::new).collect()).await?);
            }
        }
        Ok(())
    })?;
    Ok((folder, paths))
}

fn accept(suite: &Suite, server: &Server, paths: &[String]) -> Result<()> {
    let traffic = Traffic { paths: paths.to_vec(), bytes: BYTES, keys: false, first: 0 };
    let until = Until::Count(paths.len() as u64);
    all_accepted(&suite.load.block_on(closed(server.api()?, traffic, CONNECTIONS, until))?)
}
