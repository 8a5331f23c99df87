//! Endpoints that answer with interim heads (1xx) endlessly, next to ten endpoints that answer.

use super::beside::{Steady, bars};
use crate::Result;
use crate::api::Api;
use crate::background::free_address;
use crate::flood::InterimFlood;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::receiver::{Behaviour, url};
use crate::report::{Bar, Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::net::SocketAddr;

pub(super) const NAME: &str = "interim-flood";

/// Flooding endpoints in each of two organizations: that of the healthy endpoints, and another.
const ENDPOINTS: usize = 50;
/// Messages for each of them, posted before the measurement. Under `quick` each is attempted four times meanwhile.
const MESSAGES: u64 = 4;
const ANOTHER: &str = "org_000000000000000000000000001";

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let steady = Steady { endpoints: 10, a_second: 50.0, seconds: suite.seconds(10.0, 2.0) };
    let receiver = suite.receiver()?;
    let address = free_address()?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        for side in alternating(round) {
            let flood = InterimFlood::start(address)?;
            let folder = suite.empty_folder()?;
            let launch = suite.launch(&folder);
            let server = launch.start()?;
            let api = server.api()?;
            if side == Side::B {
                let another = launch.as_organization(ANOTHER, &server)?;
                suite.load.block_on(async {
                    provoke(api, address).await?;
                    provoke(&another, address).await
                })?;
            }
            let latency = steady.measure(suite, api, &receiver, Vec::new())?;
            latency.put(&mut sheet, side);
            if side == Side::B {
                sheet.put("requests that were flooded", 0, flood.requests() as f64);
            }
            server.kill();
        }
        suite.progress(NAME, round, &sheet);
    }
    let least = sheet.values("requests that were flooded").iter().copied().fold(f64::INFINITY, f64::min);
    let mut bars = bars(&sheet);
    let first_attempts = (2 * ENDPOINTS as u64 * MESSAGES) as f64;
    bars.push(Bar::at_least("requests that were flooded, in every round", first_attempts, least, 0));
    let Steady { endpoints, a_second, seconds } = steady;
    let about = format!(
        "{a_second} messages/s for {seconds} s to {endpoints} new endpoints, alone and beside {} endpoints that answer \
         `103 Early Hints` without end, half of them of another organization, with {MESSAGES} messages each under \
         `quick`. POST (when it was due) to arrival.",
        2 * ENDPOINTS
    );
    Ok(Report { about, sheet, bars })
}

/// An application with flooding endpoints and messages for them.
async fn provoke(api: &Api, address: SocketAddr) -> Result<()> {
    let endpoint = |lane| NewEndpoint::new(url(address, Behaviour::AtOnce, lane)).policy("quick");
    let paths = vec![application(api, (0..ENDPOINTS).map(endpoint).collect()).await?];
    let traffic = Traffic { paths, bytes: 256, keys: false, first: 0 };
    all_accepted(&closed(api, traffic, 1, Until::Count(MESSAGES)).await?)
}
