//! A change is made from what was read, and is refused where another one came first. Then it is read and made again.

use crate::configuration::ChangeError;
use crate::{Clock, Entropy};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// For how long a change is tried. One of those that are in each other's way always gets through, so that this is enough
/// for hundreds of them.
const LONGEST: Duration = Duration::from_secs(5);
/// How long to wait before the second try, at most; then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// Longer waits would only let those who have just come overtake.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// The tries of one change.
pub struct Tries {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// On the monotonic clock.
    begun: Duration,
    pause: Duration,
}

impl Tries {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let begun = clock.monotonic();
        Self { clock, entropy, begun, pause: FIRST_PAUSE }
    }

    /// Another change came first: waits for a moment. [`ChangeError::Unsettled`]: it has been tried for long
    /// enough.
    pub async fn again(&mut self) -> Result<(), ChangeError> {
        let pause = self.next_pause().ok_or(ChangeError::Unsettled)?;
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Somewhere between none and the longest of this time, so that those who met do not meet again. `None`: its
    /// time is over.
    fn next_pause(&mut self) -> Option<Duration> {
        if self.clock.monotonic().saturating_sub(self.begun) >= LONGEST {
            return None;
        }
        let share = u32::from(u16::from_le_bytes(self.entropy.bytes()));
        let pause = self.pause * share / u32::from(u16::MAX);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

impl fmt::Debug for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tries").field("begun", &self.begun).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use aldaba_delivery::Timestamp;
    use parking_lot::Mutex;

    #[derive(Debug, Default)]
    struct ByHand(Mutex<Duration>);

    impl Clock for ByHand {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn monotonic(&self) -> Duration {
            *self.0.lock()
        }
    }

    #[test]
    fn a_change_is_tried_often_and_not_for_ever() {
        let clock = Arc::new(ByHand::default());
        let mut tries = Tries::new(clock.clone(), Arc::new(SystemEntropy::new()));
        let mut pauses = Vec::new();
        while let Some(pause) = tries.next_pause() {
            *clock.0.lock() += pause;
            pauses.push(pause);
        }
        assert!(pauses.len() > 50, "{}", pauses.len());
        assert!(pauses[0] <= FIRST_PAUSE && pauses.iter().all(|pause| *pause <= LONGEST_PAUSE));
        assert!(clock.monotonic() < LONGEST + LONGEST_PAUSE);
    }
}
