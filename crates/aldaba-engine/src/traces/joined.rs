//! The traces of senders that messages have joined. In memory only: after a restart, and for more messages than fit, the
//! attempts of such a message form its own trace.

use super::context::TraceContext;
use crate::scheduling::FixedMap;
use aldaba_delivery::MessageId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// Messages that are remembered; about 100 bytes each. Beyond, the oldest is forgotten.
const MAX_JOINED: usize = 16_384;

#[derive(Default)]
pub(super) struct JoinedTraces {
    /// So that nobody looks while no sender has ever named a trace.
    any: AtomicBool,
    joined: Mutex<Joined>,
}

#[derive(Default)]
struct Joined {
    contexts: FixedMap<MessageId, TraceContext>,
    /// The oldest first.
    order: VecDeque<MessageId>,
}

impl JoinedTraces {
    pub(super) fn insert(&self, message: MessageId, context: TraceContext) {
        let mut joined = self.joined.lock();
        if joined.contexts.insert(message, context).is_none() {
            joined.order.push_back(message);
        }
        if joined.order.len() > MAX_JOINED
            && let Some(oldest) = joined.order.pop_front()
        {
            joined.contexts.remove(&oldest);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    pub(super) fn get(&self, message: MessageId) -> Option<TraceContext> {
        if self.is_empty() {
            return None;
        }
        self.joined.lock().contexts.get(&message).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::{SpanId, TraceId};
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_beyond_the_limit() {
        let joined = JoinedTraces::default();
        let message = |number: usize| {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            MessageId::from_bytes(bytes)
        };
        let context = TraceContext { trace: TraceId([1; 16]), span: SpanId([2; 8]), sampled: true };
        assert!(joined.is_empty());
        for number in 0..=MAX_JOINED {
            joined.insert(message(number), context);
            // A second time changes nothing.
            joined.insert(message(number), context);
        }
        assert_eq!(joined.get(message(0)), None);
        assert_eq!(joined.get(message(1)), Some(context));
        assert_eq!(joined.get(message(MAX_JOINED)), Some(context));
        assert_eq!(joined.joined.lock().contexts.len(), MAX_JOINED);
    }
}
