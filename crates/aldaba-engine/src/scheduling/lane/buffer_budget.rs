use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the buffers of all lanes may hold together, in deliveries. Every buffer counts what it holds;
/// past the limit none grows beyond a few.
#[derive(Clone, Debug)]
pub(crate) struct BufferBudget(Arc<BufferCounter>);

#[derive(Debug)]
struct BufferCounter {
    held: AtomicUsize,
    most: usize,
}

impl BufferBudget {
    /// What one waiting delivery in a buffer costs, in bytes.
    pub(crate) const ENTRY: usize = 64;

    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(BufferCounter { held: AtomicUsize::new(0), most: bytes / Self::ENTRY }))
    }

    pub(super) fn is_short(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) >= self.0.most
    }

    /// A buffer has become larger or smaller. Only the one task that owns the lanes does this.
    pub(super) fn recount(&self, before: usize, after: usize) {
        if after > before {
            self.0.held.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.0.held.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }
}
