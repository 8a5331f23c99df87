//! Large answers take room until they are read: whoever asks for many and reads slowly must not fill the memory. And
//! only a few are made at once: how large one is shows when it is there, and before it is written it takes its memory
//! twice.

use crate::api::limits::memory_budget::{Holder, Room};
use crate::api::routing::auth::Access;
use crate::api::{Api, Error};
use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes up to which an answer is not counted. The answer to a small body is not larger.
const SMALL: u64 = 128 * 1024;

/// Pages with contents that are made at once: somewhat more than the threads that read.
const TURNS: usize = 6;
/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(2);

/// Turns at making a page with contents.
#[derive(Debug)]
pub(crate) struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(TURNS))
    }
}

impl Turns {
    /// To be kept until the page is rendered.
    pub(crate) async fn next(&self) -> Result<SemaphorePermit<'_>, Error> {
        let turn = tokio::time::timeout(PATIENCE, self.0.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(Error::busy)
    }

    /// The same where there may be no contents to show.
    pub(crate) async fn next_if(&self, content: bool) -> Result<Option<SemaphorePermit<'_>>, Error> {
        if content { self.next().await.map(Some) } else { Ok(None) }
    }
}

pub(crate) fn is_small(response: &Response) -> bool {
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
pub(crate) async fn held(api: &Api, holder: Holder, access: Access, response: Response) -> Response {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_waits_for_its_turn_and_not_for_ever() {
        let turns = Turns::default();
        let mut all = Vec::new();
        for _ in 0..TURNS {
            all.push(turns.next().await.unwrap());
        }
        turns.next().await.unwrap_err();
        assert!(turns.next_if(false).await.unwrap().is_none(), "without contents it is small");
        let (next, ()) = tokio::join!(turns.next(), async { drop(all.pop()) });
        drop(next.unwrap());
    }
}
