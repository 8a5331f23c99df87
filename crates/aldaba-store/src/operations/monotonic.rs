//! Time for the store, from the owner of the clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A clock that only moves forward, from the owner of the time. The store has none of its own.
#[derive(Clone)]
pub struct Monotonic(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Monotonic {
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

/// A clock that stands still: nothing ever takes long.
impl Default for Monotonic {
    fn default() -> Self {
        Self::new(|| Duration::ZERO)
    }
}

/// How long the writer may be busy with work that nobody waits for, when others wait.
pub const BULK_SLICE: Duration = Duration::from_millis(5);

/// Work that ends by the clock.
#[derive(Debug)]
pub struct Slice<'a> {
    clock: &'a Monotonic,
    begun: Duration,
    length: Duration,
}

impl<'a> Slice<'a> {
    pub fn begin(clock: &'a Monotonic, length: Duration) -> Self {
        Self { clock, begun: clock.now(), length }
    }

    pub fn is_over(&self) -> bool {
        self.took() >= self.length
    }

    pub fn took(&self) -> Duration {
        self.clock.now().saturating_sub(self.begun)
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Monotonic")
    }
}
