//! Numbers, and yes or no.

use super::FieldKind;
use crate::read::{Fields, KindSchema, raw};
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

/// True or false.
#[derive(Clone, Copy, Debug)]
pub struct ToggleField;

/// True or false.
#[must_use]
pub const fn toggle() -> ToggleField {
    ToggleField
}

impl FieldKind for ToggleField {
    type Value = bool;

    fn expected(&self) -> &'static str {
        "true or false"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<bool> {
        let value = fields.raw(name)?;
        let given = value.get().parse().ok();
        if given.is_none() {
            fields.wrong(name, &value, self.expected());
        }
        given
    }

    fn default(&self) -> bool {
        false
    }
}

impl KindSchema for ToggleField {
    fn input(&self) -> Value {
        json!({"type": "boolean"})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

/// A whole number within bounds.
pub struct NumberField<T> {
    min: u64,
    max: u64,
    default: u64,
    format: &'static str,
    shows_max: bool,
    shows_default: bool,
    value: PhantomData<fn() -> T>,
}

/// A whole number within bounds.
#[must_use]
pub const fn number<T>(min: u64, max: u64) -> NumberField<T> {
    let (format, shows_max) = ("int32", true);
    NumberField { min, max, default: min, format, shows_max, shows_default: false, value: PhantomData }
}

/// A whole number from 1 to 65535.
#[must_use]
pub const fn count<T>() -> NumberField<T> {
    number(1, u16::MAX as u64).without_max()
}

/// A whole number. Something else checks how large it may be.
#[must_use]
pub const fn whole_number<T>() -> NumberField<T> {
    let max = match size_of::<T>() {
        1 => u8::MAX as u64,
        _ => u32::MAX as u64,
    };
    number(0, max).without_max()
}

impl<T> NumberField<T> {
    /// What it is if it is left out.
    #[must_use]
    pub const fn or(self, default: u64) -> Self {
        Self { default, ..self }
    }

    /// What it is if it is left out, as the document says.
    #[must_use]
    pub const fn or_as_described(self, default: u64) -> Self {
        Self { default, shows_default: true, ..self }
    }

    /// As 64 bits in the document.
    #[must_use]
    pub const fn wide(self) -> Self {
        Self { format: "int64", ..self }
    }

    /// The document does not say how large it may be.
    #[must_use]
    pub const fn without_max(self) -> Self {
        Self { shows_max: false, ..self }
    }
}

impl<T> fmt::Debug for NumberField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NumberField").field(&self.min).field(&self.max).finish()
    }
}

impl<T: Clone + Default + PartialEq + TryFrom<u64>> FieldKind for NumberField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a whole number"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        let (value, Self { min, max, .. }) = (fields.raw(name)?, self);
        match raw::whole(&value) {
            Some(number) if (*min..=*max).contains(&number) => return T::try_from(number).ok(),
            _ if raw::is_number(&value) => {
                fields.problem(name, format!("must be a whole number from {min} to {max}"));
            }
            _ => fields.wrong(name, &value, self.expected()),
        }
        None
    }

    fn default(&self) -> T {
        T::try_from(self.default).unwrap_or_default()
    }
}

impl<T> KindSchema for NumberField<T> {
    fn input(&self) -> Value {
        let mut schema = json!({"type": "integer", "format": self.format, "minimum": self.min});
        if self.shows_max {
            schema["maximum"] = self.max.into();
        }
        if self.shows_default {
            schema["default"] = self.default.into();
        }
        schema
    }

    fn output(&self) -> Value {
        json!({"type": "integer", "format": self.format, "minimum": 0})
    }
}

/// One of a few numbers.
pub struct NumberChoiceField<T> {
    numbers: &'static [u16],
    expected: &'static str,
    value: PhantomData<fn() -> T>,
}

/// One of a few numbers. `expected`: what they are, in words.
#[must_use]
pub const fn choice_of<T>(numbers: &'static [u16], expected: &'static str) -> NumberChoiceField<T> {
    NumberChoiceField { numbers, expected, value: PhantomData }
}

impl<T> fmt::Debug for NumberChoiceField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NumberChoiceField").field(&self.numbers).finish()
    }
}

impl<T: Clone + PartialEq + From<u16>> FieldKind for NumberChoiceField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a whole number"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        let value = fields.raw(name)?;
        let given = raw::whole(&value).and_then(|number| u16::try_from(number).ok());
        match given.filter(|number| self.numbers.contains(number)) {
            Some(number) => return Some(number.into()),
            None if raw::is_number(&value) => fields.problem(name, format!("must be {}", self.expected)),
            None => fields.wrong(name, &value, self.expected()),
        }
        None
    }

    fn default(&self) -> T {
        self.numbers.first().copied().unwrap_or_default().into()
    }
}

impl<T> KindSchema for NumberChoiceField<T> {
    fn input(&self) -> Value {
        json!({"type": "integer", "format": "int32", "minimum": 0})
    }

    fn output(&self) -> Value {
        self.input()
    }
}
