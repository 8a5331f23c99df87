//! Filters: select the messages that an endpoint wants by their content.
//!
//! A filter is a small JSON object. It is parsed and checked once; after that, matching a message cannot fail,
//! allocates little, and reads the payload once for all filters of an application. `docs/filters.md` describes
//! every operator.

mod condition;
mod explanation;
mod filter_set;
mod match_cost;
mod number;
mod parse;
mod path;
mod path_tree;
mod substrings;
mod value;

pub use explanation::{Explanation, UnmetCondition};
pub use filter_set::{FilterRun, FilterSet};
pub use match_cost::{CombinedMatchCost, MatchCost};
pub use path::Path;

use condition::{ConditionSource, FilterCondition, Requirement};
use std::fmt;
use std::sync::Arc;

/// The longest filter, in bytes of JSON without whitespace.
pub const MAX_FILTER_BYTES: usize = 16 * 1024;
/// How deep `all`, `any` and `not` may be nested in each other.
pub const MAX_FILTER_DEPTH: usize = 8;
/// The most conditions in one filter.
pub const MAX_CONDITIONS: usize = 64;
/// The most items in one `all`, `any`, `in` or `notIn`.
pub const MAX_LIST_ITEMS: usize = 100;
/// The longest path into a payload, in bytes.
pub const MAX_PATH_BYTES: usize = 512;
/// The most steps of a path.
pub const MAX_PATH_STEPS: usize = 16;
/// The longest text in a comparison, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;
/// The longest number in a comparison, in characters.
pub const MAX_NUMBER_CHARS: usize = 64;
/// The largest exponent of such a number.
pub const MAX_EXPONENT: i64 = 9_999;
/// The longest name of a header, in bytes.
pub const MAX_HEADER_NAME_BYTES: usize = 256;
/// The most values of one path in one message: the first ones that `[*]` yields.
pub const MAX_VALUES_PER_PATH: u32 = 1000;
/// The highest match cost of an application's filters for a message of [`DEFAULT_MAX_PAYLOAD_BYTES`]. One unit
/// takes some ten nanoseconds, so that the worst filters take a tenth of a second.
pub const MAX_MATCH_COST: u64 = 10_000_000;
/// The highest match cost of one endpoint's filter.
pub const MAX_MATCH_COST_PER_FILTER: u64 = MAX_MATCH_COST / 4;
/// The largest payload in bytes, unless an operator allows more.
pub const DEFAULT_MAX_PAYLOAD_BYTES: usize = 1 << 20;
/// The most errors reported at once.
const MAX_REPORTED_ERRORS: usize = 20;

/// The parts of a message that filters read.
#[derive(Clone, Copy, Debug)]
pub struct FilterInput<'a> {
    pub event_type: &'a str,
    pub channels: &'a [String],
    pub tags: &'a [String],
    /// Names in lower case.
    pub headers: &'a [(String, String)],
    /// JSON. In an invalid payload no path has a value.
    pub payload: &'a [u8],
}

/// A filter that has been checked.
#[derive(Clone)]
pub struct Filter {
    /// The filter as given, without whitespace.
    text: Box<str>,
    root: FilterNode,
    /// Its conditions on the payload, by number.
    payload: Box<[PayloadCondition]>,
    /// The match cost of its other conditions.
    plain: MatchCost,
}

/// A condition on the payload.
#[derive(Clone, Debug)]
struct PayloadCondition {
    path: Path,
    requirement: Requirement,
    /// A hash that identifies the condition.
    key: u64,
}

/// An error in a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", location.join("."))]
pub struct FilterError {
    /// Names of fields, and `[n]` for list items. Empty: the filter itself.
    pub location: Vec<String>,
    pub why: String,
}

#[derive(Clone, Debug)]
enum FilterNode {
    All(Box<[FilterNode]>),
    Any(Box<[FilterNode]>),
    Not(Box<FilterNode>),
    One(FilterCondition),
}

impl Filter {
    /// Parses a filter. All errors are reported at once, up to a limit.
    pub fn parse(text: &str) -> Result<Self, Vec<FilterError>> {
        parse::filter(text)
    }

    /// The JSON as given, without whitespace.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a condition on the payload holds, given whether a value decided it.
    fn is_met(&self, condition: usize, hit: bool) -> bool {
        self.payload.get(condition).is_some_and(|about| about.requirement.is_met(hit))
    }

    /// Whether a message matches. For many messages or many filters use [`FilterSet`].
    pub fn holds(&self, input: &FilterInput<'_>) -> bool {
        FilterSet::of_one(Arc::new(self.clone())).run(*input).passes(0)
    }
}

/// Two filters are equal if they have the same text.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({})", self.text)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FilterNode {
    /// `met` says whether a condition on the payload holds.
    fn holds(&self, input: &FilterInput<'_>, met: &impl Fn(usize) -> bool) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.holds(input, met)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(input, met)),
            Self::Not(node) => !node.holds(input, met),
            Self::One(FilterCondition::Payload(number)) => met(usize::from(*number)),
            Self::One(FilterCondition::Of(source, requirement)) => {
                requirement.is_met(source.has_one(input, requirement))
            }
        }
    }
}

impl ConditionSource {
    /// Whether one of the message's values decides the condition.
    fn has_one(&self, input: &FilterInput<'_>, requirement: &Requirement) -> bool {
        match self {
            Self::EventType => requirement.is_hit_by(input.event_type),
            Self::Channel => input.channels.iter().any(|channel| requirement.is_hit_by(channel)),
            Self::Tag => input.tags.iter().any(|tag| requirement.is_hit_by(tag)),
            Self::Header(name) => {
                let mut values = input.headers.iter().filter(|(header, _)| **header == **name);
                values.any(|(_, value)| requirement.is_hit_by(value))
            }
        }
    }
}
