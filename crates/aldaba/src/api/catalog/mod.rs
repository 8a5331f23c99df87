//! What policies and wire profiles have in common: an organization has its own beside the built-in ones, and
//! calls them by their names.

pub(crate) mod policy;
pub(crate) mod profile;

use crate::api::Error;
use crate::api::request::json;
use crate::api::request::json::bounded_json;
use crate::api::response::error::{Problem, user};
use aldaba_engine::ChangeError;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

/// One kind of them.
pub(crate) struct Kind {
    /// What one is called.
    pub(crate) word: &'static str,
    pub(crate) plural: &'static str,
    /// Where they are listed.
    pub(crate) list: &'static str,
    pub(crate) built_in: &'static [&'static str],
    /// How many an organization may have. All of them are in memory, and on one page.
    pub(crate) most: usize,
}

/// All of them fit on one page.
pub(crate) fn page(data: &[Value]) -> Response {
    json::answer(StatusCode::OK, &json!({ "data": data, "iterator": null, "done": true }))
}

impl Kind {
    /// As it is shown.
    pub(crate) fn render(&self, mut shown: Value, name: &str) -> Value {
        shown["builtIn"] = self.built_in.contains(&name).into();
        shown
    }

    /// A body, with the name that the path gives it. What was shown can be sent back as it is.
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

    /// The built-in ones belong to nobody.
    pub(crate) fn not_built_in(&self, name: &str) -> Result<(), Error> {
        if !self.built_in.contains(&name) {
            return Ok(());
        }
        let detail = format!("`{name}` is built in and cannot be changed; make one of another name like it");
        Err(Error::conflict(detail))
    }

    /// Whether there is room for one more beside so many, the built-in ones among them.
    pub(crate) fn has_room(&self, there: usize) -> Result<(), Error> {
        if there < self.most + self.built_in.len() {
            return Ok(());
        }
        let Self { plural, most, .. } = self;
        Err(Error::conflict(format!(
            "The organization has {most} {plural} of its own, as many as it may have. Nothing was stored; delete those that nobody \
             uses"
        )))
    }

    pub(crate) fn missing(&self) -> Error {
        let Self { word, list, .. } = self;
        Error::not_found(format!("There is no such {word}; GET /api/v1{list} lists them"))
    }

    /// Why a change of the one with this name was refused.
    pub(crate) fn refusal(&self, error: ChangeError, name: &str) -> Error {
        let word = self.word;
        match error {
            ChangeError::NotFound => self.missing(),
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
