//! Answers that say no. Every one has a JSON body: SDKs parse it whatever the status.

use super::json;
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_engine::{ChangeError, DispatchError, EventTypes, ResendError, Rotation, SendError, Unfit};
use aldaba_store::{ApiKey, Error as StoreError, Obstacle, QuotaOf, Replay, Source};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use std::borrow::Cow;

/// Seconds: what has been ended is remembered for days.
const REVOCATIONS_AGAIN: u32 = 3600;
/// Seconds: what holds up the store holds it up for a while.
pub(super) const LATE_AGAIN: u32 = 5;
/// Seconds: a replay takes a while.
const REPLAYS_AGAIN: u32 = 30;

#[derive(Debug)]
pub(crate) struct Error {
    status: StatusCode,
    body: Body,
    /// Seconds after which it is worth trying again.
    retry_after: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Body {
    Plain { code: &'static str, detail: Cow<'static, str> },
    Problems { detail: Vec<Problem> },
}

/// One thing that is wrong with a request, and where.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    loc: Vec<String>,
    msg: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// What is wrong with a request, as far as it is listed. A stranger's body can have any number of things wrong.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    listed: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// How many are listed if there are more than one more. Then that one says how many are not.
    pub(super) const MOST: usize = 20;

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        if self.listed.len() <= Self::MOST {
            self.listed.push(problem);
        } else {
            self.more += 1;
        }
    }
}

impl From<Problems> for Error {
    fn from(Problems { mut listed, more }: Problems) -> Self {
        if more > 0 {
            listed.truncate(Problems::MOST);
            let more = more + 1;
            let place = listed.first().and_then(|problem| problem.loc.first()).map_or("body", String::as_str);
            let message = format!("and {more} more problems that are not listed");
            let last = Problem::value(&[place], message);
            listed.push(last);
        }
        let body = Body::Problems { detail: listed };
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, body, retry_after: None }
    }
}

/// Bytes of a part of a place, and of what is said of it: both may repeat what the caller has written.
const LONGEST_PART: usize = 256;
const LONGEST_MESSAGE: usize = 2048;

/// The beginning of a text that is too long.
fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

impl Problem {
    pub(crate) fn value(loc: &[&str], msg: impl Into<String>) -> Self {
        Self::new(loc, msg, "value_error")
    }

    pub(crate) fn decode(loc: &[&str], msg: impl Into<String>) -> Self {
        Self::new(loc, msg, "value_error.jsondecode")
    }

    pub(crate) fn new(loc: &[&str], msg: impl Into<String>, kind: &'static str) -> Self {
        let part = |part: &&str| match part.len() {
            ..=LONGEST_PART => (*part).to_owned(),
            _ => format!("{}…", &part[..part.floor_char_boundary(LONGEST_PART)]),
        };
        Self { loc: loc.iter().map(part).collect(), msg: shortened(msg.into(), LONGEST_MESSAGE), kind }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::problems(vec![problem])
    }
}

impl Error {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, body: Body::Plain { code, detail: detail.into() }, retry_after: None }
    }

    pub(crate) fn problems(all: Vec<Problem>) -> Self {
        let mut problems = Problems::default();
        all.into_iter().for_each(|problem| problems.push(problem));
        problems.into()
    }

    /// What is wrong with a part of the body, seen from the whole of it.
    pub(crate) fn in_field(mut self, field: &str) -> Self {
        if let Body::Problems { detail } = &mut self.body {
            for problem in detail {
                let place = problem.loc.len().min(1);
                problem.loc.insert(place, field.to_owned());
            }
        }
        self
    }

    pub(crate) fn not_found(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    pub(crate) fn malformed_query(detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "generic_error", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "insufficient access", detail)
    }

    pub(crate) fn conflict(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    pub(crate) fn too_large(detail: String) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", detail)
    }

    /// The cause is in the log; a caller can do nothing with it.
    pub(crate) fn server() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "Something went wrong on the server")
    }

    pub(crate) fn busy() -> Self {
        let detail = "The server is busy. Nothing was stored; try again";
        Self::later(StatusCode::SERVICE_UNAVAILABLE, "busy", detail, 1)
    }

    /// For whoever keeps what was refused: the status, and what was said.
    pub(crate) fn summary(&self) -> (u16, String) {
        let said = match &self.body {
            Body::Plain { detail, .. } => detail.to_string(),
            Body::Problems { detail } => {
                let said: Vec<_> = detail.iter().map(|problem| problem.msg.as_str()).collect();
                said.join("; ")
            }
        };
        (self.status.as_u16(), said)
    }

    /// The same, with when to come back where it does not say that.
    pub(crate) fn or_retry_after(self, seconds: u32) -> Self {
        Self { retry_after: self.retry_after.or(Some(seconds)), ..self }
    }

    pub(crate) fn later(status: StatusCode, code: &'static str, detail: &'static str, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, code, detail) }
    }

    pub(crate) fn too_many(code: &'static str, detail: String, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail) }
    }

    /// A day's messages are used up, until then.
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
        Self::too_many("quota_exceeded", detail, seconds)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        match error {
            StoreError::Busy => Self::busy(),
            StoreError::Timeout => Self::later(
                unavailable,
                "timeout",
                "Reading took too long. Try again, with a smaller limit",
                1,
            ),
            StoreError::Closed => {
                Self::later(unavailable, "stopping", "The server is stopping. Try again", 1)
            }
            StoreError::Full => Self::later(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk_full",
                "The server's disk is full. Nothing was stored; try again once there is room",
                10,
            ),
            StoreError::Failed(cause) => {
                tracing::error!(cause, "a request met a failed store");
                Self::new(unavailable, "store_failed", "The server's store has failed; see its log")
            }
        }
    }
}

impl From<ChangeError> for Error {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NotFound => Self::not_found("There is no such application or endpoint"),
            ChangeError::UidTaken => Self::conflict("Another one already has this uid"),
            ChangeError::TooMany => Self::conflict("The application has as many endpoints as it may have"),
            ChangeError::TooManyApiKeys => Self::conflict(format!(
                "The organization has {} API keys, as many as it may have; revoke those that nobody uses",
                ApiKey::MOST
            )),
            ChangeError::TooManySources => Self::conflict(format!(
                "The organization has {} sources, as many as it may have; delete those that nobody uses",
                Source::MOST
            )),
            ChangeError::TooManyTokens { now, until } => Self::too_many(
                "too_many_tokens",
                format!(
                    "{} former tokens of this source still count, as many as there may be. The token was not changed; the first \
                     of them ends at {}",
                    Source::MOST_OLD_TOKENS,
                    json::shown_time(until)
                ),
                u32::try_from(until.since(now).as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1),
            ),
            ChangeError::OfSource(source) => Self::conflict(format!(
                "The application belongs to the source {source}, and goes with it. Nothing was deleted; delete the source"
            )),
            ChangeError::TooManyRevocations(most) => Self::too_many(
                "too_many_revocations",
                format!(
                    "{most} have been ended before their time, as many as are remembered. To end all portal tokens of an \
                     application, use expire-all without sessionIds and without expiry: that is never refused"
                ),
                REVOCATIONS_AGAIN,
            ),
            ChangeError::Repeated => Self::conflict(
                "This request has been made before. Its key was shown then, and cannot be shown again: revoke it, and make \
                 another",
            ),
            ChangeError::TooManyReplays => {
                Self::too_many("too_many_replays", too_many_replays(), REPLAYS_AGAIN)
            }
            ChangeError::TooManyEventTypes => Self::conflict(format!(
                "The organization has {} event types, as many as it may have; DELETE with expunge=true removes one",
                EventTypes::MOST
            )),
            ChangeError::SchemasTooLarge => Self::conflict(format!(
                "The schemas of all the organization's event types together may have {} bytes. Nothing was changed; \
                 remove old versions, or event types (DELETE with expunge=true)",
                EventTypes::SCHEMA_BYTES
            )),
            ChangeError::TooManyKeys => Self::new(
                StatusCode::BAD_REQUEST,
                "limit_reached",
                format!(
                    "{} former keys of this endpoint still sign, as many as there may be. The key was not changed; wait \
                     until one has expired",
                    Rotation::MOST_OLD
                ),
            ),
            ChangeError::MadeAndGone => Self::conflict(
                "A request with this idempotency-key has been made before, and what it made has been deleted since. Nothing \
                 was made now; to make another one, send another key",
            ),
            ChangeError::Unsettled => Self::later(
                StatusCode::SERVICE_UNAVAILABLE,
                "unsettled",
                "Others keep changing this. Nothing was changed; try again",
                1,
            ),
            ChangeError::FilterTooCostly { work, most } => too_costly("this filter", work, most),
            ChangeError::FiltersTooCostly { work, most } => {
                too_costly("with this filter those of all endpoints of the application", work, most)
            }
            ChangeError::UnknownPolicy(name) => {
                Problem::value(&["body", "policy"], format!("`{name}` is no policy")).into()
            }
            ChangeError::UnknownProfile(name) => {
                Problem::value(&["body", "profile"], format!("`{name}` is no wire profile")).into()
            }
            ChangeError::NotOrderable(obstacle) => Self::conflict(not_orderable(obstacle)),
            ChangeError::InUse => Self::conflict("An endpoint uses it"),
            ChangeError::Vault(cause) => {
                tracing::error!(%cause, "a stored secret cannot be opened");
                Self::server()
            }
            ChangeError::Store(error) => error.into(),
        }
    }
}

/// A filter is refused when it is given, so that no message has to be.
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
            SendError::NotFound => Self::not_found("There is no such application"),
            SendError::EventIdTaken(_) => {
                Self::conflict("The application already has a message with this eventId")
            }
            SendError::TooFarAhead => {
                Problem::value(&["body", "deliverAt"], "may be 366 days ahead at most").into()
            }
            SendError::Ordered(endpoints) => {
                Problem::value(&["body", "deliverAt"], ordered_endpoints(&endpoints)).into()
            }
            SendError::Unfit(Unfit::Unchecked) => Self::too_many(
                "batch_too_costly",
                "The messages before this one took the time that a request has for checking payloads against schemas. This \
                 one was not stored; send it alone, or in a smaller batch"
                    .to_owned(),
                1,
            ),
            SendError::Unfit(unfit) => Self::problems(super::unfit::problems(&unfit, &["body", "payload"])),
            SendError::UnknownPolicy(name) => ChangeError::UnknownPolicy(name).into(),
            SendError::UnknownProfile(name) => ChangeError::UnknownProfile(name).into(),
            SendError::Unsettled => Self::later(
                StatusCode::SERVICE_UNAVAILABLE,
                "unsettled",
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
                "late",
                "The store takes long, and what you sent may be stored yet. Send it again with the same idempotency-key or \
                 eventId: then it is told from a repeat",
                LATE_AGAIN,
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

impl From<ResendError> for Error {
    fn from(error: ResendError) -> Self {
        let later = |code, detail| Self::later(StatusCode::SERVICE_UNAVAILABLE, code, detail, 1);
        match error {
            ResendError::InFlight => Self::conflict(
                "An attempt of this delivery is being made right now. Look at its result first",
            ),
            ResendError::InOrder => Self::conflict(
                "The endpoint gets its messages in order, and this one still waits for its turn. Nothing was sent",
            ),
            ResendError::Disabled => {
                Self::conflict("The endpoint is disabled. Nothing was sent; enable it first")
            }
            ResendError::NoEndpoint => Self::not_found("The application has no such endpoint"),
            ResendError::NoPayload => Self::new(
                StatusCode::BAD_REQUEST,
                "missing_payload",
                "The message's payload is not kept any more; it cannot be sent again",
            ),
            ResendError::ForAnother => Self::conflict(
                "The message was dispatched with headers of its own, and they go to its own address alone. Nothing was sent",
            ),
            ResendError::TooMany => {
                later("busy", "Many messages are being sent again by hand. Nothing was sent; try again")
            }
            ResendError::Paused => later("paused", "Nothing can be sent now. Nothing was sent; try again"),
            ResendError::Store(error) => error.into(),
        }
    }
}

/// How many endpoints a message names.
const NAMED: usize = 3;

fn ordered_endpoints(endpoints: &[EndpointId]) -> String {
    let names: Vec<_> = endpoints.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if endpoints.len() > NAMED { " and others" } else { "" };
    format!(
        "the message would go to {}{more}, which get their messages in order, and all that come later \
         would have to wait for it. Nothing was stored, for other endpoints neither. Leave deliverAt out, \
         or give the message an event type or channels that only endpoints without ordering want",
        names.join(", ")
    )
}

fn too_many_replays() -> String {
    format!(
        "The application has {} replays running, as many as it may have. None was started; wait until one is \
         over, or cancel one",
        Replay::MOST_RUNNING
    )
}

fn not_orderable(obstacle: Obstacle) -> String {
    match obstacle {
        Obstacle::TooManyWait => format!(
            "More than {} deliveries wait for this endpoint, too many to put them in order. Nothing was \
             changed; try again when fewer wait",
            Obstacle::MOST_WAITING
        ),
        Obstacle::OneIsDelayed => "A message with deliverAt waits for this endpoint, and in order all that \
             come later would have to wait for it. Nothing was changed; try again when it is delivered"
            .to_owned(),
    }
}

/// An error as a part of an answer about several things.
pub(crate) struct Part {
    /// As the answer would have that were about this alone.
    pub(crate) status: u16,
    pub(crate) error: Body,
    /// Seconds after which it is worth trying again.
    pub(crate) retry_after: Option<u32>,
}

impl From<Error> for Part {
    fn from(Error { status, body, retry_after }: Error) -> Self {
        Self { status: status.as_u16(), error: body, retry_after }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
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
            (StoreError::Closed, 503, Some("1")),
            (StoreError::Full, 507, Some("10")),
            (StoreError::Failed("on purpose".into()), 503, None),
        ] {
            let response = Error::from(error.clone()).into_response();
            assert_eq!(response.status(), status, "{error}");
            let said = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!(said, after, "{error}");
        }
    }
}
