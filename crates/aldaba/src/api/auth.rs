//! Who is asking, and what they may reach.

use super::{Api, Error};
use crate::token::{Caller, Refused};
use aldaba_delivery::OrgId;
use axum::extract::FromRequestParts;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;

impl FromRequestParts<Api> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        let token = parts.headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        let checked = token.map(|token| api.tokens.check(token, api.engine.clock().now()));
        checked.unwrap_or(Err(Refused::Invalid)).map_err(refusal)
    }
}

/// A caller that speaks for the whole organization, not for one application of it.
#[derive(Debug)]
pub(super) struct Organization(pub(super) OrgId);

impl FromRequestParts<Api> for Organization {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        match Caller::from_request_parts(parts, api).await? {
            Caller::Organization(org) => Ok(Self(org)),
            Caller::Application { .. } => {
                Err(Error::forbidden("This needs an organization's token; the one sent is an application's"))
            }
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn refusal(refused: Refused) -> Error {
    let (unauthorized, bad) = (StatusCode::UNAUTHORIZED, StatusCode::BAD_REQUEST);
    match refused {
        Refused::Invalid => Error::new(unauthorized, "authentication_failed", "Invalid token"),
        Refused::IsTheSecret => Error::new(
            unauthorized,
            "authentication_failed",
            "Invalid token: this is the secret that signs tokens; make a token with `aldaba token create`",
        ),
        Refused::NoOrganization => {
            Error::new(bad, "bad_token", "The token's `sub` is not an organization's id (org_…)")
        }
        Refused::NoApplication => Error::new(
            bad,
            "bad token",
            "The token has an `org`, so that must be an organization's id (org_…) and `sub` an application's (app_…)",
        ),
    }
}
