//! Filters: which messages an endpoint wants, by what is in them.
//!
//! A filter is a small JSON object. It is read and checked once, when it is given; after that, judging a
//! message neither fails nor allocates much, and reads the payload once for all filters of an application.
//! `docs/filters.md` says what every operator means.

mod condition;
mod number;
mod parts;
mod path;
mod read;
mod sift;
mod spots;
mod value;
mod why;
mod work;

pub use path::Path;
pub use sift::{FilterRun, FilterSet};
pub use why::{Explanation, UnmetCondition};
pub use work::{CombinedMatchCost, MatchCost};

use condition::{Condition, Source, Wanted};
use std::fmt;
use std::sync::Arc;

/// The longest filter, as bytes of JSON without spaces.
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
/// The longest text that something is compared with, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;
/// The longest number that something is compared with, in characters.
pub const MAX_NUMBER_CHARS: usize = 64;
/// The largest exponent of such a number.
pub const MAX_EXPONENT: i64 = 9_999;
/// The longest name of a header, in bytes.
pub const MAX_HEADER_NAME_BYTES: usize = 256;
/// How many values one path is looked at for in one message: the first so many that `[*]` leads to.
pub const MAX_VALUES_PER_PATH: u32 = 1000;
/// Looks that the filters of an application may take at one message of [`DEFAULT_MAX_PAYLOAD_BYTES`], by [`MatchCost`]. One takes some ten
/// nanoseconds, so that the worst of filters take a tenth of a second.
pub const MAX_MATCH_COST: u64 = 10_000_000;
/// The same for the filter of one endpoint.
pub const MAX_MATCH_COST_PER_FILTER: u64 = MAX_MATCH_COST / 4;
/// Bytes of the largest payload, unless an operator allows more.
pub const DEFAULT_MAX_PAYLOAD_BYTES: usize = 1 << 20;
/// How many problems of a filter are named at once.
const MAX_REPORTED_ERRORS: usize = 20;

/// What filters look at.
#[derive(Clone, Copy, Debug)]
pub struct FilterInput<'a> {
    pub event_type: &'a str,
    pub channels: &'a [String],
    pub tags: &'a [String],
    /// Names in lower case.
    pub headers: &'a [(String, String)],
    /// JSON. In one that is not, there is nothing at any path.
    pub payload: &'a [u8],
}

/// A filter that has been checked.
#[derive(Clone)]
pub struct Filter {
    /// As it was given, without spaces.
    text: Box<str>,
    root: Node,
    /// Its conditions about the payload, by their number.
    payload: Box<[About]>,
    /// What its other conditions take.
    plain: MatchCost,
}

/// A condition about the payload.
#[derive(Clone, Debug)]
struct About {
    path: Path,
    wanted: Wanted,
    /// By which it is found among others.
    key: u64,
}

/// Something that is wrong with a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", location.join("."))]
pub struct FilterError {
    /// Names of fields, and `[n]` for the items of lists. Empty: the filter itself.
    pub location: Vec<String>,
    pub why: String,
}

#[derive(Clone, Debug)]
enum Node {
    All(Box<[Node]>),
    Any(Box<[Node]>),
    Not(Box<Node>),
    One(Condition),
}

impl Filter {
    /// Reads a filter. All that is wrong is named at once, up to a limit.
    pub fn parse(text: &str) -> Result<Self, Vec<FilterError>> {
        read::filter(text)
    }

    /// JSON, as it was given, without spaces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a condition about the payload holds, where one of the values there decides it or none does.
    fn is_met(&self, condition: usize, hit: bool) -> bool {
        self.payload.get(condition).is_some_and(|about| about.wanted.is_met(hit))
    }

    /// Whether a message is wanted. Who asks about many messages, or has many filters, asks [`FilterSet`].
    pub fn holds(&self, facts: &FilterInput<'_>) -> bool {
        FilterSet::of_one(Arc::new(self.clone())).run(*facts).passes(0)
    }
}

/// Two filters are the same if they say the same in the same words.
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

impl Node {
    /// `met` says of a condition about the payload whether it holds.
    fn holds(&self, facts: &FilterInput<'_>, met: &impl Fn(usize) -> bool) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.holds(facts, met)),
            Self::Any(nodes) => nodes.iter().any(|node| node.holds(facts, met)),
            Self::Not(node) => !node.holds(facts, met),
            Self::One(Condition::Payload(number)) => met(usize::from(*number)),
            Self::One(Condition::Of(source, wanted)) => wanted.is_met(source.has_one(facts, wanted)),
        }
    }
}

impl Source {
    /// Whether one of the values that a message has here decides.
    fn has_one(&self, facts: &FilterInput<'_>, wanted: &Wanted) -> bool {
        match self {
            Self::EventType => wanted.is_hit_by(facts.event_type),
            Self::Channel => facts.channels.iter().any(|channel| wanted.is_hit_by(channel)),
            Self::Tag => facts.tags.iter().any(|tag| wanted.is_hit_by(tag)),
            Self::Header(name) => {
                let mut values = facts.headers.iter().filter(|(header, _)| **header == **name);
                values.any(|(_, value)| wanted.is_hit_by(value))
            }
        }
    }
}
