//! Whether the time of day can be believed, as far as removing by it goes.

use aldaba_delivery::Timestamp;
use std::time::Duration;

/// A step of the clock that is worth waiting for; less is everyday correction.
const STEP: Duration = Duration::from_secs(5 * 60);
/// How long nothing is removed after a step: who has set the clock wrong will have noticed.
const WAIT: Duration = Duration::from_secs(3600);

/// What was removed too early is gone, so a clock that has been set forward is believed only after a while.
#[derive(Debug)]
pub(super) struct Steady {
    now: Timestamp,
    monotonic: Duration,
    believed_from: Duration,
}

impl Steady {
    pub(super) fn new(now: Timestamp, monotonic: Duration) -> Self {
        Self { now, monotonic, believed_from: monotonic }
    }

    pub(super) fn look(&mut self, now: Timestamp, monotonic: Duration) -> bool {
        let passed = monotonic.saturating_sub(self.monotonic);
        let ahead = now.since(self.now).saturating_sub(passed);
        if ahead >= STEP {
            tracing::warn!(?ahead, "the machine's clock was set forward; nothing is removed for an hour");
            self.believed_from = monotonic + WAIT;
        }
        (self.now, self.monotonic) = (now, monotonic);
        monotonic >= self.believed_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_step_forward_nothing_is_removed_for_an_hour() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        let start = Timestamp::from_millis(1_780_000_000_000);
        let mut steady = Steady::new(start, minutes(7));
        assert!(steady.look(start + minutes(1), minutes(8)));
        assert!(steady.look(start + minutes(6), minutes(9)), "a small correction");
        let day = start + minutes(24 * 60);
        assert!(!steady.look(day, minutes(10)));
        assert!(!steady.look(day + minutes(59), minutes(69)));
        assert!(steady.look(day + minutes(60), minutes(70)));
        // Set back: the engine's time goes on from where it was.
        assert!(steady.look(day + minutes(60), minutes(80)));
    }
}
