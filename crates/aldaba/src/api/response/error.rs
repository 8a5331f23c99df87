//! Error responses. Each has a JSON body: SDKs parse it whatever the status.

pub(crate) use aldaba_api::read::{Problem, Problems};

use super::code::Code;
use crate::api::request::json;
use crate::metrics::Refusal;
use aldaba_api::value::Shows;
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_engine::{ChangeError, CheckError, DispatchError, EventTypes, KeyRotation, SendError};
use aldaba_store::{
    ApiKey, Erasure, Error as StoreError, NewMail, OrderingObstacle, QuotaOf, Replay, Source,
};
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;

/// Retry delay: revocations are remembered for days.
const REVOCATIONS_RETRY_SECONDS: u32 = 3600;
/// Retry delay: a slow store takes a while to recover.
pub(crate) const LATE_RETRY_SECONDS: u32 = 5;
/// Retry delay: a replay takes a while.
const REPLAYS_RETRY_SECONDS: u32 = 30;

#[derive(Debug)]
pub(crate) struct Error {
    status: StatusCode,
    body: ErrorBody,
    /// Seconds until a retry.
    retry_after: Option<u32>,
    /// The methods of the route.
    allow: Option<HeaderValue>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ErrorBody {
    Plain { code: Code, detail: Cow<'static, str> },
    Problems { code: Code, detail: Vec<Problem> },
}

impl Shows<Value> for ErrorBody {}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        let body = ErrorBody::Problems { code: Code::Validation, detail: problems.into_list() };
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, body, retry_after: None, allow: None }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::problems(vec![problem])
    }
}

impl Error {
    pub(crate) fn new(status: StatusCode, code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        debug_assert!(code.comes_with(status), "docs/errors.md does not say {status} of {code:?}");
        Self {
            status,
            body: ErrorBody::Plain { code, detail: detail.into() },
            retry_after: None,
            allow: None,
        }
    }

    pub(crate) fn problems(all: Vec<Problem>) -> Self {
        let mut problems = Problems::default();
        all.into_iter().for_each(|problem| problems.push(problem));
        problems.into()
    }

    pub(crate) fn not_found(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, what)
    }

    /// A parameter of the query string that cannot be read.
    pub(crate) fn query(name: &str, given: &str, expected: impl Display) -> Self {
        Problem::value(&["query", name], format!("expected {expected}, not `{given}`")).into()
    }

    /// `allowed` is as the header `Allow` has it: `GET, HEAD`.
    pub(crate) fn method_not_allowed(method: &Method, allowed: &str) -> Self {
        let detail = format!("This route does not take {method}; it takes {allowed}");
        let refused = Self::new(StatusCode::METHOD_NOT_ALLOWED, Code::MethodNotAllowed, detail);
        Self { allow: HeaderValue::from_str(allowed).ok(), ..refused }
    }

    pub(crate) fn forbidden(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::InsufficientAccess, detail)
    }

    pub(crate) fn conflict(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, Code::Conflict, detail)
    }

    /// A payload is larger than the setting allows.
    pub(crate) fn payload_too_large(bytes: usize, limit: usize) -> Self {
        Self::too_large(format!(
            "The payload has {bytes} bytes, and may have {limit}. Send less, or raise the setting `payload_bytes`"
        ))
    }

    pub(crate) fn too_large(detail: String) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Code::PayloadTooLarge, detail)
    }

    /// The cause is in the log; a caller can do nothing with it.
    pub(crate) fn server() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::ServerError, "Something went wrong on the server")
    }

    pub(crate) fn busy() -> Self {
        let detail = "The server is busy. Nothing was stored; try again";
        Self::later(StatusCode::SERVICE_UNAVAILABLE, Code::Busy, detail, 1)
    }

    /// The status and the message, for a log of refusals.
    pub(crate) fn summary(&self) -> (u16, String) {
        let said = match &self.body {
            ErrorBody::Plain { detail, .. } => detail.to_string(),
            ErrorBody::Problems { detail, .. } => {
                let said: Vec<_> = detail.iter().map(|problem| problem.msg.as_str()).collect();
                said.join("; ")
            }
        };
        (self.status.as_u16(), said)
    }

    /// Adds a retry delay if there is none.
    pub(crate) fn or_retry_after(self, seconds: u32) -> Self {
        Self { retry_after: self.retry_after.or(Some(seconds)), ..self }
    }

    pub(crate) fn later(status: StatusCode, code: Code, detail: &'static str, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, code, detail) }
    }

    pub(crate) fn too_many(code: Code, detail: String, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail) }
    }

    /// The daily quota is used up, until then.
    fn over_quota(whose: QuotaOf, most: u64, until: Timestamp, now: Timestamp) -> Self {
        let whose = match whose {
            QuotaOf::Organization => "organization",
            QuotaOf::Application => "application",
        };
        let seconds = u32::try_from(until.since(now).as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
        let detail = format!(
            "The {whose} may send {most} messages a day (UTC), and has sent them. Nothing was stored; it goes on \
             at {}",
            json::shown_time(until)
        );
        Self::too_many(Code::QuotaExceeded, detail, seconds)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        match error {
            StoreError::Busy => Self::busy(),
            StoreError::Timeout => Self::later(
                unavailable,
                Code::Timeout,
                "Reading took too long. Try again, with a smaller limit",
                1,
            ),
            StoreError::Unavailable(cause) => {
                tracing::warn!(cause, "a request met a store that is out of reach");
                let detail = "The server's database is out of reach. Nothing was stored; try again";
                Self::later(unavailable, Code::StoreUnavailable, detail, 1)
            }
            StoreError::Closed => {
                Self::later(unavailable, Code::Stopping, "The server is stopping. Try again", 1)
            }
            StoreError::Full => Self::later(
                StatusCode::INSUFFICIENT_STORAGE,
                Code::DiskFull,
                "The server's disk is full. Nothing was stored; try again once there is room",
                10,
            ),
            StoreError::Refused(cause) => {
                tracing::error!(cause, "the store has refused a request");
                let detail = "The server's database refuses a value of the request; its log says which";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::ServerError, detail)
            }
            StoreError::Failed(cause) => {
                tracing::error!(cause, "a request met a failed store");
                Self::new(unavailable, Code::StoreFailed, "The server's store has failed; see its log")
            }
        }
    }
}

impl From<ChangeError> for Error {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NotFound => Self::not_found(
                "There is no such application or endpoint: it may have been deleted meanwhile",
            ),
            ChangeError::UidTaken => Self::conflict("Another one already has this uid"),
            ChangeError::TooMany => Self::conflict("The application has as many endpoints as it may have"),
            ChangeError::TooManyAddresses => Self::conflict(format!(
                "ownerEmail: the application has {} addresses that nobody has confirmed, as many as it may have; confirm \
                 one by the link in its mail, use an address that is confirmed, or let the organization set this one",
                NewMail::MAX_UNCONFIRMED_PER_APPLICATION
            )),
            ChangeError::TooManyApiKeys => Self::conflict(format!(
                "The organization has {} API keys, as many as it may have; revoke those that nobody uses",
                ApiKey::MAX_PER_ORGANIZATION
            )),
            ChangeError::TooManySources => Self::conflict(format!(
                "The organization has {} sources, as many as it may have; delete those that nobody uses",
                Source::MAX_PER_ORGANIZATION
            )),
            ChangeError::TooManyTokens { now, until } => Self::too_many(
                Code::TooManyTokens,
                format!(
                    "{} former tokens of this source still count, as many as there may be. The token was not changed; the first \
                     of them ends at {}",
                    Source::MAX_OLD_TOKENS,
                    json::shown_time(until)
                ),
                u32::try_from(until.since(now).as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1),
            ),
            ChangeError::OfSource(source) => Self::conflict(format!(
                "The application belongs to the source {source}, and goes with it. Nothing was deleted; delete the source"
            )),
            ChangeError::TooManyRevocations(most) => Self::too_many(
                Code::TooManyRevocations,
                format!(
                    "{most} have been ended before their time, as many as are remembered. To end all portal tokens of an \
                     application, use expire-all without sessionIds and without expiry: that is never refused"
                ),
                REVOCATIONS_RETRY_SECONDS,
            ),
            ChangeError::Repeated(key) => Self::conflict(format!(
                "This request has been made before, and has made the API key {key}. It was shown then, and cannot be shown again: \
                 revoke it, and make another"
            )),
            ChangeError::TooManyReplays => {
                Self::too_many(Code::TooManyReplays, too_many_replays(), REPLAYS_RETRY_SECONDS)
            }
            ChangeError::TooManyErasures => Self::too_many(
                Code::TooManyErasures,
                format!(
                    "The organization has {} erasures running, as many as it may have. None was started; wait until one is over",
                    Erasure::MAX_RUNNING
                ),
                REPLAYS_RETRY_SECONDS,
            ),
            ChangeError::TooManyEventTypes => Self::conflict(format!(
                "The organization has {} event types, as many as it may have; DELETE with expunge=true removes one",
                EventTypes::MAX_PER_ORGANIZATION
            )),
            ChangeError::SchemasTooLarge => Self::conflict(format!(
                "The schemas of all the organization's event types together may have {} bytes. Nothing was changed; \
                 remove old versions, or event types (DELETE with expunge=true)",
                EventTypes::MAX_SCHEMA_BYTES
            )),
            ChangeError::TooManyKeys => Self::new(
                StatusCode::BAD_REQUEST,
                Code::LimitReached,
                format!(
                    "{} former keys of this endpoint still sign, as many as there may be. The key was not changed; wait \
                     until one has expired",
                    KeyRotation::MAX_OLD_KEYS
                ),
            ),
            ChangeError::MadeAndGone(id) => Self::conflict(format!(
                "A request with this idempotency-key has made {id} before, and that has been deleted since. Nothing was made now; \
                 to make another one, send another key"
            )),
            ChangeError::Unsettled => Self::later(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::Unsettled,
                "Others keep changing this. Nothing was changed; try again",
                1,
            ),
            ChangeError::FilterTooCostly { cost, limit } => too_costly("this filter", cost, limit),
            ChangeError::FiltersTooCostly { cost, limit } => {
                too_costly("with this filter those of all endpoints of the application", cost, limit)
            }
            ChangeError::UnknownPolicy(name) => {
                Problem::value(&["body", "policy"], format!("unknown policy `{name}`")).into()
            }
            ChangeError::UnknownProfile(name) => {
                Problem::value(&["body", "profile"], format!("unknown wire profile `{name}`")).into()
            }
            ChangeError::NotOrderable(obstacle) => not_orderable(obstacle, "the endpoint"),
            ChangeError::TurnedOff => Self::conflict(
                "The endpoint was turned off; set its `disabled` to false to turn it on and resume it",
            ),
            ChangeError::InUse(endpoint) => Self::conflict(format!("{} uses it", user(endpoint))),
            ChangeError::Vault(cause) => {
                tracing::error!(%cause, "a stored secret cannot be opened");
                Self::server()
            }
            ChangeError::Store(error) => error.into(),
        }
    }
}

/// The user of a policy or a profile.
pub(crate) fn user(endpoint: Option<EndpointId>) -> String {
    endpoint.map_or_else(|| "An endpoint".to_owned(), |endpoint| format!("The endpoint {endpoint}"))
}

/// A costly filter is refused when it is set, so that no message has to be.
fn too_costly(whose: &str, work: u64, most: u64) -> Error {
    let message = format!(
        "is too much: {whose} may take {most} looks at a message, and would take {work}. A path with `[*]` leads to up to 1000 \
         values, and each is compared: compare with fewer values, or look at one place. What endpoints ask there in the same \
         words counts once"
    );
    Problem::value(&["body", "filter"], message).into()
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotFound => Self::not_found("There is no such application; GET /api/v1/app lists them"),
            SendError::EventIdTaken(message) => Self::conflict(format!(
                "The message {message} of the application has this eventId. Nothing was stored; give each message an eventId \
                 of its own"
            )),
            SendError::TooFarAhead => {
                Problem::value(&["body", "deliverAt"], "may be 366 days ahead at most").into()
            }
            SendError::Unfit(CheckError::Unchecked) => Self::too_many(
                Code::BatchTooCostly,
                "The messages before this one took the time that a request has for checking payloads against schemas. This \
                 one was not stored; send it alone, or in a smaller batch"
                    .to_owned(),
                1,
            ),
            SendError::Unfit(unfit) => Self::problems(crate::api::message::schema_violations::problems(&unfit, &["body", "payload"])),
            SendError::UnknownPolicy(name) => ChangeError::UnknownPolicy(name).into(),
            SendError::UnknownProfile(name) => ChangeError::UnknownProfile(name).into(),
            SendError::Unsettled => Self::later(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::Unsettled,
                "The application's configuration keeps changing. Nothing was stored; try again",
                1,
            ),
            SendError::OverQuota { whose, most, until, at } => Self::over_quota(whose, most, until, at),
            SendError::OfSource(source) => Self::conflict(format!(
                "The application belongs to the source {source}, and takes only what comes in through that one's URL. Nothing was \
                 stored; send to an application of your own"
            )),
            SendError::Late => Self::later(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::Late,
                "The store takes long, and what you sent may be stored yet. Send it again with the same idempotency-key or \
                 eventId: then it is told from a repeat",
                LATE_RETRY_SECONDS,
            ),
            SendError::Store(error) => error.into(),
        }
    }
}

impl From<DispatchError> for Error {
    fn from(error: DispatchError) -> Self {
        match error {
            DispatchError::UnknownPolicy(name) => ChangeError::UnknownPolicy(name).into(),
            DispatchError::UnknownProfile(name) => ChangeError::UnknownProfile(name).into(),
            DispatchError::Send(error) => error.into(),
        }
    }
}

fn too_many_replays() -> String {
    format!(
        "The application has {} replays running, as many as it may have. None was started; wait until one is \
         over, or cancel one",
        Replay::MAX_RUNNING
    )
}

pub(crate) fn not_orderable(obstacle: OrderingObstacle, endpoint: impl Display) -> Error {
    Error::conflict(match obstacle {
        OrderingObstacle::TooManyPending => format!(
            "More than {} deliveries wait for {endpoint}, too many to put them in order. Nothing was changed; try again when \
             fewer wait",
            OrderingObstacle::MAX_PENDING
        ),
    })
}

/// An error as a part of a response about several things.
pub(crate) struct Part {
    /// The status that a response to this item alone would have.
    pub(crate) status: u16,
    pub(crate) error: ErrorBody,
    /// Seconds until a retry.
    pub(crate) retry_after: Option<u32>,
}

impl From<Error> for Part {
    fn from(Error { status, body, retry_after, .. }: Error) -> Self {
        Self { status: status.as_u16(), error: body, retry_after }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (ErrorBody::Plain { code, .. } | ErrorBody::Problems { code, .. }) = self.body;
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        response.extensions_mut().insert(Refusal(code));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, allow);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_too_much_says_when_to_come_back() {
        for error in [ChangeError::TooManyRevocations(1), ChangeError::TooManyReplays] {
            let response = Error::from(error.clone()).into_response();
            assert_eq!(response.status(), 429, "{error}");
            assert!(response.headers().contains_key(RETRY_AFTER), "{error}");
        }
    }

    #[test]
    fn what_is_worth_trying_again_says_when() {
        for (error, status, after) in [
            (StoreError::Busy, 503, Some("1")),
            (StoreError::Timeout, 503, Some("1")),
            (StoreError::Unavailable("on purpose".into()), 503, Some("1")),
            (StoreError::Closed, 503, Some("1")),
            (StoreError::Full, 507, Some("10")),
            (StoreError::Refused("on purpose".into()), 500, None),
            (StoreError::Failed("on purpose".into()), 503, None),
        ] {
            let response = Error::from(error.clone()).into_response();
            assert_eq!(response.status(), status, "{error}");
            let said = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!(said, after, "{error}");
        }
    }
}
