use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many deliveries the buffers of all lanes may hold together. Past the limit a buffer grows no further than a few
/// deliveries.
#[derive(Clone, Debug)]
pub(crate) struct BufferBudget(Arc<BufferCounter>);

#[derive(Debug)]
struct BufferCounter {
    held: AtomicUsize,
    limit: usize,
}

impl BufferBudget {
    /// The memory of a buffered delivery.
    pub(crate) const BYTES_PER_DELIVERY: usize = 64;

    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(BufferCounter { held: AtomicUsize::new(0), limit: bytes / Self::BYTES_PER_DELIVERY }))
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) >= self.0.limit
    }

    /// A buffer has grown or shrunk. Only the dispatcher's task calls this.
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
