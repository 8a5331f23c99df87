//! Reads the rest of a body that no handler wants.
//!
//! A response that is sent before the body has arrived (401, 413) closes the connection while the client is still
//! sending, and many clients then report a broken connection instead of the response. So the rest is read and
//! discarded, up to a limit.

use super::connection_slots::ConnectionSlots;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Twice the largest request.
const MAX_DRAINED_BYTES: usize = 32 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The limit while few connection slots are left: a client that sends no more must not hold one.
const CROWDED_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A request's body that is read to its end even if it is dropped earlier.
#[derive(Debug)]
pub(super) struct DrainedBody {
    body: Option<Incoming>,
    slots: Arc<ConnectionSlots>,
}

impl DrainedBody {
    pub(super) fn new(body: Incoming, slots: Arc<ConnectionSlots>) -> Self {
        Self { body: Some(body), slots }
    }
}

impl Body for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, tokio::runtime::Handle::try_current()) {
            let longest = if self.slots.are_scarce() { CROWDED_DRAIN_TIMEOUT } else { DRAIN_TIMEOUT };
            runtime.spawn(tokio::time::timeout(longest, discard(rest)));
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut read = 0;
    while read < MAX_DRAINED_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}
