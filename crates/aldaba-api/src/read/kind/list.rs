//! Lists.

use super::{FieldKind, TextField, text};
use crate::read::bounded_json::First;
use crate::read::schema::{nest, reference};
use crate::read::{ApiBody, ApiRequest, Fields, KindSchema, Parsed};
use crate::status_range;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

const TEXTS: &str = "a list of strings";

fn schema(items: &Value, min: Option<usize>, max: Option<usize>) -> Value {
    let mut schema = json!({"type": "array", "items": items});
    for (name, value) in [("minItems", min), ("maxItems", max)] {
        if let Some(value) = value {
            schema[name] = value.into();
        }
    }
    schema
}

/// A list of texts, in its order.
#[derive(Clone, Copy, Debug)]
pub struct TextsField {
    max: usize,
    item: TextField,
}

/// A list of up to so many texts.
#[must_use]
pub const fn texts(max: usize, item: TextField) -> TextsField {
    TextsField { max, item }
}

/// One for each status that there can be.
const MAX_STATUSES: usize = 900;

/// A list of HTTP statuses, and of ranges of them.
#[must_use]
pub const fn statuses() -> TextsField {
    let item = text().by(status_range::check).or_number().expecting(status_range::EXPECTED);
    texts(MAX_STATUSES, item.pattern("^[0-9]+(-[0-9]+)?$"))
}

impl FieldKind for TextsField {
    type Value = Vec<String>;

    fn expected(&self) -> &'static str {
        TEXTS
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<String>> {
        let items = up_to(fields, name, self.max, "a list")?;
        Some(checked_texts(fields, name, &items, self.item))
    }

    fn default(&self) -> Vec<String> {
        Vec::new()
    }
}

impl KindSchema for TextsField {
    fn input(&self) -> Value {
        schema(&self.item.input(), None, Some(self.max))
    }

    fn output(&self) -> Value {
        schema(&self.item.output(), None, None)
    }
}

/// The items of a list, if it has no more than it may have.
fn up_to(fields: &mut Fields, name: &str, max: usize, expected: &str) -> Option<Vec<Box<RawValue>>> {
    let First { items, count } = fields.items(name, max, expected)?;
    if count > max {
        fields.problem(name, format!("may have {max} items at most; it has {count}"));
        return None;
    }
    Some(items)
}

fn checked_texts(fields: &mut Fields, name: &str, items: &[Box<RawValue>], kind: TextField) -> Vec<String> {
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let place = format!("[{index}]");
        match kind.text_of(item) {
            Ok(text) => match kind.fits(&text) {
                Ok(()) => texts.push(text),
                Err(why) => fields.problem_at(&[name, &place], why),
            },
            Err(why) => fields.undecoded(&[name, &place], why),
        }
    }
    texts
}

/// A set of strings: sorted, without repeats.
#[derive(Clone, Copy, Debug)]
pub struct NamesField {
    max: usize,
    may_be_empty: bool,
    is_described: bool,
    item: TextField,
}

/// A set of up to so many strings.
#[must_use]
pub const fn names(max: usize, check: fn(&str) -> Result<(), String>) -> NamesField {
    NamesField { max, may_be_empty: false, is_described: true, item: text().by(check) }
}

impl NamesField {
    /// One that may be empty; it is as if it were left out.
    #[must_use]
    pub const fn or_empty(self) -> Self {
        Self { may_be_empty: true, ..self }
    }

    /// The document does not say how many there may be.
    #[must_use]
    pub const fn undescribed(self) -> Self {
        Self { is_described: false, ..self }
    }
}

impl FieldKind for NamesField {
    type Value = Vec<String>;
    const IS_EXCLUSIVE: bool = true;

    fn expected(&self) -> &'static str {
        TEXTS
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<String>> {
        let Self { max, may_be_empty, item, .. } = *self;
        let First { items, count } = fields.items(name, max, TEXTS)?;
        if count > max || (count == 0 && !may_be_empty) {
            fields.problem(name, format!("must have 1 to {max} items (or be null); it has {count}"));
            return None;
        }
        let mut set = checked_texts(fields, name, &items, item);
        set.sort_unstable();
        set.dedup();
        (!set.is_empty()).then_some(set)
    }

    fn default(&self) -> Vec<String> {
        Vec::new()
    }
}

impl KindSchema for NamesField {
    fn input(&self) -> Value {
        let min = (self.is_described && !self.may_be_empty).then_some(1);
        schema(&json!({"type": "string"}), min, self.is_described.then_some(self.max))
    }

    fn output(&self) -> Value {
        schema(&json!({"type": "string"}), None, None)
    }
}

/// A list of bodies.
pub struct BodiesField<T> {
    max: usize,
    value: PhantomData<fn() -> T>,
}

/// A list of up to so many bodies.
#[must_use]
pub const fn bodies<T>(max: usize) -> BodiesField<T> {
    BodiesField { max, value: PhantomData }
}

impl<T> fmt::Debug for BodiesField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BodiesField").field(&self.max).finish()
    }
}

impl<T: ApiRequest + Clone + PartialEq> FieldKind for BodiesField<T> {
    type Value = Vec<T>;

    fn expected(&self) -> &'static str {
        "a list of objects"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<T>> {
        let items = up_to(fields, name, self.max, "a list")?;
        let read = |(index, item): (usize, &RawValue)| inner(fields, &[name, &format!("[{index}]")], item);
        Some(items.iter().map(|item| &**item).enumerate().filter_map(read).collect())
    }

    fn default(&self) -> Vec<T> {
        Vec::new()
    }
}

impl<T: ApiBody> KindSchema for BodiesField<T> {
    fn input(&self) -> Value {
        schema(&reference(T::NAME), None, Some(self.max))
    }

    fn output(&self) -> Value {
        schema(&json!({"type": "object"}), None, None)
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        nest::<T>(into);
    }
}

/// Reads a body at a place of another one.
pub(super) fn inner<T: ApiRequest>(fields: &mut Fields, place: &[&str], raw: &RawValue) -> Option<T> {
    let parsed = fields.inner(raw).map(|inner| Parsed::<T>::of(inner, false));
    match parsed.and_then(Parsed::finish) {
        Ok(value) => Some(value),
        Err(problems) => {
            for problem in problems.into_list() {
                fields.problems().push(problem.within(place));
            }
            None
        }
    }
}

/// A list of bodies that a server reads one by one, later.
pub struct PartsField<T> {
    max: usize,
    value: PhantomData<fn() -> T>,
}

/// A list of 1 to so many bodies that a server reads one by one, later.
#[must_use]
pub const fn parts<T>(max: usize) -> PartsField<T> {
    PartsField { max, value: PhantomData }
}

impl<T> fmt::Debug for PartsField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartsField").field(&self.max).finish()
    }
}

impl<T: ApiBody + Clone + PartialEq> FieldKind for PartsField<T> {
    type Value = Vec<T>;

    fn expected(&self) -> &'static str {
        "a list of objects"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<T>> {
        let First { count, .. } = fields.items(name, 0, "a list")?;
        if !(1..=self.max).contains(&count) {
            fields.problem(name, format!("must have 1 to {} items; it has {count}", self.max));
        }
        None
    }

    fn default(&self) -> Vec<T> {
        Vec::new()
    }
}

impl<T: ApiBody> KindSchema for PartsField<T> {
    fn input(&self) -> Value {
        schema(&reference(T::NAME), Some(1), Some(self.max))
    }

    fn output(&self) -> Value {
        self.input()
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        nest::<T>(into);
    }
}
