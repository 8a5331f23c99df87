//! Limits the memory of large responses. A response holds its memory until it is read, so that a caller that asks for
//! many and reads slowly does not fill the memory. Few are made at once: the size of a response is known when it
//! exists, and it takes its memory twice before it is written.

use crate::api::limits::memory_budget::{HeldMemory, Holder};
use crate::api::routing::auth::Access;
use crate::api::{Api, Error};
use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Responses up to this size are not counted. The response to a small body is not larger.
const SMALL_RESPONSE_BYTES: u64 = 128 * 1024;

/// Pages with contents that are made at once: slightly more than the threads that read.
const MAX_PAGES: usize = 6;
/// How long a request waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Permits to make a page with contents.
#[derive(Debug)]
pub(crate) struct PagePermits(Semaphore);

impl Default for PagePermits {
    fn default() -> Self {
        Self(Semaphore::new(MAX_PAGES))
    }
}

impl PagePermits {
    /// Waits for a permit, which the caller keeps until the page is rendered.
    pub(crate) async fn next(&self) -> Result<SemaphorePermit<'_>, Error> {
        let permit = tokio::time::timeout(PERMIT_TIMEOUT, self.0.acquire()).await;
        permit.ok().and_then(Result::ok).ok_or_else(Error::busy)
    }

    /// The same for a page that may have no contents.
    pub(crate) async fn next_if(&self, content: bool) -> Result<Option<SemaphorePermit<'_>>, Error> {
        if content { self.next().await.map(Some) } else { Ok(None) }
    }
}

/// Marks a response that is made while it is read: it has a small part of itself in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streamed;

/// Whether nothing has to be done about the memory of a response.
pub(crate) fn is_accounted(response: &Response) -> bool {
    is_small(response) || response.extensions().get::<Streamed>().is_some()
}

fn is_small(response: &Response) -> bool {
    response.body().size_hint().exact().is_some_and(|bytes| bytes <= SMALL_RESPONSE_BYTES)
}

/// Bytes that hold their memory for as long as anybody has a part of them.
struct HeldBytes {
    bytes: Bytes,
    _memory: HeldMemory,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The response with memory for it, or a refusal if there is none.
pub(crate) async fn held(api: &Api, holder: Holder, access: Access, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    // The whole body is in memory, so this does not wait.
    let Ok(bytes) = body.collect().await.map(|body| body.to_bytes()) else {
        return Error::server().into_response();
    };
    let memory = match access.only_reads() {
        true => {
            let mut memory = api.response_memory.enter(Some(holder));
            // A response larger than the whole budget must be possible, alone.
            if let Err(refusal) = memory.grow_to(bytes.len().min(api.response_memory.limit())) {
                return refusal.into_response();
            }
            memory
        }
        // The request has had its effect, so its response cannot be refused: the next body finds less memory.
        false => {
            let mut memory = api.request_memory.enter(Some(holder));
            memory.grow_anyway(bytes.len());
            memory
        }
    };
    let bytes = Bytes::from_owner(HeldBytes { bytes, _memory: memory });
    Response::from_parts(parts, Body::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_waits_for_a_permit_until_the_timeout() {
        let permits = PagePermits::default();
        let mut all = Vec::new();
        for _ in 0..MAX_PAGES {
            all.push(permits.next().await.unwrap());
        }
        permits.next().await.unwrap_err();
        assert!(permits.next_if(false).await.unwrap().is_none(), "without contents it is small");
        let (next, ()) = tokio::join!(permits.next(), async { drop(all.pop()) });
        drop(next.unwrap());
    }
}
