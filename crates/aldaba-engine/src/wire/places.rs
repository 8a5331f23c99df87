use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many connections may wait for their next request, whichever protocol they speak.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    taken: AtomicUsize,
}

/// The right of one connection to wait.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

impl Places {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicUsize::new(0) })
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let one_more = |taken| (taken < self.limit).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
