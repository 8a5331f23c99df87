//! Texts.

use super::FieldKind;
use crate::read::{Fields, KindSchema, is_moment, raw};
use crate::{Secret, duration_text, names};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

#[derive(Clone, Copy, Debug)]
enum TextCheck {
    Nothing,
    Bytes(usize),
    Length(usize),
    Chars(usize),
    Uid(&'static str),
    By(fn(&str) -> Result<(), String>),
}

/// A string.
#[derive(Clone, Copy, Debug)]
pub struct TextField {
    check: TextCheck,
    min: Option<usize>,
    max: Option<usize>,
    format: Option<&'static str>,
    shown_format: Option<&'static str>,
    pattern: Option<&'static str>,
    shown_pattern: Option<&'static str>,
    expected: &'static str,
    takes_numbers: bool,
    default: &'static str,
}

const NAME: &str = "^[a-zA-Z0-9\\-_.]+$";

/// A string.
#[must_use]
pub const fn text() -> TextField {
    TextField {
        check: TextCheck::Nothing,
        min: None,
        max: None,
        format: None,
        shown_format: None,
        pattern: None,
        shown_pattern: None,
        expected: "a string",
        takes_numbers: false,
        default: "",
    }
}

/// A name: letters, digits, `-`, `_` and `.`.
#[must_use]
pub const fn name() -> TextField {
    TextField { pattern: Some(NAME), ..text().by(names::name).limits(1, names::MAX_COMPARED_BYTES) }
}

/// The name of a policy or a wire profile. Something else checks it, with all else that can be read.
#[must_use]
pub const fn catalog_name() -> TextField {
    TextField { pattern: Some(NAME), ..text().by(|_| Ok(())).limits(1, names::MAX_CATALOG_NAME_BYTES) }
}

/// A version: a short name, or a whole number as its text.
#[must_use]
pub const fn version() -> TextField {
    name().by(names::version).limits(1, names::MAX_VERSION_BYTES).or_number()
}

/// A duration.
#[must_use]
pub const fn span() -> TextField {
    text().by(duration_text::check).expecting(duration_text::EXPECTED).pattern("^[0-9]+(ms|s|m|h|d)$")
}

/// A caller's own name for an object, which must not begin like its ids.
#[must_use]
pub const fn uid(prefix: &'static str) -> TextField {
    TextField { check: TextCheck::Uid(prefix), ..name() }
}

/// A time in RFC 3339.
#[must_use]
pub const fn moment() -> TextField {
    TextField { shown_format: Some("date-time"), ..text() }.by(is_moment).format("date-time")
}

impl TextField {
    /// With at most so many bytes, without control characters.
    #[must_use]
    pub const fn bytes(self, max: usize) -> Self {
        Self { check: TextCheck::Bytes(max), max: Some(max), ..self }
    }

    /// With at most so many bytes, whatever they are.
    #[must_use]
    pub const fn length(self, max: usize) -> Self {
        Self { check: TextCheck::Length(max), max: Some(max), ..self }
    }

    /// With at most so many characters, none of them a control character.
    #[must_use]
    pub const fn chars(self, max: usize) -> Self {
        Self { check: TextCheck::Chars(max), max: Some(max), ..self }
    }

    /// That this function likes.
    #[must_use]
    pub const fn by(self, check: fn(&str) -> Result<(), String>) -> Self {
        Self { check: TextCheck::By(check), ..self }
    }

    /// A mail address.
    #[must_use]
    pub const fn email(self) -> Self {
        Self { max: Some(names::MAX_EMAIL_BYTES), ..self.by(names::email) }
    }

    /// With at least one character.
    #[must_use]
    pub const fn filled(self) -> Self {
        Self { min: Some(1), ..self }
    }

    /// With at most so many bytes, as the document says; something else checks it.
    #[must_use]
    pub const fn limit(self, max: usize) -> Self {
        Self { max: Some(max), ..self }
    }

    /// With so many characters, as the document says; something else checks it.
    #[must_use]
    pub const fn limits(self, min: usize, max: usize) -> Self {
        Self { min: Some(min), max: Some(max), ..self }
    }

    /// With a format of JSON Schema.
    #[must_use]
    pub const fn format(self, format: &'static str) -> Self {
        Self { format: Some(format), ..self }
    }

    /// With a format of JSON Schema in answers.
    #[must_use]
    pub const fn shown(self, format: &'static str) -> Self {
        Self { shown_format: Some(format), ..self }
    }

    /// With a pattern, as the document says; something else checks it.
    #[must_use]
    pub const fn pattern(self, pattern: &'static str) -> Self {
        Self { pattern: Some(pattern), shown_pattern: Some(pattern), ..self }
    }

    /// That a message calls so: "expected …, not a list".
    #[must_use]
    pub const fn expecting(self, expected: &'static str) -> Self {
        Self { expected, ..self }
    }

    /// Or a whole number, as its text.
    #[must_use]
    pub const fn or_number(self) -> Self {
        Self { expected: "a string or a whole number of at least 0", takes_numbers: true, ..self }
    }

    /// The document does not say what is checked.
    #[must_use]
    pub const fn undescribed(self) -> Self {
        Self { min: None, max: None, pattern: None, ..self }
    }

    /// What it is if it is left out.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// The text of a value, or why it is none.
    pub(super) fn text_of(self, value: &RawValue) -> Result<String, String> {
        match raw::whole(value).filter(|_| self.takes_numbers) {
            Some(number) => Ok(number.to_string()),
            None if raw::is_string(value) => raw::string(value),
            None => Err(format!("expected {}, not {}", self.expected, raw::kind(value))),
        }
    }

    pub(super) fn fits(self, text: &str) -> Result<(), String> {
        match self.check {
            TextCheck::By(check) => return check(text),
            TextCheck::Uid(prefix) => return names::uid(text, prefix),
            _ if self.min == Some(1) && text.is_empty() => {
                return Err("must have at least one character".into());
            }
            TextCheck::Nothing => return Ok(()),
            TextCheck::Bytes(max) => return names::text(text, max),
            TextCheck::Length(max) if text.len() > max => {
                return Err(format!("may be {max} bytes long at most; it is {}", text.len()));
            }
            TextCheck::Length(_) => return Ok(()),
            TextCheck::Chars(max) => {
                let count = text.chars().count();
                if count > max {
                    return Err(format!("may have {max} characters at most; it has {count}"));
                }
            }
        }
        names::line(text)
    }
}

impl FieldKind for TextField {
    type Value = String;

    fn expected(&self) -> &'static str {
        self.expected
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<String> {
        let value = fields.raw(name)?;
        let text = self.text_of(&value).map_err(|why| fields.undecoded(&[name], why)).ok();
        fields.checked(name, text, |text| self.fits(text))
    }

    fn check(&self, value: &String) -> Result<(), String> {
        self.fits(value)
    }

    fn default(&self) -> String {
        self.default.to_owned()
    }
}

impl KindSchema for TextField {
    fn input(&self) -> Value {
        let pattern = match (self.check, self.pattern) {
            (TextCheck::Uid(prefix), Some(_)) => Some(NAME.replacen('^', &format!("^(?!{prefix})"), 1)),
            (_, pattern) => pattern.map(str::to_owned),
        };
        described([
            ("minLength", self.min.map(Value::from)),
            ("maxLength", self.max.map(Value::from)),
            ("format", self.format.map(Value::from)),
            ("pattern", pattern.map(Value::from)),
        ])
    }

    fn output(&self) -> Value {
        let (format, pattern) = (self.shown_format, self.shown_pattern);
        described([("format", format.map(Value::from)), ("pattern", pattern.map(Value::from))])
    }
}

fn described<const RULES: usize>(rules: [(&str, Option<Value>); RULES]) -> Value {
    let mut schema = json!({"type": "string"});
    for (name, value) in rules {
        if let Some(value) = value {
            schema[name] = value;
        }
    }
    schema
}

/// A string that is not for logs.
#[derive(Clone, Copy, Debug)]
pub struct SecretField;

/// A string that is not for logs.
#[must_use]
pub const fn secret() -> SecretField {
    SecretField
}

impl FieldKind for SecretField {
    type Value = Secret;

    fn expected(&self) -> &'static str {
        "a string"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Secret> {
        fields.string(name).map(Secret::from)
    }

    fn default(&self) -> Secret {
        Secret::default()
    }
}

impl KindSchema for SecretField {
    fn input(&self) -> Value {
        json!({"type": "string"})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

/// One of a few words.
pub struct ChoiceField<T> {
    words: &'static [&'static str],
    has_pattern: bool,
    hint: &'static str,
    value: PhantomData<fn() -> T>,
}

/// One of a few words; the first is the default.
#[must_use]
pub const fn choice<T>(words: &'static [&'static str]) -> ChoiceField<T> {
    ChoiceField { words, has_pattern: false, hint: "", value: PhantomData }
}

impl<T> ChoiceField<T> {
    /// The words are in the schemas of requests.
    #[must_use]
    pub const fn asked(self) -> Self {
        Self { has_pattern: true, ..self }
    }
}

impl<T> ChoiceField<T> {
    /// What the words mean, for who gives none.
    #[must_use]
    pub const fn hinted(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

impl<T> fmt::Debug for ChoiceField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChoiceField").field(&self.words).finish()
    }
}

impl<T: Clone + PartialEq + TryFrom<String>> FieldKind for ChoiceField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a string"
    }

    fn hint(&self) -> &'static str {
        self.hint
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        let word = fields.string(name)?;
        let known = self.words.contains(&word.as_str()).then(|| T::try_from(word.clone()).ok());
        if known.is_none() {
            let words: Vec<_> = self.words.iter().map(|word| format!("`{word}`")).collect();
            fields.problem(name, format!("must be {}, not `{word}`", words.join(" or ")));
        }
        known.flatten()
    }

    fn default(&self) -> T {
        let first = self.words.first().and_then(|word| T::try_from((*word).to_owned()).ok());
        first.unwrap_or_else(|| unreachable!("the words are values of the type"))
    }
}

impl<T> KindSchema for ChoiceField<T> {
    fn input(&self) -> Value {
        let pattern = self.has_pattern.then(|| format!("^({})$", self.words.join("|")));
        described([("pattern", pattern.map(Value::from))])
    }

    fn output(&self) -> Value {
        json!({"type": "string"})
    }
}
