//! Checks of names that callers choose, and the ids in paths.

pub(crate) use aldaba_delivery::names::{channel, name, tag, uid, version};

use crate::api::{Api, Error};
use crate::questions::Missing;
use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

/// The ids in the path: an id of ours, or the caller's own name for the thing.
#[derive(Debug)]
pub(crate) struct Ids<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Api> for Ids<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        // Invalid UTF-8 names nothing.
        let path = Path::from_request_parts(parts, api).await;
        path.map(|Path(ids)| Self(ids)).map_err(|_| Error::not_found("There is nothing of that name"))
    }
}

/// Whether a PUT may create what does not exist: under the name in the path, if the body gives no other. An id of ours
/// that names nothing cannot be created.
pub(crate) fn may_be_made(prefix: &str, path: &str, missing: Missing) -> Result<(), Error> {
    uid(path, prefix).map_err(|_| missing.into())
}
