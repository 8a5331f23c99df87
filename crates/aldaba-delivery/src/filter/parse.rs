//! Parses a filter from JSON and reports every error.

use super::condition::{ConditionSource, FilterCondition, Operator, Requirement};
use super::number::NumberLiteral;
use super::path::Path;
use super::value::Scalar;
use super::{
    Filter, FilterError, FilterNode, MAX_CONDITIONS, MAX_EXPONENT, MAX_FILTER_BYTES, MAX_FILTER_DEPTH,
    MAX_HEADER_NAME_BYTES, MAX_LIST_ITEMS, MAX_NUMBER_CHARS, MAX_REPORTED_ERRORS, MAX_TEXT_BYTES, MatchCost,
    PayloadCondition, match_cost, number,
};
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

const NODE_NAMES: &str = "all, any, not, eventType, channel, tag, header or payload";

pub(super) fn filter(text: &str) -> Result<Filter, Vec<FilterError>> {
    let wrong = |why: String| vec![FilterError { location: Vec::new(), why }];
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| wrong(format!("is not valid JSON: {error}")))?;
    let text = without_spaces(raw.get());
    if text.len() > MAX_FILTER_BYTES {
        let length = text.len();
        return Err(wrong(format!("may be {MAX_FILTER_BYTES} bytes of JSON at most; it is {length}")));
    }
    let mut reader = FilterParser::default();
    let root = reader.node(raw, 1);
    match root {
        Some(root) if reader.problems.is_empty() => {
            Ok(Filter { text, root, payload: reader.payload.into(), plain: reader.plain_cost })
        }
        _ => Err(reader.problems),
    }
}

/// Removes whitespace between the tokens of valid JSON.
fn without_spaces(json: &str) -> Box<str> {
    let (mut in_string, mut escaped) = (false, false);
    let kept = json.chars().filter(|&c| {
        let space = !in_string && matches!(c, ' ' | '\n' | '\r' | '\t');
        if in_string && !escaped && c == '\\' {
            escaped = true;
        } else {
            in_string ^= c == '"' && !escaped;
            escaped = false;
        }
        !space
    });
    kept.collect::<String>().into()
}

/// Parses a filter and collects errors with their locations.
#[derive(Default)]
struct FilterParser {
    location: Vec<String>,
    problems: Vec<FilterError>,
    conditions: usize,
    payload: Vec<PayloadCondition>,
    plain_cost: MatchCost,
}

/// The operators that a source allows.
struct SourceRules {
    operators: &'static [&'static str],
    /// Its values are texts only.
    texts: bool,
    what: &'static str,
}

const OPERATORS: [&str; 12] =
    ["eq", "ne", "gt", "gte", "lt", "lte", "in", "notIn", "exists", "startsWith", "endsWith", "contains"];
const VALUE_RULES: SourceRules =
    SourceRules { operators: &OPERATORS, texts: false, what: "a value of the payload" };
/// With several values `ne` is ambiguous: one differs, or all do.
const VALUES_RULES: SourceRules = SourceRules {
    operators: &["eq", "gt", "gte", "lt", "lte", "in", "exists", "startsWith", "endsWith", "contains"],
    texts: false,
    what: "a path with [*]",
};
const HEADER_RULES: SourceRules = SourceRules {
    operators: &["eq", "ne", "in", "notIn", "exists", "startsWith", "endsWith", "contains"],
    texts: true,
    what: "a header",
};
const EVENT_TYPE_RULES: SourceRules = SourceRules {
    operators: &["eq", "ne", "in", "notIn", "startsWith", "endsWith", "contains"],
    texts: true,
    what: "an event type",
};
const NAME_RULES: SourceRules = SourceRules {
    operators: &["eq", "in", "exists", "startsWith", "endsWith", "contains"],
    texts: true,
    what: "channels and tags",
};

type MemberList<'f> = Vec<(String, &'f RawValue)>;

impl FilterParser {
    fn wrong(&mut self, why: impl Into<String>) {
        if self.problems.len() < MAX_REPORTED_ERRORS {
            self.problems.push(FilterError { location: self.location.clone(), why: why.into() });
        }
    }

    fn wrong_at(&mut self, name: &str, why: impl Into<String>) {
        self.within(name, |reader| reader.wrong(why));
    }

    fn within<R>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        self.location.push(name.to_owned());
        let read = read(self);
        self.location.pop();
        read
    }

    fn node(&mut self, raw: &RawValue, depth: usize) -> Option<FilterNode> {
        if depth > MAX_FILTER_DEPTH {
            self.wrong(format!("is nested more than {MAX_FILTER_DEPTH} levels deep"));
            return None;
        }
        let members = self.members(raw)?;
        let is_node = |name: &str| {
            matches!(name, "all" | "any" | "not" | "eventType" | "channel" | "tag" | "header" | "payload")
        };
        let mut nodes = members.iter().filter(|(name, _)| is_node(name));
        let Some((name, value)) = nodes.next() else {
            self.wrong(format!("expected one of {NODE_NAMES}"));
            return None;
        };
        if let Some((other, _)) = nodes.next() {
            self.wrong_at(other, format!("is beside `{name}`; put both in `all` or `any`"));
            return None;
        }
        let others: MemberList<'_> = members.iter().filter(|(other, _)| other != name).cloned().collect();
        match name.as_str() {
            "header" | "payload" => return self.named(name, value, &others),
            _ => {
                for (other, _) in &others {
                    let why = if OPERATORS.contains(&other.as_str()) {
                        format!("needs a source, such as {{\"eventType\": {{\"{other}\": …}}}}")
                    } else {
                        format!("is unknown here; `{name}` takes no other fields")
                    };
                    self.wrong_at(other, why);
                }
            }
        }
        self.within(name, |reader| match name.as_str() {
            "all" => reader.nodes(value, depth).map(FilterNode::All),
            "any" => reader.nodes(value, depth).map(FilterNode::Any),
            "not" => reader.node(value, depth + 1).map(|node| FilterNode::Not(Box::new(node))),
            "eventType" => reader.plain_source(ConditionSource::EventType, value, &EVENT_TYPE_RULES),
            "channel" => reader.plain_source(ConditionSource::Channel, value, &NAME_RULES),
            _ => reader.plain_source(ConditionSource::Tag, value, &NAME_RULES),
        })
    }

    fn nodes(&mut self, raw: &RawValue, depth: usize) -> Option<Box<[FilterNode]>> {
        let items = self.items(raw, "filters")?;
        let read: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| self.within(&format!("[{index}]"), |reader| reader.node(item, depth + 1)))
            .collect();
        read.into_iter().collect()
    }

    /// Parses a source without a name: a text means equality, an object has operators.
    fn plain_source(
        &mut self,
        source: ConditionSource,
        raw: &RawValue,
        rules: &SourceRules,
    ) -> Option<FilterNode> {
        let requirement = if raw.get().starts_with('{') {
            let members = self.members(raw)?;
            self.requirement(&members, rules)?
        } else {
            let text = self.text(raw, "a text, or an object with an operator")?;
            Requirement::One(Box::new([Operator::Eq(Scalar::Text(text))]))
        };
        self.condition(FilterCondition::Of(source, requirement))
    }

    /// Parses a source with a name; the operators are beside it.
    fn named(&mut self, kind: &str, name: &RawValue, others: &MemberList<'_>) -> Option<FilterNode> {
        if kind == "header" {
            let name = self.within(kind, |reader| reader.header_name(name));
            let requirement = self.requirement(others, &HEADER_RULES)?;
            return self.condition(FilterCondition::Of(ConditionSource::Header(name?), requirement));
        }
        let path = self.within(kind, |reader| {
            let text = reader.text(name, "a path such as \"$.amount\"")?;
            Path::parse(&text).map_err(|why| reader.wrong(why)).ok()
        });
        let many = path.as_ref().is_some_and(Path::leads_to_many);
        let requirement = self.requirement(others, if many { &VALUES_RULES } else { &VALUE_RULES })?;
        let number = u16::try_from(self.payload.len()).ok()?;
        let path = path?;
        let key = match_cost::key(&(&path, &requirement));
        self.payload.push(PayloadCondition { path, requirement, key });
        self.condition(FilterCondition::Payload(number))
    }

    fn header_name(&mut self, raw: &RawValue) -> Option<Box<str>> {
        let name = self.text(raw, "the name of a header")?;
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if (1..=MAX_HEADER_NAME_BYTES).contains(&name.len()) && name.bytes().all(token) {
            return Some(name.to_ascii_lowercase().into());
        }
        self.wrong("is not a header name, such as `x-region`");
        None
    }

    fn condition(&mut self, condition: FilterCondition) -> Option<FilterNode> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            self.wrong(format!("is one condition too many; a filter may have {MAX_CONDITIONS}"));
            return None;
        }
        if let FilterCondition::Of(source, requirement) = &condition {
            self.plain_cost = self.plain_cost + source.match_cost(requirement);
        }
        Some(FilterNode::One(condition))
    }

    fn requirement(&mut self, members: &MemberList<'_>, rules: &SourceRules) -> Option<Requirement> {
        if members.is_empty() {
            let operators = rules.operators.join(", ");
            self.wrong(format!("has no operator; expected one or more of {operators}"));
            return None;
        }
        let alone = members.len() == 1;
        let mut operators = Vec::with_capacity(members.len());
        let mut absence = false;
        for (name, raw) in members {
            let read = self.within(name, |reader| reader.operator(name, raw, rules, alone));
            match read {
                Some(ParsedOperator::Operator(operator)) => operators.push(Some(operator)),
                Some(ParsedOperator::Absence) => absence = true,
                None => operators.push(None),
            }
        }
        if absence {
            return Some(Requirement::None);
        }
        operators.into_iter().collect::<Option<_>>().map(Requirement::One)
    }

    fn operator(
        &mut self,
        name: &str,
        raw: &RawValue,
        rules: &SourceRules,
        alone: bool,
    ) -> Option<ParsedOperator> {
        if !rules.operators.contains(&name) {
            let (what, operators) = (rules.what, rules.operators.join(", "));
            let why = match name {
                "ne" => format!("is not for {what}; put `not` around `eq`"),
                "notIn" => format!("is not for {what}; put `not` around `in`"),
                _ if OPERATORS.contains(&name) => format!("is not for {what}; expected one of {operators}"),
                _ => format!("is unknown; expected one of {operators}"),
            };
            self.wrong(why);
            return None;
        }
        let operator = match name {
            "eq" => Operator::Eq(self.scalar(raw, rules)?),
            "ne" => Operator::Ne(self.scalar(raw, rules)?),
            "gt" => Operator::Gt(self.bound(raw)?),
            "gte" => Operator::Gte(self.bound(raw)?),
            "lt" => Operator::Lt(self.bound(raw)?),
            "lte" => Operator::Lte(self.bound(raw)?),
            "in" => Operator::In(self.scalars(raw, rules)?),
            "notIn" => Operator::NotIn(self.scalars(raw, rules)?),
            "startsWith" => Operator::StartsWith(self.text(raw, "a text")?),
            "endsWith" => Operator::EndsWith(self.text(raw, "a text")?),
            "contains" => Operator::Contains(self.scalar(raw, rules)?),
            _ => match raw.get() {
                "true" => Operator::Exists,
                "false" if alone => return Some(ParsedOperator::Absence),
                "false" => {
                    self.wrong("`false` excludes every other operator; remove them");
                    return None;
                }
                _ => {
                    self.wrong("expected true or false");
                    return None;
                }
            },
        };
        Some(ParsedOperator::Operator(operator))
    }

    fn scalars(&mut self, raw: &RawValue, rules: &SourceRules) -> Option<Box<[Scalar]>> {
        let items = self.items(raw, "values")?;
        let read: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| self.within(&format!("[{index}]"), |reader| reader.scalar(item, rules)))
            .collect();
        read.into_iter().collect()
    }

    fn scalar(&mut self, raw: &RawValue, rules: &SourceRules) -> Option<Scalar> {
        let texts = rules.texts;
        match raw.get().as_bytes().first() {
            Some(b'"') => self.text(raw, "a text").map(Scalar::Text),
            Some(b'n') if !texts => Some(Scalar::Null),
            Some(b't') if !texts => Some(Scalar::Boolean(true)),
            Some(b'f') if !texts => Some(Scalar::Boolean(false)),
            Some(b'-' | b'0'..=b'9') if !texts => self.number(raw).map(Scalar::JsonNumber),
            _ if texts => {
                self.wrong(format!("expected a text: {} has only texts", rules.what));
                None
            }
            _ => {
                self.wrong("expected a text, a number, true, false or null");
                None
            }
        }
    }

    /// Parses an operand that has an order.
    fn bound(&mut self, raw: &RawValue) -> Option<Scalar> {
        match raw.get().as_bytes().first() {
            Some(b'"') => self.text(raw, "a text").map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => self.number(raw).map(Scalar::JsonNumber),
            _ => {
                self.wrong("expected a number or a text");
                None
            }
        }
    }

    fn number(&mut self, raw: &RawValue) -> Option<NumberLiteral> {
        let text = raw.get();
        if text.len() > MAX_NUMBER_CHARS {
            self.wrong(format!("may be {MAX_NUMBER_CHARS} characters long at most; it is {}", text.len()));
            return None;
        }
        if number::written_exponent(text).abs() > MAX_EXPONENT {
            self.wrong(format!("may have an exponent of {MAX_EXPONENT} at most"));
            return None;
        }
        Some(NumberLiteral::new(text))
    }

    fn text(&mut self, raw: &RawValue, expected: &str) -> Option<Box<str>> {
        let Ok(text) = serde_json::from_str::<String>(raw.get()) else {
            self.wrong(format!("expected {expected}"));
            return None;
        };
        if text.len() > MAX_TEXT_BYTES {
            self.wrong(format!("may be {MAX_TEXT_BYTES} bytes long at most; it is {}", text.len()));
            return None;
        }
        Some(text.into())
    }

    fn items<'f>(&mut self, raw: &'f RawValue, of: &str) -> Option<Vec<&'f RawValue>> {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
            self.wrong(format!("expected a list of {of}"));
            return None;
        };
        if !(1..=MAX_LIST_ITEMS).contains(&items.len()) {
            self.wrong(format!("must have 1 to {MAX_LIST_ITEMS} items; it has {}", items.len()));
            return None;
        }
        Some(items)
    }

    fn members<'f>(&mut self, raw: &'f RawValue) -> Option<MemberList<'f>> {
        let read = serde_json::Deserializer::from_str(raw.get()).deserialize_map(MembersVisitor);
        let Ok(members) = read else {
            self.wrong("expected an object");
            return None;
        };
        let repeated = |(place, (name, _)): (usize, &(String, _))| {
            members.iter().take(place).any(|(before, _)| before == name).then(|| name.clone())
        };
        if let Some(name) = members.iter().enumerate().find_map(repeated) {
            self.wrong_at(&name, "is given twice");
            return None;
        }
        Some(members)
    }
}

enum ParsedOperator {
    Operator(Operator),
    /// No value may exist.
    Absence,
}

struct MembersVisitor;

/// More members than any node has; further ones are ignored.
const MAX_MEMBERS: usize = 32;

impl<'f> Visitor<'f> for MembersVisitor {
    type Value = MemberList<'f>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'f>>(self, mut map: A) -> Result<MemberList<'f>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<String, &RawValue>()? {
            if members.len() < MAX_MEMBERS {
                members.push(member);
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_removed_except_inside_texts() {
        let given = " { \"a b\" : [ \"c \\\" d\\\\\" ,\n\t1 ] , \"e\" : \" \" } ";
        assert_eq!(&*without_spaces(given), r#"{"a b":["c \" d\\",1],"e":" "}"#);
    }
}
