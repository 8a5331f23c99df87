use aldaba_delivery::Timestamp;
use std::time::Duration;

/// Thousandths of a token: one millisecond at one request a second is one of them.
const TOKEN: u64 = 1000;
/// How much unused time may be made up for at once.
const BURST: Duration = Duration::from_millis(50);

/// A token bucket: at most `rate` requests a second, evenly, with a burst of at most 50 ms' worth.
/// It starts empty, so that a restart never adds to what a receiver gets in a second.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: u16,
    tokens: u64,
    filled_at: Timestamp,
}

impl Bucket {
    pub(crate) fn new(rate: u16, now: Timestamp) -> Self {
        Self { rate, tokens: 0, filled_at: now }
    }

    pub(crate) fn rate(&self) -> u16 {
        self.rate
    }

    /// Whether a request may go now, or when the next one may.
    pub(crate) fn ready(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.fill(now);
        if self.tokens >= TOKEN {
            return Ok(());
        }
        let wait = (TOKEN - self.tokens).div_ceil(u64::from(self.rate));
        Err(now + Duration::from_millis(wait))
    }

    pub(crate) fn take(&mut self) {
        self.tokens = self.tokens.saturating_sub(TOKEN);
    }

    /// What was taken was not used.
    pub(crate) fn give_back(&mut self) {
        self.tokens = self.tokens.saturating_add(TOKEN).min(self.most());
    }

    /// Nothing more can be saved up.
    pub(crate) fn is_full(&mut self, now: Timestamp) -> bool {
        self.fill(now);
        self.tokens >= self.most()
    }

    fn most(&self) -> u64 {
        let burst = u64::try_from(BURST.as_millis()).unwrap_or(u64::MAX) * u64::from(self.rate);
        burst.max(TOKEN)
    }

    fn fill(&mut self, now: Timestamp) {
        if now < self.filled_at {
            // The clock was set back: what was earned stays, time goes on from here.
            self.filled_at = now;
        }
        let rate = u64::from(self.rate);
        let millis = u64::try_from(now.since(self.filled_at).as_millis()).unwrap_or(u64::MAX);
        self.tokens = self.tokens.saturating_add(millis.saturating_mul(rate)).min(self.most());
        self.filled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes whenever possible, looking every `step` milliseconds, and counts.
    fn taken(rate: u16, step: i64, millis: i64) -> u64 {
        let mut bucket = Bucket::new(rate, Timestamp::from_millis(0));
        let mut taken = 0;
        for now in (0..=millis).step_by(usize::try_from(step).expect("positive")) {
            while bucket.ready(Timestamp::from_millis(now)).is_ok() {
                bucket.take();
                taken += 1;
            }
        }
        taken
    }

    #[test]
    fn fifty_a_second_is_a_thousand_in_twenty_seconds() {
        assert_eq!(taken(50, 1, 20_000), 1000);
        assert_eq!(taken(50, 7, 20_000), 999);
    }

    #[test]
    fn one_a_second_and_the_highest_rate_hold_too() {
        assert_eq!(taken(1, 1, 10_000), 10);
        assert_eq!(taken(u16::MAX, 1, 1000), 65_535);
    }

    #[test]
    fn idle_time_earns_no_more_than_the_burst() {
        let mut bucket = Bucket::new(100, Timestamp::from_millis(0));
        let mut taken = 0;
        while bucket.ready(Timestamp::from_millis(60_000)).is_ok() {
            bucket.take();
            taken += 1;
        }
        assert_eq!(taken, 5);
    }

    #[test]
    fn it_names_the_moment_of_the_next_token() {
        let mut bucket = Bucket::new(50, Timestamp::from_millis(0));
        assert_eq!(bucket.ready(Timestamp::from_millis(0)), Err(Timestamp::from_millis(20)));
        assert_eq!(bucket.ready(Timestamp::from_millis(20)), Ok(()));
    }
}
