//! A payload as the validator sees it: it pays for every look that it takes.
//!
//! A schema can make a short payload take for ever: two references to the same alternative at every level double
//! the work with each of them. No look at the schema alone tells that from a schema that is only long. So the
//! payload itself counts how often it is looked at, and ends the validation when the budget is spent.

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes of stack that one validation may use. The threads of the API have 2 MiB each.
const STACK: usize = 512 * 1024;

/// Bytes of a text.
pub(super) const PIECE: u64 = 16;

/// What a look costs, by what the schema is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prices {
    /// Each [`PIECE`] of a text: a pattern may look at every byte, and large patterns look for longer.
    pub(super) text: u64,
    /// The same of a property's name, where patterns look at those.
    pub(super) name: u64,
    /// Going on to a property or an item: what the schema does there without looking is paid for here.
    pub(super) step: u64,
}

/// The budget was not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent;

struct Meter {
    left: Cell<u64>,
    prices: Prices,
    /// Where the stack was when the validation began.
    stack: usize,
}

impl Meter {
    #[inline(never)]
    fn pay(&self, price: u64) {
        let deep = self.stack.abs_diff(here()) > STACK;
        match self.left.get().checked_sub(price) {
            Some(left) if !deep => self.left.set(left),
            // No panic: nothing is wrong, and nobody is told but the one who catches it below.
            _ => resume_unwind(Box::new(Spent)),
        }
    }
}

/// About where the stack is.
#[inline(never)]
fn here() -> usize {
    let mark = 0u8;
    std::ptr::from_ref(&mark).addr()
}

/// Runs `validate` with a payload that can be looked at for `budget`. What came of it, and what is left.
pub(super) fn run<T>(
    payload: &Value,
    budget: u64,
    prices: Prices,
    validate: impl FnOnce(Looked<'_>) -> T,
) -> (Result<T, Spent>, u64) {
    let meter = Meter { left: Cell::new(budget), prices, stack: here() };
    let validated =
        catch_unwind(AssertUnwindSafe(|| validate(Looked { value: payload, meter: Some(&meter) })));
    match validated.map_err(|thrown| thrown.downcast::<Spent>()) {
        Ok(done) => (Ok(done), meter.left.get()),
        Err(Ok(spent)) => (Err(*spent), meter.left.get()),
        Err(Err(panic)) => resume_unwind(panic),
    }
}

/// The kind of payload that validators are made for.
#[derive(Debug)]
pub(super) struct Metered;

/// A value that is paid for.
#[derive(Clone, Copy)]
pub(super) struct Looked<'a> {
    value: &'a Value,
    /// `None`: a property's name, which was paid for before.
    meter: Option<&'a Meter>,
}

impl<'a> Looked<'a> {
    fn pay(&self, price: impl FnOnce(&Prices) -> u64) {
        if let Some(meter) = self.meter {
            meter.pay(price(&meter.prices));
        }
    }

    fn look(&self) {
        self.pay(|_| 1);
    }

    fn part(&self, value: &'a Value) -> Self {
        Self { value, ..*self }
    }
}

impl Json for Metered {
    type Node<'a> = Looked<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    /// As for the library's own values, which have the same maps.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Looked<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Looked { value: buffer, meter: None })
    }
}

impl<'a> Node<'a, Metered> for Looked<'a> {
    type Object = Fields<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Fields<'a>> {
        self.look();
        self.value.as_object().map(|fields| Fields { of: *self, fields })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        self.look();
        self.value.as_array().map(|items| Items { of: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str();
        self.pay(|prices| 1 + text.map_or(0, |text| text.len() as u64 * prices.text / PIECE));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.look();
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look();
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        self.look();
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        self.look();
        match self.value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.value.as_str();
        // Counting is quicker than a pattern: some 64 bytes for one look.
        self.pay(|_| 1 + text.map_or(0, |text| text.len() as u64 / 64));
        text.map(|text| text.chars().count() as u64)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        self.look();
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    of: Looked<'a>,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a, Metered> for Fields<'a> {
    type Node = Looked<'a>;
    type MemberName = &'a str;
    type MembersIter = FieldsIter<'a>;

    fn len(&self) -> usize {
        self.fields.len()
    }

    fn get(&self, key: &String) -> Option<Looked<'a>> {
        self.of.pay(|prices| prices.step);
        self.fields.get(key).map(|value| self.of.part(value))
    }

    fn members(&self) -> FieldsIter<'a> {
        FieldsIter { of: self.of, fields: self.fields.iter() }
    }
}

pub(super) struct FieldsIter<'a> {
    of: Looked<'a>,
    fields: serde_json::map::Iter<'a>,
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a str, Looked<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.fields.next()?;
        self.of.pay(|prices| prices.step + name.len() as u64 * prices.name / PIECE);
        Some((name, self.of.part(value)))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Items<'a> {
    of: Looked<'a>,
    items: &'a [Value],
}

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = Looked<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter { of: self.of, items: self.items.iter() }
    }
}

pub(super) struct ItemsIter<'a> {
    of: Looked<'a>,
    items: std::slice::Iter<'a, Value>,
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Looked<'a>;

    fn next(&mut self) -> Option<Looked<'a>> {
        let value = self.items.next()?;
        self.of.pay(|prices| prices.step);
        Some(self.of.part(value))
    }
}
