//! Extractors and responses for axum handlers. Needs the feature `axum`.
//!
//! A handler takes the [`Event`], its body as [`EventJson`], and its [`Transaction`] or [`Lease`], in any order. The
//! receiver is a layer on the route: `post(handler).layer(receiver.layer())`.

use crate::{Event, Failure, Held, Lease, Ledger, Misplaced, Transaction};
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use serde::de::DeserializeOwned;
use thiserror::Error;

impl IntoResponse for Misplaced {
    fn into_response(self) -> Response {
        tracing::error!("{self}");
        Failure::telling(self.to_string()).into_response()
    }
}

/// A handler that returns `Result<(), Failure>` fails with 500.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.told.clone()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Event {
    type Rejection = Misplaced;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Misplaced> {
        Event::of(&parts.extensions).cloned()
    }
}

impl<L: Ledger, S: Send + Sync> FromRequestParts<S> for Held<L> {
    type Rejection = Misplaced;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Misplaced> {
        Self::of(&parts.extensions)
    }
}

impl<L: Ledger, S: Send + Sync> FromRequestParts<S> for Transaction<L> {
    type Rejection = Misplaced;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Misplaced> {
        Self::of(&parts.extensions)
    }
}

impl<L: Ledger, S: Send + Sync> FromRequestParts<S> for Lease<L> {
    type Rejection = Misplaced;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Misplaced> {
        Self::of(&parts.extensions)
    }
}

/// The event's body, deserialized. An unreadable body is a failure: the sender retries, perhaps after the program was
/// fixed.
#[derive(Clone, Copy, Debug)]
pub struct EventJson<T>(pub T);

/// Why there is no [`EventJson`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoEventJson {
    /// The handler runs outside of a receiver.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// The body is not JSON of the handler's type.
    #[error("the event's body does not have the type that the handler reads: {0}")]
    Unreadable(#[source] serde_json::Error),
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for EventJson<T> {
    type Rejection = NoEventJson;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NoEventJson> {
        let event = Event::of(&parts.extensions)?;
        serde_json::from_slice(&event.body).map(Self).map_err(NoEventJson::Unreadable)
    }
}

impl IntoResponse for NoEventJson {
    fn into_response(self) -> Response {
        match self {
            Self::Misplaced(misplaced) => misplaced.into_response(),
            // The sender may see what is wrong with its own body.
            Self::Unreadable(_) => Failure::telling(self.to_string()).into_response(),
        }
    }
}
