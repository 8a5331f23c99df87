use http::{HeaderValue, StatusCode};
use std::error::Error;
use tower::BoxError;

/// What is said of an error that was not made for the sender's eyes.
const UNTOLD: &str = "the event could not be processed";

/// A handler has failed. What it did in its transaction is rolled back, and the event is anybody's again.
///
/// `?` makes one of any [`Error`]; [`Failure::caused_by`] of those that are none themselves. Its text goes to the log and not to the sender, who is a stranger: a database's error
/// names tables and hosts. [`Failure::telling`] says something to the sender.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) logged: String,
    pub(crate) told: String,
    /// A 5xx or 429.
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<HeaderValue>,
}

impl Failure {
    /// For the log. The sender hears only that the event could not be processed.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            logged: text.into(),
            told: UNTOLD.into(),
            status: StatusCode::INTERNAL_SERVER_ERROR,
            retry_after: None,
        }
    }

    /// For the log and for the sender.
    pub fn telling(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { told: text.clone(), ..Self::new(text) }
    }

    /// For the log, of what `?` does not turn into a failure, because it is an error only once it is opened:
    /// `Box<dyn Error + Send + Sync>`, and what the crates `anyhow` and `eyre` make. `.map_err(Failure::caused_by)?`
    pub fn caused_by(error: impl Into<BoxError>) -> Self {
        Self::new(with_causes(&*error.into()))
    }

    /// Answers with this status in place of 500, if it is one that every sender tries again after: 5xx or 429. Others
    /// stay 500, because some senders take a 4xx for the last word, and the event is not handled.
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

/// Some errors say nothing without what caused them ("db error").
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
