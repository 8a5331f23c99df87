//! The trace of a message: its ids come from the message's id, or from its sender.

use super::context::{SpanId, TraceContext, TraceId};
use aldaba_delivery::MessageId;

/// The bits of a trace id that decide about sampling: its last seven bytes, as in consistent probability sampling of
/// OpenTelemetry. So others who sample the same trace at the same rate keep the same ones.
const SAMPLE_BITS: u32 = 56;

/// The share of messages that are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRate {
    /// Trace ids whose deciding bits are at least this are sampled.
    threshold: u64,
}

impl SampleRate {
    /// A share from 0 to 1. `None`: it is no such number.
    pub fn new(share: f64) -> Option<Self> {
        const ALL: f64 = (1_u64 << SAMPLE_BITS) as f64;
        let is_share = (0.0..=1.0).contains(&share);
        // Exact for 0 and 1, and to a 56-bit fraction between.
        is_share.then_some(Self { threshold: ((1.0 - share) * ALL) as u64 })
    }

    /// Whether a message is sampled by its own trace id.
    pub(super) fn takes(self, message: MessageId) -> bool {
        self.takes_bits(&message.as_bytes()[13..])
    }

    /// Whether a trace is sampled by its id.
    pub(super) fn takes_trace(self, trace: TraceId) -> bool {
        self.takes_bits(&trace.0[9..])
    }

    fn takes_bits(self, bytes: &[u8]) -> bool {
        bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)) >= self.threshold
    }
}

impl Default for SampleRate {
    fn default() -> Self {
        Self { threshold: 1 << SAMPLE_BITS }
    }
}

/// What an event brings along for its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTrace {
    /// The context of its request.
    pub context: Option<TraceContext>,
    /// The span of that request is the first of its message ([`RequestTrace::begins`](super::RequestTrace::begins)).
    pub has_request: bool,
}

/// The trace of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageTrace {
    pub(super) id: TraceId,
    /// The span that all others of this message hang on.
    pub(super) root: SpanId,
    /// The span of the sender that has caused it.
    pub(super) caller: Option<SpanId>,
    pub(super) sampled: bool,
}

impl MessageTrace {
    /// Its own: the last 16 bytes of a message id, 15 of which are random.
    pub(super) fn own(message: MessageId, sample: SampleRate) -> Self {
        let bytes = message.as_bytes();
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[4..]);
        // Zero means none.
        id[0] |= 1;
        Self { id: TraceId(id), root: root(message), caller: None, sampled: sample.takes(message) }
    }

    /// That of its sender, who has decided about sampling too.
    pub(super) fn joining(message: MessageId, context: TraceContext) -> Self {
        let TraceContext { trace, span, sampled } = context;
        Self { id: trace, root: root(message), caller: Some(span), sampled }
    }

    /// What the receiver of a request is told.
    pub(super) fn context(&self, span: SpanId) -> TraceContext {
        TraceContext { trace: self.id, span, sampled: self.sampled }
    }
}

/// Its bytes are random ones of the message id, so that an attempt finds it without asking anybody.
fn root(message: MessageId) -> SpanId {
    let mut id = [0; 8];
    id.copy_from_slice(&message.as_bytes()[5..13]);
    id[0] |= 1;
    SpanId(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;
    use sha2::{Digest, Sha256};

    fn messages() -> impl Iterator<Item = MessageId> {
        (0_u32..20_000).map(|number| {
            let random: [u8; 32] = Sha256::digest(number.to_be_bytes()).into();
            MessageId::new(
                Timestamp::from_millis(1_800_000_000_000),
                *random.first_chunk().expect("15 of 32"),
            )
        })
    }

    #[test]
    fn as_many_messages_are_sampled_as_the_share_says() {
        for (share, least, most) in
            [(0.0, 0, 0), (0.01, 140, 260), (0.5, 9_700, 10_300), (1.0, 20_000, 20_000)]
        {
            let rate = SampleRate::new(share).expect("a share");
            let sampled = messages().filter(|message| rate.takes(*message)).count();
            assert!((least..=most).contains(&sampled), "{share}: {sampled}");
        }
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(SampleRate::new(bad), None, "{bad}");
        }
        assert_eq!(SampleRate::default(), SampleRate::new(0.0).expect("a share"));
    }

    #[test]
    fn a_higher_share_samples_what_a_lower_one_does() {
        let (low, high) = (SampleRate::new(0.1).expect("a share"), SampleRate::new(0.3).expect("a share"));
        assert!(messages().all(|message| !low.takes(message) || high.takes(message)));
    }

    #[test]
    fn ids_are_those_of_the_message_and_never_zero() {
        let zeros = MessageId::from_bytes([0; 20]);
        let trace = MessageTrace::own(zeros, SampleRate::default());
        assert!(trace.id.0 != [0; 16] && trace.root.0 != [0; 8]);
        let mut ids: Vec<_> =
            messages().map(|message| MessageTrace::own(message, SampleRate::default()).id.0).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20_000);
    }
}
