//! Explains why a filter rejects a message.

use super::condition::{ConditionSource, FilterCondition, Operator, Requirement};
use super::filter_set::{ConditionRef, HitBits, SetMember};
use super::value::Scalar;
use super::{Filter, FilterInput, FilterNode, FilterSet, Path, PayloadCondition};
use std::collections::HashMap;
use std::sync::Arc;

/// The most alternatives of an `any` in an explanation.
const MAX_ALTERNATIVES: usize = 3;
/// The longest value in an explanation, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetCondition {
    /// Its location in the filter: names of fields, and `[n]` for list items.
    pub location: String,
    /// For example: `$.amount` is 5, and the filter asks for at least 100.
    pub text: String,
}

impl Filter {
    /// The condition that rejects a message; `None`: it passes. For many filters use [`FilterSet::explain`].
    pub fn unmet(&self, input: &FilterInput<'_>) -> Option<UnmetCondition> {
        FilterSet::of_one(Arc::new(self.clone())).explain(*input).unmet(0)
    }
}

impl FilterSet {
    /// Prepares explanations for one message. The cost is that of matching, plus the text.
    pub fn explain<'a>(&'a self, input: FilterInput<'a>) -> Explanation<'a> {
        let mut seen = HashMap::new();
        let hits = self.read(input.payload, |path_number, text| {
            seen.entry(path_number).or_insert(SeenValue { first: text, count: 0 }).count += 1;
        });
        Explanation { filters: self, input, hits, seen }
    }
}

/// A message matched against all filters of a set.
#[derive(Debug)]
pub struct Explanation<'a> {
    filters: &'a FilterSet,
    input: FilterInput<'a>,
    hits: HitBits,
    /// By path number.
    seen: HashMap<usize, SeenValue<'a>>,
}

/// The values of a path in the payload.
#[derive(Clone, Copy, Debug)]
struct SeenValue<'a> {
    first: &'a str,
    count: u32,
}

impl Explanation<'_> {
    /// The condition of an endpoint's filter that rejects the message; `None`: it passes, or there is no
    /// filter.
    pub fn unmet(&self, member: usize) -> Option<UnmetCondition> {
        let member = self.filters.members.get(member)?.as_ref()?;
        let met = |condition| member.is_met(condition, &self.hits);
        let why = Explainer { member, input: &self.input, seen: &self.seen, met: &met };
        let (mut location, root) = (String::new(), &member.filter.root);
        let text = (!root.holds(&self.input, &met)).then(|| why.fails(root, &mut location))?;
        Some(UnmetCondition { location, text })
    }
}

struct Explainer<'a, M> {
    member: &'a SetMember,
    input: &'a FilterInput<'a>,
    seen: &'a HashMap<usize, SeenValue<'a>>,
    met: &'a M,
}

impl<M: Fn(usize) -> bool> Explainer<'_, M> {
    /// Explains a node that does not hold. `location` becomes that of the deciding condition.
    fn fails(&self, node: &FilterNode, location: &mut String) -> String {
        match node {
            FilterNode::All(nodes) => {
                let first = nodes.iter().enumerate().find(|(_, node)| !node.holds(self.input, self.met));
                first.map_or_else(String::new, |(index, node)| {
                    push_step(location, &format!("all[{index}]"));
                    self.fails(node, location)
                })
            }
            FilterNode::Any(nodes) => {
                push_step(location, "any");
                let texts = nodes.iter().take(MAX_ALTERNATIVES);
                let texts: Vec<_> = texts.map(|node| self.fails(node, &mut String::new())).collect();
                let more = if nodes.len() > MAX_ALTERNATIVES { "; and so on" } else { "" };
                match texts.as_slice() {
                    [one] if nodes.len() == 1 => one.clone(),
                    _ => format!("none of {} alternatives holds: {}{more}", nodes.len(), texts.join("; ")),
                }
            }
            FilterNode::Not(node) => {
                push_step(location, "not");
                self.excluded(node, location)
            }
            FilterNode::One(condition) => {
                let (name, is, requirement) = self.now(condition);
                push_step(location, name);
                format!("{is}, and the filter asks for {requirement}")
            }
        }
    }

    /// Explains a node that holds inside of `not`.
    fn excluded(&self, node: &FilterNode, location: &mut String) -> String {
        match node {
            FilterNode::All(nodes) if nodes.len() > 1 => {
                let texts = nodes.iter().take(MAX_ALTERNATIVES);
                let texts: Vec<_> = texts.map(|node| self.excluded(node, &mut String::new())).collect();
                let more = if nodes.len() > MAX_ALTERNATIVES { "; and so on" } else { "" };
                format!("all of what the filter excludes together holds: {}{more}", texts.join("; "))
            }
            FilterNode::All(nodes) | FilterNode::Any(nodes) => {
                let all = matches!(node, FilterNode::All(_));
                let first = nodes.iter().enumerate().find(|(_, node)| node.holds(self.input, self.met));
                first.map_or_else(String::new, |(index, node)| {
                    push_step(location, &format!("{}[{index}]", if all { "all" } else { "any" }));
                    self.excluded(node, location)
                })
            }
            FilterNode::Not(node) => {
                push_step(location, "not");
                self.fails(node, location)
            }
            FilterNode::One(condition) => {
                let (name, is, requirement) = self.now(condition);
                push_step(location, name);
                format!("{is}, and the filter excludes {requirement}")
            }
        }
    }

    /// The source of a condition, the message's value, and the requirement.
    fn now(&self, condition: &FilterCondition) -> (&'static str, String, String) {
        let (source, requirement) = match condition {
            FilterCondition::Of(source, requirement) => (source, requirement),
            FilterCondition::Payload(number) => {
                let number = usize::from(*number);
                let asked = self.member.filter.payload.get(number).zip(self.member.conditions.get(number));
                let Some((PayloadCondition { path, requirement, .. }, asked)) = asked else {
                    return ("payload", String::new(), String::new());
                };
                return ("payload", self.at(path, asked), self::requirement(requirement));
            }
        };
        (source.name(), self.of(source), self::requirement(requirement))
    }

    fn of(&self, source: &ConditionSource) -> String {
        let input = self.input;
        let listed = |what: &str, names: &[String]| match names {
            [] => format!("the message has no {what}"),
            names => format!("the message has the {what}s {}", names.join(", ")),
        };
        match source {
            ConditionSource::EventType => format!("the event type is {}", input.event_type),
            ConditionSource::Channel => listed("channel", input.channels),
            ConditionSource::Tag => listed("tag", input.tags),
            ConditionSource::Header(name) => {
                let values = input.headers.iter().filter(|(header, _)| **header == **name);
                match values.map(|(_, value)| value).next() {
                    Some(value) => format!("the header {name} is {}", shown(&quoted(value))),
                    None => format!("the message has no header {name}"),
                }
            }
        }
    }

    fn at(&self, path: &Path, asked: &ConditionRef) -> String {
        match self.seen.get(&(asked.path_number as usize)) {
            None => format!("`{path}` is not there"),
            Some(SeenValue { first, count: 1 }) => format!("`{path}` is {}", kind(first)),
            Some(SeenValue { first, count }) => {
                format!("`{path}` has {count} values, the first is {}", kind(first))
            }
        }
    }
}

fn push_step(location: &mut String, step: &str) {
    if !location.is_empty() {
        location.push('.');
    }
    location.push_str(step);
}

/// A value as JSON; objects and long lists only by their type.
fn kind(text: &str) -> String {
    match text.as_bytes().first() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') if text.len() > MAX_SHOWN_CHARS => "a list".to_owned(),
        _ => shown(text),
    }
}

/// Cuts a long text; the cost does not depend on its length.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn requirement(requirement: &Requirement) -> String {
    match requirement {
        Requirement::None => "nothing there".to_owned(),
        Requirement::One(operators) => {
            let texts: Vec<_> = operators.iter().map(operator).collect();
            texts.join(" and ")
        }
    }
}

fn operator(operator: &Operator) -> String {
    let list = |scalars: &[Scalar]| {
        let texts: Vec<_> = scalars.iter().map(scalar).collect();
        shown(&texts.join(", "))
    };
    let ordered = |bound: &Scalar, number: &str, text: &str| {
        let word = if matches!(bound, Scalar::JsonNumber(_)) { number } else { text };
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
        Scalar::JsonNumber(number) => number.as_str().to_owned(),
        Scalar::Text(text) => shown(&quoted(text)),
    }
}

impl ConditionSource {
    fn name(&self) -> &'static str {
        match self {
            Self::EventType => "eventType",
            Self::Channel => "channel",
            Self::Tag => "tag",
            Self::Header(_) => "header",
        }
    }
}
