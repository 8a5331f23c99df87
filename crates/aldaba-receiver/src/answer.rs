use aldaba_signature::inbound::challenge;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

/// When a sender should retry after a 409 or 503.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// The result of a request, as the metrics count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Handled, and marked as handled.
    New,
    /// Handled before.
    Duplicate,
    /// Another copy was still being handled when the wait timed out.
    InProgress,
    /// The id is known with another body: the sender reuses ids, or somebody changes events.
    OtherBody,
    /// The handler failed, panicked or took too long.
    Failed,
    /// The sender closed the connection, or the program never ended the event.
    Dropped,
    /// The ledger could not be reached, or could not complete the work.
    Unavailable,
    /// A challenge of the sender, answered.
    Challenge,
    /// The method is not POST.
    RefusedMethod,
    /// The body is longer than the limit.
    RefusedSize,
    /// The body was incomplete, or too slow.
    RefusedBody,
    /// The signature is missing or wrong, or its timestamp too old or too new; or a challenge shows another token.
    RefusedSignature,
    /// The id is missing or invalid.
    RefusedId,
}

impl Outcome {
    /// The name that metrics and answers use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Duplicate => "duplicate",
            Self::InProgress => "in_progress",
            Self::OtherBody => "other_body",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::Unavailable => "unavailable",
            Self::Challenge => "challenge",
            Self::RefusedMethod => "refused_method",
            Self::RefusedSize => "refused_size",
            Self::RefusedBody => "refused_body",
            Self::RefusedSignature => "refused_signature",
            Self::RefusedId => "refused_id",
        }
    }
}

/// The answer to the sender. It converts into an [`http::Response`]; other frameworks read its parts.
#[derive(Clone, Debug)]
pub struct Answer {
    outcome: Outcome,
    status: StatusCode,
    content_type: &'static str,
    extra: ExtraHeader,
    body: Bytes,
}

/// A header that only some answers have.
#[derive(Clone, Debug)]
enum ExtraHeader {
    None,
    RetryAfter(HeaderValue),
    AllowPost,
    /// For text of the sender, which a browser must not render as a page.
    NoSniff,
}

#[derive(Serialize)]
struct AnswerBody {
    received: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Answer {
    /// The result of the request.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The HTTP status of the answer.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// All headers of the answer.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> + '_ {
        [(CONTENT_TYPE, HeaderValue::from_static(self.content_type))].into_iter().chain(self.extra.header())
    }

    /// The body of the answer: JSON, unless the answer to a challenge has another format.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The answer to a challenge.
    pub(crate) fn challenge(challenge: challenge::Answer) -> Self {
        let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::FORBIDDEN);
        Self {
            outcome: if status.is_success() { Outcome::Challenge } else { Outcome::RefusedSignature },
            status,
            content_type: challenge.content_type,
            extra: ExtraHeader::NoSniff,
            body: challenge.body.into(),
        }
    }

    pub(crate) fn new_event() -> Self {
        Self::received(Outcome::New, false, None)
    }

    pub(crate) fn duplicate() -> Self {
        Self::received(Outcome::Duplicate, true, None)
    }

    /// The handler failed, and the sender must not retry.
    pub(crate) fn acknowledged_failure(error: String) -> Self {
        Self::received(Outcome::Failed, false, Some(error))
    }

    pub(crate) fn failed(status: StatusCode, error: String, retry_after: Option<HeaderValue>) -> Self {
        Self::error(Outcome::Failed, status, error)
            .with(retry_after.map_or(ExtraHeader::None, ExtraHeader::RetryAfter))
    }

    pub(crate) fn in_progress() -> Self {
        let error = "this event is still being handled; send it again later";
        Self::error(Outcome::InProgress, StatusCode::CONFLICT, error)
            .with(ExtraHeader::RetryAfter(RETRY_AFTER_SECONDS))
    }

    pub(crate) fn other_body() -> Self {
        let error = "an event with this id was received with another body; an id must identify one event";
        Self::error(Outcome::OtherBody, StatusCode::CONFLICT, error)
    }

    pub(crate) fn unavailable() -> Self {
        let error = "events cannot be accepted now; send this one again";
        Self::error(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE, error)
            .with(ExtraHeader::RetryAfter(RETRY_AFTER_SECONDS))
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::error(Outcome::RefusedMethod, StatusCode::METHOD_NOT_ALLOWED, "webhooks are sent with POST")
            .with(ExtraHeader::AllowPost)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let error = format!("the body is longer than the limit of {limit} bytes");
        Self::error(Outcome::RefusedSize, StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    pub(crate) fn body_too_slow() -> Self {
        let error = "the body did not arrive in time";
        Self::error(Outcome::RefusedBody, StatusCode::REQUEST_TIMEOUT, error)
    }

    pub(crate) fn body_unreadable() -> Self {
        let error = "the body is incomplete";
        Self::error(Outcome::RefusedBody, StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn refused(unauthorized: bool, error: impl Into<String>) -> Self {
        if unauthorized {
            Self::error(Outcome::RefusedSignature, StatusCode::UNAUTHORIZED, error)
        } else {
            Self::error(Outcome::RefusedId, StatusCode::BAD_REQUEST, error)
        }
    }

    fn received(outcome: Outcome, duplicate: bool, error: Option<String>) -> Self {
        Self::saying(outcome, StatusCode::OK, &AnswerBody { received: true, duplicate, error })
    }

    fn error(outcome: Outcome, status: StatusCode, error: impl Into<String>) -> Self {
        Self::saying(
            outcome,
            status,
            &AnswerBody { received: false, duplicate: false, error: Some(error.into()) },
        )
    }

    fn saying(outcome: Outcome, status: StatusCode, said: &AnswerBody) -> Self {
        // Two booleans and a string always serialize.
        let body = serde_json::to_vec(said).unwrap_or_default().into();
        Self { outcome, status, content_type: "application/json", extra: ExtraHeader::None, body }
    }

    fn with(self, extra: ExtraHeader) -> Self {
        Self { extra, ..self }
    }
}

impl ExtraHeader {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::None => None,
            Self::RetryAfter(value) => Some((RETRY_AFTER, value.clone())),
            Self::AllowPost => Some((ALLOW, HeaderValue::from_static("POST"))),
            Self::NoSniff => Some((X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))),
        }
    }
}

impl<B: From<Bytes>> From<Answer> for Response<B> {
    fn from(answer: Answer) -> Self {
        let mut response = Response::new(B::from(answer.body().clone()));
        *response.status_mut() = answer.status();
        response.headers_mut().extend(answer.headers());
        response
    }
}
