//! Why a page cannot be shown, and the page that says so. A wrong URL is never an error of the server.

use super::answer::{html, see_other};
use super::shell::{Shell, View};
use super::texts::FaultTexts;
use crate::actions::DiscardError;
use crate::api::Api;
use crate::questions::{Error as QuestionError, Missing};
use aldaba_engine::{ChangeError, ResendError};
use aldaba_store::Error as StoreError;
use askama::Template;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::RETRY_AFTER;
use http::request::Parts;

/// With what the texts of all languages need.
#[derive(Debug)]
pub(crate) enum Fault {
    NoSuchPage,
    /// The page is another one for this caller.
    Elsewhere(String),
    NotFound(Missing),
    /// The caller may not do this.
    Forbidden,
    /// A form came from another site.
    CrossSite,
    FormTooLarge,
    /// A part of the URL that cannot be read: its name, and what was given.
    Unreadable {
        name: &'static str,
        given: String,
    },
    /// The caller has asked too often.
    TooMany,
    /// What was asked for cannot be done now.
    Refused(RefusedAction),
    /// The store has too much to do, is out of reach, or closes.
    Busy,
    DiskFull,
    /// A bug, or a store that has failed. The cause is in the log.
    Server,
}

/// Why something was not done, though its request could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedAction {
    InFlight,
    InOrder,
    EndpointOff,
    ForAnother,
    NoPayload,
    TooManyResends,
    Paused,
    TurnedOff,
    TooManyReplays,
    TooManyEndpoints,
    UidTaken,
    NotOrderable,
    TooManyRevocations,
    /// Others keep changing it.
    Unsettled,
    /// The delivery has succeeded: there is nothing to retry or to discard.
    NothingToDo,
    /// A limit of the organization, or something that is in use.
    Limit,
}

impl From<QuestionError> for Fault {
    fn from(error: QuestionError) -> Self {
        match error {
            QuestionError::NotFound(missing) => Self::NotFound(missing),
            QuestionError::HostOfOthers => Self::Forbidden,
            QuestionError::Store(error) => error.into(),
            QuestionError::Secret(error) => ChangeError::from(error).into(),
        }
    }
}

impl From<DiscardError> for Fault {
    fn from(error: DiscardError) -> Self {
        match error {
            DiscardError::Question(error) => error.into(),
            DiscardError::Change(error) => error.into(),
        }
    }
}

impl From<Missing> for Fault {
    fn from(missing: Missing) -> Self {
        Self::NotFound(missing)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy | StoreError::Unavailable(_) | StoreError::Closed | StoreError::Timeout => {
                Self::Busy
            }
            StoreError::Full => Self::DiskFull,
            StoreError::Refused(_) | StoreError::Failed(_) => {
                tracing::error!(%error, "a page could not be made");
                Self::Server
            }
        }
    }
}

impl From<askama::Error> for Fault {
    fn from(error: askama::Error) -> Self {
        tracing::error!(%error, "a page could not be rendered; this is a bug");
        Self::Server
    }
}

impl From<ChangeError> for Fault {
    fn from(error: ChangeError) -> Self {
        let refusal = match error {
            ChangeError::NotFound => return Self::NotFound(Missing::Endpoint),
            ChangeError::Store(error) => return error.into(),
            ChangeError::Vault(error) => {
                tracing::error!(%error, "a page could not be made");
                return Self::Server;
            }
            ChangeError::UidTaken => RefusedAction::UidTaken,
            ChangeError::TooMany => RefusedAction::TooManyEndpoints,
            ChangeError::TooManyReplays => RefusedAction::TooManyReplays,
            ChangeError::TooManyRevocations(_) => RefusedAction::TooManyRevocations,
            ChangeError::Unsettled => RefusedAction::Unsettled,
            ChangeError::TurnedOff => RefusedAction::TurnedOff,
            ChangeError::NotOrderable(_) => RefusedAction::NotOrderable,
            _ => RefusedAction::Limit,
        };
        Self::Refused(refusal)
    }
}

impl From<ResendError> for Fault {
    fn from(error: ResendError) -> Self {
        Self::Refused(match error {
            ResendError::InFlight => RefusedAction::InFlight,
            ResendError::InOrder => RefusedAction::InOrder,
            ResendError::Disabled => RefusedAction::EndpointOff,
            ResendError::NoEndpoint => return Self::NotFound(Missing::Endpoint),
            ResendError::NoPayload => RefusedAction::NoPayload,
            ResendError::ForAnother => RefusedAction::ForAnother,
            ResendError::TooMany => RefusedAction::TooManyResends,
            ResendError::Paused => RefusedAction::Paused,
            ResendError::Store(error) => return error.into(),
        })
    }
}

impl Fault {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Elsewhere(_) => StatusCode::SEE_OTHER,
            Self::NoSuchPage | Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Forbidden | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::FormTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unreadable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::Server => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed soon.
    fn is_passing(&self) -> bool {
        matches!(self, Self::TooMany | Self::Busy | Self::DiskFull)
    }
}

#[derive(Template)]
#[template(path = "fault.html")]
struct FaultPage<'a> {
    shell: Shell,
    t: &'static dyn FaultTexts,
    fault: &'a Fault,
}

pub(super) fn fault_page(api: &Api, view: View, parts: &Parts, fault: &Fault) -> Response {
    if let Fault::Elsewhere(path) = fault {
        return see_other(path);
    }
    let t = <dyn FaultTexts>::of(view.tongue);
    let shell = Shell::for_anyone(api, view, parts, t.title(fault));
    let page = FaultPage { shell, t, fault }.render();
    let mut response = match page {
        Ok(page) => html(fault.status(), page),
        Err(_) => fault.status().into_response(),
    };
    if fault.is_passing() {
        response.headers_mut().insert(RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    response
}
