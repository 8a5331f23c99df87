use super::bucket::Bucket;
use aldaba_delivery::Timestamp;

/// An endpoint's `throttleRate`, kept twice: for turns and for requests. They come apart when a
/// delivery has to wait for its payload after its turn: without a bucket at the point where requests
/// leave, those that have waited would leave together.
#[derive(Debug)]
pub(crate) struct Throttle {
    turns: Bucket,
    starts: Bucket,
}

impl Throttle {
    pub(crate) fn new(rate: u16, now: Timestamp) -> Self {
        Self { turns: Bucket::new(rate, now), starts: Bucket::new(rate, now) }
    }

    pub(crate) fn rate(&self) -> u16 {
        self.turns.rate()
    }

    /// Whether the lane may have a turn now, or when it may.
    pub(crate) fn ready(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.turns.ready(now)?;
        self.starts.ready(now)
    }

    /// The lane has its turn. `at_once`: the request leaves now.
    pub(crate) fn take(&mut self, at_once: bool) {
        self.turns.take();
        if at_once {
            self.starts.take();
        }
    }

    /// Whether a request that had to wait for its payload may leave now, or when it may.
    pub(crate) fn start(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.starts.ready(now)?;
        self.starts.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_waited_for_their_payloads_do_not_leave_together() {
        let mut throttle = Throttle::new(10, Timestamp::from_millis(0));
        let mut turns = 0;
        for now in 0..1000 {
            if throttle.ready(Timestamp::from_millis(now)).is_ok() {
                throttle.take(false);
                turns += 1;
            }
        }
        assert_eq!(turns, 9);
        let mut now = Timestamp::from_millis(1000);
        for _ in 0..turns {
            while let Err(at) = throttle.start(now) {
                now = at;
            }
        }
        assert_eq!(now, Timestamp::from_millis(1800), "ten a second, from the first on");
    }

    #[test]
    fn turns_wait_while_requests_are_late() {
        let mut throttle = Throttle::new(10, Timestamp::from_millis(0));
        let now = Timestamp::from_millis(1000);
        assert!(throttle.start(now).is_ok());
        assert_eq!(throttle.ready(now), Err(Timestamp::from_millis(1100)));
    }
}
