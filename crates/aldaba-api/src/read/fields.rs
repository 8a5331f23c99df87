//! The fields of a body, read one by one.

use super::bounded_json::{self, First, RawFields};
use super::problem::{Problem, Problems};
use crate::depth::{MAX_PAYLOAD_DEPTH, is_too_deep};
use crate::nearest::unknown_field;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 4096;
/// More than fit into so many bytes, each with its quotes, colon and comma.
const MAX_METADATA_ITEMS: usize = MAX_METADATA_BYTES / 5;

/// The fields of a request's body, taken one by one. What is wrong is collected, so that one answer
/// names all of it.
#[derive(Clone, Debug)]
pub struct Fields {
    /// As they stand in the body. What nobody asks for is never built.
    fields: BTreeMap<String, Box<RawValue>>,
    /// All that were given, those that were read already among them.
    names: Vec<String>,
    /// Those given more than once.
    repeated: Vec<String>,
    unknown: UnknownFields,
    problems: Problems,
}

/// What becomes of fields that a body does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// The request is refused, with the name that was probably meant.
    #[default]
    Refuse,
    /// They are passed over.
    Ignore,
}

impl Fields {
    /// Reads the names and the raw values. Nothing is built of a value before it is asked for.
    pub fn parse(body: &[u8], unknown: UnknownFields) -> Result<Self, Problems> {
        match bounded_json::raw_fields(body) {
            Ok(_) if is_too_deep(body) => {
                let message = format!("is nested more than {MAX_PAYLOAD_DEPTH} levels deep");
                Err(Problem::decode(&["body"], message).into())
            }
            Ok(RawFields { fields, repeated }) => {
                let names = fields.keys().cloned().collect();
                Ok(Self { fields, names, repeated, unknown, problems: Problems::default() })
            }
            Err(_) if body.trim_ascii().is_empty() => {
                Err(Problem::decode(&["body"], "the body is empty; expected a JSON object").into())
            }
            Err(error) => Err(Problem::decode(&["body"], unreadable(body, &error)).into()),
        }
    }

    /// The same for a body that may be left out.
    pub fn parse_or_none(body: &[u8], unknown: UnknownFields) -> Result<Self, Problems> {
        match body.trim_ascii() {
            [] => Self::parse(b"{}", unknown),
            body => Self::parse(body, unknown),
        }
    }

    /// One field alone.
    pub fn of(name: &str, value: &RawValue) -> Self {
        let fields = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let (names, repeated, unknown) = (vec![name.to_owned()], Vec::new(), UnknownFields::Refuse);
        Self { fields, names, repeated, unknown, problems: Problems::default() }
    }

    /// The end of reading: `Err` lists all that is wrong.
    pub fn finish(self) -> Result<(), Problems> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    /// The same, in the order of these fields; what is unknown comes first.
    pub fn finish_in_order(mut self, order: &[&str]) -> Result<(), Problems> {
        self.problems.sort_by_field(order);
        self.finish()
    }

    /// What becomes of fields that the body does not have.
    #[must_use]
    pub fn unknown(&self) -> UnknownFields {
        self.unknown
    }

    /// What is wrong so far.
    pub fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    /// Whether the body has the field, even if it has been read already.
    pub fn gives(&self, name: &str) -> bool {
        self.names.iter().any(|given| given == name)
    }

    /// Whether the body has the field more than once.
    pub fn repeats(&self, name: &str) -> bool {
        self.repeated.iter().any(|given| given == name)
    }

    /// Whether nothing is wrong with a field.
    pub fn is_fine(&self, name: &str) -> bool {
        !self.problems.has_field(name)
    }

    /// Notes that a value is null that must not be.
    pub fn refuse_null(&mut self, name: &str, expected: &str) {
        self.problems.push(Problem::decode(&["body", name], format!("expected {expected}, not null")));
    }

    /// Whether a field that has not been read is there, and null.
    pub fn is_null(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| is_null(value))
    }

    /// Whether a field that has not been read is there, and not null.
    pub fn has_value(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| !is_null(value))
    }

    /// Notes a problem with a field.
    pub fn problem(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(Problem::value(&["body", field], message));
    }

    /// At a place inside a field.
    pub fn problem_at(&mut self, place: &[&str], message: impl Into<String>) {
        let loc: Vec<_> = ["body"].iter().chain(place).copied().collect();
        self.problems.push(Problem::value(&loc, message));
    }

    /// A field that must be given, whatever it is.
    pub fn require(&mut self, name: &str) {
        if self.fields.get(name).is_none_or(|value| is_null(value)) {
            self.problems.push(Problem::value(&["body", name], "this field is required"));
        }
    }

    /// Refuses fields that mean nothing, for bodies in which one that is left out means something: a name that is
    /// misspelt would be taken for that.
    pub fn refuse_others(&mut self, known: &[&str]) {
        self.refuse_others_but(known, &[]);
    }

    /// The same, but for names of which the caller says something else.
    pub fn refuse_others_but(&mut self, known: &[&str], apart: &[&str]) {
        if self.unknown == UnknownFields::Ignore {
            return;
        }
        let is_known = |name: &str| known.contains(&name) || apart.contains(&name);
        let unknown: Vec<_> = self.fields.keys().filter(|name| !is_known(name)).cloned().collect();
        for (place, name) in unknown.iter().enumerate() {
            // No more than so many problems are listed, and looking for the nearest name takes time.
            let message =
                if place <= Problems::MAX_LISTED { unknown_field(name, known) } else { String::new() };
            self.problem(name, message);
        }
    }

    /// Passes over fields that mean nothing here.
    pub fn forget(&mut self, names: &[&str]) {
        self.fields.retain(|name, _| !names.contains(&name.as_str()));
    }

    /// Whether a field is there that has not been read.
    pub fn has(&self, name: &str) -> bool {
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
    pub fn checked<T>(
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

    /// A string that may be left out or null.
    pub fn string(&mut self, name: &str) -> Option<String> {
        let value = self.optional(name)?;
        if !is_string(&value) {
            self.wrong(name, &value, "a string");
            return None;
        }
        self.read(name, serde_json::from_str(value.get()))
    }

    /// A string, or a whole number as its text.
    pub fn string_or_number(&mut self, name: &str) -> Option<String> {
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

    /// A string that must be there.
    pub fn required_string(&mut self, name: &str) -> Option<String> {
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
    pub fn string_or(&mut self, name: &str, default: &str) -> String {
        if !self.has(name) {
            return default.to_owned();
        }
        self.required_string(name).unwrap_or_default()
    }

    /// A boolean that may be left out but not be null.
    pub fn boolean_or(&mut self, name: &str, default: bool) -> bool {
        let Some(value) = self.fields.remove(name) else { return default };
        truth(&value).unwrap_or_else(|| {
            self.wrong(name, &value, "true or false");
            default
        })
    }

    /// A boolean that may be left out or null.
    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        let value = self.optional(name)?;
        let given = truth(&value);
        if given.is_none() {
            self.wrong(name, &value, "true or false");
        }
        given
    }

    /// A field as it stands, unless it is null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let value = self.optional(name)?;
        match bounded_json::build(value.get().as_bytes()) {
            Ok(value) => Some(value),
            Err(why) => {
                self.problems.push(Problem::decode(&["body", name], why));
                None
            }
        }
    }

    /// The text of a JSON object, unless it is null.
    pub fn raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.optional(name)
    }

    /// The same, if it is a JSON object.
    pub fn raw_object(&mut self, name: &str) -> Option<Box<RawValue>> {
        let value = self.optional(name)?;
        if is_object(&value) {
            return Some(value);
        }
        self.wrong(name, &value, "a JSON object");
        None
    }

    /// The raw items of a list, if it has no more than it may have.
    pub fn list(&mut self, name: &str, most: usize) -> Option<Vec<Box<RawValue>>> {
        let list = self.optional(name)?;
        if !list.get().starts_with('[') {
            self.wrong(name, &list, "a list");
            return None;
        }
        let First { items, count } = self.read(name, bounded_json::items(&list, most))?;
        if count > most {
            self.problem(name, format!("may have {most} items at most; it has {count}"));
            return None;
        }
        Some(items.into_iter().map(ToOwned::to_owned).collect())
    }

    /// Where a list without items says the same as none.
    pub fn drop_empty_list(&mut self, name: &str) {
        if self.fields.get(name).is_some_and(|value| is_empty_list(value)) {
            self.fields.remove(name);
        }
    }

    /// A whole number from 1 to 65535.
    pub fn count(&mut self, name: &str) -> Option<u16> {
        let value = self.optional(name)?;
        match whole(&value).and_then(|number| u16::try_from(number).ok()) {
            Some(number) if number > 0 => return Some(number),
            _ if is_number(&value) => self.problem(name, "must be a whole number from 1 to 65535"),
            _ => self.wrong(name, &value, "a whole number"),
        }
        None
    }

    /// A whole number within bounds.
    pub fn number(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
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

    /// Whether anything is wrong so far.
    pub fn has_problem(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Checks that a field is a JSON object, if it is there.
    pub fn object(&mut self, name: &str) {
        if let Some(other) = self.fields.remove(name).filter(|value| !is_object(value)) {
            self.wrong(name, &other, "a JSON object");
        }
    }

    /// A JSON object, whatever is in it.
    pub fn object_value(&mut self, name: &str) -> Option<Value> {
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
    pub fn set(
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
    pub fn set_or_empty(
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
    pub fn strings(&mut self, name: &str, most: usize) -> Vec<(String, String)> {
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
    pub fn strings_or_nulls(&mut self, name: &str, most: usize) -> Vec<(String, Option<String>)> {
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

    /// `metadata`: an object of strings, as text.
    pub fn metadata(&mut self) -> String {
        let kept = self.short_strings("metadata").unwrap_or_default();
        serde_json::to_string(&kept).unwrap_or_default()
    }

    /// An object of strings that is short in all.
    pub fn short_strings(&mut self, name: &str) -> Option<BTreeMap<String, String>> {
        let object = self.optional(name)?;
        let First { items, count } = self.entries(name, &object, MAX_METADATA_ITEMS)?;
        if count > MAX_METADATA_ITEMS {
            let message = format!("may be {MAX_METADATA_BYTES} bytes of JSON at most; it has {count} items");
            self.problem(name, message);
            return None;
        }
        let mut kept = BTreeMap::new();
        for (key, value) in items {
            match string(value) {
                Ok(text) => drop(kept.insert(key, text)),
                Err(message) => self.problems.push(Problem::decode(&["body", name, &key], message)),
            }
        }
        let length = serde_json::to_string(&kept).unwrap_or_default().len();
        if length > MAX_METADATA_BYTES {
            let message = format!("may be {MAX_METADATA_BYTES} bytes of JSON at most; it is {length}");
            self.problem(name, message);
        }
        Some(kept)
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
        _ => format!("invalid JSON: {error}"),
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
