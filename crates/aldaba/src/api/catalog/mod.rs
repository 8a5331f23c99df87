//! Policies and wire profiles: an organization has its own besides the built-in ones, and names both by their names.

pub(crate) mod policy;
pub(crate) mod profile;

use crate::api::Error;
use crate::api::request::body::Received;
use crate::api::response::error::user;
use crate::questions::Missing;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_engine::ChangeError;

/// Policies or wire profiles.
pub(crate) struct Kind {
    /// The word for one.
    pub(crate) word: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) missing: Missing,
    pub(crate) built_in: &'static [&'static str],
    /// The limit of an organization. All are in memory, and on one page.
    pub(crate) max: usize,
}

/// Reads a body. What was shown can be sent back unchanged, under another name.
pub(crate) fn read<T: ApiRequest>(received: &Received) -> Result<T, Error> {
    let mut fields = received.text().fields()?;
    fields.forget(&["builtIn"]);
    Ok(Parsed::of(fields, false).finish()?)
}

impl Kind {
    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.built_in.contains(&name)
    }

    /// Reads a body, which may give the name in the path again.
    pub(crate) fn read_named<T: ApiRequest>(&self, received: &Received, name: &str) -> Result<T, Error> {
        let mut fields = received.text().fields()?;
        if fields.string("name").is_some_and(|given| given != name) {
            let word = self.word;
            let why = format!("must be the name in the path, or be left out: a {word} keeps its name");
            fields.problem("name", why);
        }
        Ok(Parsed::of(fields, true).finish()?)
    }

    /// Refuses changes of the built-in ones.
    pub(crate) fn not_built_in(&self, name: &str) -> Result<(), Error> {
        if !self.is_built_in(name) {
            return Ok(());
        }
        let detail = format!("`{name}` is built in and cannot be changed; make one of another name like it");
        Err(Error::conflict(detail))
    }

    /// Checks the limit for one more. `there` includes the built-in ones.
    pub(crate) fn check_count(&self, there: usize) -> Result<(), Error> {
        if there < self.max + self.built_in.len() {
            return Ok(());
        }
        let Self { plural, max, .. } = self;
        Err(Error::conflict(format!(
            "The organization has {max} {plural} of its own, as many as it may have. Nothing was stored; delete those that nobody \
             uses"
        )))
    }

    /// Why a change was refused.
    pub(crate) fn refusal(&self, error: ChangeError, name: &str) -> Error {
        let word = self.word;
        match error {
            ChangeError::NotFound => self.missing.into(),
            ChangeError::UidTaken => {
                Error::conflict(format!("There is a {word} `{name}` already; PUT replaces it"))
            }
            ChangeError::InUse(endpoint) => Error::conflict(format!(
                "{} uses the {word} `{name}`. Nothing was changed; give each endpoint that uses it another one first",
                user(endpoint)
            )),
            error => error.into(),
        }
    }
}

/// The operations on policies and wire profiles.
pub(crate) fn routes() -> Vec<crate::api::routing::route::Route> {
    let parts = [policy::routes(), profile::routes()];
    parts.into_iter().flatten().collect()
}
