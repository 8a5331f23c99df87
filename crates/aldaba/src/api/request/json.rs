//! JSON in and out.

use super::bounded_json::{self, First};
use crate::api::message::body::{DEEPEST, too_deep};
use crate::api::response::error::{Error, Problem, Problems};
use aldaba_delivery::Timestamp;
use aldaba_delivery::nearest::unknown_field;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Display;

const METADATA_BYTES: usize = 4096;
/// More than fit into so many bytes, each with its quotes, colon and comma.
const METADATA_ITEMS: usize = METADATA_BYTES / 5;

pub(crate) fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    sized_answer(status, body, 256)
}

/// With an idea of the answer's size, so that its buffer does not have to grow.
pub(crate) fn sized_answer(status: StatusCode, body: &impl Serialize, size: usize) -> Response {
    let mut bytes = Vec::with_capacity(size);
    if let Err(error) = serde_json::to_writer(&mut bytes, body) {
        tracing::error!(%error, "an answer cannot be written as JSON");
        return Error::server().into_response();
    }
    let mut response = (status, bytes).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What has a text of its own: ids.
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn optional_text<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => text(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// RFC 3339 in UTC with microseconds.
pub(crate) fn time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&moment(*time))
}

/// The same as a text.
pub(crate) fn moment(time: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.6}")
}

/// A moment as RFC 3339 writes it. The last hours of the year 9999 are beyond what can be shown, and count as the
/// last moment that can: whoever writes them means that there is no end.
pub(crate) fn read_moment(text: &str) -> Option<Timestamp> {
    let moment = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let pieces = Pieces::parse(text).ok()?;
        let is_moment = pieces.time().is_some() && pieces.to_numeric_offset().is_some();
        let is_last = pieces.date() >= jiff::Timestamp::MAX.to_zoned(TimeZone::UTC).date();
        (is_moment && is_last).then_some(jiff::Timestamp::MAX)
    })?;
    Some(Timestamp::from_millis(moment.as_millisecond()))
}

/// For sentences.
pub(crate) fn shown_time(time: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

pub(crate) fn optional_time<S: Serializer>(
    moment: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => time(moment, serializer),
        None => serializer.serialize_none(),
    }
}

/// JSON that was stored as text, as it stands.
pub(crate) fn raw(stored: &str) -> &RawValue {
    serde_json::from_str(stored).unwrap_or_else(|_| empty())
}

pub(crate) fn empty() -> &'static RawValue {
    serde_json::from_str("{}").expect("an empty object is JSON")
}

/// The fields of a request's body, taken one by one. What is wrong is collected, so that one answer
/// names all of it.
#[derive(Debug)]
pub(crate) struct Fields {
    /// As they stand in the body. What nobody asks for is never built.
    fields: BTreeMap<String, Box<RawValue>>,
    problems: Problems,
}

impl Fields {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Error> {
        match bounded_json::fields(body) {
            Ok(_) if too_deep(body) => {
                Err(Problem::decode(&["body"], format!("is nested more than {DEEPEST} levels deep")).into())
            }
            Ok(fields) => Ok(Self { fields, problems: Problems::default() }),
            Err(_) if body.trim_ascii().is_empty() => {
                Err(Problem::decode(&["body"], "the body is empty; expected a JSON object").into())
            }
            Err(error) => Err(Problem::decode(&["body"], unreadable(body, &error)).into()),
        }
    }

    /// The same for a body that may be left out.
    pub(crate) fn parse_or_none(body: &[u8]) -> Result<Self, Error> {
        match body.trim_ascii() {
            [] => Ok(Self { fields: BTreeMap::new(), problems: Problems::default() }),
            body => Self::parse(body),
        }
    }

    /// One field alone.
    pub(crate) fn of(name: &str, value: &RawValue) -> Self {
        let fields = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Self { fields, problems: Problems::default() }
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.into()) }
    }

    pub(crate) fn problem(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(Problem::value(&["body", field], message));
    }

    /// At a place inside a field.
    pub(crate) fn problem_at(&mut self, place: &[&str], message: impl Into<String>) {
        let loc: Vec<_> = ["body"].iter().chain(place).copied().collect();
        self.problems.push(Problem::value(&loc, message));
    }

    /// A field that must be given, whatever it is.
    pub(crate) fn require(&mut self, name: &str) {
        if self.fields.get(name).is_none_or(|value| is_null(value)) {
            self.problems.push(Problem::value(&["body", name], "this field is required"));
        }
    }

    /// Refuses fields that mean nothing, for bodies in which one that is left out means something: a name that is
    /// misspelt would be taken for that.
    pub(crate) fn refuse_others(&mut self, known: &[&str]) {
        self.refuse_others_but(known, &[]);
    }

    /// The same, but for names of which the caller says something else.
    pub(crate) fn refuse_others_but(&mut self, known: &[&str], apart: &[&str]) {
        let is_known = |name: &str| known.contains(&name) || apart.contains(&name);
        let unknown: Vec<_> = self.fields.keys().filter(|name| !is_known(name)).cloned().collect();
        for (place, name) in unknown.iter().enumerate() {
            // No more than so many problems are listed, and looking for the nearest name takes time.
            let message = if place <= Problems::MOST { unknown_field(name, known) } else { String::new() };
            self.problem(name, message);
        }
    }

    /// Passes over fields that mean nothing here.
    pub(crate) fn forget(&mut self, names: &[&str]) {
        self.fields.retain(|name, _| !names.contains(&name.as_str()));
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field that may be left out or null.
    fn optional(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.fields.remove(name).filter(|value| !is_null(value))
    }

    /// Notes what is wrong with a value that is JSON, but nothing that can be used.
    fn read<T>(&mut self, name: &str, read: Result<T, serde_json::Error>) -> Option<T> {
        read.map_err(|error| self.problems.push(Problem::decode(&["body", name], error.to_string()))).ok()
    }

    /// Keeps a value that `check` likes; reports the others.
    pub(crate) fn checked<T>(
        &mut self,
        name: &str,
        value: Option<T>,
        check: impl FnOnce(&T) -> Result<(), String>,
    ) -> Option<T> {
        let value = value?;
        match check(&value) {
            Ok(()) => Some(value),
            Err(message) => {
                self.problem(name, message);
                None
            }
        }
    }

    fn wrong(&mut self, name: &str, value: &RawValue, expected: &str) {
        let message = format!("expected {expected}, not {}", kind(value));
        self.problems.push(Problem::decode(&["body", name], message));
    }

    pub(crate) fn string(&mut self, name: &str) -> Option<String> {
        let value = self.optional(name)?;
        if !is_string(&value) {
            self.wrong(name, &value, "a string");
            return None;
        }
        self.read(name, serde_json::from_str(value.get()))
    }

    /// A string, or a whole number as its text.
    pub(crate) fn string_or_number(&mut self, name: &str) -> Option<String> {
        let value = self.optional(name)?;
        if is_string(&value) {
            return self.read(name, serde_json::from_str(value.get()));
        }
        let number = whole(&value);
        if number.is_none() {
            self.wrong(name, &value, "a string or a whole number of at least 0");
        }
        number.map(|number| number.to_string())
    }

    pub(crate) fn required_string(&mut self, name: &str) -> Option<String> {
        match self.fields.get(name) {
            Some(value) if is_null(value) => {
                self.problems.push(Problem::decode(&["body", name], "expected a string, not null"));
            }
            Some(_) => return self.string(name),
            None => self.problems.push(Problem::value(&["body", name], "this field is required")),
        }
        None
    }

    /// A string that may be left out but not be null.
    pub(crate) fn string_or(&mut self, name: &str, default: &str) -> String {
        if !self.has(name) {
            return default.to_owned();
        }
        self.required_string(name).unwrap_or_default()
    }

    /// A boolean that may be left out but not be null.
    pub(crate) fn boolean_or(&mut self, name: &str, default: bool) -> bool {
        let Some(value) = self.fields.remove(name) else { return default };
        truth(&value).unwrap_or_else(|| {
            self.wrong(name, &value, "true or false");
            default
        })
    }

    /// A boolean that may be left out or null.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        let value = self.optional(name)?;
        let given = truth(&value);
        if given.is_none() {
            self.wrong(name, &value, "true or false");
        }
        given
    }

    /// A field as it stands, unless it is null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let value = self.optional(name)?;
        match bounded_json::build(value.get().as_bytes()) {
            Ok(value) => Some(value),
            Err(why) => {
                self.problems.push(Problem::decode(&["body", name], why));
                None
            }
        }
    }

    /// Where a list without items says the same as none.
    pub(crate) fn drop_empty_list(&mut self, name: &str) {
        if self.fields.get(name).is_some_and(|value| is_empty_list(value)) {
            self.fields.remove(name);
        }
    }

    /// A whole number from 1 to 65535.
    pub(crate) fn count(&mut self, name: &str) -> Option<u16> {
        let value = self.optional(name)?;
        match whole(&value).and_then(|number| u16::try_from(number).ok()) {
            Some(number) if number > 0 => return Some(number),
            _ if is_number(&value) => self.problem(name, "must be a whole number from 1 to 65535"),
            _ => self.wrong(name, &value, "a whole number"),
        }
        None
    }

    /// A whole number within bounds.
    pub(crate) fn number(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.optional(name)?;
        match whole(&value) {
            Some(number) if (least..=most).contains(&number) => return Some(number),
            _ if is_number(&value) => {
                self.problem(name, format!("must be a whole number from {least} to {most}"));
            }
            _ => self.wrong(name, &value, "a whole number"),
        }
        None
    }

    /// A moment, as RFC 3339 writes it.
    pub(crate) fn moment(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.string(name)?;
        match read_moment(&text) {
            Some(moment) => Some(moment),
            None => {
                self.problem(name, "must be a date and time with an offset, such as 2026-01-31T12:00:00Z");
                None
            }
        }
    }

    pub(crate) fn has_problem(&self) -> bool {
        !self.problems.is_empty()
    }

    pub(crate) fn object(&mut self, name: &str) {
        if let Some(other) = self.fields.remove(name).filter(|value| !is_object(value)) {
            self.wrong(name, &other, "a JSON object");
        }
    }

    /// A JSON object, whatever is in it.
    pub(crate) fn object_value(&mut self, name: &str) -> Option<Value> {
        match self.fields.get(name) {
            Some(other) if !is_object(other) && !is_null(other) => {
                let other = other.clone();
                self.wrong(name, &other, "a JSON object");
                None
            }
            _ => self.take(name),
        }
    }

    /// A list of strings as a set: sorted, without repeats. Absent: empty.
    pub(crate) fn set(
        &mut self,
        name: &str,
        most: usize,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Vec<String> {
        let Some(list) = self.optional(name) else { return Vec::new() };
        if !list.get().starts_with('[') {
            self.wrong(name, &list, "a list of strings");
            return Vec::new();
        }
        let Some(First { items, count }) = self.read(name, bounded_json::items(&list, most)) else {
            return Vec::new();
        };
        if !(1..=most).contains(&count) {
            self.problem(name, format!("must have 1 to {most} items (or be null); it has {count}"));
            return Vec::new();
        }
        let mut set = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let place = format!("[{index}]");
            let loc = ["body", name, place.as_str()];
            match string(item) {
                Ok(text) => match check(&text) {
                    Ok(()) => set.push(text),
                    Err(message) => self.problems.push(Problem::value(&loc, message)),
                },
                Err(message) => self.problems.push(Problem::decode(&loc, message)),
            }
        }
        set.sort_unstable();
        set.dedup();
        set
    }

    /// The same, where a list may have no items.
    pub(crate) fn set_or_empty(
        &mut self,
        name: &str,
        most: usize,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Vec<String> {
        if self.fields.get(name).is_some_and(|value| is_empty_list(value)) {
            return Vec::new();
        }
        self.set(name, most, check)
    }

    /// An object of strings. Absent: empty.
    pub(crate) fn strings(&mut self, name: &str, most: usize) -> Vec<(String, String)> {
        let given = self.strings_or_nulls(name, most);
        let text = |(key, value): (String, Option<String>)| match value {
            Some(value) => Some((key, value)),
            None => {
                self.problems.push(Problem::decode(&["body", name, &key], "expected a string, not null"));
                None
            }
        };
        given.into_iter().filter_map(text).collect()
    }

    /// An object of strings and nulls. Absent: empty. How many it has is looked at before what they are.
    pub(crate) fn strings_or_nulls(&mut self, name: &str, most: usize) -> Vec<(String, Option<String>)> {
        let Some(object) = self.optional(name) else { return Vec::new() };
        let Some(First { items, count }) = self.entries(name, &object, most) else { return Vec::new() };
        if count > most {
            self.problem(name, format!("may have {most} items at most; it has {count}"));
            return Vec::new();
        }
        let text = |(key, value): (String, &RawValue)| {
            if is_null(value) {
                return Some((key, None));
            }
            match string(value) {
                Ok(text) => Some((key, Some(text))),
                Err(message) => {
                    self.problems.push(Problem::decode(&["body", name, &key], message));
                    None
                }
            }
        };
        items.into_iter().filter_map(text).collect()
    }

    fn entries<'a>(
        &mut self,
        name: &str,
        object: &'a RawValue,
        most: usize,
    ) -> Option<First<BTreeMap<String, &'a RawValue>>> {
        if !is_object(object) {
            self.wrong(name, object, "an object of strings");
            return None;
        }
        self.read(name, bounded_json::entries(object, most))
    }

    /// `metadata`: an object of strings, kept as text.
    pub(crate) fn metadata(&mut self) -> String {
        let name = "metadata";
        let nothing = || "{}".to_owned();
        let Some(object) = self.optional(name) else { return nothing() };
        let Some(First { items, count }) = self.entries(name, &object, METADATA_ITEMS) else {
            return nothing();
        };
        if count > METADATA_ITEMS {
            let message = format!("may be {METADATA_BYTES} bytes of JSON at most; it has {count} items");
            self.problem(name, message);
            return nothing();
        }
        let mut kept = BTreeMap::new();
        for (key, value) in items {
            match string(value) {
                Ok(text) => drop(kept.insert(key, text)),
                Err(message) => self.problems.push(Problem::decode(&["body", name, &key], message)),
            }
        }
        let text = serde_json::to_string(&kept).unwrap_or_default();
        if text.len() > METADATA_BYTES {
            let message = format!("may be {METADATA_BYTES} bytes of JSON at most; it is {}", text.len());
            self.problem(name, message);
        }
        text
    }
}

fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
    }
}

/// Why a body is none.
fn unreadable(body: &[u8], error: &serde_json::Error) -> String {
    match body.trim_ascii_start() {
        [b'{', ..] if error.is_data() => error.to_string(),
        _ if error.is_data() => "expected a JSON object".to_owned(),
        _ => format!("is no JSON: {error}"),
    }
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

fn is_empty_list(value: &RawValue) -> bool {
    let items = value.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    items.is_some_and(|items| items.trim_ascii().is_empty())
}

fn truth(value: &RawValue) -> Option<bool> {
    value.get().parse().ok()
}

/// A whole number that is not negative.
fn whole(value: &RawValue) -> Option<u64> {
    value.get().parse().ok()
}

/// A string, or what is wrong with it.
fn string(value: &RawValue) -> Result<String, String> {
    if !is_string(value) {
        return Err(format!("expected a string, not {}", kind(value)));
    }
    serde_json::from_str(value.get()).map_err(|error| error.to_string())
}
