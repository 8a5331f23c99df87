use super::bucket::Bucket;
use aldaba_delivery::Timestamp;

/// The `throttleRate` of an endpoint or an application, kept twice: for selections and for requests. The two differ when a
/// selected delivery waits for its payload: without the second bucket, deliveries that have waited would be sent together.
#[derive(Debug)]
pub(crate) struct Throttle {
    selections: Bucket,
    starts: Bucket,
    /// Since when something due has been waiting for it.
    since: Option<Timestamp>,
}

impl Throttle {
    pub(crate) fn new(rate: u16, now: Timestamp) -> Self {
        Self { selections: Bucket::new(rate, now), starts: Bucket::new(rate, now), since: None }
    }

    pub(crate) fn rate(&self) -> u16 {
        self.selections.rate()
    }

    /// Whether the lane may be selected now, or when it may.
    pub(crate) fn ready(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.selections.ready(now)?;
        self.starts.ready(now)
    }

    /// The lane was selected. `at_once`: the request is sent now.
    pub(crate) fn take(&mut self, at_once: bool) {
        self.selections.take();
        if at_once {
            self.starts.take();
        }
    }

    /// A selection came to nothing.
    pub(crate) fn give_back(&mut self) {
        self.selections.give_back();
        self.starts.give_back();
    }

    /// The request is not sent at once.
    pub(crate) fn starts_later(&mut self) {
        self.starts.give_back();
    }

    /// Whether a request that had to wait for its payload may be sent now, or when it may.
    pub(crate) fn may_start(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.starts.ready(now)
    }

    pub(crate) fn started(&mut self) {
        self.starts.take();
    }

    pub(crate) fn is_full(&mut self, now: Timestamp) -> bool {
        self.selections.is_full(now) && self.starts.is_full(now)
    }

    /// A due delivery has to wait.
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
    fn selections_wait_while_requests_are_late() {
        let mut throttle = Throttle::new(10, Timestamp::from_millis(0));
        let now = Timestamp::from_millis(1000);
        assert!(throttle.may_start(now).is_ok());
        throttle.started();
        assert_eq!(throttle.ready(now), Err(Timestamp::from_millis(1100)));
    }
}
