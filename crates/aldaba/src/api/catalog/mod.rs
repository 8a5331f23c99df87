//! Policies and wire profiles: an organization has its own besides the built-in ones, and names both by their names.

pub(crate) mod policy;
pub(crate) mod profile;

use crate::api::Error;
use crate::api::request::json;
use crate::api::request::json::bounded_json;
use crate::api::response::error::{Problem, user};
use crate::questions::Missing;
use aldaba_engine::ChangeError;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

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

/// A page with all of them.
pub(crate) fn page(data: &[Value]) -> Response {
    json::answer(StatusCode::OK, &json!({ "data": data, "iterator": null, "done": true }))
}

impl Kind {
    /// Adds whether it is built in.
    pub(crate) fn render(&self, mut shown: Value, name: &str) -> Value {
        shown["builtIn"] = self.built_in.contains(&name).into();
        shown
    }

    /// Reads a body, with the name from the path. What was shown can be sent back unchanged.
    pub(crate) fn read(&self, body: &[u8], name: Option<&str>) -> Result<Value, Error> {
        let mut json: Value = bounded_json::body(body)?;
        let Some(fields) = json.as_object_mut() else { return Ok(json) };
        fields.remove("builtIn");
        let Some(name) = name else { return Ok(json) };
        if *fields.entry("name").or_insert_with(|| name.into()) != name {
            let message =
                format!("must be the name in the path, or be left out: a {} keeps its name", self.word);
            return Err(Problem::value(&["body", "name"], message).into());
        }
        Ok(json)
    }

    /// Refuses changes of the built-in ones.
    pub(crate) fn not_built_in(&self, name: &str) -> Result<(), Error> {
        if !self.built_in.contains(&name) {
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
