//! The schemas of an event type, by their versions.

use super::{Allowance, Misfit, Schema, SchemaError};
use serde_json::value::RawValue;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The schemas of one event type. Each is compiled when a payload first needs it.
#[derive(Debug)]
pub struct Schemas {
    versions: Vec<Version>,
}

#[derive(Debug)]
struct Version {
    name: String,
    /// As it was written.
    text: Box<RawValue>,
    compiled: OnceLock<Result<Schema, String>>,
}

/// Why a payload cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no schema of the version that its sender named; these there are.
    Version {
        known: Vec<String>,
    },
    Payload {
        version: String,
        misfit: Misfit,
    },
    /// Nobody knows: what was checked before, for the same request, has taken the time that there is.
    Unchecked,
    /// The schema was taken once, by another release of the server.
    Schema {
        version: String,
        why: String,
    },
}

impl Schemas {
    /// How many versions an event type may have.
    pub const MOST: usize = 32;
    /// Bytes of all of them together.
    pub const BYTES: usize = 256 << 10;

    /// From a JSON object. Nothing is compiled.
    pub fn read(text: &str) -> Result<Self, String> {
        let versions: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let version = |(name, text)| Version { name, text, compiled: OnceLock::new() };
        let mut versions: Vec<_> = versions.into_iter().map(version).collect();
        versions.sort_by(|a, b| by_age(&a.name, &b.name));
        Ok(Self { versions })
    }

    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// From the oldest to the newest.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|version| version.name.as_str())
    }

    /// Compiles all of them and says what is wrong with any. Places begin with the version.
    pub fn check_all(&self) -> Vec<SchemaError> {
        let mut errors = Vec::new();
        for Version { name, text, .. } in &self.versions {
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

    /// As a JSON object, each version as it was written.
    pub fn to_text(&self) -> String {
        let versions: BTreeMap<_, _> =
            self.versions.iter().map(|version| (version.name.as_str(), &version.text)).collect();
        serde_json::to_string(&versions).unwrap_or_default()
    }

    /// Whether a payload fits the version that its sender named, or else the newest.
    pub fn check(&self, version: Option<&str>, payload: &[u8]) -> Result<(), Unfit> {
        self.check_within(version, payload, &mut Allowance::of_a_request(payload.len()))
    }

    /// The same with what is left of an allowance.
    pub(crate) fn check_within(
        &self,
        version: Option<&str>,
        payload: &[u8],
        allowance: &mut Allowance,
    ) -> Result<(), Unfit> {
        let Some(chosen) = self.chosen(version) else {
            return Err(Unfit::Version { known: self.names().map(str::to_owned).collect() });
        };
        let version = || chosen.name.clone();
        match chosen.compiled.get_or_init(|| chosen.compile()) {
            Ok(schema) => schema.check_within(payload, allowance).map_err(|misfit| match misfit {
                Some(misfit) => Unfit::Payload { version: version(), misfit },
                None => Unfit::Unchecked,
            }),
            Err(why) => Err(Unfit::Schema { version: version(), why: why.clone() }),
        }
    }

    fn chosen(&self, version: Option<&str>) -> Option<&Version> {
        let named = |name| self.versions.iter().find(|version| version.name == name);
        version.map_or_else(|| self.versions.last(), named)
    }

    /// Whether checking needs nothing to be compiled first.
    pub(crate) fn are_ready(&self, version: Option<&str>) -> bool {
        self.chosen(version).is_none_or(|chosen| chosen.compiled.get().is_some())
    }

    /// One of the examples in the newest version, as it was written; `None`: there is none. A single `example` is
    /// the first and only one.
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

impl Version {
    fn compile(&self) -> Result<Schema, String> {
        let value = serde_json::from_str(self.text.get()).map_err(|error| error.to_string())?;
        Schema::new(&value)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

/// Numbers by their size, and after all that are none: those are compared as texts, so that dates are in order.
fn by_age(a: &str, b: &str) -> Ordering {
    let number = |text: &str| text.parse::<u64>().ok();
    (number(a), a).cmp(&(number(b), b))
}
