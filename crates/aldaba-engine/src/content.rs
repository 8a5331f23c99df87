//! Payloads in memory: shared by the deliveries of a message, bounded in bytes over all of them.

use aldaba_store::Content;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget for payloads of waiting deliveries.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    used: Arc<AtomicUsize>,
    limit: usize,
}

/// A payload that counts against the budget until the last delivery lets go of it.
#[derive(Debug)]
pub(crate) struct HeldContent {
    content: Arc<Content>,
    used: Arc<AtomicUsize>,
}

impl Contents {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: Arc::default(), limit }
    }

    /// Keeps a payload in memory if the budget allows; otherwise it is read again at its turn.
    pub(crate) fn hold(&self, content: &Arc<Content>) -> Option<Arc<HeldContent>> {
        let size = size(content);
        let held = HeldContent { content: content.clone(), used: self.used.clone() };
        let before = self.used.fetch_add(size, Ordering::Relaxed);
        // Dropping `held` gives the bytes back.
        (before + size <= self.limit).then(|| Arc::new(held))
    }
}

impl HeldContent {
    pub(crate) fn content(&self) -> &Arc<Content> {
        &self.content
    }
}

impl Drop for HeldContent {
    fn drop(&mut self) {
        self.used.fetch_sub(size(&self.content), Ordering::Relaxed);
    }
}

fn size(content: &Content) -> usize {
    content.payload.len() + content.event_type.len() + 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn content(bytes: usize) -> Arc<Content> {
        Arc::new(Content { event_type: "t".into(), payload: Bytes::from(vec![0; bytes]) })
    }

    #[test]
    fn a_payload_over_the_budget_is_not_held_and_costs_nothing() {
        let contents = Contents::new(1000);
        let first = contents.hold(&content(500)).expect("fits");
        assert!(contents.hold(&content(500)).is_none());
        drop(first);
        assert_eq!(contents.used.load(Ordering::Relaxed), 0);
        assert!(contents.hold(&content(500)).is_some());
    }
}
