use aldaba_delivery::Timestamp;
use std::time::Duration;

/// Requests that may start in the first second. Every further second it is twice as many.
const FIRST_SECOND_REQUESTS: u64 = 8;

/// The length of the ramp.
const RAMP_SECONDS: u64 = 10;

/// Limits how fast deliveries that were held are sent after the hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    from: Timestamp,
    started: u64,
}

impl Ramp {
    /// `None`: at `now` the ramp that began at `from` is over.
    pub(crate) fn since(from: Timestamp, now: Timestamp) -> Option<Self> {
        // A moment in the future comes from a clock that was set back.
        let lasts = from <= now && !is_over(from, now);
        lasts.then(|| Self { from, started: allowed(now.since(from)) - 1 })
    }

    pub(crate) fn began_at(&self, from: Timestamp) -> bool {
        self.from == from
    }

    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        is_over(self.from, now)
    }

    /// Whether a request may start now, or when one may.
    pub(crate) fn ready(&self, now: Timestamp) -> Result<(), Timestamp> {
        if self.is_over(now) || self.started < allowed(now.since(self.from)) {
            return Ok(());
        }
        // Started: FIRST_SECOND_REQUESTS · (2^s − 1) in the s whole seconds before, the rest in this one.
        let second = u64::from((self.started / FIRST_SECOND_REQUESTS + 1).ilog2());
        let (before, rate) = (FIRST_SECOND_REQUESTS * ((1 << second) - 1), FIRST_SECOND_REQUESTS << second);
        let millis = second * 1000 + ((self.started - before) * 1000).div_ceil(rate);
        Err((self.from + Duration::from_millis(millis)).max(now + Duration::from_millis(1)))
    }

    pub(crate) fn take(&mut self) {
        self.started += 1;
    }
}

fn is_over(from: Timestamp, now: Timestamp) -> bool {
    now < from || now.since(from) >= Duration::from_secs(RAMP_SECONDS)
}

/// How many requests may have started by then: one at once, the others evenly within each second.
fn allowed(elapsed: Duration) -> u64 {
    let second = elapsed.as_secs().min(RAMP_SECONDS);
    let within = (FIRST_SECOND_REQUESTS << second) * u64::from(elapsed.subsec_millis()) / 1000;
    1 + FIRST_SECOND_REQUESTS * ((1 << second) - 1) + within
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    /// How many start in each second when there is always one that wants to.
    fn starts(from: i64, seconds: usize) -> Vec<usize> {
        let mut ramp = Ramp::since(at(0), at(from)).expect("it lasts");
        let (mut now, mut counts) = (at(from), vec![0; seconds]);
        while now < at(seconds as i64 * 1000) {
            match ramp.ready(now) {
                Ok(()) => {
                    ramp.take();
                    counts[now.since(at(0)).as_secs() as usize] += 1;
                }
                Err(next) => {
                    assert!(next > now);
                    now = next;
                }
            }
        }
        counts
    }

    #[test]
    fn the_rate_doubles_every_second_and_nothing_starts_in_a_burst() {
        assert_eq!(starts(0, 6), [8, 16, 32, 64, 128, 256]);
        let ramp = Ramp::since(at(0), at(0)).expect("it lasts");
        assert!(ramp.ready(at(0)).is_ok(), "one goes at once");
    }

    #[test]
    fn one_that_begins_in_the_middle_has_nothing_to_make_up_for() {
        assert_eq!(starts(2000, 4), [0, 0, 32, 64]);
    }

    #[test]
    fn it_ends() {
        assert!(Ramp::since(at(0), at(10_000)).is_none());
        let ramp = Ramp { from: at(0), started: u64::from(u32::MAX) };
        assert!(ramp.ready(at(9_999)).is_err());
        assert!(ramp.ready(at(10_000)).is_ok());
        assert!(ramp.ready(at(-1)).is_ok(), "the clock was set back");
        assert!(Ramp::since(at(1), at(0)).is_none());
    }
}
