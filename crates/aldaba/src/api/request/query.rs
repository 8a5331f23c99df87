//! Query strings. A route declares its parameters once: the declarations give the API's document and the values, and
//! refuse every other parameter (422).

use super::json;
use crate::api::response::error::{Problem, Problems};
use crate::api::{Api, Error};
use crate::config::{UNKNOWN_FIELDS_HINT, UnknownFields};
use aldaba_delivery::Timestamp;
use aldaba_delivery::names;
use aldaba_delivery::nearest::nearest;
use aldaba_store::TimeRange;
use axum::extract::FromRequestParts;
use http::request::Parts;
use std::convert::Infallible;
use std::sync::Arc;
use url::form_urlencoded;

/// A parameter of the query string.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) about: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Boolean,
    /// A boolean that SDKs send as false. True is refused, for this reason.
    OnlyFalse(&'static str),
    Integer {
        least: i64,
        most: i64,
    },
    /// RFC 3339.
    Moment,
    Text,
    CheckedText(fn(&str) -> Result<(), String>),
    /// Event types, separated by commas, or given several times, also as `name[]` or `name[0]`.
    Names,
    OneOf(&'static [&'static str]),
    OneNumberOf(&'static [i64]),
}

/// Event types in one query.
pub(crate) const MAX_EVENT_TYPES: usize = 100;

/// Names for one parameter. A route that takes one of them takes all.
const SYNONYMS: [&[&str]; 3] = [
    &["app", "app_id"],
    &["endpoint", "endpoint_id"],
    &["event_types", "eventTypes", "event_type", "eventType"],
];

impl Parameter {
    fn names(&self) -> &[&'static str] {
        let synonyms = SYNONYMS.iter().find(|names| names.contains(&self.name));
        synonyms.copied().unwrap_or(std::slice::from_ref(&self.name))
    }

    /// The parameter's name in a key. A list may be written as `name[]` or `name[0]`.
    fn name_in<'key>(&self, key: &'key str) -> Option<&'key str> {
        let name = match (self.form, key.split_once('[')) {
            (Form::Names, Some((name, index))) => {
                let index = index.strip_suffix(']')?;
                index.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)?
            }
            _ => key,
        };
        self.names().contains(&name).then_some(name)
    }

    fn read(&self, text: &str) -> Result<Value, Problem> {
        let expected = |expected: &str| {
            Problem::value(&["query", self.name], format!("expected {expected}, not `{text}`"))
        };
        let number = || text.parse::<i64>().ok();
        match self.form {
            Form::Boolean | Form::OnlyFalse(_) => match text {
                "true" => Ok(Value::Boolean(true)),
                "false" => Ok(Value::Boolean(false)),
                _ => Err(expected("true or false")),
            },
            Form::Integer { least, most } => {
                let number = number().filter(|number| (least..=most).contains(number));
                let expected = || expected(&format!("a whole number from {least} to {most}"));
                number.map(Value::Number).ok_or_else(expected)
            }
            Form::Moment => {
                let expected = || expected("a date and time with an offset, such as 2026-01-31T12:00:00Z");
                json::read_moment(text).map(Value::Moment).ok_or_else(expected)
            }
            Form::Text => Ok(Value::Text(text.to_owned())),
            Form::CheckedText(check) => match check(text) {
                Ok(()) => Ok(Value::Text(text.to_owned())),
                Err(message) => Err(Problem::value(&["query", self.name], message)),
            },
            Form::Names => {
                Ok(Value::Names(text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()))
            }
            Form::OneOf(known) => match known.contains(&text) {
                true => Ok(Value::Text(text.to_owned())),
                false => Err(expected(&alternatives(known))),
            },
            Form::OneNumberOf(known) => {
                let number = number().filter(|number| known.contains(number));
                let names = || known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                number.map(Value::Number).ok_or_else(|| expected(&format!("one of {}", names())))
            }
        }
    }

    /// What is wrong with a value that has the right form.
    fn problem(&self, value: &Value) -> Option<Problem> {
        match (self.form, value) {
            (Form::OnlyFalse(why), Value::Boolean(true)) => Some(Problem::value(&["query", self.name], why)),
            (Form::Names, Value::Names(given)) => event_types_problem(given, &["query", self.name]),
            _ => None,
        }
    }
}

fn alternatives(known: &[&str]) -> String {
    match known {
        [one, other] => format!("{one} or {other}"),
        _ => format!("one of {}", known.join(", ")),
    }
}

/// What is wrong with a list of event types.
pub(crate) fn event_types_problem(event_types: &[String], place: &[&str]) -> Option<Problem> {
    if event_types.len() > MAX_EVENT_TYPES {
        return Some(Problem::value(place, format!("may be {MAX_EVENT_TYPES} names at most")));
    }
    let wrong = event_types.iter().find_map(|name| names::name(name).err());
    wrong.map(|message| Problem::value(place, format!("each {message}")))
}

#[derive(Clone, Debug)]
enum Value {
    Boolean(bool),
    Number(i64),
    Moment(Timestamp),
    Text(String),
    Names(Vec<String>),
}

/// The values of a query string, by the names of the declarations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Arc<Vec<(&'static str, Value)>>);

impl Query {
    /// The query of a request whose route has read it.
    pub(crate) fn of(parts: &Parts) -> Self {
        // The common case costs nothing: no query at all.
        match parts.uri.query() {
            None => Self::default(),
            Some(_) => parts.extensions.get().cloned().unwrap_or_default(),
        }
    }

    /// Reads a query string, with all problems at once. Of a parameter that is no list the first value counts.
    pub(crate) fn read(text: &str, declared: &[Parameter], unknown: UnknownFields) -> Result<Self, Error> {
        let mut problems = Problems::default();
        let mut values: Vec<(&'static str, Value)> = Vec::new();
        let given: Vec<_> = form_urlencoded::parse(text.as_bytes())
            .map(|(key, text)| {
                let found = declared.iter().find_map(|known| Some((known, known.name_in(&key)?.to_owned())));
                (key, text, found)
            })
            .collect();
        // The names by which each parameter was given.
        let mut names: Vec<(&'static str, &str)> = Vec::new();
        for (parameter, name) in given.iter().filter_map(|(.., found)| found.as_ref()) {
            if !names.contains(&(parameter.name, name)) {
                names.push((parameter.name, name));
            }
        }
        for (key, text, found) in &given {
            let Some((parameter, name)) = found else {
                if unknown == UnknownFields::Refuse {
                    // No more problems are listed, and looking for the nearest name takes time.
                    let message = match problems.is_full() {
                        true => String::new(),
                        false => unknown_parameter(key, declared),
                    };
                    problems.push(Problem::value(&["query", key], message));
                }
                continue;
            };
            let is_synonym = |(of, other): &&(&str, &str)| *of == parameter.name && *other != name;
            if let Some((_, other)) = names.iter().find(is_synonym) {
                let message = format!("means the same as `{other}`; give one of them");
                problems.push(Problem::value(&["query", key], message));
                continue;
            }
            match (parameter.read(text), values.iter_mut().find(|(name, _)| *name == parameter.name)) {
                (Err(problem), _) => problems.push(problem),
                (Ok(Value::Names(more)), Some((_, Value::Names(names)))) => names.extend(more),
                (Ok(_), Some(_)) => {}
                (Ok(value), None) => values.push((parameter.name, value)),
            }
        }
        for (name, value) in &values {
            let parameter = declared.iter().find(|parameter| parameter.name == *name);
            if let Some(problem) = parameter.and_then(|parameter| parameter.problem(value)) {
                problems.push(problem);
            }
        }
        if problems.is_empty() { Ok(Self(Arc::new(values))) } else { Err(problems.into()) }
    }

    fn get(&self, wanted: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }

    pub(crate) fn boolean(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            Some(Value::Boolean(value)) => *value,
            _ => default,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn moment(&self, name: &str) -> Option<Timestamp> {
        match self.get(name)? {
            Value::Moment(moment) => Some(*moment),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn names(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::Names(names)) => names,
            _ => &[],
        }
    }

    /// `before` and `after`.
    pub(crate) fn within(&self) -> TimeRange {
        TimeRange { before: self.moment("before"), after: self.moment("after") }
    }
}

impl FromRequestParts<Api> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

fn unknown_parameter(key: &str, declared: &[Parameter]) -> String {
    let useful = declared.iter().filter(|parameter| !matches!(parameter.form, Form::OnlyFalse(_)));
    let known: Vec<_> = useful.map(|parameter| parameter.name).collect();
    let name = key.split_once('[').map_or(key, |(name, _)| name);
    let advice = match nearest(name, &known) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None if known.is_empty() => {
            "this request takes none; fields belong into the JSON body, if it has one".to_owned()
        }
        None => format!("there are: {}", known.join(", ")),
    };
    format!("unknown parameter; {advice}{UNKNOWN_FIELDS_HINT}")
}

/// `with_content`: whether payloads or response bodies are wanted. Without it they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithContent(pub(crate) bool);

impl FromRequestParts<Api> for WithContent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Infallible> {
        Ok(Self(Query::of(parts).boolean("with_content", true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &[Parameter] = &[
        Parameter { name: "event_types", form: Form::Names, about: "" },
        Parameter { name: "limit", form: Form::Integer { least: 1, most: 250 }, about: "" },
        Parameter { name: "app", form: Form::Text, about: "" },
        Parameter { name: "only_new", form: Form::OnlyFalse("is not available"), about: "" },
    ];

    fn read(text: &str) -> Result<Query, Error> {
        Query::read(text, DECLARED, UnknownFields::Refuse)
    }

    #[test]
    fn event_types_are_read_in_every_spelling() {
        for (query, wanted) in [
            ("", vec![]),
            ("event_types=", vec![]),
            ("event_types=a", vec!["a"]),
            ("event_types=a,b", vec!["a", "b"]),
            ("event_types=a&event_types=b,c", vec!["a", "b", "c"]),
            ("event_types[]=a&event_types[]=b", vec!["a", "b"]),
            ("event_types%5B0%5D=a&event_types%5B1%5D=b", vec!["a", "b"]),
            ("event_types=a%2Cb", vec!["a", "b"]),
            ("eventTypes[]=a", vec!["a"]),
        ] {
            assert_eq!(read(query).unwrap().names("event_types"), wanted, "{query}");
        }
    }

    #[test]
    fn unknown_and_unreadable_parameters_are_refused_together() {
        for (query, said) in [
            ("event_typesx=a", "did you mean \"event_types\"?"),
            ("event_types[x]=a", "did you mean \"event_types\"?"),
            ("limit[]=1", "did you mean \"limit\"?"),
            ("limit=0", "expected a whole number from 1 to 250, not `0`"),
            ("quarterly=1", "there are: event_types, limit, app ("),
            ("only_new=true", "is not available"),
            ("app=a&app_id=b", "means the same as `app_id`; give one of them"),
            (
                "limit=x&nobody=1",
                "expected a whole number from 1 to 250, not `x`; unknown parameter; there are",
            ),
        ] {
            let (status, summary) = read(query).unwrap_err().summary();
            assert_eq!(status, 422, "{query}");
            assert!(summary.contains(said), "{query}: {summary}");
        }
    }

    #[test]
    fn unknown_parameters_can_be_ignored() {
        let query = Query::read("limt=3&limit=4&only_new=false", DECLARED, UnknownFields::Ignore).unwrap();
        assert_eq!(query.number("limit"), Some(4));
        assert!(Query::read("limt=3&limit=x", DECLARED, UnknownFields::Ignore).is_err());
    }
}
