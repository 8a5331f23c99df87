//! Why a filter does not let a message through, for the people who look for it.

use super::condition::{Condition, Operator, Source, Wanted};
use super::sift::{Asked, Hits, Member};
use super::value::Scalar;
use super::{About, Filter, FilterInput, FilterSet, Node, Path};
use std::collections::HashMap;
use std::sync::Arc;

/// The most alternatives of an `any` that are explained.
const MOST_ALTERNATIVES: usize = 3;
/// The most characters of a value that are shown.
const LONGEST_SHOWN: usize = 80;

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetCondition {
    /// Where in the filter: names of fields, and `[n]` for the items of lists.
    pub location: String,
    /// Such as: `$.amount` is 5, and the filter asks for at least 100.
    pub text: String,
}

impl Filter {
    /// What keeps a message from passing; `None`: nothing does. Who has many filters asks [`FilterSet::explain`].
    pub fn unmet(&self, facts: &FilterInput<'_>) -> Option<UnmetCondition> {
        FilterSet::of_one(Arc::new(self.clone())).explain(*facts).unmet(0)
    }
}

impl FilterSet {
    /// Says what keeps a message from passing. It takes what judging it takes, and what is said besides.
    pub fn explain<'a>(&'a self, facts: FilterInput<'a>) -> Explanation<'a> {
        let mut seen = HashMap::new();
        let hits = self.read(facts.payload, |place, text| {
            seen.entry(place).or_insert(Seen { first: text, count: 0 }).count += 1;
        });
        Explanation { filters: self, facts, hits, seen }
    }
}

/// A message that was looked at by all filters.
#[derive(Debug)]
pub struct Explanation<'a> {
    filters: &'a FilterSet,
    facts: FilterInput<'a>,
    hits: Hits,
    /// By place.
    seen: HashMap<usize, Seen<'a>>,
}

/// What was at a place of the payload.
#[derive(Clone, Copy, Debug)]
struct Seen<'a> {
    first: &'a str,
    count: u32,
}

impl Explanation<'_> {
    /// What keeps it from passing the filter of an endpoint, by its location; `None`: nothing does, or it has none.
    pub fn unmet(&self, member: usize) -> Option<UnmetCondition> {
        let member = self.filters.members.get(member)?.as_ref()?;
        let met = |condition| member.is_met(condition, &self.hits);
        let why = Why { member, facts: &self.facts, seen: &self.seen, met: &met };
        let (mut location, root) = (String::new(), &member.filter.root);
        let text = (!root.holds(&self.facts, &met)).then(|| why.fails(root, &mut location))?;
        Some(UnmetCondition { location, text })
    }
}

struct Why<'a, M> {
    member: &'a Member,
    facts: &'a FilterInput<'a>,
    seen: &'a HashMap<usize, Seen<'a>>,
    met: &'a M,
}

impl<M: Fn(usize) -> bool> Why<'_, M> {
    /// Of a node that does not hold. The location is that of what decides.
    fn fails(&self, node: &Node, location: &mut String) -> String {
        match node {
            Node::All(nodes) => {
                let first = nodes.iter().enumerate().find(|(_, node)| !node.holds(self.facts, self.met));
                first.map_or_else(String::new, |(index, node)| {
                    go(location, &format!("all[{index}]"));
                    self.fails(node, location)
                })
            }
            Node::Any(nodes) => {
                go(location, "any");
                let told = nodes.iter().take(MOST_ALTERNATIVES);
                let told: Vec<_> = told.map(|node| self.fails(node, &mut String::new())).collect();
                let more = if nodes.len() > MOST_ALTERNATIVES { "; and so on" } else { "" };
                match told.as_slice() {
                    [one] if nodes.len() == 1 => one.clone(),
                    _ => format!("none of {} alternatives holds: {}{more}", nodes.len(), told.join("; ")),
                }
            }
            Node::Not(node) => {
                go(location, "not");
                self.excluded(node, location)
            }
            Node::One(condition) => {
                let (name, is, wanted) = self.now(condition);
                go(location, name);
                format!("{is}, and the filter asks for {wanted}")
            }
        }
    }

    /// Of a node that holds and should not.
    fn excluded(&self, node: &Node, location: &mut String) -> String {
        match node {
            Node::All(nodes) if nodes.len() > 1 => {
                let told = nodes.iter().take(MOST_ALTERNATIVES);
                let told: Vec<_> = told.map(|node| self.excluded(node, &mut String::new())).collect();
                let more = if nodes.len() > MOST_ALTERNATIVES { "; and so on" } else { "" };
                format!("all of what the filter excludes together holds: {}{more}", told.join("; "))
            }
            Node::All(nodes) | Node::Any(nodes) => {
                let all = matches!(node, Node::All(_));
                let first = nodes.iter().enumerate().find(|(_, node)| node.holds(self.facts, self.met));
                first.map_or_else(String::new, |(index, node)| {
                    go(location, &format!("{}[{index}]", if all { "all" } else { "any" }));
                    self.excluded(node, location)
                })
            }
            Node::Not(node) => {
                go(location, "not");
                self.fails(node, location)
            }
            Node::One(condition) => {
                let (name, is, wanted) = self.now(condition);
                go(location, name);
                format!("{is}, and the filter excludes {wanted}")
            }
        }
    }

    /// Where a condition looks, what the message has there, and what is wanted.
    fn now(&self, condition: &Condition) -> (&'static str, String, String) {
        let (source, wanted) = match condition {
            Condition::Of(source, wanted) => (source, wanted),
            Condition::Payload(number) => {
                let number = usize::from(*number);
                let asked = self.member.filter.payload.get(number).zip(self.member.conditions.get(number));
                let Some((About { path, wanted, .. }, asked)) = asked else {
                    return ("payload", String::new(), String::new());
                };
                return ("payload", self.at(path, asked), self::wanted(wanted));
            }
        };
        (source.name(), self.of(source), self::wanted(wanted))
    }

    fn of(&self, source: &Source) -> String {
        let facts = self.facts;
        let listed = |what: &str, names: &[String]| match names {
            [] => format!("the message has no {what}"),
            names => format!("the message has the {what}s {}", names.join(", ")),
        };
        match source {
            Source::EventType => format!("the event type is {}", facts.event_type),
            Source::Channel => listed("channel", facts.channels),
            Source::Tag => listed("tag", facts.tags),
            Source::Header(name) => {
                let values = facts.headers.iter().filter(|(header, _)| **header == **name);
                match values.map(|(_, value)| value).next() {
                    Some(value) => format!("the header {name} is {}", shown(&quoted(value))),
                    None => format!("the message has no header {name}"),
                }
            }
        }
    }

    fn at(&self, path: &Path, asked: &Asked) -> String {
        match self.seen.get(&(asked.place as usize)) {
            None => format!("`{path}` is not there"),
            Some(Seen { first, count: 1 }) => format!("`{path}` is {}", kind(first)),
            Some(Seen { first, count }) => {
                format!("`{path}` has {count} values, the first is {}", kind(first))
            }
        }
    }
}

fn go(location: &mut String, step: &str) {
    if !location.is_empty() {
        location.push('.');
    }
    location.push_str(step);
}

/// A value as it is written; of what is inside of lists and objects, nothing.
fn kind(text: &str) -> String {
    match text.as_bytes().first() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') if text.len() > LONGEST_SHOWN => "a list".to_owned(),
        _ => shown(text),
    }
}

/// It takes no longer for a long text than for a short one.
fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn wanted(wanted: &Wanted) -> String {
    match wanted {
        Wanted::None => "nothing there".to_owned(),
        Wanted::One(operators) => {
            let told: Vec<_> = operators.iter().map(operator).collect();
            told.join(" and ")
        }
    }
}

fn operator(operator: &Operator) -> String {
    let list = |scalars: &[Scalar]| {
        let told: Vec<_> = scalars.iter().map(scalar).collect();
        shown(&told.join(", "))
    };
    let ordered = |bound: &Scalar, number: &str, text: &str| {
        let word = if matches!(bound, Scalar::Number(_)) { number } else { text };
        format!("{word} {}", scalar(bound))
    };
    match operator {
        Operator::Exists => "any value".to_owned(),
        Operator::Eq(value) => scalar(value),
        Operator::Ne(value) => format!("something other than {}", scalar(value)),
        Operator::Gt(bound) => ordered(bound, "more than", "a text after"),
        Operator::Gte(bound) => ordered(bound, "at least", "a text from"),
        Operator::Lt(bound) => ordered(bound, "less than", "a text before"),
        Operator::Lte(bound) => ordered(bound, "at most", "a text up to"),
        Operator::In(values) => format!("one of {}", list(values)),
        Operator::NotIn(values) => format!("none of {}", list(values)),
        Operator::StartsWith(start) => format!("a text that starts with {}", shown(&quoted(start))),
        Operator::EndsWith(end) => format!("a text that ends with {}", shown(&quoted(end))),
        Operator::Contains(value) => format!("something that contains {}", scalar(value)),
    }
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "null".to_owned(),
        Scalar::Boolean(value) => value.to_string(),
        Scalar::Number(number) => number.as_str().to_owned(),
        Scalar::Text(text) => shown(&quoted(text)),
    }
}

impl Source {
    fn name(&self) -> &'static str {
        match self {
            Self::EventType => "eventType",
            Self::Channel => "channel",
            Self::Tag => "tag",
            Self::Header(_) => "header",
        }
    }
}
