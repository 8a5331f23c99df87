//! Decides when a request is retried. Pure: time and random numbers are arguments.

use crate::Error;
use std::time::Duration;

/// How often a call is retried, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    attempts: u32,
    timeout: Duration,
    total: Duration,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 5,
            timeout: Duration::from_secs(30),
            total: Duration::from_secs(60),
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(10),
        }
    }
}

impl Retries {
    /// Makes every request once.
    #[must_use]
    pub fn none() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// The number of requests that one call may make, at least 1. 5 by default.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// How long one request may take, from connecting to the end of the answer. 30 s by default.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// How long a call may take, with all its requests and pauses. 60 s by default.
    #[must_use]
    pub fn total(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// The pause before the second request, doubled before each further one, up to `longest`. Each pause is shortened
    /// randomly, to half at most. 200 ms and 10 s by default.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { first_pause: first, longest_pause: longest, ..self }
    }

    /// The timeout of a request that is made now.
    pub(crate) fn time_for_one(&self, elapsed: Duration) -> Duration {
        self.timeout.min(self.total.saturating_sub(elapsed))
    }

    /// How long to wait before the next request; `None`: there is none.
    pub(crate) fn pause(&self, failed: &Failed, progress: CallProgress, repeat: Repeat) -> Option<Duration> {
        if progress.tried >= self.attempts || !failed.may_be_repeated(repeat) {
            return None;
        }
        let pause = self.own_pause(progress).max(failed.error.retry_after().unwrap_or_default());
        // After a longer pause there would be no time for a request.
        (progress.elapsed.saturating_add(pause) < self.total).then_some(pause)
    }

    /// How long to wait in the background after this many failures in a row.
    pub(crate) fn background_pause(&self, failures: u32, chance: f64) -> Duration {
        self.own_pause(CallProgress { tried: failures, elapsed: Duration::ZERO, chance })
    }

    fn own_pause(&self, CallProgress { tried, chance, .. }: CallProgress) -> Duration {
        let doubled = self.first_pause.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1)));
        let half = doubled.min(self.longest_pause) / 2;
        // Only half is multiplied: the longest `Duration` would overflow.
        half.saturating_add(half.mul_f64(chance.clamp(0.0, 1.0)))
    }
}

/// The progress of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallProgress {
    /// Requests made.
    pub(crate) tried: u32,
    pub(crate) elapsed: Duration,
    /// From 0 to 1.
    pub(crate) chance: f64,
}

/// Whether a repeated request is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing more than the first: it reads, it says how something is to be, or it has an idempotency key.
    Safe,
    /// Its effect once more.
    Harms,
}

/// A request that did not work.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// The server may have done what was asked.
    pub(crate) maybe_done: bool,
}

impl Failed {
    fn may_be_repeated(&self, repeat: Repeat) -> bool {
        let worth_it = match &self.error {
            Error::Unreachable { .. } | Error::Timeout { .. } => true,
            Error::Api { status, .. } | Error::Answer { status, .. } => {
                matches!(status, 429 | 502 | 503 | 504)
            }
            Error::Request { .. } => false,
        };
        worth_it && (repeat == Repeat::Safe || !self.maybe_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(status: u16, retry_after: Option<u64>) -> Failed {
        let error = Error::Api {
            status,
            code: String::new(),
            detail: String::new(),
            problems: Vec::new(),
            retry_after: retry_after.map(Duration::from_secs),
        };
        Failed { error, maybe_done: false }
    }

    fn at(tried: u32, elapsed: u64) -> CallProgress {
        CallProgress { tried, elapsed: Duration::from_secs(elapsed), chance: 1.0 }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_chance_takes_half_at_most() {
        let retries = Retries::default().attempts(100).total(Duration::from_secs(10_000));
        let pause = |tried, chance| {
            let progress = CallProgress { tried, elapsed: Duration::ZERO, chance };
            retries.pause(&api(503, None), progress, Repeat::Safe).unwrap().as_millis()
        };
        let longest: Vec<_> = [1, 2, 3, 6, 7, 99].map(|tried| pause(tried, 1.0)).into();
        assert_eq!(longest, [200, 400, 800, 6400, 10_000, 10_000]);
        assert_eq!(pause(1, 0.0), 100);
        assert_eq!(pause(99, 0.0), 5000);
    }

    #[test]
    fn the_longest_pause_that_there_is_is_a_pause() {
        let retries = Retries::default().pauses(Duration::MAX, Duration::MAX).total(Duration::MAX);
        assert!(retries.background_pause(u32::MAX, 1.0) > Duration::from_secs(u64::MAX - 2));
        assert_eq!(retries.pause(&api(503, None), at(2, 1), Repeat::Safe), None);
    }

    #[test]
    fn retry_after_is_obeyed_and_a_longer_one_than_there_is_time_ends_the_call() {
        let retries = Retries::default();
        let pause = |after| retries.pause(&api(429, Some(after)), at(1, 0), Repeat::Safe);
        assert_eq!(pause(3), Some(Duration::from_secs(3)));
        assert_eq!(pause(0), Some(Duration::from_millis(200)));
        assert_eq!(pause(60), None);
        assert_eq!(retries.pause(&api(503, None), at(1, 60), Repeat::Safe), None);
        assert_eq!(retries.pause(&api(503, None), at(5, 1), Repeat::Safe), None);
    }

    #[test]
    fn only_what_may_work_later_is_made_again() {
        let again = |failed: &Failed| Retries::default().pause(failed, at(1, 0), Repeat::Safe).is_some();
        for (status, expected) in
            [(400, false), (401, false), (404, false), (409, false), (422, false), (500, false)]
        {
            assert_eq!(again(&api(status, None)), expected, "{status}");
        }
        assert!([429, 502, 503, 504].iter().all(|status| again(&api(*status, None))));
        let error = Error::Request { detail: String::new() };
        assert!(!again(&Failed { error, maybe_done: false }));
    }

    #[test]
    fn a_request_that_is_not_idempotent_is_repeated_only_if_it_was_never_processed() {
        let failed = |maybe_done| Failed { error: Error::Unreachable { detail: String::new() }, maybe_done };
        let pause = |failed, repeat| Retries::default().pause(&failed, at(1, 0), repeat);
        assert!(pause(failed(true), Repeat::Safe).is_some());
        assert!(pause(failed(false), Repeat::Harms).is_some());
        assert!(pause(failed(true), Repeat::Harms).is_none());
    }

    #[test]
    fn the_last_request_has_only_the_time_that_is_left() {
        let retries = Retries::default();
        assert_eq!(retries.time_for_one(Duration::from_secs(1)), Duration::from_secs(30));
        assert_eq!(retries.time_for_one(Duration::from_secs(55)), Duration::from_secs(5));
        assert_eq!(retries.time_for_one(Duration::from_secs(61)), Duration::ZERO);
    }
}
