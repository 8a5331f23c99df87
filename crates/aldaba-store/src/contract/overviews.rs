//! Numbers for pages: sums of counters, and counts with an upper limit. None of them grows with what is kept.

use crate::operations::overviews;
use crate::{AttemptCounts, Hour};
use aldaba_delivery::{AppId, EndpointId, OrgId, Reason};
use std::time::Duration;

/// The upper bounds of the histogram of how long attempts at an endpoint took, in milliseconds.
pub const ENDPOINT_MILLIS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000];
/// How attempts at an endpoint were answered: not at all, and by the first digit of the status.
pub const ANSWER_CLASSES: usize = 6;

/// What happened at an endpoint in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    pub attempts: u64,
    pub successes: u64,
    /// By [`ENDPOINT_MILLIS`]; the last ones took longer.
    pub by_time: [u64; ENDPOINT_MILLIS.len() + 1],
    /// Without an answer, then 1xx to 5xx.
    pub by_answer: [u64; ANSWER_CLASSES],
}

impl EndpointCounts {
    /// The time that this share of all attempts is within: the upper bound of its part of the histogram. `None`: there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let number: u64 = self.by_time.iter().sum();
        let rank = (share * number as f64).ceil() as u64;
        let mut before = 0;
        for (count, bound) in self.by_time.iter().zip(ENDPOINT_MILLIS) {
            before += count;
            if before >= rank && before > 0 {
                return Some(Duration::from_millis(bound));
            }
        }
        (number > 0).then(|| Duration::from_millis(ENDPOINT_MILLIS[ENDPOINT_MILLIS.len() - 1]))
    }
}

/// Whose part of the dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterOf {
    Organization(OrgId),
    Application(AppId),
}

/// Deliveries in the dead letter that have the same endpoint and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterGroup {
    pub app: AppId,
    pub endpoint: EndpointId,
    pub reason: Reason,
    pub deliveries: u64,
}

/// The newest part of a dead letter, in groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterGroups {
    pub groups: Vec<DeadLetterGroup>,
    /// There are older ones that were not counted.
    pub more: bool,
}

contract! {
    pub trait Overviews {
        reads {
            /// The hours in which an endpoint had attempts, oldest first.
            read endpoint_hours(endpoint: EndpointId, first: Hour, last: Hour) -> Vec<(Hour, EndpointCounts)>
                = |reading| overviews::endpoint_hours(reading, endpoint, first, last);

            /// The hours in which applications had attempts, in the order of the applications, oldest first. What happened within
            /// the last seconds may be missing.
            read application_hours(
                apps: Vec<AppId>,
                first: Hour,
                last: Hour
            ) -> Vec<(AppId, Hour, AttemptCounts)>
                = |reading| overviews::application_hours(reading, &apps, first, last);

            /// Endpoints of an organization that are given up: failed, or gone.
            read given_up_endpoints(org: OrgId, limit: usize) -> Vec<(AppId, EndpointId)>
                = |reading| overviews::given_up_endpoints(reading, org, limit);

            /// What the newest `most` deliveries of a dead letter have died of, and where.
            read dead_letter_groups(of: DeadLetterOf, most: usize) -> DeadLetterGroups
                = |reading| overviews::dead_letter_groups(reading, of, most);

            /// How many deliveries each application has in the dead letter, up to `most`.
            read dead_counts(apps: Vec<AppId>, most: usize) -> Vec<u64>
                = |reading| overviews::dead_counts(reading, &apps, most);

            /// How many deliveries wait for each endpoint, up to `most`.
            read waiting_counts(endpoints: Vec<EndpointId>, most: usize) -> Vec<u64>
                = |reading| overviews::waiting_counts(reading, &endpoints, most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_upper_bound_of_its_part() {
        let mut counts = EndpointCounts::default();
        assert_eq!(counts.quantile(0.95), None);
        counts.by_time[1] = 90;
        counts.by_time[7] = 10;
        assert_eq!(counts.quantile(0.5), Some(Duration::from_millis(10)));
        assert_eq!(counts.quantile(0.95), Some(Duration::from_secs(1)));
        counts.by_time[12] = 1000;
        assert_eq!(counts.quantile(0.95), Some(Duration::from_secs(30)), "the highest bound");
    }
}
