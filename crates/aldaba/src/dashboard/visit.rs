//! One request for a page: who asks, what for, and how they want to see it.

use super::fault::Fault;
use super::paths::Paths;
use super::shell::View;
use crate::api::{Access, Api};
use crate::questions::{ApplicationQuestions, Questions};
use crate::token::Caller;
use aldaba_delivery::Timestamp;
use aldaba_engine::Directory;
use http::HeaderMap;
use http::request::Parts;
use std::collections::BTreeMap;

/// The names and values of a query string or of a form. Of a name that comes twice the first value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    pub(crate) fn read(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).into_owned().collect())
    }

    /// `None`: it is not there, or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A request by anybody.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) api: Api,
    pub(crate) view: View,
    pub(crate) parts: Parts,
}

impl Guest {
    pub(crate) fn query(&self) -> Pairs {
        Pairs::read(self.parts.uri.query().unwrap_or_default().as_bytes())
    }
}

/// A request by somebody who may make it.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) api: Api,
    pub(crate) caller: Caller,
    pub(crate) view: View,
    /// Without the query string.
    pub(crate) path: String,
    pub(crate) query: Pairs,
    /// What stands in the path for the names in braces.
    pub(crate) parameters: BTreeMap<&'static str, String>,
    pub(crate) headers: HeaderMap,
}

impl Visit {
    pub(crate) fn ask(&self) -> Questions<'_> {
        self.api.ask(&self.caller)
    }

    /// For changes by the caller.
    pub(crate) fn directory(&self) -> Directory {
        self.api.directory(&self.caller)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.api.engine.clock().now()
    }

    pub(crate) fn to(&self) -> Paths {
        Paths
    }

    /// Empty: the route has no such name, which is a bug.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Whether something that needs this access is shown.
    pub(crate) fn may(&self, access: Access) -> bool {
        self.caller.may(access).is_ok()
    }

    /// The application that the path names.
    pub(crate) async fn application(&self) -> Result<ApplicationQuestions<'_>, Fault> {
        Ok(self.ask().application(self.parameter("app")).await?)
    }

    /// The path with its query string, as a link to this page.
    pub(crate) fn here(&self) -> String {
        let pairs: Vec<_> = self.query.iter().collect();
        super::paths::with_query(&self.path, &pairs)
    }
}
