use super::bucket::Bucket;
use aldaba_delivery::Timestamp;

/// The `throttleRate` of an endpoint or an application, kept twice: for turns and for requests. They come apart when a
/// delivery has to wait for its payload after its turn: without a bucket at the point where requests
/// leave, those that have waited would leave together.
#[derive(Debug)]
pub(crate) struct Throttle {
    turns: Bucket,
    starts: Bucket,
    /// Since when something always waits for it.
    since: Option<Timestamp>,
}

impl Throttle {
    pub(crate) fn new(rate: u16, now: Timestamp) -> Self {
        Self { turns: Bucket::new(rate, now), starts: Bucket::new(rate, now), since: None }
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

    /// A turn that was taken came to nothing.
    pub(crate) fn give_back(&mut self) {
        self.turns.give_back();
        self.starts.give_back();
    }

    /// The request does not leave at once, as was thought.
    pub(crate) fn starts_later(&mut self) {
        self.starts.give_back();
    }

    /// Whether a request that had to wait for its payload may leave now, or when it may.
    pub(crate) fn may_start(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.starts.ready(now)
    }

    pub(crate) fn started(&mut self) {
        self.starts.take();
    }

    pub(crate) fn is_full(&mut self, now: Timestamp) -> bool {
        self.turns.is_full(now) && self.starts.is_full(now)
    }

    /// Something that is due has to wait for it.
    pub(crate) fn holds(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// Nothing is due.
    pub(crate) fn holds_nothing(&mut self) {
        self.since = None;
    }

    pub(crate) fn held_since(&self) -> Option<Timestamp> {
        self.since
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
            while let Err(at) = throttle.may_start(now) {
                now = at;
            }
            throttle.started();
        }
        assert_eq!(now, Timestamp::from_millis(1800), "ten a second, from the first on");
    }

    #[test]
    fn turns_wait_while_requests_are_late() {
        let mut throttle = Throttle::new(10, Timestamp::from_millis(0));
        let now = Timestamp::from_millis(1000);
        assert!(throttle.may_start(now).is_ok());
        throttle.started();
        assert_eq!(throttle.ready(now), Err(Timestamp::from_millis(1100)));
    }
}
