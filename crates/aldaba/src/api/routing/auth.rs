//! Authenticates a request, and says what kind of access a route needs.

use crate::api::response::code::Code;
use crate::api::{Api, Error};
use crate::token::{Caller, TokenError};
use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

const NO_TOKEN: &str = "Invalid token: there is none; send `Authorization: Bearer` and a token or an API key \
                        (`aldaba token create` makes them)";

const NO_BEARER: &str = "Invalid token: the header `Authorization` does not begin with `Bearer `; send `Authorization: \
                         Bearer` and a token or an API key";

/// The kind of access that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// Anyone, without a token.
    Open,
    /// Anyone with a token.
    Known,
    /// Reading things of an application.
    Read,
    /// Reading things of the whole organization.
    ReadOrganization,
    /// Reading signing secrets, headers and certificates.
    ReadSecrets,
    /// Sending messages.
    Send,
    /// Checking whether an endpoint would receive a message.
    Precheck,
    /// Sending messages again.
    Attempt,
    /// Changing things of an application: its endpoints and deliveries.
    Manage,
    /// Changing signing secrets.
    ManageSecrets,
    /// Deleting contents.
    Erase,
    /// Changing things of the organization: applications, event types, policies, profiles.
    Administer,
    /// Issuing and revoking portal tokens.
    Admit,
    /// API keys and the audit log.
    Govern,
}

impl Access {
    /// Whether the route only reads, so that a failed response had no effect.
    pub(crate) fn only_reads(self) -> bool {
        matches!(
            self,
            Self::Open
                | Self::Known
                | Self::Read
                | Self::ReadOrganization
                | Self::ReadSecrets
                | Self::Precheck
        )
    }

    /// The scope's name in the API's document.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Known => "known",
            Self::Read => "read",
            Self::ReadOrganization => "read-organization",
            Self::ReadSecrets => "read-secrets",
            Self::Send => "send",
            Self::Precheck => "precheck",
            Self::Attempt => "attempt",
            Self::Manage => "manage",
            Self::ManageSecrets => "manage-secrets",
            Self::Erase => "erase",
            Self::Administer => "administer",
            Self::Admit => "admit",
            Self::Govern => "govern",
        }
    }
}

/// The caller, by the request's token.
pub(crate) fn caller(api: &Api, headers: &HeaderMap) -> Result<Caller, Error> {
    let Some(given) = headers.get(AUTHORIZATION) else {
        return Err(Error::new(StatusCode::UNAUTHORIZED, Code::AuthenticationFailed, NO_TOKEN));
    };
    match bearer(given.as_bytes()) {
        Some(token) => api.tokens.check(token, api.engine.clock().now()).map_err(refusal),
        None => Err(Error::new(StatusCode::UNAUTHORIZED, Code::AuthenticationFailed, NO_BEARER)),
    }
}

pub(crate) fn allow(caller: Caller, access: Access) -> Result<Caller, Error> {
    caller.may(access).map_err(Error::forbidden)?;
    Ok(caller)
}

/// The caller that the route's check has admitted.
impl FromRequestParts<Api> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        // Absent only if a handler of an open route asks for the caller.
        parts.extensions.get().cloned().ok_or_else(|| refusal(TokenError::Invalid))
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn refusal(refused: TokenError) -> Error {
    let (unauthorized, bad) = (StatusCode::UNAUTHORIZED, StatusCode::BAD_REQUEST);
    match refused {
        TokenError::Invalid => Error::new(
            unauthorized,
            Code::AuthenticationFailed,
            "Invalid token: it is no API key, and not signed with the secret of this server; `aldaba token create` makes one",
        ),
        TokenError::Expired => Error::new(
            unauthorized,
            Code::AuthenticationFailed,
            "Invalid token: the API key has expired; make another",
        ),
        TokenError::Ended => Error::new(
            unauthorized,
            Code::AuthenticationFailed,
            "Invalid token: it has been ended before its time; make another",
        ),
        TokenError::IsTheSecret => Error::new(
            unauthorized,
            Code::AuthenticationFailed,
            "Invalid token: this is the secret that signs tokens; make a token with `aldaba token create`",
        ),
        TokenError::NoOrganization => {
            Error::new(bad, Code::BadToken, "The token's `sub` is not an organization's id (org_…)")
        }
        TokenError::NoApplication => Error::new(
            bad,
            Code::BadToken,
            "The token has an `org`, so that must be an organization's id (org_…) and `sub` an application's (app_…)",
        ),
    }
}
