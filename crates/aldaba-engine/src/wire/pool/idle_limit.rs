use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits the number of idle connections, over both protocols.
#[derive(Debug)]
pub(in crate::wire) struct IdleLimit {
    limit: usize,
    in_use: AtomicUsize,
}

/// Allows one connection to be idle.
#[derive(Debug)]
pub(in crate::wire) struct IdlePermit(Arc<IdleLimit>);

impl IdleLimit {
    pub(in crate::wire) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, in_use: AtomicUsize::new(0) })
    }

    pub(in crate::wire) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    pub(in crate::wire) fn try_acquire(self: &Arc<Self>) -> Option<IdlePermit> {
        let one_more = |in_use| (in_use < self.limit).then_some(in_use + 1);
        let in_use = self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        in_use.is_ok().then(|| IdlePermit(Arc::clone(self)))
    }
}

impl Drop for IdlePermit {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}
