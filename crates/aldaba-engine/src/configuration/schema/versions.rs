//! The schemas of an event type, by version.

use super::{CheckBudget, PayloadError, Schema, SchemaError};
use serde_json::value::RawValue;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The schemas of one event type, compiled on first use.
#[derive(Debug)]
pub struct Schemas {
    versions: Vec<SchemaVersion>,
}

#[derive(Debug)]
struct SchemaVersion {
    name: String,
    /// The text as it was given.
    text: Box<RawValue>,
    compiled: OnceLock<Result<Schema, String>>,
}

/// Why a payload is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The sender named an unknown version; `known` are the existing ones.
    Version {
        known: Vec<String>,
    },
    Payload {
        version: String,
        misfit: PayloadError,
    },
    /// Not checked: earlier payloads of the request used up the budget.
    Unchecked,
    /// The stored schema, accepted by another release, cannot be compiled.
    Schema {
        version: String,
        why: String,
    },
}

impl Schemas {
    /// Versions per event type.
    pub const MAX_VERSIONS: usize = 32;
    /// Bytes of all versions.
    pub const MAX_BYTES: usize = 256 << 10;

    /// Parses a JSON object of schemas. Nothing is compiled.
    pub fn read(text: &str) -> Result<Self, String> {
        let versions: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let version = |(name, text)| SchemaVersion { name, text, compiled: OnceLock::new() };
        let mut versions: Vec<_> = versions.into_iter().map(version).collect();
        versions.sort_by(|a, b| by_age(&a.name, &b.name));
        Ok(Self { versions })
    }

    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The versions, oldest first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|version| version.name.as_str())
    }

    /// Compiles all schemas and returns their errors. Paths begin with the version.
    pub fn check_all(&self) -> Vec<SchemaError> {
        let mut errors = Vec::new();
        for SchemaVersion { name, text, .. } in &self.versions {
            let found = match serde_json::from_str(text.get()) {
                Ok(value) => Schema::new(&value).err().unwrap_or_default(),
                Err(error) => vec![SchemaError::new(&[], error.to_string())],
            };
            errors.extend(found.into_iter().map(|mut error| {
                error.place.insert(0, name.clone());
                error
            }));
        }
        errors
    }

    /// As a JSON object, with each schema as it was given.
    pub fn to_text(&self) -> String {
        let versions: BTreeMap<_, _> =
            self.versions.iter().map(|version| (version.name.as_str(), &version.text)).collect();
        serde_json::to_string(&versions).unwrap_or_default()
    }

    /// Validates a payload against the named version, or the newest.
    pub fn check(&self, version: Option<&str>, payload: &[u8]) -> Result<(), CheckError> {
        self.check_within(version, payload, &mut CheckBudget::for_request(payload.len()))
    }

    /// Validates within a budget.
    pub(crate) fn check_within(
        &self,
        version: Option<&str>,
        payload: &[u8],
        budget: &mut CheckBudget,
    ) -> Result<(), CheckError> {
        let Some(select) = self.select(version) else {
            return Err(CheckError::Version { known: self.names().map(str::to_owned).collect() });
        };
        let version = || select.name.clone();
        match select.compiled.get_or_init(|| select.compile()) {
            Ok(schema) => schema.check_within(payload, budget).map_err(|misfit| match misfit {
                Some(misfit) => CheckError::Payload { version: version(), misfit },
                None => CheckError::Unchecked,
            }),
            Err(why) => Err(CheckError::Schema { version: version(), why: why.clone() }),
        }
    }

    fn select(&self, version: Option<&str>) -> Option<&SchemaVersion> {
        let named = |name| self.versions.iter().find(|version| version.name == name);
        version.map_or_else(|| self.versions.last(), named)
    }

    /// Whether the schema is compiled.
    pub(crate) fn is_compiled(&self, version: Option<&str>) -> bool {
        self.select(version).is_none_or(|select| select.compiled.get().is_some())
    }

    /// An example of the newest version, as it was given. `None`: there is none. A single `example` counts
    /// as the only one.
    pub fn example(&self, index: usize) -> Option<Box<RawValue>> {
        #[derive(serde::Deserialize)]
        struct Examples<'a> {
            #[serde(default, borrow)]
            examples: Option<&'a RawValue>,
            #[serde(default, borrow)]
            example: Option<&'a RawValue>,
        }
        let newest = self.versions.last()?;
        let found: Examples<'_> = serde_json::from_str(newest.text.get()).ok()?;
        let listed = found.examples.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok());
        match listed {
            Some(listed) => listed.get(index).map(|example| (*example).to_owned()),
            None => found.example.map(ToOwned::to_owned),
        }
    }
}

impl SchemaVersion {
    fn compile(&self) -> Result<Schema, String> {
        let value = serde_json::from_str(self.text.get()).map_err(|error| error.to_string())?;
        Schema::new(&value)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

/// Orders numbers by value, after all other names, which are ordered as text so that dates are in order.
fn by_age(a: &str, b: &str) -> Ordering {
    let number = |text: &str| text.parse::<u64>().ok();
    (number(a), a).cmp(&(number(b), b))
}
