use http::{HeaderValue, StatusCode};
use std::error::Error;
use tower::BoxError;

/// The text for errors that the sender must not see.
const GENERIC_ERROR: &str = "the event could not be processed";

/// The failure of a handler. Its transaction is rolled back, and the next copy can claim the event.
///
/// `?` converts any [`Error`]; [`Failure::caused_by`] converts the error types that do not implement [`Error`]. The text goes
/// to the log and not to the sender: an error of a database names tables and hosts. [`Failure::telling`] also tells the
/// sender.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) logged: String,
    pub(crate) told: String,
    /// A 5xx or 429.
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<HeaderValue>,
}

impl Failure {
    /// A failure with a text for the log. The sender gets a general text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            logged: text.into(),
            told: GENERIC_ERROR.into(),
            status: StatusCode::INTERNAL_SERVER_ERROR,
            retry_after: None,
        }
    }

    /// A failure with a text for the log and for the sender.
    pub fn telling(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { told: text.clone(), ..Self::new(text) }
    }

    /// A failure for the log, from an error type that `?` cannot convert: `Box<dyn Error + Send + Sync>`, and the errors of
    /// the crates `anyhow` and `eyre`. Use it as `.map_err(Failure::caused_by)?`.
    pub fn caused_by(error: impl Into<BoxError>) -> Self {
        Self::new(with_causes(&*error.into()))
    }

    /// Answers with this status instead of 500, if every sender retries after it: 5xx or 429. Any other status stays 500,
    /// because some senders do not retry after a 4xx.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            self.status = status;
        }
        self
    }

    pub(crate) fn with_retry_after(mut self, value: Option<HeaderValue>) -> Self {
        self.retry_after = value;
        self
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(with_causes(&error))
    }
}

/// The text of an error and its causes: some errors say nothing on their own ("db error").
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
