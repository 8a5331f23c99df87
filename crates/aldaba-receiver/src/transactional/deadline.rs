use crate::clock::instant;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum timeout. Longer ones are reduced to it.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The moment at which a wait times out.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline this long from now.
    pub fn after(wait_timeout: Duration) -> Self {
        Self(instant() + wait_timeout.min(MAX_WAIT))
    }

    /// The moment itself.
    pub fn at(&self) -> Instant {
        self.0
    }

    /// The time that is left; zero after the deadline.
    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(instant())
    }

    /// Whether no time is left.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
