//! Why a filter does not let a message through, for the people who look for it.

use super::condition::{Condition, Operator, Source, Wanted};
use super::spots::Spots;
use super::value::{Scalar, Value};
use super::{Facts, Filter, Filters, Node, Path};
use std::sync::Arc;

/// The most alternatives of an `any` that are explained.
const MOST_ALTERNATIVES: usize = 3;
/// The most characters of a value that are shown.
const LONGEST_SHOWN: usize = 80;

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Where in the filter: names of fields, and `[n]` for the items of lists.
    pub place: String,
    /// Such as: `$.amount` is 5, and the filter asks for at least 100.
    pub text: String,
}

impl Filter {
    /// What keeps a message from passing; `None`: nothing does.
    pub fn unmet(&self, facts: &Facts<'_>) -> Option<Unmet> {
        let filters = Filters::of_one(Arc::new(self.clone()));
        let hits = filters.read(facts.payload);
        let met = |condition| self.is_met(condition, hits.has(condition));
        let why = Why { filter: self, facts, met: &met };
        let mut place = String::new();
        let text = (!self.root.holds(facts, &met)).then(|| why.fails(&self.root, &mut place))?;
        Some(Unmet { place, text })
    }
}

struct Why<'a, M> {
    filter: &'a Filter,
    facts: &'a Facts<'a>,
    met: &'a M,
}

impl<M: Fn(usize) -> bool> Why<'_, M> {
    /// Of a node that does not hold. The place is that of what decides.
    fn fails(&self, node: &Node, place: &mut String) -> String {
        match node {
            Node::All(nodes) => {
                let first = nodes.iter().enumerate().find(|(_, node)| !node.holds(self.facts, self.met));
                first.map_or_else(String::new, |(index, node)| {
                    go(place, &format!("all[{index}]"));
                    self.fails(node, place)
                })
            }
            Node::Any(nodes) => {
                go(place, "any");
                let told = nodes.iter().take(MOST_ALTERNATIVES);
                let told: Vec<_> = told.map(|node| self.fails(node, &mut String::new())).collect();
                let more = if nodes.len() > MOST_ALTERNATIVES { "; and so on" } else { "" };
                match told.as_slice() {
                    [one] if nodes.len() == 1 => one.clone(),
                    _ => format!("none of {} alternatives holds: {}{more}", nodes.len(), told.join("; ")),
                }
            }
            Node::Not(node) => {
                go(place, "not");
                self.excluded(node, place)
            }
            Node::One(condition) => {
                let (name, is, wanted) = self.now(condition);
                go(place, name);
                format!("{is}, and the filter asks for {wanted}")
            }
        }
    }

    /// Of a node that holds and should not.
    fn excluded(&self, node: &Node, place: &mut String) -> String {
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
                    go(place, &format!("{}[{index}]", if all { "all" } else { "any" }));
                    self.excluded(node, place)
                })
            }
            Node::Not(node) => {
                go(place, "not");
                self.fails(node, place)
            }
            Node::One(condition) => {
                let (name, is, wanted) = self.now(condition);
                go(place, name);
                format!("{is}, and the filter excludes {wanted}")
            }
        }
    }

    /// Where a condition looks, what the message has there, and what is wanted.
    fn now(&self, condition: &Condition) -> (&'static str, String, String) {
        let (source, wanted) = match condition {
            Condition::Of(source, wanted) => (source, wanted),
            Condition::Payload(number) => {
                let Some((path, wanted)) = self.filter.payload.get(usize::from(*number)) else {
                    return ("payload", String::new(), String::new());
                };
                return ("payload", self.at(path), self::wanted(wanted));
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

    fn at(&self, path: &Path) -> String {
        let mut spots = Spots::new();
        spots.add(path, ());
        let (mut first, mut count) = (None, 0_u32);
        spots.walk(self.facts.payload, |_, text| {
            first.get_or_insert(text);
            count += 1;
        });
        match (first, count) {
            (None, _) => format!("`{path}` is not there"),
            (Some(text), 1) => format!("`{path}` is {}", kind(text)),
            (Some(text), _) => format!("`{path}` has {count} values, the first is {}", kind(text)),
        }
    }
}

fn go(place: &mut String, step: &str) {
    if !place.is_empty() {
        place.push('.');
    }
    place.push_str(step);
}

/// A value as it is written; of what is inside of lists and objects, nothing.
fn kind(text: &str) -> String {
    match Value::of(text) {
        Value::Object => "an object".to_owned(),
        Value::List(list) if list.len() > LONGEST_SHOWN => "a list".to_owned(),
        _ => shown(text),
    }
}

fn shown(text: &str) -> String {
    if text.chars().count() <= LONGEST_SHOWN {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    format!("{start}…")
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
        Scalar::Number(text) => text.to_string(),
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
