//! Endpoints that never answer, next to endpoints of other applications at the same host that do.

use super::beside::{Steady, bars};
use crate::Result;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::numbers::counted;
use crate::receiver::{Behaviour, Receiver};
use crate::report::{Bar, Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "shared-origin";

const SILENT: usize = 200;
const HEALTHY: usize = 50;
/// Longer than this case.
const NEVER_MILLIS: u64 = 3_600_000;
/// Under this policy a silent endpoint has attempts of two seconds, one after another, during the whole measurement.
const POLICY: &str = "job-status";
const ATTEMPT_MILLIS: usize = 2_000;
const MESSAGES_EACH: usize = 20;
/// After two attempts of each they are classified as silent.
const SETTLE: Duration = Duration::from_secs(10);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let steady = Steady { endpoints: HEALTHY, a_second: 200.0, seconds: suite.seconds(10.0, 2.0) };
    let silent = suite.count(SILENT, 100);
    let receiver = suite.receiver()?;
    let prepared = prepare(suite, &receiver, silent)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        for side in alternating(round) {
            let folder = if side == Side::A { suite.empty_folder()? } else { suite.copy(&prepared)? };
            receiver.forget();
            let server = suite.launch(&folder).with("WEBHOOK_TIMEOUT_MS", ATTEMPT_MILLIS).start()?;
            if side == Side::B {
                sleep(SETTLE);
                sheet.put("attempts of silent endpoints before", 0, receiver.count() as f64);
            }
            let latency = steady.measure_apart(suite, server.api()?, &receiver)?;
            latency.put(&mut sheet, side);
            server.kill();
        }
        suite.progress(NAME, round, &sheet);
    }
    let tried = sheet.values("attempts of silent endpoints before").iter().copied();
    let least = tried.fold(f64::INFINITY, f64::min);
    let mut bars = bars(&sheet);
    bars.push(Bar::at_least("attempts of silent endpoints before, in every round", silent as f64, least, 0));
    let Steady { endpoints, a_second, seconds } = steady;
    let about = format!(
        "{a_second} messages/s for {seconds} s to {endpoints} new endpoints by turns, alone and beside {} endpoints that \
         never answer. All are at one host, each of an application of its own. POST (when it was due) to arrival.",
        counted(silent)
    );
    Ok(Report { about, sheet, bars })
}

/// A folder where every silent endpoint has pending deliveries.
fn prepare(suite: &Suite, receiver: &Receiver, silent: usize) -> Result<TempDir> {
    let folder = suite.empty_folder()?;
    suite.fill(&folder, async |api| {
        let mut paths = Vec::new();
        for lane in HEALTHY..HEALTHY + silent {
            let url = receiver.url(Behaviour::After(NEVER_MILLIS), lane);
            paths.push(application(api, vec![NewEndpoint::new(url).policy(POLICY)]).await?);
        }
        let count = (silent * MESSAGES_EACH) as u64;
        let traffic = Traffic { paths, bytes: 256, keys: false, first: 0 };
        all_accepted(&closed(api, traffic, 8, Until::Count(count)).await?)
    })?;
    Ok(folder)
}
