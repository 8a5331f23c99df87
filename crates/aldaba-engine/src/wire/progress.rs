//! Tracks the stage of a request and limits what the receiver may send.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most interim heads (1xx) before the final one.
pub(super) const MAX_INTERIM_HEADS: usize = 16;

/// The most bytes that a receiver may send before the first request: the TLS handshake.
const MAX_HANDSHAKE_BYTES: usize = 256 * 1024;

/// The most bytes until the final head is complete, interim heads included.
const MAX_HEAD_PHASE_BYTES: usize = 128 * 1024;

/// The most bytes after the head. Of the body 16 KiB are kept, which take 96 KiB in chunks of one byte.
const MAX_BODY_PHASE_BYTES: usize = 256 * 1024;

/// The most chunks or frames of a body that are read. Each costs about the same time, whatever its size.
pub(super) const MAX_BODY_FRAMES: usize = 2048;

/// The progress of the request on a connection. It is shared with the socket, which the protocol library
/// owns during a request.
#[derive(Debug)]
pub(super) struct ExchangeProgress {
    /// Bytes that the receiver may still send. At zero every read fails.
    allowance: AtomicUsize,
    interim_heads: AtomicUsize,
    /// A byte of a response was received. TLS records without data do not count.
    response_begun: AtomicBool,
    /// The receiver does not accept what is written.
    write_blocked: AtomicBool,
    head_complete: AtomicBool,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeStage {
    /// A stream on a shared connection. Nothing was sent.
    Queued,
    /// The receiver accepting the whole request.
    Sending,
    /// The first byte of the response.
    Answer,
    /// The rest of the head.
    Head,
    /// The final head, after interim ones.
    FinalHead,
    /// The rest of the body.
    Body,
}

impl ExchangeStage {
    /// The error detail of a timeout in this stage.
    pub(super) fn timeout_detail(self) -> &'static str {
        match self {
            Self::Queued => "waited too long for a stream on a shared connection",
            Self::Sending => "the receiver did not take the whole request in time",
            Self::Answer => "no answer came in time",
            Self::Head => "the response head was not complete in time",
            Self::FinalHead => "nothing but interim answers (1xx) came in time",
            Self::Body => "the response body was not complete in time",
        }
    }
}

impl Default for ExchangeProgress {
    fn default() -> Self {
        Self {
            allowance: AtomicUsize::new(MAX_HANDSHAKE_BYTES),
            interim_heads: AtomicUsize::new(0),
            response_begun: AtomicBool::new(false),
            write_blocked: AtomicBool::new(false),
            head_complete: AtomicBool::new(false),
        }
    }
}

impl ExchangeProgress {
    /// Resets everything for a new request.
    pub(super) fn start(&self) {
        self.allowance.store(MAX_HEAD_PHASE_BYTES, Ordering::Relaxed);
        self.interim_heads.store(0, Ordering::Relaxed);
        for flag in [&self.response_begun, &self.write_blocked, &self.head_complete] {
            flag.store(false, Ordering::Relaxed);
        }
    }

    /// The final head is complete.
    pub(super) fn begin_body(&self) {
        self.head_complete.store(true, Ordering::Relaxed);
        self.allowance.store(MAX_BODY_PHASE_BYTES, Ordering::Relaxed);
    }

    /// Lets the receiver send at least this many more bytes.
    pub(super) fn allow(&self, bytes: usize) {
        self.allowance.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(super) fn consume(&self, bytes: usize) {
        let less = |left: usize| Some(left.saturating_sub(bytes));
        let _ = self.allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Whether the receiver used up its allowance.
    pub(super) fn is_exhausted(&self) -> bool {
        self.allowance.load(Ordering::Relaxed) == 0
    }

    /// Counts an interim head. Past the limit nothing more is read.
    pub(super) fn note_interim_head(&self) {
        if self.interim_heads.fetch_add(1, Ordering::Relaxed) >= MAX_INTERIM_HEADS {
            self.allowance.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn note_response_bytes(&self) {
        self.response_begun.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_response_bytes(&self) -> bool {
        self.response_begun.load(Ordering::Relaxed)
    }

    pub(super) fn note_write(&self, blocked: bool) {
        self.write_blocked.store(blocked, Ordering::Relaxed);
    }

    pub(super) fn stage(&self) -> ExchangeStage {
        if self.head_complete.load(Ordering::Relaxed) {
            ExchangeStage::Body
        } else if self.interim_heads.load(Ordering::Relaxed) > 0 {
            ExchangeStage::FinalHead
        } else if self.has_response_bytes() {
            ExchangeStage::Head
        } else if self.write_blocked.load(Ordering::Relaxed) {
            ExchangeStage::Sending
        } else {
            ExchangeStage::Answer
        }
    }
}
