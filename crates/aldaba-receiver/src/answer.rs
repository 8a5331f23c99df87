use aldaba_signature::inbound::challenge;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

/// When a sender should come again after a 409 or 503.
const COME_AGAIN: HeaderValue = HeaderValue::from_static("5");

/// What became of a request, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Handled, and marked as handled.
    New,
    /// Handled before.
    Duplicate,
    /// Somebody was still at it when the patience was over.
    InProgress,
    /// An id that is known with another body: somebody uses ids twice, or changes events.
    OtherBody,
    /// The handler failed, panicked or took too long.
    Failed,
    /// Nobody waited for the answer any more, or the program forgot to end what it had begun.
    Dropped,
    /// The ledger was not there, or could not complete the work.
    Unavailable,
    /// A question of the sender's whether this is a receiver, answered.
    Challenge,
    /// Not POST.
    RefusedMethod,
    /// Longer than the receiver takes.
    RefusedSize,
    /// The body did not come to its end, or not in time.
    RefusedBody,
    /// The signature is missing or wrong, or its timestamp too old or too new; or a challenge shows another token.
    RefusedSignature,
    /// No id, or one that cannot be.
    RefusedId,
}

impl Outcome {
    /// Its name, as metrics and answers show it.
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

/// What the sender is told. It turns into an [`http::Response`]; other frameworks read its parts.
#[derive(Clone, Debug)]
pub struct Answer {
    outcome: Outcome,
    status: StatusCode,
    content_type: &'static str,
    extra: Extra,
    body: Bytes,
}

/// A header that only some answers have.
#[derive(Clone, Debug)]
enum Extra {
    None,
    RetryAfter(HeaderValue),
    AllowPost,
    /// For a text of the sender's own, which nobody may take for a page.
    NoSniff,
}

#[derive(Serialize)]
struct Said {
    received: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Answer {
    /// What became of the request.
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

    /// The answer's body: JSON, unless a sender wants something else for its challenge.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The sender asked whether this is a receiver.
    pub(crate) fn challenge(challenge: challenge::Answer) -> Self {
        let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::FORBIDDEN);
        Self {
            outcome: if status.is_success() { Outcome::Challenge } else { Outcome::RefusedSignature },
            status,
            content_type: challenge.content_type,
            extra: Extra::NoSniff,
            body: challenge.body.into(),
        }
    }

    pub(crate) fn new_event() -> Self {
        Self::received(Outcome::New, false, None)
    }

    pub(crate) fn duplicate() -> Self {
        Self::received(Outcome::Duplicate, true, None)
    }

    /// The handler failed, and the sender is not to try again.
    pub(crate) fn acknowledged_failure(error: String) -> Self {
        Self::received(Outcome::Failed, false, Some(error))
    }

    pub(crate) fn failed(status: StatusCode, error: String, retry_after: Option<HeaderValue>) -> Self {
        Self::error(Outcome::Failed, status, error).with(retry_after.map_or(Extra::None, Extra::RetryAfter))
    }

    pub(crate) fn in_progress() -> Self {
        let error = "this event is being handled; its end was not waited for any longer";
        Self::error(Outcome::InProgress, StatusCode::CONFLICT, error).with(Extra::RetryAfter(COME_AGAIN))
    }

    pub(crate) fn other_body() -> Self {
        let error = "an event of this id came before with another body; an id must name one event only";
        Self::error(Outcome::OtherBody, StatusCode::CONFLICT, error)
    }

    pub(crate) fn unavailable() -> Self {
        let error = "events cannot be taken now; send this one again";
        Self::error(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE, error)
            .with(Extra::RetryAfter(COME_AGAIN))
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::error(Outcome::RefusedMethod, StatusCode::METHOD_NOT_ALLOWED, "webhooks are sent with POST")
            .with(Extra::AllowPost)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let error = format!("the body is longer than the {limit} bytes that are taken here");
        Self::error(Outcome::RefusedSize, StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    pub(crate) fn body_too_slow() -> Self {
        let error = "the body did not come in time";
        Self::error(Outcome::RefusedBody, StatusCode::REQUEST_TIMEOUT, error)
    }

    pub(crate) fn body_unreadable() -> Self {
        let error = "the body did not come to its end";
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
        Self::saying(outcome, StatusCode::OK, &Said { received: true, duplicate, error })
    }

    fn error(outcome: Outcome, status: StatusCode, error: impl Into<String>) -> Self {
        Self::saying(outcome, status, &Said { received: false, duplicate: false, error: Some(error.into()) })
    }

    fn saying(outcome: Outcome, status: StatusCode, said: &Said) -> Self {
        // Two booleans and a text are always JSON.
        let body = serde_json::to_vec(said).unwrap_or_default().into();
        Self { outcome, status, content_type: "application/json", extra: Extra::None, body }
    }

    fn with(self, extra: Extra) -> Self {
        Self { extra, ..self }
    }
}

impl Extra {
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
