//! Errors of conflicts name the conflicting thing, with its id.

use super::code::Code;
use super::error::{Error, not_orderable};
use crate::api::Api;
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::{AppId, EndpointId};
use aldaba_engine::{ChangeError, ResendError};
use aldaba_store::{Endpoint, Message};
use http::StatusCode;

/// The subject of a refused change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Application,
    Endpoint { app: AppId, endpoint: Option<EndpointId> },
    Source,
}

impl From<&Endpoint> for Subject {
    fn from(endpoint: &Endpoint) -> Self {
        Self::Endpoint { app: endpoint.app, endpoint: Some(endpoint.id) }
    }
}

impl Api {
    /// Why a change was refused. `uid`: the requested one.
    pub(crate) async fn refusal(
        &self,
        caller: &Caller,
        error: ChangeError,
        subject: Subject,
        uid: Option<String>,
    ) -> Error {
        match (&error, subject, uid) {
            (ChangeError::UidTaken, subject, Some(uid)) => match self.holder(caller, subject, &uid).await {
                Ok(holder) => Error::conflict(format!(
                    "{holder} has the uid `{uid}`. Nothing was changed; choose another uid, or change that one"
                )),
                Err(error) => error,
            },
            (ChangeError::TooMany, Subject::Endpoint { app, .. }, _) => Error::conflict(format!(
                "The application {app} has as many endpoints as it may have (the setting `endpoints_per_application`). Nothing \
                 was stored; delete those that nobody uses"
            )),
            (ChangeError::NotOrderable(obstacle), Subject::Endpoint { endpoint: Some(endpoint), .. }, _) => {
                not_orderable(*obstacle, format_args!("the endpoint {endpoint}"))
            }
            (ChangeError::TurnedOff, Subject::Endpoint { endpoint: Some(endpoint), .. }, _) => {
                Error::conflict(format!(
                    "The endpoint {endpoint} was turned off; set its `disabled` to false to turn it on and resume it"
                ))
            }
            _ => error.into(),
        }
    }

    /// The thing that has a uid. It may have lost the uid since the change was refused.
    async fn holder(&self, caller: &Caller, subject: Subject, uid: &str) -> Result<String, Error> {
        let questions = self.ask(caller);
        let (word, id) = match subject {
            Subject::Application => {
                let found = questions.find_application(uid).await?;
                ("application", found.map(|application| application.id.to_string()))
            }
            Subject::Endpoint { app, .. } => {
                let found = questions.application(&app.to_string()).await?.find_endpoint(uid).await?;
                ("endpoint", found.map(|endpoint| endpoint.id.to_string()))
            }
            Subject::Source => {
                let found = questions.find_source(uid).await?;
                ("source", found.map(|source| source.id.to_string()))
            }
        };
        Ok(match id {
            Some(id) => format!("The {word} {id}"),
            None => format!("Another {word}, which is gone by now,"),
        })
    }
}

/// Why a message was not sent again.
pub(crate) fn of_resend(error: ResendError, message: &Message, endpoint: &Endpoint) -> Error {
    let (message, endpoint) = (message.id, endpoint.id);
    let later = |code, detail| Error::later(StatusCode::SERVICE_UNAVAILABLE, code, detail, 1);
    match error {
        ResendError::InFlight => Error::conflict(format!(
            "An attempt of the message {message} at the endpoint {endpoint} is being made right now. Look at its result first"
        )),
        ResendError::InOrder => Error::conflict(format!(
            "The endpoint {endpoint} gets its messages in order, and the message {message} still waits for its turn. Nothing was \
             sent"
        )),
        ResendError::Disabled => {
            Error::conflict(format!("The endpoint {endpoint} is disabled. Nothing was sent; enable it first"))
        }
        ResendError::ForAnother => Error::conflict(format!(
            "The message {message} was dispatched with headers of its own, and they go to its own address alone, not to \
             {endpoint}. Nothing was sent"
        )),
        ResendError::NoEndpoint => Missing::Endpoint.into(),
        ResendError::NoPayload => Error::new(
            StatusCode::BAD_REQUEST,
            Code::MissingPayload,
            "The message's payload is not kept any more; it cannot be sent again",
        ),
        ResendError::TooMany => {
            later(Code::Busy, "Many messages are being sent again by hand. Nothing was sent; try again")
        }
        ResendError::Paused => later(Code::Paused, "Nothing can be sent now. Nothing was sent; try again"),
        ResendError::Store(error) => error.into(),
    }
}
