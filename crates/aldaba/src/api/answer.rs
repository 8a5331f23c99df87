//! Large answers take room until they are read: whoever asks for many and reads slowly must not fill the memory.

use super::auth::Access;
use super::room::{Holder, Room};
use super::{Api, Error};
use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;

/// Bytes up to which an answer is not counted. The answer to a small body is not larger.
const SMALL: u64 = 128 * 1024;

pub(super) fn is_small(response: &Response) -> bool {
    response.body().size_hint().exact().is_some_and(|bytes| bytes <= SMALL)
}

/// Bytes, and their room for as long as somebody has a part of them.
struct Held {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The answer with room for it, or one that says that there is none.
pub(super) async fn held(api: &Api, holder: Holder, access: Access, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    // It is in memory as a whole, so this waits for nothing.
    let Ok(bytes) = body.collect().await.map(|body| body.to_bytes()) else {
        return Error::server().into_response();
    };
    let room = match access.only_reads() {
        true => {
            let mut room = api.answers.enter(Some(holder));
            // One that is larger than all the room must be possible, alone.
            if let Err(refusal) = room.grow_to(bytes.len().min(api.answers.limit())) {
                return refusal.into_response();
            }
            room
        }
        // Something was done, and must be told. It takes the place of the body, and the next body finds less room.
        false => {
            let mut room = api.rooms.enter(Some(holder));
            room.grow_anyway(bytes.len());
            room
        }
    };
    let bytes = Bytes::from_owner(Held { bytes, _room: room });
    Response::from_parts(parts, Body::from(bytes))
}
