//! The application that a request describes, in case the one in its path does not exist.

use super::new_application;
use crate::api::request::body::BodyText;
use crate::api::request::json::Fields;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::NewApplication as ApplicationBody;
use aldaba_api::read::Parsed;
use aldaba_engine::{ChangeError, CreateOutcome, NewApplication};
use aldaba_store::Application;

/// The application that a path names, or the one that the body describes if there is none.
pub(crate) enum Inline {
    Existing(Application),
    New(NewInline),
}

/// An application to create, under the name in the path.
pub(crate) struct NewInline {
    key: String,
    new: NewApplication,
}

impl Inline {
    /// The application that a body describes. It is checked even if the application exists; what is wrong is noted with
    /// the rest of the body.
    pub(crate) fn read(inline: BodyText<'_>, fields: &mut Fields) -> ApplicationBody {
        inline.parse(false).and_then(Parsed::finish).unwrap_or_else(|problems| {
            let within = |problem: Problem| problem.within(&["application"]);
            problems.into_list().into_iter().map(within).for_each(|problem| fields.problems().push(problem));
            ApplicationBody::default()
        })
    }

    pub(crate) async fn find(
        api: &Api,
        caller: &Caller,
        key: &str,
        inline: Option<ApplicationBody>,
    ) -> Result<Self, Error> {
        let new = match (inline, api.ask(caller).find_application(key).await?) {
            (_, Some(application)) => return Ok(Self::Existing(application.into_application())),
            (None, None) => return Err(Missing::Application.into()),
            (Some(body), None) => new_application(caller.org(), body),
        };
        caller.may(Access::Administer).map_err(Error::forbidden)?;
        let place = ["body", "application", "uid"];
        match &new.uid {
            None => {
                let message = "this field is required: it is the name in the path";
                Err(Problem::new(&place, message, "application_uid_missing").into())
            }
            Some(uid) if uid != key => {
                let message = "must be the name in the path";
                Err(Problem::new(&place, message, "application_uid_mismatch").into())
            }
            Some(_) => Ok(Self::New(NewInline { key: key.to_owned(), new })),
        }
    }

    /// Creates the application if there is none.
    pub(crate) async fn or_make(self, api: &Api, caller: &Caller) -> Result<Application, Error> {
        match self {
            Self::Existing(application) => Ok(application),
            Self::New(new) => new.make(api, caller).await,
        }
    }
}

impl NewInline {
    pub(crate) fn into_new(self) -> NewApplication {
        self.new
    }

    async fn make(self, api: &Api, caller: &Caller) -> Result<Application, Error> {
        match api.directory(caller).create_application(self.new, None).await {
            Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => Ok(made),
            // Another request was first.
            Err(ChangeError::UidTaken) => {
                Ok(api.ask(caller).application(&self.key).await?.into_application())
            }
            Err(error) => Err(error.into()),
        }
    }
}
