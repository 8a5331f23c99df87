//! Applications, and the questions about one.

use super::{Error, Missing, Questions};
use aldaba_delivery::AppId;
use aldaba_engine::Engine;
use aldaba_store::{Application, ApplicationRef, Order, Page, Store};
use std::ops::Deref;

/// An application that the caller may reach, and the questions about what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct ApplicationQuestions<'a> {
    pub(super) engine: &'a Engine,
    application: Application,
}

impl Deref for ApplicationQuestions<'_> {
    type Target = Application;

    fn deref(&self) -> &Application {
        &self.application
    }
}

impl<'a> ApplicationQuestions<'a> {
    pub(crate) fn into_application(self) -> Application {
        self.application
    }

    pub(super) fn store(&self) -> &'a dyn Store {
        &**self.engine.store()
    }

    /// The application, as the engine's commands name it.
    pub(crate) fn by_id(&self) -> ApplicationRef {
        ApplicationRef { org: self.org, key: self.id.to_string() }
    }
}

impl<'a> Questions<'a> {
    /// An application by its id or uid.
    pub(crate) async fn application(&self, key: &str) -> Result<ApplicationQuestions<'a>, Error> {
        self.find_application(key).await?.ok_or_else(|| Missing::Application.into())
    }

    /// The same for callers who may create it: `None` if no application of the organization has this key.
    pub(crate) async fn find_application(
        &self,
        key: &str,
    ) -> Result<Option<ApplicationQuestions<'a>>, Error> {
        let which = ApplicationRef { org: self.caller.org(), key: key.to_owned() };
        let Some(application) = self.store().application(which).await? else { return Ok(None) };
        if !self.caller.speaks_for(application.org, application.id) {
            return Err(Missing::Application.into());
        }
        Ok(Some(ApplicationQuestions { engine: self.engine, application }))
    }

    pub(crate) async fn applications(
        &self,
        page: Page<AppId>,
        order: Order,
    ) -> Result<Vec<Application>, Error> {
        Ok(self.store().applications(self.caller.org(), page, order).await?)
    }

    /// How to find the application that a message is for, without a read where none is needed. A caller that is
    /// for one application finds no other.
    pub(crate) async fn application_ref(&self, key: String) -> Result<ApplicationRef, Error> {
        match self.caller.app() {
            // A uid is looked up: what memory knows of it may be old.
            Some(only) if key != only.to_string() => Ok(self.application(&key).await?.by_id()),
            _ => Ok(ApplicationRef { org: self.caller.org(), key }),
        }
    }

    /// Fails if the application that the caller is for was deleted.
    pub(crate) async fn check_own_application(&self) -> Result<(), Error> {
        let Some(app) = self.caller.app() else { return Ok(()) };
        match self.engine.has_application(self.caller.org(), app).await? {
            true => Ok(()),
            false => Err(Missing::CallerApplication.into()),
        }
    }
}
