//! A request's body, read only after the caller has been let in.

use super::idempotency::RequestKey;
use crate::api::limits::memory_budget::{Holder, Room, SMALL};
use crate::api::message::batch;
use crate::api::response::code::Code;
use crate::api::{Api, Error};
use crate::config::Limits;
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Fields, Parsed, Problems, UnknownFields};
use aldaba_delivery::OrgId;
use aldaba_engine::IdempotencyDigest;
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use std::time::Duration;

/// What a request may be larger than its payload.
const ENVELOPE: usize = 64 * 1024;
/// The whole body must be there after so many times the limit for one piece of it, so that nobody
/// holds a connection for long by sending a byte now and then.
const PIECES_OF_TIME: u32 = 6;

/// The largest body of any route.
pub(crate) fn largest(limits: &Limits) -> usize {
    (limits.payload + ENVELOPE).max(batch::MOST_BYTES)
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
    room: Room,
}

const OF_REQUESTS: &str = "the setting `payload_bytes` and 64 KiB. Send less, or raise the setting";
const OF_PAYLOADS: &str = "the setting `payload_bytes`. Send less, or raise the setting";

/// The text of a body, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyText<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) unknown: UnknownFields,
}

impl BodyText<'_> {
    /// Its fields, to be read one by one.
    pub(crate) fn fields(self) -> Result<Fields, Problems> {
        Fields::parse(self.bytes, self.unknown)
    }

    /// The same where it may be left out.
    pub(crate) fn fields_or_none(self) -> Result<Fields, Problems> {
        Fields::parse_or_none(self.bytes, self.unknown)
    }

    /// A declared body that may be left out.
    pub(crate) fn parse_or_none<T: ApiRequest>(self) -> Result<Parsed<T>, Problems> {
        Ok(Parsed::of(self.fields_or_none()?, false))
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
    /// Whether the memory belongs to this body alone. A small body lies in the connection's read
    /// buffer, and keeping a part of it would keep all of that.
    own: bool,
    unknown: UnknownFields,
    /// Held for as long as the body is in memory.
    _room: Room,
}

impl Received {
    pub(crate) fn text(&self) -> BodyText<'_> {
        BodyText { bytes: &self.bytes, unknown: self.unknown }
    }

    /// A part of it, read as a body.
    pub(crate) fn part<'a>(&self, part: &'a RawValue) -> BodyText<'a> {
        BodyText { bytes: part.get().as_bytes(), unknown: self.unknown }
    }

    /// Lets go of the body and keeps its room, for what was made of it.
    pub(crate) fn into_room(self) -> Room {
        self._room
    }

    /// The whole of it, to keep.
    pub(crate) fn keep_all(&self) -> Bytes {
        self.keep(&self.bytes)
    }

    /// A part of the body to keep.
    pub(crate) fn keep(&self, part: &[u8]) -> Bytes {
        if self.own { self.bytes.slice_ref(part) } else { Bytes::copy_from_slice(part) }
    }
}

impl FromRequest<Api> for Pending {
    type Rejection = Error;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let key = RequestKey::of(&parts);
        let limit = api.limits.payload + ENVELOPE;
        let room = api.rooms.enter(parts.extensions.get::<Caller>().map(Holder::from));
        let (progress, unknown) = (api.limits.progress, api.limits.unknown_fields);
        Ok(Self { body, key, limit, about_limit: OF_REQUESTS, progress, unknown, room })
    }
}

impl Pending {
    /// What a stranger sends to a door: nothing but a payload, on the account of the application that it is for.
    pub(crate) fn at_door(request: Request, api: &Api, holder: Holder) -> Self {
        let room = api.rooms.enter(Some(holder));
        let (limit, progress) = (api.limits.payload, api.limits.progress);
        let (body, unknown) = (request.into_body(), UnknownFields::Ignore);
        Self { body, key: None, limit, about_limit: OF_PAYLOADS, progress, unknown, room }
    }

    /// What repeats of the request are known by, if it has an `idempotency-key`. `ids`: see [`RequestKey::digest`]. Handlers
    /// ask for it after they have checked that the caller may reach what the path names.
    pub(crate) fn once(&self, org: OrgId, ids: &[&[u8]]) -> IdempotencyDigest {
        self.key.as_ref().map(|key| key.digest(org, ids))
    }

    /// For the few routes that take more than a message. `about_limit` says where the limit comes from and what to do at it.
    pub(crate) fn up_to(self, limit: usize, about_limit: &'static str) -> Self {
        Self { limit, about_limit, ..self }
    }

    pub(crate) async fn read(self) -> Result<Received, Error> {
        let whole = self.progress * PIECES_OF_TIME;
        tokio::time::timeout(whole, self.read_pieces()).await.unwrap_or_else(|_| Err(too_slow(whole)))
    }

    /// Room is taken before it is filled, and as it is filled: what is announced may never come.
    async fn read_pieces(mut self) -> Result<Received, Error> {
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        self.fits(announced)?;
        let Some(first) = self.piece().await? else {
            return Ok(self.received(Bytes::new(), false));
        };
        if self.body.is_end_stream() {
            self.fits(first.len())?;
            self.room.take_whole(first.len())?;
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

    /// The memory grows by doubling, from a small step on, and ends at what is announced.
    fn add(&mut self, all: &mut Vec<u8>, piece: &[u8], announced: usize) -> Result<(), Error> {
        let length = all.len() + piece.len();
        self.fits(length)?;
        if length > all.capacity() {
            let ahead = if all.is_empty() { SMALL } else { 2 * all.capacity() };
            let capacity = match announced {
                // Not known: what is there may be all.
                0 if all.is_empty() => length,
                0 => ahead,
                announced => ahead.min(announced),
            };
            let capacity = capacity.min(self.limit).max(length);
            self.room.grow_to(capacity)?;
            all.reserve_exact(capacity - all.len());
        }
        all.extend_from_slice(piece);
        Ok(())
    }

    fn received(self, bytes: Bytes, own: bool) -> Received {
        Received { bytes, own, unknown: self.unknown, _room: self.room }
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
                    // Trailers mean nothing here.
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
