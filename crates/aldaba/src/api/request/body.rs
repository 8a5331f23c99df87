//! Reads the body of a request, after the caller has been admitted.

use super::idempotency::RequestKey;
use crate::api::limits::memory_budget::{HeldMemory, Holder, SMALL_BODY_BYTES};
use crate::api::message::batch;
use crate::api::response::code::Code;
use crate::api::{Api, Error};
use crate::config::Limits;
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Fields, Parsed, Problems, UnknownFields};
use aldaba_delivery::OrgId;
use aldaba_engine::{IdempotencyDigest, RequestTrace};
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use std::time::Duration;

/// Bytes that a request may have besides its payload.
const MAX_ENVELOPE_BYTES: usize = 64 * 1024;
/// The whole body must arrive within this many times the limit for one piece: a client that sends a byte now and then
/// must not hold a connection for long.
const TOTAL_TIMEOUT_FACTOR: u32 = 6;

/// The largest body of any route.
pub(crate) fn largest(limits: &Limits) -> usize {
    (limits.payload + MAX_ENVELOPE_BYTES).max(batch::MAX_BYTES)
}

/// A body that has not been read yet.
#[derive(Debug)]
pub(crate) struct Pending {
    body: Body,
    key: Option<Box<RequestKey>>,
    limit: usize,
    /// Where the limit comes from, and what to do at it.
    about_limit: &'static str,
    progress: Duration,
    unknown: UnknownFields,
    memory: HeldMemory,
    trace: RequestTrace,
}

const OF_REQUESTS: &str = "the setting `payload_bytes` and 64 KiB. Send less, or raise the setting";
const OF_PAYLOADS: &str = "the setting `payload_bytes`. Send less, or raise the setting";

/// The text of a body, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyText<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) unknown: UnknownFields,
    /// Of what is wrong, one thing is listed: others like it have been listed already.
    pub(crate) is_brief: bool,
}

impl<'a> BodyText<'a> {
    /// A part of it, read as a body.
    pub(crate) fn part<'b>(self, part: &'b RawValue) -> BodyText<'b> {
        BodyText { bytes: part.get().as_bytes(), unknown: self.unknown, is_brief: self.is_brief }
    }

    /// The same, for which one problem is enough.
    pub(crate) fn briefly(self) -> BodyText<'a> {
        Self { is_brief: true, ..self }
    }

    /// Its fields, to be read one by one.
    pub(crate) fn fields(self) -> Result<Fields, Problems> {
        let fields = Fields::parse(self.bytes, self.unknown)?;
        Ok(if self.is_brief { fields.briefly() } else { fields })
    }

    /// A declared body that may be left out.
    pub(crate) fn parse_or_none<T: ApiRequest>(self) -> Result<Parsed<T>, Problems> {
        Ok(Parsed::of(Fields::parse_or_none(self.bytes, self.unknown)?, false))
    }

    /// A declared body. `is_change`: what it is about may be there already.
    pub(crate) fn parse<T: ApiRequest>(self, is_change: bool) -> Result<Parsed<T>, Problems> {
        Ok(Parsed::of(self.fields()?, is_change))
    }
}

/// A body that has been read.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    /// Whether the memory belongs to this body alone. A small body lies in the connection's read buffer, and keeping
    /// a part of it would keep the whole buffer.
    own: bool,
    unknown: UnknownFields,
    /// Held for as long as the body is in memory.
    _memory: HeldMemory,
}

impl Received {
    pub(crate) fn text(&self) -> BodyText<'_> {
        BodyText { bytes: &self.bytes, unknown: self.unknown, is_brief: false }
    }

    /// A part of it, read as a body.
    pub(crate) fn part<'a>(&self, part: &'a RawValue) -> BodyText<'a> {
        self.text().part(part)
    }

    /// Drops the body and keeps its memory reserved, for what was made of it.
    pub(crate) fn into_memory(self) -> HeldMemory {
        self._memory
    }

    /// Keeps the whole body.
    pub(crate) fn keep_all(&self) -> Bytes {
        self.keep(&self.bytes)
    }

    /// Keeps a part of the body.
    pub(crate) fn keep(&self, part: &[u8]) -> Bytes {
        if self.own { self.bytes.slice_ref(part) } else { Bytes::copy_from_slice(part) }
    }
}

impl FromRequest<Api> for Pending {
    type Rejection = Error;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let key = RequestKey::of(&parts);
        let limit = api.limits.payload + MAX_ENVELOPE_BYTES;
        let memory = api.request_memory.enter(parts.extensions.get::<Caller>().map(Holder::from));
        let (progress, unknown) = (api.limits.progress, api.limits.unknown_fields);
        let trace = parts.extensions.get::<RequestTrace>().cloned();
        let trace = trace.unwrap_or_else(|| RequestTrace::unrecorded(&parts.headers));
        Ok(Self { body, key, limit, about_limit: OF_REQUESTS, progress, unknown, memory, trace })
    }
}

impl Pending {
    /// The request of a sender to a source: only a payload, counted for the source's application.
    pub(crate) fn at_source(request: Request, api: &Api, holder: Holder) -> Self {
        let memory = api.request_memory.enter(Some(holder));
        let (limit, progress) = (api.limits.payload, api.limits.progress);
        let trace = request.extensions().get::<RequestTrace>().cloned().unwrap_or_default();
        let (body, unknown) = (request.into_body(), UnknownFields::Ignore);
        Self { body, key: None, limit, about_limit: OF_PAYLOADS, progress, unknown, memory, trace }
    }

    /// The trace of the request.
    pub(crate) fn trace(&self) -> RequestTrace {
        self.trace.clone()
    }

    /// The digest by which repeats are known, if the request has an `idempotency-key`. `ids`: see
    /// [`RequestKey::digest`]. Handlers call it after checking that the caller may reach the things in the path.
    pub(crate) fn once(&self, org: OrgId, ids: &[&[u8]]) -> IdempotencyDigest {
        self.key.as_ref().map(|key| key.digest(org, ids))
    }

    /// Sets the limit of the few routes that take more than a message. `about_limit` says where the limit comes from
    /// and what to do at it.
    pub(crate) fn up_to(self, limit: usize, about_limit: &'static str) -> Self {
        Self { limit, about_limit, ..self }
    }

    pub(crate) async fn read(self) -> Result<Received, Error> {
        let whole = self.progress * TOTAL_TIMEOUT_FACTOR;
        tokio::time::timeout(whole, self.read_pieces()).await.unwrap_or_else(|_| Err(too_slow(whole)))
    }

    /// Memory is reserved before it is filled, in steps: the announced length may never arrive.
    async fn read_pieces(mut self) -> Result<Received, Error> {
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        self.fits(announced)?;
        let Some(first) = self.piece().await? else {
            return Ok(self.received(Bytes::new(), false));
        };
        if self.body.is_end_stream() {
            self.fits(first.len())?;
            self.memory.take_whole(first.len())?;
            return Ok(self.received(first, false));
        }
        let mut all = Vec::new();
        self.add(&mut all, &first, announced)?;
        drop(first);
        while let Some(piece) = self.piece().await? {
            self.add(&mut all, &piece, announced)?;
        }
        all.shrink_to_fit();
        Ok(self.received(all.into(), true))
    }

    /// The memory doubles from a small step on, up to the announced length.
    fn add(&mut self, all: &mut Vec<u8>, piece: &[u8], announced: usize) -> Result<(), Error> {
        let length = all.len() + piece.len();
        self.fits(length)?;
        if length > all.capacity() {
            let ahead = if all.is_empty() { SMALL_BODY_BYTES } else { 2 * all.capacity() };
            let capacity = match announced {
                // Unknown length: this may be all.
                0 if all.is_empty() => length,
                0 => ahead,
                announced => ahead.min(announced),
            };
            let capacity = capacity.min(self.limit).max(length);
            self.memory.grow_to(capacity)?;
            all.reserve_exact(capacity - all.len());
        }
        all.extend_from_slice(piece);
        Ok(())
    }

    fn received(self, bytes: Bytes, own: bool) -> Received {
        Received { bytes, own, unknown: self.unknown, _memory: self.memory }
    }

    fn fits(&self, length: usize) -> Result<(), Error> {
        if length > self.limit {
            let Self { limit, about_limit, .. } = self;
            return Err(Error::too_large(format!(
                "The request's body may have {limit} bytes: {about_limit}"
            )));
        }
        Ok(())
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = tokio::time::timeout(self.progress, self.body.frame()).await;
            match frame.map_err(|_| too_slow(self.progress))? {
                None => return Ok(None),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    // Trailers are ignored.
                    Err(_) => continue,
                },
                Some(Err(_)) => {
                    let detail = "The request's body ended before all of it had come. Nothing was stored; send it again";
                    return Err(Error::new(StatusCode::BAD_REQUEST, Code::IncompleteBody, detail));
                }
            }
        }
    }
}

fn too_slow(limit: Duration) -> Error {
    let detail =
        format!("The request's body did not come within {limit:?}. Nothing was stored; send it again");
    Error::new(StatusCode::REQUEST_TIMEOUT, Code::BodyTimeout, detail)
}
