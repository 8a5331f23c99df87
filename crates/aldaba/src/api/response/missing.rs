//! The errors of questions, in the words of the API.

use super::error::Error;
use crate::actions::DiscardError;
use crate::questions::{Error as QuestionError, Missing};
use aldaba_engine::ChangeError;

impl From<QuestionError> for Error {
    fn from(error: QuestionError) -> Self {
        match error {
            QuestionError::NotFound(missing) => Self::not_found(text(missing)),
            QuestionError::HostOfOthers => Self::forbidden(
                "The whole host is held back, for other applications too: this needs an organization's token; the one \
                 sent is an application's",
            ),
            QuestionError::Store(error) => error.into(),
            QuestionError::Secret(error) => ChangeError::from(error).into(),
        }
    }
}

impl From<DiscardError> for Error {
    fn from(error: DiscardError) -> Self {
        match error {
            DiscardError::Question(error) => error.into(),
            DiscardError::Change(error) => error.into(),
        }
    }
}

impl From<Missing> for Error {
    fn from(missing: Missing) -> Self {
        QuestionError::from(missing).into()
    }
}

pub(crate) fn text(missing: Missing) -> &'static str {
    match missing {
        Missing::Alert => "There is no such alert; GET /api/v1/alert lists them",
        Missing::ApiKey => "There is no such API key; GET /api/v1/api-key lists them",
        Missing::Application => "There is no such application; GET /api/v1/app lists them",
        Missing::CallerApplication => "There is no such application as the one that the token or key is for",
        Missing::PublicApplication => {
            "There is no application with this id; GET /api/v1/app lists them. This route takes ids (app_…) only: it needs no token, \
             so that nothing says whose uid is meant"
        }
        Missing::Attempt => {
            "The message has no such attempt; GET /api/v1/app/{app_id}/attempt/msg/{msg_id} lists those that it has"
        }
        Missing::AttemptEndpoint => "The attempt's endpoint is not kept any more",
        Missing::Delivery => {
            "The application has no such delivery; GET /api/v1/app/{app_id}/delivery lists those that it has"
        }
        Missing::Dispatch => "The application has dispatched nothing of this id",
        Missing::Endpoint => {
            "The application has no such endpoint; GET /api/v1/app/{app_id}/endpoint lists those that it has"
        }
        Missing::EndpointId => "There is no such endpoint; with `app` it may be named by its uid",
        Missing::EventType => "There is no such event type; GET /api/v1/event-type lists them",
        Missing::HeldHost => {
            "Nothing that concerns you is held back at this origin; GET /api/v1/host lists what is held back"
        }
        Missing::Job => "Nothing was told about such a job",
        Missing::Message => {
            "The application has no such message; GET /api/v1/app/{app_id}/msg lists those that are kept"
        }
        Missing::Policy => "There is no such policy; GET /api/v1/policy lists them",
        Missing::Profile => "There is no such wire profile; GET /api/v1/profile lists them",
        Missing::Replay => "There is no such background task; GET /api/v1/background-task lists them",
        Missing::Source => "There is no such source; GET /api/v1/ingest/source lists them",
        Missing::SourceEvent => {
            "The source has no such event; GET /api/v1/ingest/source/{source_id}/event lists those that are kept"
        }
    }
}
