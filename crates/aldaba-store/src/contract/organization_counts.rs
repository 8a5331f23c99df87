//! What is counted of an organization: by minute and by hour in the store, and the newest of it in memory.

use crate::operations::{endpoint, organizations};
use aldaba_delivery::{AppId, EndpointId, OrgId, Reason, Timestamp};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The upper bounds of the histogram of how long attempts took, in milliseconds.
pub const ATTEMPT_MILLIS: [u64; 15] =
    [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 15_000, 20_000, 25_000, 30_000];
/// The upper bounds of the histogram of the time from an event to its delivery, in milliseconds.
pub const LATENCY_MILLIS: [u64; 16] = [
    10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000,
    86_400_000,
];

/// A number that is counted of an organization. The order is that of `CountKind::COLUMNS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountKind {
    /// Messages that were accepted.
    Accepted,
    /// Deliveries that began to wait: of new messages, of replays, and of inbound events that were repeated.
    Deliveries,
    /// Attempts that succeeded.
    Success,
    /// Attempts that failed, with another one planned.
    Retry,
    /// Attempts that failed and ended their delivery, and manual attempts of settled deliveries that failed.
    Failed,
    /// Attempts that were not the first of their delivery.
    Retries,
    /// Deliveries that ended with success.
    Delivered,
    /// Deliveries that ended, either way but by no person, after more than one attempt.
    SettledAfterRetry,
    /// The retries of the deliveries that ended, but by no person.
    SettledRetries,
    /// New events of sources.
    InboundReceived,
    /// Events of sources that were received before.
    InboundDuplicates,
    /// How long all attempts took.
    AttemptMillis,
    /// The time from the event to the delivery, of all that were delivered.
    LatencyMillis,
}

const DEAD: usize = 13;
const ATTEMPTS: usize = DEAD + Reason::ALL.len();
const LATENCIES: usize = ATTEMPTS + ATTEMPT_MILLIS.len() + 1;
const COUNTS: usize = LATENCIES + LATENCY_MILLIS.len() + 1;

impl CountKind {
    /// The columns of the tables.
    pub(crate) const COLUMNS: [&str; COUNTS] = [
        "accepted",
        "deliveries",
        "success",
        "retry",
        "failed",
        "retries",
        "delivered",
        "settled_after_retry",
        "settled_retries",
        "inbound_received",
        "inbound_duplicates",
        "attempt_millis",
        "latency_millis",
        "dead_exhausted",
        "dead_rejected",
        "dead_stop_date",
        "dead_endpoint_gone",
        "dead_target_forbidden",
        "dead_cancelled",
        "dead_expired",
        "dead_payload_deleted",
        "attempt_5",
        "attempt_10",
        "attempt_25",
        "attempt_50",
        "attempt_100",
        "attempt_250",
        "attempt_500",
        "attempt_1000",
        "attempt_2500",
        "attempt_5000",
        "attempt_10000",
        "attempt_15000",
        "attempt_20000",
        "attempt_25000",
        "attempt_30000",
        "attempt_slower",
        "latency_10",
        "latency_50",
        "latency_100",
        "latency_250",
        "latency_500",
        "latency_1000",
        "latency_2500",
        "latency_5000",
        "latency_10000",
        "latency_30000",
        "latency_60000",
        "latency_300000",
        "latency_900000",
        "latency_3600000",
        "latency_21600000",
        "latency_86400000",
        "latency_slower",
    ];
}

/// What happened in an organization, or in all of them, in some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationCounts([u64; COUNTS]);

impl Default for OrganizationCounts {
    fn default() -> Self {
        Self([0; COUNTS])
    }
}

impl OrganizationCounts {
    pub fn get(&self, kind: CountKind) -> u64 {
        self.0[kind as usize]
    }

    /// Deliveries that ended without success, for this reason.
    pub fn dead(&self, reason: Reason) -> u64 {
        self.0[DEAD + reason_index(reason)]
    }

    /// Deliveries that ended without success.
    pub fn all_dead(&self) -> u64 {
        self.0[DEAD..ATTEMPTS].iter().sum()
    }

    /// Deliveries that ended without success, and not because a person ended them.
    pub fn failed(&self) -> u64 {
        Reason::ALL.into_iter().filter(|reason| !reason.is_manual()).map(|reason| self.dead(reason)).sum()
    }

    /// Attempts, whatever came of them.
    pub fn attempts(&self) -> u64 {
        self.0[ATTEMPTS..LATENCIES].iter().sum()
    }

    /// How long attempts took.
    pub fn attempt_times(&self) -> CountedTimes<'_> {
        CountedTimes {
            bounds: &ATTEMPT_MILLIS,
            counts: &self.0[ATTEMPTS..LATENCIES],
            total: Duration::from_millis(self.get(CountKind::AttemptMillis)),
        }
    }

    /// The time from the event to the delivery, of what was delivered.
    pub fn latencies(&self) -> CountedTimes<'_> {
        CountedTimes {
            bounds: &LATENCY_MILLIS,
            counts: &self.0[LATENCIES..],
            total: Duration::from_millis(self.get(CountKind::LatencyMillis)),
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&more.0) {
            *sum += more;
        }
    }

    pub(crate) fn count(&mut self, kind: CountKind, number: u64) {
        self.0[kind as usize] += number;
    }

    pub(crate) fn count_dead(&mut self, reason: Reason) {
        self.0[DEAD + reason_index(reason)] += 1;
    }

    pub(crate) fn count_attempt_time(&mut self, took: Duration) {
        let millis = count_time(&mut self.0[ATTEMPTS..LATENCIES], &ATTEMPT_MILLIS, took);
        self.count(CountKind::AttemptMillis, millis);
    }

    pub(crate) fn count_latency(&mut self, latency: Duration) {
        let millis = count_time(&mut self.0[LATENCIES..], &LATENCY_MILLIS, latency);
        self.count(CountKind::LatencyMillis, millis);
    }

    /// In the order of the columns.
    pub(crate) fn columns(&self) -> &[u64] {
        &self.0
    }

    pub(crate) fn of_columns(
        mut column: impl FnMut() -> Result<u64, crate::Error>,
    ) -> Result<Self, crate::Error> {
        let mut counts = Self::default();
        for count in &mut counts.0 {
            *count = column()?;
        }
        Ok(counts)
    }
}

fn reason_index(reason: Reason) -> usize {
    match reason {
        Reason::Exhausted => 0,
        Reason::Rejected => 1,
        Reason::StopDate => 2,
        Reason::EndpointGone => 3,
        Reason::TargetForbidden => 4,
        Reason::Cancelled => 5,
        Reason::Expired => 6,
        Reason::PayloadDeleted => 7,
    }
}

fn count_time(counts: &mut [u64], bounds: &[u64], time: Duration) -> u64 {
    let over = |bound: &&u64| time > Duration::from_millis(**bound);
    counts[bounds.iter().take_while(over).count()] += 1;
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A histogram of times.
#[derive(Clone, Copy, Debug)]
pub struct CountedTimes<'a> {
    /// The upper bounds, in milliseconds.
    pub bounds: &'static [u64],
    /// How many there are up to each bound and above the one before; the last ones are above all bounds.
    pub counts: &'a [u64],
    pub total: Duration,
}

impl CountedTimes<'_> {
    pub fn number(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that this share of all is within, as Prometheus estimates it: evenly spread between two bounds, and the highest
    /// bound where it is above that. `None`: there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let number = self.number();
        if number == 0 {
            return None;
        }
        let rank = share * number as f64;
        let (mut before, mut lower) = (0, 0);
        for (bound, count) in self.bounds.iter().zip(self.counts) {
            if (before + count) as f64 >= rank && *count > 0 {
                let within = (rank - before as f64) / *count as f64;
                let millis = lower as f64 + (bound - lower) as f64 * within.clamp(0.0, 1.0);
                return Some(Duration::from_secs_f64(millis / 1000.0));
            }
            (before, lower) = (before + count, *bound);
        }
        Some(Duration::from_millis(lower))
    }
}

/// Which rows of an organization's counts to read.
#[derive(Clone, Debug)]
pub struct OrganizationCountsQuery {
    pub org: OrgId,
    /// Minutes or hours since the Unix epoch.
    pub spans: CountedSpans,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountedSpans {
    Minutes(RangeInclusive<i64>),
    Hours(RangeInclusive<i64>),
}

impl OrganizationCountsQuery {
    /// The maximum number of rows of one read.
    pub const MAX_ROWS: usize = 10_080;
}

/// How many endpoints of an organization are given up. No message waits for it: a background task reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedEndpoints {
    pub org: OrgId,
    pub endpoints: u64,
}

/// When the first client certificate of an organization expires, of endpoints that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiringCertificate {
    pub org: OrgId,
    pub at: Timestamp,
}

/// The secrets of an endpoint, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecrets {
    pub endpoint: EndpointId,
    pub app: AppId,
    pub sealed: Vec<u8>,
}

/// When the client certificate in some secrets expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateDate {
    pub endpoint: EndpointId,
    /// The secrets, sealed: the fence.
    pub of: Vec<u8>,
    pub expires_at: Timestamp,
}

/// What waits for some endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingLanes {
    /// When the oldest delivery began to wait, of endpoints to which anything is sent: neither given up, blocked nor off. It may be
    /// in the future.
    pub oldest: BTreeMap<OrgId, Timestamp>,
    /// How many deliveries wait for other endpoints, or for a later time that their sender has named; at most 100,000 of an
    /// endpoint.
    pub deferred: BTreeMap<OrgId, u64>,
    /// The walk goes on after this endpoint; `None`: that is all.
    pub next: Option<EndpointId>,
}

/// A part of the dead letter, by reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterCounts {
    pub counts: Vec<(Reason, u64)>,
    /// The walk goes on after this number; `None`: that is all.
    pub next: Option<crate::Seq>,
}

contract! {
    /// What is counted of organizations.
    pub trait OrganizationStatistics {
        writes {
            /// An event of a source was received before. It is counted with the next commit.
            count_duplicate(org: OrgId, at: Timestamp) -> () = CountDuplicate(org, at);
        }
        reads {
            /// The minutes or hours in which something happened, oldest first; at most
            /// [`OrganizationCountsQuery::MAX_ROWS`]. What happened within the last second may be missing.
            read organization_counts(query: OrganizationCountsQuery) -> Vec<(i64, OrganizationCounts)>
                = |reading| organizations::counts(reading, &query);

            /// How many endpoints each organization has that are given up: failed, or gone.
            background_read failed_endpoints() -> Vec<FailedEndpoints> = |reading| organizations::failed(reading);

            /// The secrets of endpoints, by id.
            background_read sealed_secrets(after: Option<EndpointId>, limit: usize) -> Vec<SealedSecrets>
                = |reading| endpoint::sealed_secrets(reading, after, limit);

            /// When the first client certificate of each organization expires.
            background_read expiring_certificates() -> Vec<ExpiringCertificate>
                = |reading| organizations::expiring_certificates(reading);

            /// What waits for the endpoints after this one.
            walk waiting_lanes(
                after: Option<EndpointId>,
                now: Timestamp
            ) -> WaitingLanes = |reading, slice| organizations::waiting_lanes(reading, slice, after, now);

            /// How many deliveries there are in the dead letter for each reason, of those after this number.
            walk dead_letter_reasons(after: Option<crate::Seq>) -> DeadLetterCounts
                = |reading, slice| organizations::dead_letter_reasons(reading, slice, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_column() {
        let columns = CountKind::COLUMNS;
        assert_eq!(columns[CountKind::LatencyMillis as usize], "latency_millis");
        assert_eq!(columns[CountKind::SettledRetries as usize], "settled_retries");
        for reason in Reason::ALL {
            assert_eq!(columns[DEAD + reason_index(reason)], format!("dead_{}", reason.name()));
        }
        for (column, bound) in columns[ATTEMPTS..].iter().zip(ATTEMPT_MILLIS) {
            assert_eq!(*column, format!("attempt_{bound}"));
        }
        for (column, bound) in columns[LATENCIES..].iter().zip(LATENCY_MILLIS) {
            assert_eq!(*column, format!("latency_{bound}"));
        }
        assert_eq!((columns[LATENCIES - 1], columns[COUNTS - 1]), ("attempt_slower", "latency_slower"));
    }

    #[test]
    fn a_quantile_lies_between_the_bounds_of_its_bucket() {
        let mut counts = OrganizationCounts::default();
        assert_eq!(counts.attempt_times().quantile(0.99), None);
        for _ in 0..90 {
            counts.count_attempt_time(Duration::from_millis(7));
        }
        for _ in 0..10 {
            counts.count_attempt_time(Duration::from_secs(27));
        }
        let quantile = |share| counts.attempt_times().quantile(share).expect("there are some").as_millis();
        assert_eq!(quantile(0.45), 7, "half of the way from 5 to 10");
        assert_eq!(quantile(0.9), 10);
        assert_eq!(quantile(0.95), 27_500);
        counts.count_attempt_time(Duration::from_secs(600));
        assert_eq!(counts.attempt_times().quantile(1.0), Some(Duration::from_secs(30)), "the highest bound");
        assert_eq!(counts.attempt_times().total, Duration::from_millis(90 * 7 + 270_000 + 600_000));
    }
}
