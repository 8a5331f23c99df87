//! Many endpoints with pending deliveries and a small in-flight limit: whether all wait equally long.

use crate::Result;
use crate::background::free_address;
use crate::clock::{Nanos, millis};
use crate::hole::Hole;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::numbers::{counted, fairness, largest, mean, percentile};
use crate::receiver::{Arrival, Behaviour, Receiver, url};
use crate::report::{Bar, Report, Sheet};
use crate::suite::Suite;
use crate::tenants::{NewEndpoint, application};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "fairness";

const APPLICATIONS: usize = 10;
const ENDPOINTS: usize = 200;
const WAITING_EACH: usize = 100;
/// With fewer endpoints the in-flight limit suffices for all.
const MIN_ENDPOINTS: usize = 100;
const ANSWER_MILLIS: u64 = 2;
const IN_FLIGHT: usize = 64;
const MAX_WAIT: f64 = 3.0;
const MIN_FAIRNESS: f64 = 0.99;
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let endpoints = suite.count(ENDPOINTS, MIN_ENDPOINTS);
    let each = suite.count(WAITING_EACH, 40);
    let address = free_address()?;
    let prepared = prepare(suite, address, endpoints, each)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        let folder = suite.copy(&prepared)?;
        let receiver = Receiver::start(address)?;
        let server = suite.launch(&folder).with("ALDABA_IN_FLIGHT", IN_FLIGHT).start()?;
        let arrived = receiver.wait_for_different(endpoints * each, WAIT_TIMEOUT);
        server.kill();
        let lane_waits = LaneWaits::of(&receiver.arrivals(), endpoints);
        sheet.put("longest wait of a lane, in rounds", 2, largest(&lane_waits.rounds));
        sheet.put("the same, p99 of the lanes", 2, percentile(&lane_waits.rounds, 99.0));
        sheet.put("longest wait of a lane, in mean waits", 2, largest(&lane_waits.waits));
        sheet.put("first turn, latest lane, in mean waits", 2, lane_waits.latest_first);
        sheet.put("mean wait, ms", 2, lane_waits.mean_wait);
        sheet.put("fairness at half time", 4, lane_waits.fairness);
        sheet.put("missing", 0, (endpoints * each - arrived) as f64);
        suite.progress(NAME, round, &sheet);
    }
    let bars = vec![
        Bar::at_most(
            "longest wait of a lane, median, in rounds",
            MAX_WAIT,
            sheet.median("longest wait of a lane, in rounds"),
            2,
        ),
        Bar::at_least(
            "fairness at half time, median",
            MIN_FAIRNESS,
            sheet.median("fairness at half time"),
            4,
        ),
        Bar::none(&sheet, &["missing"]),
    ];
    let about = format!(
        "{} endpoints of {APPLICATIONS} applications with {each} deliveries waiting for each, answered after \
         {ANSWER_MILLIS} ms, {IN_FLIGHT} in flight at most. A lane's longest wait between two arrivals while it has \
         work: in rounds of all lanes, and in time against the mean of all. The first round, in which every endpoint is read and \
         connected to, takes longer than the others. Jain's index of the arrivals at half time.",
        counted(endpoints)
    );
    Ok(Report { about, sheet, bars })
}

fn prepare(suite: &Suite, address: SocketAddr, endpoints: usize, each: usize) -> Result<TempDir> {
    let (folder, _silent) = (suite.empty_folder()?, Hole::start(address)?);
    suite.fill(&folder, async |api| {
        let mut paths = Vec::new();
        for app in 0..APPLICATIONS {
            let lanes = (app..endpoints).step_by(APPLICATIONS);
            let urls = lanes.map(|lane| url(address, Behaviour::After(ANSWER_MILLIS), lane));
            paths.push(application(api, urls.map(NewEndpoint::new).collect()).await?);
        }
        let traffic = Traffic { paths, bytes: 256, keys: false, first: 0 };
        all_accepted(&closed(api, traffic, 16, Until::Count((APPLICATIONS * each) as u64)).await?)
    })?;
    Ok(folder)
}

struct LaneWaits {
    /// The longest wait of each lane: arrivals of other lanes meanwhile, divided by the number of lanes.
    rounds: Vec<f64>,
    /// The same as time, in mean waits.
    waits: Vec<f64>,
    /// The first arrival of the latest lane, in mean waits.
    latest_first: f64,
    /// Milliseconds.
    mean_wait: f64,
    fairness: f64,
}

impl LaneWaits {
    /// A lane has pending deliveries until its last arrival, so every gap between two of its arrivals is a wait.
    fn of(arrivals: &[Arrival], endpoints: usize) -> Self {
        let mut lanes: Vec<Vec<Nanos>> = vec![Vec::new(); endpoints];
        let mut in_order: Vec<_> = arrivals.iter().collect();
        in_order.sort_by_key(|arrival| arrival.at);
        let (mut last, mut rounds) = (vec![None; endpoints], vec![0.0_f64; endpoints]);
        for (number, arrival) in in_order.into_iter().enumerate() {
            let lane = arrival.lane;
            lanes[lane].push(arrival.at);
            if let Some(before) = last[lane].replace(number) {
                rounds[lane] = rounds[lane].max((number - before) as f64 / endpoints as f64);
            }
        }
        let begin = arrivals.iter().map(|arrival| arrival.at).min().unwrap_or_default();
        let end = arrivals.iter().map(|arrival| arrival.at).max().unwrap_or_default();
        let gaps: Vec<Vec<f64>> = lanes
            .iter()
            .map(|lane| lane.windows(2).map(|pair| millis(pair[1].saturating_sub(pair[0]))).collect())
            .collect();
        let mean_wait = mean(&gaps.concat());
        let half = begin + (end - begin) / 2;
        let by_half = lanes.iter().map(|lane| lane.iter().filter(|at| **at <= half).count() as f64);
        let firsts = lanes.iter().map(|lane| lane.first().map_or(f64::INFINITY, |at| millis(at - begin)));
        Self {
            rounds,
            waits: gaps.iter().map(|gaps| largest(gaps) / mean_wait).collect(),
            latest_first: largest(&firsts.collect::<Vec<_>>()) / mean_wait,
            mean_wait,
            fairness: fairness(&by_half.collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Stamp;

    fn arrivals(lanes: &[usize]) -> Vec<Arrival> {
        let at = |(index, lane): (usize, &usize)| Arrival {
            lane: *lane,
            stamp: Stamp::default(),
            at: index as u64 * 1_000_000,
        };
        lanes.iter().enumerate().map(at).collect()
    }

    #[test]
    fn lanes_that_alternate_wait_equally() {
        let lane_waits = LaneWaits::of(&arrivals(&[0, 1, 0, 1, 0, 1, 0, 1]), 2);
        assert_eq!(lane_waits.mean_wait, 2.0);
        assert_eq!((lane_waits.waits, lane_waits.rounds), (vec![1.0, 1.0], vec![1.0, 1.0]));
        assert_eq!((lane_waits.latest_first, lane_waits.fairness), (0.5, 1.0));
    }

    #[test]
    fn a_lane_that_is_passed_over_shows() {
        let lane_waits = LaneWaits::of(&arrivals(&[0, 1, 0, 0, 0, 0, 0, 1]), 2);
        assert_eq!((lane_waits.waits, lane_waits.rounds), (vec![1.0, 3.0], vec![1.0, 3.0]));
        assert_eq!(lane_waits.fairness, 0.8);
    }
}
