//! The fields of a body, read one by one.

use super::bounded_json::{self, First, RawFields};
use super::problem::{Problem, Problems};
use super::raw;
use crate::depth::{MAX_PAYLOAD_DEPTH, is_too_deep};
use crate::nearest::{misplaced_field, unknown_field};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

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
    /// One problem is enough, without the names that were meant.
    is_brief: bool,
    problems: Problems,
    /// Two names of one field whose values differ, and the body as it came.
    ambiguous: Option<(Vec<NamePair>, Box<Self>)>,
}

/// A name, and an older one for the same field.
type NamePair = (&'static str, &'static str);

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
            Ok(RawFields { fields, repeated }) => Ok(Self::new(fields, repeated, unknown)),
            Err(_) if body.trim_ascii().is_empty() => {
                Err(Problem::decode(&["body"], "the body is empty; expected a JSON object").into())
            }
            Err(error) => Err(Problem::decode(&["body"], raw::unreadable(body, &error)).into()),
        }
    }

    fn new(fields: BTreeMap<String, Box<RawValue>>, repeated: Vec<String>, unknown: UnknownFields) -> Self {
        let names = fields.keys().cloned().collect();
        let (problems, is_brief, ambiguous) = (Problems::default(), false, None);
        Self { fields, names, repeated, unknown, is_brief, problems, ambiguous }
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
        Self::new(fields, Vec::new(), UnknownFields::Refuse)
    }

    /// The same, that lists one problem only, without the names that were meant: looking for these takes time, and
    /// others have been told of many already.
    #[must_use]
    pub fn briefly(mut self) -> Self {
        (self.is_brief, self.problems) = (true, Problems::up_to(1));
        self
    }

    /// The fields of a body at a place of this one.
    pub(super) fn inner(&self, body: &RawValue) -> Result<Self, Problems> {
        let inner = Self::parse(body.get().as_bytes(), self.unknown)?;
        Ok(if self.is_brief { inner.briefly() } else { inner })
    }

    /// The end of reading: `Err` lists all that is wrong.
    pub fn finish(mut self) -> Result<(), Problems> {
        for (name, older) in self.ambiguous.take().into_iter().flat_map(|(pairs, _)| pairs) {
            if self.is_fine(name) {
                let message = format!("is not what `{older}` says, another name for it; give one of the two");
                self.problem(name, message);
            }
        }
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    /// The same, in the order of these fields; what is unknown comes first.
    pub fn finish_in_order(self, order: &[&str]) -> Result<(), Problems> {
        self.finish().map_err(|mut problems| {
            problems.sort_by_field(order);
            problems
        })
    }

    /// What is wrong so far.
    pub fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    /// Whether anything is wrong so far.
    pub fn has_problem(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Whether the body has the field, even if it has been read already.
    pub fn gives(&self, name: &str) -> bool {
        self.names.iter().any(|given| given == name)
    }

    /// Whether nothing is wrong with a field.
    pub fn is_fine(&self, name: &str) -> bool {
        !self.problems.has_field(name)
    }

    /// Notes that a value is null that must not be.
    pub fn refuse_null(&mut self, name: &str, expected: &str) {
        self.undecoded(&[name], format!("expected {expected}, not null"));
    }

    /// Whether a field that has not been read is there, and null.
    pub fn is_null(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| raw::is_null(value))
    }

    /// Whether a field that has not been read is there, and not null.
    pub fn has_value(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| !raw::is_null(value))
    }

    /// Whether a field is there that has not been read.
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Notes a problem with a field.
    pub fn problem(&mut self, field: &str, message: impl Into<String>) {
        self.problem_at(&[field], message);
    }

    /// At a place inside a field.
    pub fn problem_at(&mut self, place: &[&str], message: impl Into<String>) {
        self.problems.push(Problem::value(&in_body(place), message));
    }

    /// Notes a value of another form.
    pub(super) fn undecoded(&mut self, place: &[&str], message: impl Into<String>) {
        self.problems.push(Problem::decode(&in_body(place), message));
    }

    /// Notes that a value is something else.
    pub(super) fn wrong(&mut self, name: &str, value: &RawValue, expected: &str) {
        self.undecoded(&[name], format!("expected {expected}, not {}", raw::kind(value)));
    }

    /// A field that must be given, whatever it is.
    pub fn require(&mut self, name: &str) {
        if !self.has_value(name) {
            self.problem(name, "this field is required");
        }
    }

    /// Refuses fields that mean nothing, for bodies in which one that is left out means something: a name that is
    /// misspelt would be taken for that. What is given twice could mean either.
    pub fn refuse_others(&mut self, known: &[&str]) {
        self.refuse_unknown(known, Vec::new);
    }

    /// The same. `inner` has the names in objects of the body: a field may have been written beside its object.
    pub(super) fn refuse_unknown(
        &mut self,
        known: &[&str],
        inner: fn() -> Vec<(&'static str, &'static [&'static str])>,
    ) {
        for name in std::mem::take(&mut self.repeated) {
            if known.contains(&name.as_str()) {
                self.problem(&name, "is given twice");
            }
        }
        if self.unknown == UnknownFields::Ignore {
            return;
        }
        let unknown = self.fields.keys().filter(|name| !known.contains(&name.as_str()));
        let unknown: Vec<_> = unknown.cloned().collect();
        let inner = if unknown.is_empty() || self.is_brief { Vec::new() } else { inner() };
        for (place, name) in unknown.iter().enumerate() {
            // No more than so many problems are listed, and looking for the nearest name takes time.
            let message = match self.is_brief || place > Problems::MAX_LISTED {
                true => "unknown field".to_owned(),
                false => misplaced_field(name, known, &inner).unwrap_or_else(|| unknown_field(name, known)),
            };
            self.problem(name, message);
        }
    }

    /// Keeps in mind which numbers are given by two names that say something else. A list is given by one.
    pub(super) fn note_ambiguous(&mut self, older: &[(&'static str, &'static str)]) {
        let differ = |(name, older): &&(&'static str, &'static str)| {
            let given = |name| self.fields.get(name).filter(|value| raw::is_number(value));
            matches!((given(*name), given(*older)), (Some(one), Some(other)) if one.get() != other.get())
        };
        let pairs: Vec<_> = older.iter().filter(differ).copied().collect();
        if !pairs.is_empty() {
            self.ambiguous = Some((pairs, Box::new(self.clone())));
        }
    }

    /// The body as it came, but of a field with two names the one that says what there is already. `None`: every field
    /// says one thing.
    pub(super) fn settled(&mut self, current: impl FnOnce() -> serde_json::Value) -> Option<Self> {
        let (pairs, mut fields) = self.ambiguous.take()?;
        let current = current();
        for (name, older) in pairs {
            let says_the_same = |given: &str| {
                let value = fields.fields.get(given).and_then(|value| serde_json::from_str(value.get()).ok());
                value.is_some_and(|value: serde_json::Value| value == current[name])
            };
            match (says_the_same(name), says_the_same(older)) {
                (true, false) => fields.forget(&[name]),
                (false, true) => fields.forget(&[older]),
                _ => {}
            }
        }
        Some(*fields)
    }

    /// Passes over fields that mean nothing here.
    pub fn forget(&mut self, names: &[&str]) {
        self.fields.retain(|name, _| !names.contains(&name.as_str()));
        self.repeated.retain(|name| !names.contains(&name.as_str()));
    }

    /// The text of a field that is read later, unless it is null.
    pub fn peek(&self, name: &str) -> Option<Box<RawValue>> {
        self.fields.get(name).filter(|value| !raw::is_null(value)).cloned()
    }

    /// The text of a field, unless it is null.
    pub fn raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.any(name).filter(|value| !raw::is_null(value))
    }

    /// The text of a field, whatever it is.
    pub(super) fn any(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.fields.remove(name)
    }

    /// The same, if it is a JSON object.
    pub fn raw_object(&mut self, name: &str) -> Option<Box<RawValue>> {
        let value = self.raw(name)?;
        if raw::is_object(&value) {
            return Some(value);
        }
        self.wrong(name, &value, "a JSON object");
        None
    }

    /// The raw items of a list, up to `most`, and how many there are.
    pub(super) fn items(
        &mut self,
        name: &str,
        most: usize,
        expected: &str,
    ) -> Option<First<Vec<Box<RawValue>>>> {
        let list = self.raw(name)?;
        if !list.get().starts_with('[') {
            self.wrong(name, &list, expected);
            return None;
        }
        let First { items, count } = self.built(name, bounded_json::items(&list, most))?;
        Some(First { items: items.into_iter().map(ToOwned::to_owned).collect(), count })
    }

    /// The raw entries of an object, up to `most`, and how many there are.
    pub(super) fn entries(
        &mut self,
        name: &str,
        most: usize,
    ) -> Option<First<BTreeMap<String, Box<RawValue>>>> {
        let object = self.raw(name)?;
        if !raw::is_object(&object) {
            self.wrong(name, &object, "an object of strings");
            return None;
        }
        let First { items, count } = self.built(name, bounded_json::entries(&object, most))?;
        let RawFields { fields: items, repeated } = items;
        for key in repeated {
            self.problem_at(&[name, &key], "is given twice");
        }
        Some(First { items, count })
    }

    /// Notes what is wrong with a value that is JSON, but nothing that can be used.
    pub(super) fn built<T>(&mut self, name: &str, value: Result<T, serde_json::Error>) -> Option<T> {
        value.map_err(|error| self.undecoded(&[name], error.to_string())).ok()
    }

    /// A value that is built, unless it is null or would take too much memory.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.raw(name)?;
        bounded_json::build(value.get().as_bytes()).map_err(|why| self.undecoded(&[name], why)).ok()
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

    /// A string that may be left out or null.
    pub fn string(&mut self, name: &str) -> Option<String> {
        let value = self.raw(name)?;
        raw::string(&value).map_err(|why| self.undecoded(&[name], why)).ok()
    }
}

fn in_body<'a>(place: &[&'a str]) -> Vec<&'a str> {
    ["body"].into_iter().chain(place.iter().copied()).collect()
}
