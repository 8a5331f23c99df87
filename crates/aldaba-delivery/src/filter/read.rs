//! From JSON to a filter, with everything that is wrong.

use super::condition::{Condition, Operator, Source, Wanted};
use super::number::Written;
use super::path::Path;
use super::value::Scalar;
use super::{
    About, Filter, FilterError, MAX_CONDITIONS, MAX_EXPONENT, MAX_FILTER_BYTES, MAX_FILTER_DEPTH,
    MAX_HEADER_NAME_BYTES, MAX_LIST_ITEMS, MAX_NUMBER_CHARS, MAX_REPORTED_ERRORS, MAX_TEXT_BYTES, MatchCost,
    Node, number, work,
};
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

const NODES: &str = "all, any, not, eventType, channel, tag, header or payload";

pub(super) fn filter(text: &str) -> Result<Filter, Vec<FilterError>> {
    let wrong = |why: String| vec![FilterError { location: Vec::new(), why }];
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| wrong(format!("is no valid JSON: {error}")))?;
    let text = without_spaces(raw.get());
    if text.len() > MAX_FILTER_BYTES {
        let length = text.len();
        return Err(wrong(format!("may be {MAX_FILTER_BYTES} bytes of JSON at most; it is {length}")));
    }
    let mut reader = Reader::default();
    let root = reader.node(raw, 1);
    match root {
        Some(root) if reader.problems.is_empty() => {
            Ok(Filter { text, root, payload: reader.payload.into(), plain: reader.plain })
        }
        _ => Err(reader.problems),
    }
}

/// Valid JSON with nothing between its signs.
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

/// Takes a filter apart and notes what is wrong, with its place.
#[derive(Default)]
struct Reader {
    location: Vec<String>,
    problems: Vec<FilterError>,
    conditions: usize,
    payload: Vec<About>,
    plain: MatchCost,
}

/// What a source allows to be asked.
struct Asking {
    operators: &'static [&'static str],
    /// It has texts only.
    texts: bool,
    what: &'static str,
}

const OPERATORS: [&str; 12] =
    ["eq", "ne", "gt", "gte", "lt", "lte", "in", "notIn", "exists", "startsWith", "endsWith", "contains"];
const OF_VALUE: Asking = Asking { operators: &OPERATORS, texts: false, what: "a value of the payload" };
/// With several values `ne` could mean that one differs, or that all do.
const OF_VALUES: Asking = Asking {
    operators: &["eq", "gt", "gte", "lt", "lte", "in", "exists", "startsWith", "endsWith", "contains"],
    texts: false,
    what: "a path with [*]",
};
const OF_HEADER: Asking = Asking {
    operators: &["eq", "ne", "in", "notIn", "exists", "startsWith", "endsWith", "contains"],
    texts: true,
    what: "a header",
};
const OF_EVENT_TYPE: Asking = Asking {
    operators: &["eq", "ne", "in", "notIn", "startsWith", "endsWith", "contains"],
    texts: true,
    what: "an event type",
};
const OF_NAMES: Asking = Asking {
    operators: &["eq", "in", "exists", "startsWith", "endsWith", "contains"],
    texts: true,
    what: "channels and tags",
};

type Members<'f> = Vec<(String, &'f RawValue)>;

impl Reader {
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

    fn node(&mut self, raw: &RawValue, depth: usize) -> Option<Node> {
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
            self.wrong(format!("expected one of {NODES}"));
            return None;
        };
        if let Some((other, _)) = nodes.next() {
            self.wrong_at(other, format!("stands beside `{name}`; put both in `all` or `any`"));
            return None;
        }
        let others: Members<'_> = members.iter().filter(|(other, _)| other != name).cloned().collect();
        match name.as_str() {
            "header" | "payload" => return self.named(name, value, &others),
            _ => {
                for (other, _) in &others {
                    let why = if OPERATORS.contains(&other.as_str()) {
                        format!("belongs to what it is about, such as {{\"eventType\": {{\"{other}\": …}}}}")
                    } else {
                        format!("is not known here; `{name}` stands alone")
                    };
                    self.wrong_at(other, why);
                }
            }
        }
        self.within(name, |reader| match name.as_str() {
            "all" => reader.nodes(value, depth).map(Node::All),
            "any" => reader.nodes(value, depth).map(Node::Any),
            "not" => reader.node(value, depth + 1).map(|node| Node::Not(Box::new(node))),
            "eventType" => reader.plain(Source::EventType, value, &OF_EVENT_TYPE),
            "channel" => reader.plain(Source::Channel, value, &OF_NAMES),
            _ => reader.plain(Source::Tag, value, &OF_NAMES),
        })
    }

    fn nodes(&mut self, raw: &RawValue, depth: usize) -> Option<Box<[Node]>> {
        let items = self.items(raw, "filters")?;
        let read: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| self.within(&format!("[{index}]"), |reader| reader.node(item, depth + 1)))
            .collect();
        read.into_iter().collect()
    }

    /// A source of which there is one: a text is what it must be, an object says more.
    fn plain(&mut self, source: Source, raw: &RawValue, asking: &Asking) -> Option<Node> {
        let wanted = if raw.get().starts_with('{') {
            let members = self.members(raw)?;
            self.wanted(&members, asking)?
        } else {
            let text = self.text(raw, "a text, or an object with an operator")?;
            Wanted::One(Box::new([Operator::Eq(Scalar::Text(text))]))
        };
        self.condition(Condition::Of(source, wanted))
    }

    /// A source of which there are many, so that it has a name; the operators stand beside it.
    fn named(&mut self, kind: &str, name: &RawValue, others: &Members<'_>) -> Option<Node> {
        if kind == "header" {
            let name = self.within(kind, |reader| reader.header_name(name));
            let wanted = self.wanted(others, &OF_HEADER)?;
            return self.condition(Condition::Of(Source::Header(name?), wanted));
        }
        let path = self.within(kind, |reader| {
            let text = reader.text(name, "a path such as \"$.amount\"")?;
            Path::parse(&text).map_err(|why| reader.wrong(why)).ok()
        });
        let many = path.as_ref().is_some_and(Path::leads_to_many);
        let wanted = self.wanted(others, if many { &OF_VALUES } else { &OF_VALUE })?;
        let number = u16::try_from(self.payload.len()).ok()?;
        let path = path?;
        let key = work::key(&(&path, &wanted));
        self.payload.push(About { path, wanted, key });
        self.condition(Condition::Payload(number))
    }

    fn header_name(&mut self, raw: &RawValue) -> Option<Box<str>> {
        let name = self.text(raw, "the name of a header")?;
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if (1..=MAX_HEADER_NAME_BYTES).contains(&name.len()) && name.bytes().all(token) {
            return Some(name.to_ascii_lowercase().into());
        }
        self.wrong("is no name of a header, such as `x-region`");
        None
    }

    fn condition(&mut self, condition: Condition) -> Option<Node> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            self.wrong(format!("is one condition too many; a filter may have {MAX_CONDITIONS}"));
            return None;
        }
        if let Condition::Of(source, wanted) = &condition {
            self.plain = self.plain + source.match_cost(wanted);
        }
        Some(Node::One(condition))
    }

    fn wanted(&mut self, members: &Members<'_>, asking: &Asking) -> Option<Wanted> {
        if members.is_empty() {
            let operators = asking.operators.join(", ");
            self.wrong(format!("asks nothing; expected one or more of {operators}"));
            return None;
        }
        let alone = members.len() == 1;
        let mut operators = Vec::with_capacity(members.len());
        let mut absence = false;
        for (name, raw) in members {
            let read = self.within(name, |reader| reader.operator(name, raw, asking, alone));
            match read {
                Some(Asked::Operator(operator)) => operators.push(Some(operator)),
                Some(Asked::Absence) => absence = true,
                None => operators.push(None),
            }
        }
        if absence {
            return Some(Wanted::None);
        }
        operators.into_iter().collect::<Option<_>>().map(Wanted::One)
    }

    fn operator(&mut self, name: &str, raw: &RawValue, asking: &Asking, alone: bool) -> Option<Asked> {
        if !asking.operators.contains(&name) {
            let (what, operators) = (asking.what, asking.operators.join(", "));
            let why = match name {
                "ne" => format!("is not for {what}; put `not` around `eq`"),
                "notIn" => format!("is not for {what}; put `not` around `in`"),
                _ if OPERATORS.contains(&name) => format!("is not for {what}; expected one of {operators}"),
                _ => format!("is not known here; expected one of {operators}"),
            };
            self.wrong(why);
            return None;
        }
        let operator = match name {
            "eq" => Operator::Eq(self.scalar(raw, asking)?),
            "ne" => Operator::Ne(self.scalar(raw, asking)?),
            "gt" => Operator::Gt(self.bound(raw)?),
            "gte" => Operator::Gte(self.bound(raw)?),
            "lt" => Operator::Lt(self.bound(raw)?),
            "lte" => Operator::Lte(self.bound(raw)?),
            "in" => Operator::In(self.scalars(raw, asking)?),
            "notIn" => Operator::NotIn(self.scalars(raw, asking)?),
            "startsWith" => Operator::StartsWith(self.text(raw, "a text")?),
            "endsWith" => Operator::EndsWith(self.text(raw, "a text")?),
            "contains" => Operator::Contains(self.scalar(raw, asking)?),
            _ => match raw.get() {
                "true" => Operator::Exists,
                "false" if alone => return Some(Asked::Absence),
                "false" => {
                    self.wrong("`false` leaves nothing to compare; leave the other operators out");
                    return None;
                }
                _ => {
                    self.wrong("expected true or false");
                    return None;
                }
            },
        };
        Some(Asked::Operator(operator))
    }

    fn scalars(&mut self, raw: &RawValue, asking: &Asking) -> Option<Box<[Scalar]>> {
        let items = self.items(raw, "values")?;
        let read: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| self.within(&format!("[{index}]"), |reader| reader.scalar(item, asking)))
            .collect();
        read.into_iter().collect()
    }

    fn scalar(&mut self, raw: &RawValue, asking: &Asking) -> Option<Scalar> {
        let texts = asking.texts;
        match raw.get().as_bytes().first() {
            Some(b'"') => self.text(raw, "a text").map(Scalar::Text),
            Some(b'n') if !texts => Some(Scalar::Null),
            Some(b't') if !texts => Some(Scalar::Boolean(true)),
            Some(b'f') if !texts => Some(Scalar::Boolean(false)),
            Some(b'-' | b'0'..=b'9') if !texts => self.number(raw).map(Scalar::Number),
            _ if texts => {
                self.wrong(format!("expected a text, as {} has only such", asking.what));
                None
            }
            _ => {
                self.wrong("expected a text, a number, true, false or null");
                None
            }
        }
    }

    /// What something can be larger or smaller than.
    fn bound(&mut self, raw: &RawValue) -> Option<Scalar> {
        match raw.get().as_bytes().first() {
            Some(b'"') => self.text(raw, "a text").map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => self.number(raw).map(Scalar::Number),
            _ => {
                self.wrong("expected a number or a text");
                None
            }
        }
    }

    fn number(&mut self, raw: &RawValue) -> Option<Written> {
        let text = raw.get();
        if text.len() > MAX_NUMBER_CHARS {
            self.wrong(format!("may be {MAX_NUMBER_CHARS} characters long at most; it is {}", text.len()));
            return None;
        }
        if number::written_exponent(text).abs() > MAX_EXPONENT {
            self.wrong(format!("may have an exponent of {MAX_EXPONENT} at most"));
            return None;
        }
        Some(Written::new(text))
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

    fn members<'f>(&mut self, raw: &'f RawValue) -> Option<Members<'f>> {
        let read = serde_json::Deserializer::from_str(raw.get()).deserialize_map(AllMembers);
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

enum Asked {
    Operator(Operator),
    /// Nothing at all may be there.
    Absence,
}

struct AllMembers;

/// More members than anything here can have; what follows is not looked at.
const MOST_MEMBERS: usize = 32;

impl<'f> Visitor<'f> for AllMembers {
    type Value = Members<'f>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'f>>(self, mut map: A) -> Result<Members<'f>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<String, &RawValue>()? {
            if members.len() < MOST_MEMBERS {
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
    fn spaces_go_except_inside_of_texts() {
        let given = " { \"a b\" : [ \"c \\\" d\\\\\" ,\n\t1 ] , \"e\" : \" \" } ";
        assert_eq!(&*without_spaces(given), r#"{"a b":["c \" d\\",1],"e":" "}"#);
    }
}
