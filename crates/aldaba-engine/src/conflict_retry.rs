//! Retries a change after a concurrent one. A change is made from what was read, and is refused if the row has changed since;
//! then it is read and made again.

use crate::configuration::ChangeError;
use crate::{Clock, Entropy};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The time after which a change is given up. One of several concurrent changes always succeeds, so this is enough for hundreds
/// of them.
const MAX_RETRY_TIME: Duration = Duration::from_secs(5);
/// The longest delay before the second attempt, doubled each time.
const FIRST_DELAY: Duration = Duration::from_millis(4);
/// Longer delays would only let new requests overtake.
const MAX_DELAY: Duration = Duration::from_millis(64);

/// The attempts of one change.
pub struct ConflictRetry {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// On the monotonic clock.
    begun: Duration,
    delay: Duration,
}

impl ConflictRetry {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let begun = clock.monotonic();
        Self { clock, entropy, begun, delay: FIRST_DELAY }
    }

    /// Waits before the next attempt. [`ChangeError::Unsettled`]: the change was attempted for long enough.
    pub async fn wait(&mut self) -> Result<(), ChangeError> {
        let delay = self.next_delay().ok_or(ChangeError::Unsettled)?;
        tokio::time::sleep(delay).await;
        Ok(())
    }

    /// A random delay up to the present maximum, so that changes that conflicted do not meet again. `None`: the time is over.
    fn next_delay(&mut self) -> Option<Duration> {
        if self.clock.monotonic().saturating_sub(self.begun) >= MAX_RETRY_TIME {
            return None;
        }
        let share = u32::from(u16::from_le_bytes(self.entropy.bytes()));
        let delay = self.delay * share / u32::from(u16::MAX);
        self.delay = (self.delay * 2).min(MAX_DELAY);
        Some(delay)
    }
}

impl fmt::Debug for ConflictRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConflictRetry").field("begun", &self.begun).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use aldaba_delivery::Timestamp;
    use parking_lot::Mutex;

    #[derive(Debug, Default)]
    struct SetClock(Mutex<Duration>);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn monotonic(&self) -> Duration {
            *self.0.lock()
        }
    }

    #[test]
    fn a_change_is_tried_often_and_not_for_ever() {
        let clock = Arc::new(SetClock::default());
        let mut retry = ConflictRetry::new(clock.clone(), Arc::new(SystemEntropy::new()));
        let mut delays = Vec::new();
        while let Some(delay) = retry.next_delay() {
            *clock.0.lock() += delay;
            delays.push(delay);
        }
        assert!(delays.len() > 50, "{}", delays.len());
        assert!(delays[0] <= FIRST_DELAY && delays.iter().all(|delay| *delay <= MAX_DELAY));
        assert!(clock.monotonic() < MAX_RETRY_TIME + MAX_DELAY);
    }
}
