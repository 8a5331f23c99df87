//! Endpoints of the same application that take many seconds to answer.

use super::beside::{Steady, bars};
use crate::Result;
use crate::receiver::Behaviour;
use crate::report::{Report, Sheet};
use crate::suite::{Side, Suite, alternating};
use crate::tenants::NewEndpoint;

pub(super) const NAME: &str = "slow-neighbours";

const SLOW: usize = 5;
const SLOW_MILLIS: u64 = 15_000;

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let steady = Steady { endpoints: 5, a_second: 100.0, seconds: suite.seconds(10.0, 2.0) };
    let receiver = suite.receiver()?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        for side in alternating(round) {
            let slow = steady.endpoints..steady.endpoints + if side == Side::B { SLOW } else { 0 };
            let urls = slow.map(|lane| receiver.url(Behaviour::After(SLOW_MILLIS), lane));
            let folder = suite.empty_folder()?;
            let server = suite.launch(&folder).start()?;
            let neighbours = urls.map(NewEndpoint::new).collect();
            let latency = steady.measure(suite, server.api()?, &receiver, neighbours)?;
            latency.put(&mut sheet, side);
            server.kill();
        }
        suite.progress(NAME, round, &sheet);
    }
    let bars = bars(&sheet);
    let Steady { endpoints, a_second, seconds } = steady;
    let about = format!(
        "{a_second} messages/s for {seconds} s to {endpoints} endpoints of a new application, alone and beside {SLOW} \
         endpoints of the same one that answer after {} s. POST (when it was due) to arrival at the first \
         {endpoints}.",
        SLOW_MILLIS / 1000
    );
    Ok(Report { about, sheet, bars })
}
