//! JSON Schemas of event types, and whether a payload fits one.
//!
//! Whoever writes a schema must not be able to stop the server with it. Patterns run in linear time, nothing is
//! fetched, what goes in circles is refused (`walk`), and a validation that looks too often ends (`meter`).

mod meter;
mod versions;
mod walk;

pub use versions::{Schemas, Unfit};

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use meter::{Looked, Metered, PIECE, Prices, Spent};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use walk::Shape;

/// Looks that a validation may take: so many, and so many more for each byte of the payload. One takes some ten
/// nanoseconds, and a part of a microsecond where the worst of patterns has to go on from byte to byte. So the worst
/// schema takes 0.3 s with a small payload and 2 s with one of a mebibyte.
const LOOKS: u64 = 500_000;
const LOOKS_PER_BYTE: u64 = 4;
/// What the smallest pattern pays for each byte.
const LOOKS_OF_A_PATTERN: u64 = 2;
/// Looks for all payloads of one request together, and so many more for each of their bytes: enough for one whatever it
/// is, and for a thousand that take what is usual. It is 2 s with the worst of schemas, and a twentieth of one with most.
const LOOKS_OF_A_REQUEST: u64 = 10 * LOOKS;
/// Looks that are taken at once, on a thread that others wait for, by all payloads of a request together; and what each
/// payload costs whatever it is checked against.
const LOOKS_AT_ONCE: u64 = 5_000;
const LOOKS_OF_A_PAYLOAD: u64 = 50;
/// For finding out all that is wrong, which takes more time and memory than finding out that something is.
const LOOKS_FOR_PROBLEMS: u64 = 100_000;
/// Problems that are named.
const MOST_PROBLEMS: usize = 20;
/// Characters of a value that a problem shows.
const LONGEST_SHOWN: usize = 60;
/// What a `type` may be.
const TYPES: &str = "array, boolean, integer, null, number, object, string, or a list of these";

/// Bytes of the compiled form of a pattern, at most, and of what it keeps to be quick. The smaller the largest
/// pattern is, the less its looks cost.
const PATTERN_SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
const PATTERN_CACHE: usize = 256 << 10;

/// Looks that several checks may take together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance(u64);

impl Allowance {
    /// For payloads with so many bytes. A payload that does not fit may be looked at twice.
    pub(crate) fn of_a_request(bytes: usize) -> Self {
        Self(LOOKS_OF_A_REQUEST.saturating_add(2 * LOOKS_PER_BYTE.saturating_mul(bytes as u64)))
    }

    pub(crate) fn at_once() -> Self {
        Self(LOOKS_AT_ONCE)
    }

    fn take(&mut self, looks: u64) -> Option<()> {
        self.0 = self.0.checked_sub(looks)?;
        Some(())
    }

    /// Runs a validation that may take `most`. `None`: less than that is left, and it was not enough.
    fn run<T>(
        &mut self,
        schema: &Schema,
        payload: &Value,
        most: u64,
        validate: impl FnOnce(Looked<'_>) -> T,
    ) -> Option<Result<T, Spent>> {
        let (done, left) = meter::run(payload, most.min(self.0), schema.prices, validate);
        let short = self.0 < most && done.is_err();
        self.0 = self.0 - most.min(self.0) + left;
        (!short).then_some(done)
    }
}

/// A JSON Schema that can be used.
pub struct Schema {
    validator: Validator<Metered>,
    prices: Prices,
    /// It has alternatives. Why none of them fits is told at length, even by who tells one problem alone.
    alternatives: bool,
}

/// What is wrong with a schema, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", place.join("."))]
pub struct SchemaError {
    pub place: Vec<String>,
    pub why: String,
}

/// Why a payload does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    Problems {
        problems: Vec<Problem>,
        /// How many more there are; `None`: nobody has counted.
        more: Option<usize>,
    },
    /// It does not, but saying where would take too long.
    Somewhere,
    /// Nobody knows whether it does: finding out would take too long.
    TooCostly,
    /// It is no JSON that can be looked into.
    Unreadable(String),
}

/// What is wrong with a payload, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: Vec<String>,
    pub why: String,
}

impl SchemaError {
    fn new(place: &[String], why: impl Into<String>) -> Self {
        Self { place: place.to_vec(), why: why.into() }
    }
}

impl Schema {
    pub fn new(schema: &Value) -> Result<Self, Vec<SchemaError>> {
        let draft = draft(schema)?;
        let own_name = if draft == Draft::Draft4 { "id" } else { "$id" };
        let shape = walk::walk(schema, own_name).map_err(|error| vec![error])?;
        let mut refused = None;
        for size in PATTERN_SIZES {
            let patterns = PatternOptions::regex().size_limit(size).dfa_size_limit(PATTERN_CACHE);
            let built = jsonschema::options_for::<Metered>()
                .with_draft(draft)
                .with_pattern_options(patterns)
                .with_retriever(Nothing)
                .should_validate_formats(true)
                .build(schema);
            match built {
                Ok(validator) => {
                    let (prices, alternatives) = (prices(shape, size), shape.alternatives);
                    return Ok(Self { validator, prices, alternatives });
                }
                Err(error) => refused = Some(unusable(&error)),
            }
        }
        Err(refused.into_iter().collect())
    }

    pub fn check(&self, payload: &[u8]) -> Result<(), Misfit> {
        let within = self.check_within(payload, &mut Allowance::of_a_request(payload.len()));
        // The allowance is enough for one.
        within.map_err(|misfit| misfit.unwrap_or(Misfit::TooCostly))
    }

    /// With what is left of an allowance; `None`: it was not enough to find out.
    pub(crate) fn check_within(
        &self,
        payload: &[u8],
        allowance: &mut Allowance,
    ) -> Result<(), Option<Misfit>> {
        allowance.take(LOOKS_OF_A_PAYLOAD).ok_or(None)?;
        let looks = LOOKS.saturating_add(LOOKS_PER_BYTE.saturating_mul(payload.len() as u64));
        let payload: Value =
            serde_json::from_slice(payload).map_err(|error| Misfit::Unreadable(error.to_string()))?;
        match allowance.run(self, &payload, looks, |payload| self.validator.is_valid(payload)).ok_or(None)? {
            Ok(true) => Ok(()),
            Ok(false) => Err(Some(self.why(&payload, looks, allowance).ok_or(None)?)),
            Err(_) => Err(Some(Misfit::TooCostly)),
        }
    }

    /// `None`: the allowance was not enough to say.
    fn why(&self, payload: &Value, looks: u64, allowance: &mut Allowance) -> Option<Misfit> {
        let found = allowance.run(self, payload, LOOKS_FOR_PROBLEMS, |payload| {
            let mut errors = self.validator.iter_errors(payload);
            let problems: Vec<_> = errors.by_ref().take(MOST_PROBLEMS).map(|error| problem(&error)).collect();
            (problems, errors.count())
        });
        if let Ok((problems, more)) = found?
            && !problems.is_empty()
        {
            return Some(Misfit::Problems { problems, more: Some(more) });
        }
        if self.alternatives {
            return Some(Misfit::Somewhere);
        }
        let first = allowance.run(self, payload, looks, |payload| {
            self.validator.validate(payload).err().map(|error| problem(&error))
        });
        Some(match first?.ok().flatten() {
            Some(first) => Misfit::Problems { problems: vec![first], more: None },
            None => Misfit::Somewhere,
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// The draft that a schema is written in, by which it is well formed. One that does not say so is of the newest
/// draft, or else of draft 7, which some lists of items can only be of.
fn draft(schema: &Value) -> Result<Draft, Vec<SchemaError>> {
    if let Some(given) = schema.get("$schema") {
        let draft = known_draft(given).ok_or_else(|| vec![unknown_draft()])?;
        return well_formed(schema, draft).map(|()| draft);
    }
    match well_formed(schema, Draft::Draft202012) {
        Ok(()) => Ok(Draft::Draft202012),
        Err(errors) => well_formed(schema, Draft::Draft7).map(|()| Draft::Draft7).map_err(|_| errors),
    }
}

fn known_draft(given: &Value) -> Option<Draft> {
    let text = given.as_str()?.trim_end_matches('#');
    let (_, name) = text.split_once("://json-schema.org/")?;
    Some(match name {
        "draft-04/schema" => Draft::Draft4,
        "draft-06/schema" => Draft::Draft6,
        "draft-07/schema" => Draft::Draft7,
        "draft/2019-09/schema" => Draft::Draft201909,
        "draft/2020-12/schema" => Draft::Draft202012,
        _ => return None,
    })
}

fn unknown_draft() -> SchemaError {
    let why = "is no draft that is known; there are http://json-schema.org/draft-04/schema#, …/draft-06/schema#, \
               …/draft-07/schema#, https://json-schema.org/draft/2019-09/schema and \
               https://json-schema.org/draft/2020-12/schema";
    SchemaError::new(&["$schema".to_owned()], why)
}

fn well_formed(schema: &Value, draft: Draft) -> Result<(), Vec<SchemaError>> {
    let of_draft = serde_json::json!({ "$schema": draft_name(draft) });
    let meta = jsonschema::meta::validator_for(&of_draft).map_err(|error| vec![unusable(&error)])?;
    let mut errors = Vec::new();
    for error in meta.iter_errors(schema).map(|error| unusable(&error)) {
        // Each part of the newest drafts says the same.
        if !errors.contains(&error) {
            errors.push(error);
        }
        if errors.len() == MOST_PROBLEMS {
            break;
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn draft_name(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "http://json-schema.org/draft-04/schema#",
        Draft::Draft6 => "http://json-schema.org/draft-06/schema#",
        Draft::Draft7 => "http://json-schema.org/draft-07/schema#",
        Draft::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
        _ => "https://json-schema.org/draft/2020-12/schema",
    }
}

fn prices(shape: Shape, pattern_size: usize) -> Prices {
    let text = match shape.patterns {
        0 => 1,
        _ => LOOKS_OF_A_PATTERN * PIECE * (pattern_size / PATTERN_SIZES[0]) as u64,
    };
    let by_name = if shape.has_property_names { shape.patterns } else { shape.name_patterns };
    Prices { text, name: text * by_name as u64, step: 1 + shape.silent }
}

/// Nothing is fetched, whatever a schema names.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Err("nothing is fetched from elsewhere".into())
    }
}

/// What is wrong with a schema, in the words of its draft.
fn unusable(error: &ValidationError<'_>) -> SchemaError {
    let place = place(error.instance_path());
    if matches!(place.last().map(String::as_str), Some("pattern")) && error.instance().is_string() {
        let why = format!(
            "cannot be used: {} must be a regular expression without look-around and back-references, whose compiled \
             form has {} KiB at most; for long texts say `maxLength`",
            shown(error.instance()),
            PATTERN_SIZES[PATTERN_SIZES.len() - 1] >> 10
        );
        return SchemaError { place, why };
    }
    if matches!(error.kind(), ValidationErrorKind::AnyOf { .. })
        && matches!(place.last().map(String::as_str), Some("type"))
    {
        let why = format!("{} is no type of JSON Schema; there are: {TYPES}", shown(error.instance()));
        return SchemaError { place, why };
    }
    SchemaError { place, why: words(error) }
}

fn problem(error: &ValidationError<'_>) -> Problem {
    Problem { place: place(error.instance_path()), why: words(error) }
}

/// A value is shown if it is short.
fn words(error: &ValidationError<'_>) -> String {
    let short = match &**error.instance() {
        Value::String(text) => text.len() <= LONGEST_SHOWN,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => true,
    };
    if short { error.to_string() } else { error.masked_with("the value").to_string() }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST_SHOWN {
        return text;
    }
    text.chars().take(LONGEST_SHOWN).chain(['…']).collect()
}

fn place(location: &Location) -> Vec<String> {
    let step = |segment: LocationSegment<'_>| match segment {
        LocationSegment::Property(name) => name.into_owned(),
        LocationSegment::Index(index) => format!("[{index}]"),
    };
    location.iter().map(step).collect()
}

#[cfg(test)]
mod tests;
