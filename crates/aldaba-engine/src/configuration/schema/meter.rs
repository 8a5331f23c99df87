//! A payload for the validator that charges every access to a budget.
//!
//! A schema can make validation of a short payload exponential: two references to the same alternative at
//! every level double the work. The schema alone does not reveal that. So the payload counts its accesses
//! and ends the validation when the budget is spent.

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes of stack for one validation. The threads of the API have 2 MiB each.
const MAX_STACK_BYTES: usize = 512 * 1024;

/// The unit of text costs, in bytes.
pub(super) const TEXT_UNIT_BYTES: u64 = 16;

/// The cost of accesses, which depends on the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessCosts {
    /// Per [`TEXT_UNIT_BYTES`] of a text: a pattern may read every byte, and large patterns take longer.
    pub(super) text: u64,
    /// The same for property names, if patterns apply to them.
    pub(super) name: u64,
    /// Per step to a property or an item. It covers schemas that do not access the value.
    pub(super) step: u64,
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BudgetExhausted;

struct Meter {
    left: Cell<u64>,
    costs: AccessCosts,
    /// The stack position at the start of the validation.
    stack: usize,
}

impl Meter {
    #[inline(never)]
    fn charge(&self, cost: u64) {
        let deep = self.stack.abs_diff(stack_address()) > MAX_STACK_BYTES;
        match self.left.get().checked_sub(cost) {
            Some(left) if !deep => self.left.set(left),
            // Unwinds without a panic message; `run` catches it.
            _ => resume_unwind(Box::new(BudgetExhausted)),
        }
    }
}

/// The approximate stack position.
#[inline(never)]
fn stack_address() -> usize {
    let mark = 0u8;
    std::ptr::from_ref(&mark).addr()
}

/// Runs `validate` on a payload with a budget. Returns the result and what is left.
pub(super) fn run<T>(
    payload: &Value,
    budget: u64,
    costs: AccessCosts,
    validate: impl FnOnce(MeteredValue<'_>) -> T,
) -> (Result<T, BudgetExhausted>, u64) {
    let meter = Meter { left: Cell::new(budget), costs, stack: stack_address() };
    let validated =
        catch_unwind(AssertUnwindSafe(|| validate(MeteredValue { value: payload, meter: Some(&meter) })));
    match validated.map_err(|thrown| thrown.downcast::<BudgetExhausted>()) {
        Ok(done) => (Ok(done), meter.left.get()),
        Err(Ok(spent)) => (Err(*spent), meter.left.get()),
        Err(Err(panic)) => resume_unwind(panic),
    }
}

/// The JSON representation for validators.
#[derive(Debug)]
pub(super) struct Metered;

/// A value whose accesses are charged.
#[derive(Clone, Copy)]
pub(super) struct MeteredValue<'a> {
    value: &'a Value,
    /// `None`: a property name, which was charged before.
    meter: Option<&'a Meter>,
}

impl<'a> MeteredValue<'a> {
    fn charge(&self, cost: impl FnOnce(&AccessCosts) -> u64) {
        if let Some(meter) = self.meter {
            meter.charge(cost(&meter.costs));
        }
    }

    fn charge_access(&self) {
        self.charge(|_| 1);
    }

    fn part(&self, value: &'a Value) -> Self {
        Self { value, ..*self }
    }
}

impl Json for Metered {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    /// As for the library's own values, which use the same maps.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(MeteredValue<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(MeteredValue { value: buffer, meter: None })
    }
}

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        self.charge_access();
        self.value.as_object().map(|fields| MeteredObject { of: *self, fields })
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        self.charge_access();
        self.value.as_array().map(|items| MeteredArray { of: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str();
        self.charge(|costs| 1 + text.map_or(0, |text| text.len() as u64 * costs.text / TEXT_UNIT_BYTES));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.charge_access();
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.charge_access();
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        self.charge_access();
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        self.charge_access();
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
        // Counting is faster than a pattern: about 64 bytes per unit.
        self.charge(|_| 1 + text.map_or(0, |text| text.len() as u64 / 64));
        text.map(|text| text.chars().count() as u64)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        self.charge_access();
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

#[derive(Clone, Copy)]
pub(super) struct MeteredObject<'a> {
    of: MeteredValue<'a>,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.fields.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        self.of.charge(|costs| costs.step);
        self.fields.get(key).map(|value| self.of.part(value))
    }

    fn members(&self) -> MeteredMembers<'a> {
        MeteredMembers { of: self.of, fields: self.fields.iter() }
    }
}

pub(super) struct MeteredMembers<'a> {
    of: MeteredValue<'a>,
    fields: serde_json::map::Iter<'a>,
}

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.fields.next()?;
        self.of.charge(|costs| costs.step + name.len() as u64 * costs.name / TEXT_UNIT_BYTES);
        Some((name, self.of.part(value)))
    }
}

#[derive(Clone, Copy)]
pub(super) struct MeteredArray<'a> {
    of: MeteredValue<'a>,
    items: &'a [Value],
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = MeteredElements<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> MeteredElements<'a> {
        MeteredElements { of: self.of, items: self.items.iter() }
    }
}

pub(super) struct MeteredElements<'a> {
    of: MeteredValue<'a>,
    items: std::slice::Iter<'a, Value>,
}

impl<'a> Iterator for MeteredElements<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let value = self.items.next()?;
        self.of.charge(|costs| costs.step);
        Some(self.of.part(value))
    }
}
