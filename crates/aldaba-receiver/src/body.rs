use crate::Answer;
use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use std::pin::pin;
use tower::BoxError;

/// Reads a body up to a limit, into one buffer: a list of one-byte chunks would take thirty times the memory.
pub(crate) async fn read<B>(body: B, limit: usize) -> Result<Bytes, Answer>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            tracing::debug!(error = error.into(), "a body was incomplete");
            Answer::body_unreadable()
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        if data.remaining() > limit - whole.len() {
            return Err(Answer::too_large(limit));
        }
        while data.has_remaining() {
            let piece = data.chunk();
            let length = piece.len();
            whole.extend_from_slice(piece);
            data.advance(length);
        }
    }
    Ok(whole.freeze())
}
