//! Counters: every attempt is remembered, and counted when somebody asks.

use super::SimStore;
use super::disk::{Counted, Disk};
use super::queue::Op;
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use aldaba_store::{
    ApplicationAttemptsQuery, AttemptCounts, Done, Error, Hour, NewAttempt, Read, Statistics, SumUp,
};
use std::collections::{BTreeMap, BTreeSet};

impl Disk {
    pub(super) fn count(&mut self, app: AppId, endpoint: EndpointId, at: Timestamp, attempt: &NewAttempt) {
        let (event_type, success) = (attempt.event_type.clone(), attempt.success);
        self.counted.push(Counted { at, app, endpoint, event_type, success });
    }

    fn of_endpoint(&self, endpoint: EndpointId, since: Timestamp, until: Timestamp) -> AttemptCounts {
        let minute = |at: Timestamp| at.millis().div_euclid(60_000);
        let last = Timestamp::from_millis(until.millis().saturating_sub(1));
        let inside = |at: Timestamp| (minute(since)..=minute(last)).contains(&minute(at));
        let mut counts = AttemptCounts::default();
        for counted in self.counted.iter().filter(|row| row.endpoint == endpoint && inside(row.at)) {
            counts += one(counted);
        }
        counts
    }

    fn by_type(&self, query: &ApplicationAttemptsQuery) -> Option<BTreeMap<String, AttemptCounts>> {
        let hours = query.first..=query.last;
        let inside = |row: &&Counted| row.app == query.app && hours.contains(&Hour::of(row.at));
        let rows: BTreeSet<_> =
            self.counted.iter().filter(inside).map(|row| (Hour::of(row.at), &row.event_type)).collect();
        if rows.len() > query.most {
            return None;
        }
        let asked = |row: &&Counted| {
            query.event_types.is_empty() || query.event_types.iter().any(|name| **name == *row.event_type)
        };
        let mut types: BTreeMap<String, AttemptCounts> = BTreeMap::new();
        for row in self.counted.iter().filter(inside).filter(asked) {
            *types.entry(row.event_type.to_string()).or_default() += one(row);
        }
        Some(types)
    }

    /// There is nothing to sum up here; only how far it would be is kept.
    pub(super) fn sum_up(&mut self, step: &SumUp) -> usize {
        if step.last {
            self.summed_through = self.summed_through.max(Some(step.through));
        }
        step.endpoints.len()
    }
}

fn one(counted: &Counted) -> AttemptCounts {
    let success = u64::from(counted.success);
    AttemptCounts { successes: success, failures: 1 - success }
}

impl Statistics for SimStore {
    fn endpoint_attempts(
        &self,
        endpoint: EndpointId,
        since: Timestamp,
        until: Timestamp,
    ) -> Read<AttemptCounts> {
        self.read(move |disk| disk.of_endpoint(endpoint, since, until))
    }

    fn application_attempts(
        &self,
        query: ApplicationAttemptsQuery,
    ) -> Read<Option<BTreeMap<String, AttemptCounts>>> {
        self.read(move |disk| disk.by_type(&query))
    }

    fn summed_through(&self) -> Read<Hour> {
        self.read(|disk| disk.summed_through.unwrap_or(Hour(-1)))
    }

    fn unsummed(&self, _: Vec<EndpointId>, _: Hour) -> Read<Vec<EndpointId>> {
        self.read(|_| Vec::new())
    }

    fn sum_up(&self, step: SumUp, done: Done<usize>) {
        if self.busy() {
            return done.call(Err(Error::Busy));
        }
        self.put(Op::SumUp(step, done));
    }
}
