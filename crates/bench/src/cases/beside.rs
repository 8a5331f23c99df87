//! The effect of neighbours on healthy endpoints: the time from POST to arrival, without and with neighbours.

use crate::Result;
use crate::api::Api;
use crate::clock::{self, SECOND, millis};
use crate::load::{Schedule, Traffic, open};
use crate::numbers::percentile;
use crate::receiver::{Behaviour, Receiver};
use crate::report::{Bar, Sheet};
use crate::suite::{Side, Suite};
use crate::tenants::{NewEndpoint, application};
use std::time::Duration;

/// The allowed delay of the slowest hundredth with neighbours: the factor or the difference.
const MAX_FACTOR: f64 = 1.2;
const MAX_DELAY_MS: f64 = 2.0;
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECTIONS: usize = 256;
const BYTES: usize = 256;

/// The load on the healthy endpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    pub(super) endpoints: usize,
    pub(super) a_second: f64,
    pub(super) seconds: f64,
}

impl Steady {
    fn messages(&self) -> usize {
        (self.a_second * self.seconds).round() as usize
    }

    fn healthy(&self, receiver: &Receiver) -> Vec<NewEndpoint> {
        let urls = (0..self.endpoints).map(|lane| receiver.url(Behaviour::AtOnce, lane));
        urls.map(NewEndpoint::new).collect()
    }

    /// Creates a new application, so that its endpoints have no history, and measures.
    pub(super) fn measure(
        &self,
        suite: &Suite,
        api: &Api,
        receiver: &Receiver,
        neighbours: Vec<NewEndpoint>,
    ) -> Result<Latency> {
        let mut endpoints = self.healthy(receiver);
        endpoints.extend(neighbours);
        self.measure_all(suite, api, receiver, vec![endpoints], self.endpoints)
    }

    /// The same with one application for each endpoint; messages alternate between them.
    pub(super) fn measure_apart(&self, suite: &Suite, api: &Api, receiver: &Receiver) -> Result<Latency> {
        let apart = self.healthy(receiver).into_iter().map(|endpoint| vec![endpoint]);
        self.measure_all(suite, api, receiver, apart.collect(), 1)
    }

    /// `each`: the number of healthy endpoints of a message.
    fn measure_all(
        &self,
        suite: &Suite,
        api: &Api,
        receiver: &Receiver,
        applications: Vec<Vec<NewEndpoint>>,
        each: usize,
    ) -> Result<Latency> {
        receiver.forget();
        let schedule = |begin| Schedule {
            begin,
            a_second: self.a_second,
            seconds: self.seconds,
            connections: CONNECTIONS,
            ends_sharply: false,
        };
        let sent = suite.load.block_on(async {
            let mut paths = Vec::new();
            for endpoints in applications {
                paths.push(application(api, endpoints).await?);
            }
            let traffic = Traffic { paths, bytes: BYTES, keys: false, first: 0 };
            open(api, traffic, schedule(clock::now() + SECOND / 10)).await
        })?;
        let accepted = sent.iter().filter(|sent| sent.accepted()).count();
        let expected = accepted * each;
        let until = clock::now() + clock::nanos(WAIT_TIMEOUT);
        let mut latencies = self.latencies(receiver);
        // Arrivals at neighbours count too, so the number to wait for is unknown.
        while latencies.len() < expected && clock::now() < until {
            receiver.wait_for(receiver.count() + 1, Duration::from_millis(100));
            latencies = self.latencies(receiver);
        }
        Ok(Latency {
            p50: percentile(&latencies, 50.0),
            p99: percentile(&latencies, 99.0),
            // Rejected messages count as missing.
            missing: (self.messages() * each).saturating_sub(latencies.len()),
        })
    }

    fn latencies(&self, receiver: &Receiver) -> Vec<f64> {
        let healthy = receiver.arrivals().into_iter().filter(|arrival| arrival.lane < self.endpoints);
        healthy.map(|arrival| millis(arrival.latency())).collect()
    }
}

/// Milliseconds from the due time of a POST to its arrival at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    p50: f64,
    p99: f64,
    missing: usize,
}

impl Latency {
    pub(super) fn put(self, sheet: &mut Sheet, side: Side) {
        let [p50, p99, missing] = rows(side);
        sheet.put(p50, 2, self.p50);
        sheet.put(p99, 2, self.p99);
        sheet.put(missing, 0, self.missing as f64);
    }
}

fn rows(side: Side) -> [&'static str; 3] {
    match side {
        Side::A => ["alone, p50 ms", "alone, p99 ms", "missing alone"],
        Side::B => ["beside, p50 ms", "beside, p99 ms", "missing beside"],
    }
}

pub(super) fn bars(sheet: &Sheet) -> Vec<Bar> {
    let [_, p99, missing] = rows(Side::A);
    let [_, p99_beside, missing_beside] = rows(Side::B);
    let (alone, beside) = (sheet.median(p99), sheet.median(p99_beside));
    let most = (alone * MAX_FACTOR).max(alone + MAX_DELAY_MS);
    let what = "median of p99 beside, ms (1.2 times or 2 ms more than alone)";
    vec![Bar::at_most(what, most, beside, 2), Bar::none(sheet, &[missing, missing_beside])]
}
