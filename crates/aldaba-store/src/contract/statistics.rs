//! Numbers of attempts, from counters that are written together with the results: nothing here counts
//! attempts one by one.
//!
//! Counters of an endpoint are kept by the minute. Those of hours that are over are summed up, so that a month
//! is a few hundred of them, and minutes stay for the edges.

use crate::operations::statistics;
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Attempts by how they went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    pub successes: u64,
    pub failures: u64,
}

impl AddAssign for AttemptCounts {
    fn add_assign(&mut self, more: Self) {
        self.successes += more.successes;
        self.failures += more.failures;
    }
}

/// Whole hours since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour(pub i64);

impl Hour {
    const MILLIS: i64 = 3_600_000;

    /// The one that a moment is in.
    pub fn of(at: Timestamp) -> Self {
        Self(at.millis().div_euclid(Self::MILLIS))
    }

    pub fn start(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(Self::MILLIS))
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Which attempts of an application to count, by event type.
#[derive(Clone, Debug)]
pub struct ApplicationAttemptsQuery {
    pub app: AppId,
    pub first: Hour,
    pub last: Hour,
    /// Of these; empty: of all.
    pub event_types: Vec<String>,
    /// How many counters to read, at most. There is one for each type and hour.
    pub most: usize,
}

/// A step of summing up hours that are over.
#[derive(Clone, Debug)]
pub struct SumUp {
    /// Hours up to this one.
    pub through: Hour,
    pub endpoints: Vec<EndpointId>,
    /// There is no other endpoint with counters of these hours.
    pub last: bool,
}

contract! {
    pub trait Statistics {
        writes {
            /// Sums up in one commit that takes a few milliseconds: how many of the endpoints are dealt with. A step
            /// that is repeated changes nothing.
            sum_up(step: SumUp) -> usize = SumUp(step);
        }
        reads {
            /// Attempts of an endpoint, from the minute of `since` to the minute before or in which `until` lies.
            read endpoint_attempts(endpoint: EndpointId, since: Timestamp, until: Timestamp) -> AttemptCounts
                = |reading| statistics::endpoint_attempts(reading, endpoint, since, until);

            /// `None`: there are more counters than may be read.
            read application_attempts(
                query: ApplicationAttemptsQuery
            ) -> Option<BTreeMap<String, AttemptCounts>> = |reading| reading.application_attempts(&query);

            /// Up to which hour all counters are summed up.
            background_read summed_through() -> Hour = |reading| statistics::hours_summed(reading);

            /// Those of these endpoints that have counters of minutes which are to be summed up.
            background_read unsummed(endpoints: Vec<EndpointId>, through: Hour) -> Vec<EndpointId>
                = |reading| statistics::unsummed(reading, &endpoints, through);
        }
    }
}
