use crate::clock::instant;
use std::time::Duration;
use tokio::time::Instant;

/// The longest patience. Whoever asks for more gets this.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The end of somebody's patience.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline so long from now.
    pub fn after(patience: Duration) -> Self {
        Self(instant() + patience.min(LONGEST))
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
