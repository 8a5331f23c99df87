//! JSON Schemas of event types and validation of payloads.
//!
//! A schema must not be able to stop the server. Patterns run in linear time, nothing is fetched, circular
//! schemas are refused (`walk`), and a validation that costs too much ends (`meter`).

mod meter;
mod versions;
mod walk;

pub use versions::{CheckError, Schemas};

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use meter::{AccessCosts, BudgetExhausted, Metered, MeteredValue, TEXT_UNIT_BYTES};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use walk::SchemaShape;

/// The cost limit of one validation: a base, and more for each byte of the payload. One unit takes about ten
/// nanoseconds, or part of a microsecond for the worst patterns. So the worst schema takes 0.3 s with a
/// small payload and 2 s with one of a mebibyte.
const BASE_COST: u64 = 500_000;
const COST_PER_BYTE: u64 = 4;
/// The cost per byte of the smallest pattern.
const PATTERN_COST_PER_BYTE: u64 = 2;
/// The cost limit of all payloads of one request, to which a part per byte is added. It suffices for any
/// single payload, and for a thousand usual ones. It takes 2 s with the worst schemas, and a twentieth of
/// that with most.
const REQUEST_COST: u64 = 10 * BASE_COST;
/// The cost limit of validation on the calling thread, for all payloads of a request; and the fixed cost per
/// payload.
const MAX_INLINE_COST: u64 = 5_000;
const PAYLOAD_COST: u64 = 50;
/// The cost limit of listing all problems, which takes more time and memory than finding one.
const REPORT_COST: u64 = 100_000;
/// The most problems that are listed.
const MAX_PROBLEMS: usize = 20;
/// The longest value that a problem shows, in characters.
const MAX_SHOWN_CHARS: usize = 60;
/// The allowed values of `type`.
const TYPES: &str = "array, boolean, integer, null, number, object, string, or a list of these";

/// Size limits of compiled patterns and of their caches, in bytes. The smallest limit that fits is used: it
/// determines the cost of patterns.
const PATTERN_SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
const PATTERN_CACHE: usize = 256 << 10;

/// A cost budget that several checks share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckBudget(u64);

impl CheckBudget {
    /// For payloads with so many bytes. An invalid payload may be validated twice.
    pub(crate) fn for_request(bytes: usize) -> Self {
        Self(REQUEST_COST.saturating_add(2 * COST_PER_BYTE.saturating_mul(bytes as u64)))
    }

    pub(crate) fn inline() -> Self {
        Self(MAX_INLINE_COST)
    }

    fn take(&mut self, cost: u64) -> Option<()> {
        self.0 = self.0.checked_sub(cost)?;
        Some(())
    }

    /// Runs a validation with a limit of `most`. `None`: less than that was left, and it was not enough.
    fn run<T>(
        &mut self,
        schema: &Schema,
        payload: &Value,
        most: u64,
        validate: impl FnOnce(MeteredValue<'_>) -> T,
    ) -> Option<Result<T, BudgetExhausted>> {
        let (done, left) = meter::run(payload, most.min(self.0), schema.costs, validate);
        let short = self.0 < most && done.is_err();
        self.0 = self.0 - most.min(self.0) + left;
        (!short).then_some(done)
    }
}

/// A compiled JSON Schema.
pub struct Schema {
    validator: Validator<Metered>,
    costs: AccessCosts,
    /// Whether it has alternatives. Explaining why none matches is expensive, even for a single problem.
    alternatives: bool,
}

/// A problem of a schema, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", place.join("."))]
pub struct SchemaError {
    pub place: Vec<String>,
    pub why: String,
}

/// Why a payload is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadError {
    Problems {
        problems: Vec<PayloadProblem>,
        /// How many more there are; `None`: unknown.
        more: Option<usize>,
    },
    /// It is invalid, but locating the problem would take too long.
    Somewhere,
    /// Validation would take too long.
    TooCostly,
    /// It cannot be parsed as JSON.
    Unreadable(String),
}

/// A problem of a payload, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadProblem {
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
        let id_keyword = if draft == Draft::Draft4 { "id" } else { "$id" };
        let shape = walk::walk(schema, id_keyword).map_err(|error| vec![error])?;
        let mut refused = None;
        for size in PATTERN_SIZES {
            let patterns = PatternOptions::regex().size_limit(size).dfa_size_limit(PATTERN_CACHE);
            let built = jsonschema::options_for::<Metered>()
                .with_draft(draft)
                .with_pattern_options(patterns)
                .with_retriever(NoRetriever)
                .should_validate_formats(true)
                .build(schema);
            match built {
                Ok(validator) => {
                    let (costs, alternatives) = (costs(shape, size), shape.alternatives);
                    return Ok(Self { validator, costs, alternatives });
                }
                Err(error) => refused = Some(unusable(&error)),
            }
        }
        Err(refused.into_iter().collect())
    }

    pub fn check(&self, payload: &[u8]) -> Result<(), PayloadError> {
        let within = self.check_within(payload, &mut CheckBudget::for_request(payload.len()));
        // The budget suffices for one payload.
        within.map_err(|misfit| misfit.unwrap_or(PayloadError::TooCostly))
    }

    /// Validates within a budget. `None`: it was not enough.
    pub(crate) fn check_within(
        &self,
        payload: &[u8],
        budget: &mut CheckBudget,
    ) -> Result<(), Option<PayloadError>> {
        budget.take(PAYLOAD_COST).ok_or(None)?;
        let cost = BASE_COST.saturating_add(COST_PER_BYTE.saturating_mul(payload.len() as u64));
        let payload: Value =
            serde_json::from_slice(payload).map_err(|error| PayloadError::Unreadable(error.to_string()))?;
        match budget.run(self, &payload, cost, |payload| self.validator.is_valid(payload)).ok_or(None)? {
            Ok(true) => Ok(()),
            Ok(false) => Err(Some(self.why(&payload, cost, budget).ok_or(None)?)),
            Err(_) => Err(Some(PayloadError::TooCostly)),
        }
    }

    /// Explains why a payload is invalid. `None`: the budget was not enough.
    fn why(&self, payload: &Value, cost: u64, budget: &mut CheckBudget) -> Option<PayloadError> {
        let found = budget.run(self, payload, REPORT_COST, |payload| {
            let mut errors = self.validator.iter_errors(payload);
            let problems: Vec<_> = errors.by_ref().take(MAX_PROBLEMS).map(|error| problem(&error)).collect();
            (problems, errors.count())
        });
        if let Ok((problems, more)) = found?
            && !problems.is_empty()
        {
            return Some(PayloadError::Problems { problems, more: Some(more) });
        }
        if self.alternatives {
            return Some(PayloadError::Somewhere);
        }
        let first = budget.run(self, payload, cost, |payload| {
            self.validator.validate(payload).err().map(|error| problem(&error))
        });
        Some(match first?.ok().flatten() {
            Some(first) => PayloadError::Problems { problems: vec![first], more: None },
            None => PayloadError::Somewhere,
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// The draft by which a schema is well-formed. Without `$schema` it is the newest draft, or else draft 7,
/// which some lists of items require.
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
    let why = "is not a known draft; known ones: http://json-schema.org/draft-04/schema#, …/draft-06/schema#, \
               …/draft-07/schema#, https://json-schema.org/draft/2019-09/schema and \
               https://json-schema.org/draft/2020-12/schema";
    SchemaError::new(&["$schema".to_owned()], why)
}

fn well_formed(schema: &Value, draft: Draft) -> Result<(), Vec<SchemaError>> {
    let of_draft = serde_json::json!({ "$schema": draft_name(draft) });
    let meta = jsonschema::meta::validator_for(&of_draft).map_err(|error| vec![unusable(&error)])?;
    let mut errors = Vec::new();
    for error in meta.iter_errors(schema).map(|error| unusable(&error)) {
        // Each vocabulary of the newest drafts reports the same error.
        if !errors.contains(&error) {
            errors.push(error);
        }
        if errors.len() == MAX_PROBLEMS {
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

fn costs(shape: SchemaShape, pattern_size: usize) -> AccessCosts {
    let text = match shape.patterns {
        0 => 1,
        _ => PATTERN_COST_PER_BYTE * TEXT_UNIT_BYTES * (pattern_size / PATTERN_SIZES[0]) as u64,
    };
    let by_name = if shape.has_property_names { shape.patterns } else { shape.name_patterns };
    AccessCosts { text, name: text * by_name as u64, step: 1 + shape.untyped }
}

/// Refuses to fetch references.
struct NoRetriever;

impl Retrieve for NoRetriever {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Err("schemas are not fetched".into())
    }
}

/// Describes a problem of a schema, in the terms of its draft.
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
        let why = format!("{} is not a JSON Schema type; known ones: {TYPES}", shown(error.instance()));
        return SchemaError { place, why };
    }
    SchemaError { place, why: words(error) }
}

fn problem(error: &ValidationError<'_>) -> PayloadProblem {
    PayloadProblem { place: place(error.instance_path()), why: words(error) }
}

/// The library's message, with long values masked.
fn words(error: &ValidationError<'_>) -> String {
    let short = match &**error.instance() {
        Value::String(text) => text.len() <= MAX_SHOWN_CHARS,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => true,
    };
    if short { error.to_string() } else { error.masked_with("the value").to_string() }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text;
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect()
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
