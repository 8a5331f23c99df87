//! An application that a request brings with it, for the case that the one in its path is not there.

use super::checked;
use crate::api::request::body::BodyText;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_engine::{ChangeError, CreateOutcome, NewApplication};
use aldaba_store::{Application, ApplicationRef};

/// The application that a path names, or the one that the body describes for the case that there is none.
pub(crate) enum Inline {
    There(Application),
    New(NewInline),
}

/// It has the name in the path, and is not made yet.
pub(crate) struct NewInline {
    key: String,
    new: NewApplication,
}

impl Inline {
    pub(crate) async fn find(
        api: &Api,
        caller: &Caller,
        key: &str,
        inline: Option<BodyText<'_>>,
    ) -> Result<Self, Error> {
        let which = ApplicationRef { org: caller.org(), key: key.to_owned() };
        // It is held to what it should be where it is not needed, too.
        let read = |inline: BodyText<'_>| checked(caller.org(), inline.parse(false)?);
        let inline = inline.map(read);
        let inline = inline.transpose().map_err(|error| error.in_field("application"))?;
        let (Some(new), None) = (inline, api.engine.store().application(which).await?) else {
            return api.application(caller, key.to_owned()).await.map(Self::There);
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

    /// Makes it, if there is none.
    pub(crate) async fn or_make(self, api: &Api, caller: &Caller) -> Result<Application, Error> {
        match self {
            Self::There(application) => Ok(application),
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
            Err(ChangeError::UidTaken) => api.application(caller, self.key).await,
            Err(error) => Err(error.into()),
        }
    }
}
