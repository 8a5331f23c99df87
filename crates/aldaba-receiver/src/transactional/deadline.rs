use crate::clock::instant;
use std::time::Duration;
use tokio::time::Instant;

/// The longest patience. Whoever asks for more gets this.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The end of somebody's patience.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(patience: Duration) -> Self {
        Self(instant() + patience.min(LONGEST))
    }

    pub fn at(&self) -> Instant {
        self.0
    }

    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(instant())
    }

    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
