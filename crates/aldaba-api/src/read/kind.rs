//! Kinds of fields: how a value is read, checked and described.

use super::fields::Fields;
use super::parsed::{ApiBody, ApiRequest, Parsed};
use crate::{Json, Secret, names};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// How the values of a field are read, checked and described.
pub trait FieldKind {
    /// What is read.
    type Value: Clone + Default + PartialEq;
    /// Whether the field cannot be given under two names at once.
    const IS_EXCLUSIVE: bool = false;

    /// In the words of a message: "expected …, not null".
    fn expected(&self) -> &'static str;

    /// Reads a value; `None` if it is null, or wrong.
    fn read(&self, fields: &mut Fields, name: &str) -> Option<Self::Value>;

    /// Checks a value that was not read from a body.
    ///
    /// # Errors
    /// Says what is wrong with it.
    fn check(&self, _value: &Self::Value) -> Result<(), String> {
        Ok(())
    }

    /// What the field has if it is left out.
    fn default(&self) -> Self::Value {
        Self::Value::default()
    }

    /// Its schema in a request.
    fn input(&self) -> Value;

    /// Its schema in an answer.
    fn output(&self) -> Value;

    /// The schemas that its own refers to.
    fn nested(&self, _into: &mut Vec<(String, Value)>) {}
}

/// A kind for values of this type.
#[doc(hidden)]
pub fn kind_for<T, K: FieldKind<Value = T>>(kind: K) -> K {
    kind
}

#[derive(Clone, Copy, Debug)]
enum TextCheck {
    Nothing,
    Bytes(usize),
    Length(usize),
    Chars(usize),
    Name,
    Uid(&'static str),
    Email,
}

/// A string.
#[derive(Clone, Copy, Debug)]
pub struct TextField {
    check: TextCheck,
    least: Option<usize>,
    most: Option<usize>,
    format: Option<&'static str>,
    shown_format: Option<&'static str>,
    is_described: bool,
    default: &'static str,
}

/// A string.
#[must_use]
pub const fn text() -> TextField {
    TextField {
        check: TextCheck::Nothing,
        least: None,
        most: None,
        format: None,
        shown_format: None,
        is_described: true,
        default: "",
    }
}

/// A name: letters, digits, `-`, `_` and `.`.
#[must_use]
pub const fn name() -> TextField {
    TextField { check: TextCheck::Name, least: Some(1), most: Some(names::MAX_COMPARED_BYTES), ..text() }
}

/// A caller's own name for an object, which must not begin like its ids.
#[must_use]
pub const fn uid(prefix: &'static str) -> TextField {
    TextField { check: TextCheck::Uid(prefix), ..name() }
}

/// A time in RFC 3339.
#[must_use]
pub const fn moment() -> TextField {
    TextField { shown_format: Some("date-time"), ..text() }.format("date-time")
}

impl TextField {
    /// With at most so many bytes, without control characters.
    #[must_use]
    pub const fn bytes(self, most: usize) -> Self {
        Self { check: TextCheck::Bytes(most), most: Some(most), ..self }
    }

    /// With at most so many bytes, whatever they are.
    #[must_use]
    pub const fn length(self, most: usize) -> Self {
        Self { check: TextCheck::Length(most), most: Some(most), ..self }
    }

    /// With a format of JSON Schema in answers.
    #[must_use]
    pub const fn shown(self, format: &'static str) -> Self {
        Self { shown_format: Some(format), ..self }
    }

    /// With at most so many characters, none of them a control character.
    #[must_use]
    pub const fn chars(self, most: usize) -> Self {
        Self { check: TextCheck::Chars(most), most: Some(most), ..self }
    }

    /// With at most so many bytes, as the document says; the server checks it itself.
    #[must_use]
    pub const fn limit(self, most: usize) -> Self {
        Self { most: Some(most), ..self }
    }

    /// With at least one character.
    #[must_use]
    pub const fn filled(self) -> Self {
        Self { least: Some(1), ..self }
    }

    /// A mail address.
    #[must_use]
    pub const fn email(self) -> Self {
        Self { check: TextCheck::Email, most: Some(names::MAX_EMAIL_BYTES), ..self }
    }

    /// With a format of JSON Schema.
    #[must_use]
    pub const fn format(self, format: &'static str) -> Self {
        Self { format: Some(format), ..self }
    }

    /// The document does not say what is checked.
    #[must_use]
    pub const fn undescribed(self) -> Self {
        Self { least: None, most: None, is_described: false, ..self }
    }

    /// What it is if it is left out.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    fn pattern(self) -> Option<String> {
        match self.check {
            _ if !self.is_described => None,
            TextCheck::Name => Some("^[a-zA-Z0-9\\-_.]+$".into()),
            TextCheck::Uid(prefix) => Some(format!("^(?!{prefix})[a-zA-Z0-9\\-_.]+$")),
            _ => None,
        }
    }

    fn fits(self, text: &str) -> Result<(), String> {
        match self.check {
            TextCheck::Name => return names::name(text),
            TextCheck::Uid(prefix) => return names::uid(text, prefix),
            TextCheck::Email => return names::email(text),
            _ if self.least == Some(1) && text.is_empty() => {
                return Err("must have at least one character".into());
            }
            TextCheck::Nothing => return Ok(()),
            TextCheck::Bytes(most) => return names::text(text, most),
            TextCheck::Length(most) if text.len() > most => {
                return Err(format!("may be {most} bytes long at most"));
            }
            TextCheck::Length(_) => return Ok(()),
            TextCheck::Chars(most) => {
                let count = text.chars().count();
                if count > most {
                    return Err(format!("may have {most} characters at most; it has {count}"));
                }
            }
        }
        names::line(text)
    }
}

impl FieldKind for TextField {
    type Value = String;

    fn expected(&self) -> &'static str {
        "a string"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<String> {
        let text = fields.string(name);
        fields.checked(name, text, |text| self.fits(text))
    }

    fn check(&self, value: &String) -> Result<(), String> {
        self.fits(value)
    }

    fn default(&self) -> String {
        self.default.to_owned()
    }

    fn input(&self) -> Value {
        let mut schema = json!({"type": "string"});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema[name] = value;
            }
        };
        set("minLength", self.least.map(Value::from));
        set("maxLength", self.most.map(Value::from));
        set("format", self.format.map(Value::from));
        set("pattern", self.pattern().map(Value::from));
        schema
    }

    fn output(&self) -> Value {
        match self.shown_format {
            Some(format) => json!({"type": "string", "format": format}),
            None => json!({"type": "string"}),
        }
    }
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

    fn input(&self) -> Value {
        json!({"type": "string"})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

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
        fields.boolean(name)
    }

    fn input(&self) -> Value {
        json!({"type": "boolean"})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

/// A whole number from 1 to 65535.
#[derive(Clone, Copy, Debug)]
pub struct CountField {
    default: u32,
}

/// A whole number from 1 to 65535.
#[must_use]
pub const fn count() -> CountField {
    CountField { default: 0 }
}

impl CountField {
    /// What it is if it is left out.
    #[must_use]
    pub const fn or(self, default: u32) -> Self {
        Self { default }
    }
}

impl FieldKind for CountField {
    type Value = u32;

    fn expected(&self) -> &'static str {
        "a whole number"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<u32> {
        fields.count(name).map(u32::from)
    }

    fn default(&self) -> u32 {
        self.default
    }

    fn input(&self) -> Value {
        json!({"type": "integer", "format": "int32", "minimum": 1})
    }

    fn output(&self) -> Value {
        json!({"type": "integer", "format": "int32", "minimum": 0})
    }
}

/// A whole number within bounds.
pub struct NumberField<T> {
    least: u64,
    most: u64,
    default: u64,
    format: &'static str,
    value: PhantomData<fn() -> T>,
}

/// A whole number within bounds.
#[must_use]
pub const fn number<T>(least: u64, most: u64) -> NumberField<T> {
    NumberField { least, most, default: least, format: "int32", value: PhantomData }
}

impl<T> NumberField<T> {
    /// What it is if it is left out.
    #[must_use]
    pub const fn or(self, default: u64) -> Self {
        Self { default, ..self }
    }

    /// As 64 bits in the document.
    #[must_use]
    pub const fn wide(self) -> Self {
        Self { format: "int64", ..self }
    }

    /// Its schema in an answer.
    #[must_use]
    pub fn output(&self) -> Value {
        json!({"type": "integer", "format": self.format, "minimum": 0})
    }
}

impl<T> fmt::Debug for NumberField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NumberField").field(&self.least).field(&self.most).finish()
    }
}

impl<T: Clone + Default + PartialEq + TryFrom<u64>> FieldKind for NumberField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a whole number"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        T::try_from(fields.number(name, self.least, self.most)?).ok()
    }

    fn default(&self) -> T {
        T::try_from(self.default).unwrap_or_default()
    }

    fn input(&self) -> Value {
        let mut schema = json!({"type": "integer", "format": self.format, "minimum": self.least});
        if self.most < u32::MAX.into() {
            schema["maximum"] = self.most.into();
        }
        schema
    }

    fn output(&self) -> Value {
        Self::output(self)
    }
}

/// A list of texts, in its order.
#[derive(Clone, Copy, Debug)]
pub struct TextsField {
    most: usize,
    bytes: usize,
}

/// A list of up to so many texts, each of up to so many bytes.
#[must_use]
pub const fn texts(most: usize, bytes: usize) -> TextsField {
    TextsField { most, bytes }
}

impl FieldKind for TextsField {
    type Value = Vec<String>;

    fn expected(&self) -> &'static str {
        "a list of strings"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<String>> {
        let items = fields.list(name, self.most)?;
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = format!("[{index}]");
            match serde_json::from_str::<String>(item.get()) {
                Ok(text) if text.len() <= self.bytes => texts.push(text),
                Ok(_) => {
                    fields.problem_at(&[name, &place], format!("may be {} bytes long at most", self.bytes));
                }
                Err(_) => fields.problem_at(&[name, &place], "expected a string"),
            }
        }
        Some(texts)
    }

    fn input(&self) -> Value {
        json!({"type": "array", "items": {"type": "string"}, "maxItems": self.most})
    }

    fn output(&self) -> Value {
        json!({"type": "array", "items": {"type": "string"}})
    }
}

/// A list of bodies.
pub struct BodiesField<T> {
    most: usize,
    value: PhantomData<fn() -> T>,
}

/// A list of up to so many bodies.
#[must_use]
pub const fn bodies<T>(most: usize) -> BodiesField<T> {
    BodiesField { most, value: PhantomData }
}

impl<T> fmt::Debug for BodiesField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BodiesField").field(&self.most).finish()
    }
}

impl<T: ApiRequest + Clone + Default + PartialEq> FieldKind for BodiesField<T> {
    type Value = Vec<T>;

    fn expected(&self) -> &'static str {
        "a list of objects"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<T>> {
        let items = fields.list(name, self.most)?;
        let items = items.iter().map(|item| &**item).enumerate();
        let read = |(index, item): (usize, &RawValue)| inner(fields, &[name, &format!("[{index}]")], item);
        Some(items.filter_map(read).collect())
    }

    fn input(&self) -> Value {
        json!({"type": "array", "items": reference(T::NAME), "maxItems": self.most})
    }

    fn output(&self) -> Value {
        json!({"type": "array", "items": {"type": "object"}})
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        into.push((T::NAME.to_owned(), T::schema()));
        T::nested(into);
    }
}

/// A body within a body, read with it.
pub struct InnerField<T>(PhantomData<fn() -> T>);

/// A body within a body, read with it.
#[must_use]
pub const fn body<T>() -> InnerField<T> {
    InnerField(PhantomData)
}

impl<T> fmt::Debug for InnerField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InnerField")
    }
}

impl<T: ApiRequest + Clone + Default + PartialEq> FieldKind for InnerField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a JSON object"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        let raw = fields.raw_object(name)?;
        inner(fields, &[name], &raw)
    }

    fn input(&self) -> Value {
        reference(T::NAME)
    }

    fn output(&self) -> Value {
        json!({"type": "object"})
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        into.push((T::NAME.to_owned(), T::schema()));
        T::nested(into);
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Reads a body at a place of another one.
fn inner<T: ApiRequest>(fields: &mut Fields, place: &[&str], raw: &RawValue) -> Option<T> {
    let parsed =
        Fields::parse(raw.get().as_bytes(), fields.unknown()).map(|inner| Parsed::<T>::of(inner, false));
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

/// A set of strings: sorted, without repeats.
#[derive(Clone, Copy, Debug)]
pub struct NamesField {
    most: usize,
    may_be_empty: bool,
    check: fn(&str) -> Result<(), String>,
}

/// A set of up to so many strings.
#[must_use]
pub const fn names(most: usize, check: fn(&str) -> Result<(), String>) -> NamesField {
    NamesField { most, may_be_empty: false, check }
}

impl NamesField {
    /// One that may be empty.
    #[must_use]
    pub const fn or_empty(self) -> Self {
        Self { may_be_empty: true, ..self }
    }
}

impl FieldKind for NamesField {
    type Value = Vec<String>;
    const IS_EXCLUSIVE: bool = true;

    fn expected(&self) -> &'static str {
        "a list of strings"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Vec<String>> {
        let set = match self.may_be_empty {
            true => fields.set_or_empty(name, self.most, self.check),
            false => fields.set(name, self.most, self.check),
        };
        (!set.is_empty()).then_some(set)
    }

    fn input(&self) -> Value {
        let mut schema = json!({"type": "array", "items": {"type": "string"}, "maxItems": self.most});
        if !self.may_be_empty {
            schema["minItems"] = 1.into();
        }
        schema
    }

    fn output(&self) -> Value {
        json!({"type": "array", "items": {"type": "string"}})
    }
}

/// One of a few words.
pub struct ChoiceField<T> {
    words: &'static [&'static str],
    has_pattern: bool,
    shows_pattern: bool,
    value: PhantomData<fn() -> T>,
}

/// One of a few words; the first is the default.
#[must_use]
pub const fn choice<T>(words: &'static [&'static str]) -> ChoiceField<T> {
    ChoiceField { words, has_pattern: false, shows_pattern: false, value: PhantomData }
}

impl<T> ChoiceField<T> {
    /// The words are in the schemas.
    #[must_use]
    pub const fn described(self) -> Self {
        Self { has_pattern: true, shows_pattern: true, ..self }
    }

    /// The words are in the schemas of requests.
    #[must_use]
    pub const fn asked(self) -> Self {
        Self { has_pattern: true, ..self }
    }

    fn schema(&self, has_pattern: bool) -> Value {
        match has_pattern {
            true => json!({"type": "string", "pattern": format!("^({})$", self.words.join("|"))}),
            false => json!({"type": "string"}),
        }
    }
}

impl<T> fmt::Debug for ChoiceField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChoiceField").field(&self.words).finish()
    }
}

impl<T: Clone + Default + PartialEq + From<String>> FieldKind for ChoiceField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a string"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        let word = fields.string(name)?;
        if !self.words.contains(&word.as_str()) {
            let words: Vec<_> = self.words.iter().map(|word| format!("`{word}`")).collect();
            fields.problem(name, format!("must be {}, not `{word}`", words.join(" or ")));
            return None;
        }
        Some(word.into())
    }

    fn default(&self) -> T {
        self.words.first().map(|word| T::from((*word).to_owned())).unwrap_or_default()
    }

    fn input(&self) -> Value {
        self.schema(self.has_pattern)
    }

    fn output(&self) -> Value {
        self.schema(self.shows_pattern)
    }
}

/// A JSON object, kept byte by byte.
#[derive(Clone, Copy, Debug)]
pub struct ObjectField {
    is_checked: bool,
}

/// A JSON object, kept byte by byte. The server checks that it is one, and what is in it.
#[must_use]
pub const fn object() -> ObjectField {
    ObjectField { is_checked: false }
}

/// Any JSON object, kept byte by byte.
#[must_use]
pub const fn any_object() -> ObjectField {
    ObjectField { is_checked: true }
}

impl FieldKind for ObjectField {
    type Value = Json;
    const IS_EXCLUSIVE: bool = true;

    fn expected(&self) -> &'static str {
        "a JSON object"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Json> {
        if fields.repeats(name) {
            fields.problem(name, "is given twice");
            return None;
        }
        match self.is_checked {
            true => fields.raw_object(name).map(Json::from),
            false => fields.raw(name).map(Json::from),
        }
    }

    fn input(&self) -> Value {
        json!({"type": "object"})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

/// An object of strings.
#[derive(Clone, Copy, Debug)]
pub struct StringsField {
    /// `None`: it is short in all.
    most: Option<usize>,
}

/// An object of up to so many strings.
#[must_use]
pub const fn strings(most: usize) -> StringsField {
    StringsField { most: Some(most) }
}

/// An object of strings that has few bytes in all.
#[must_use]
pub const fn short_strings() -> StringsField {
    StringsField { most: None }
}

impl FieldKind for StringsField {
    type Value = BTreeMap<String, String>;

    fn expected(&self) -> &'static str {
        "an object of strings"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<BTreeMap<String, String>> {
        match self.most {
            Some(most) => Some(fields.strings(name, most).into_iter().collect()),
            None => fields.short_strings(name),
        }
    }

    fn input(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"type": "string"},
        })
    }

    fn output(&self) -> Value {
        json!({"type": "object"})
    }
}

/// A version: a short name, or a whole number.
#[derive(Clone, Copy, Debug)]
pub struct VersionField;

/// A version: a short name, or a whole number as its text.
#[must_use]
pub const fn version() -> VersionField {
    VersionField
}

impl FieldKind for VersionField {
    type Value = String;

    fn expected(&self) -> &'static str {
        "a string or a whole number of at least 0"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<String> {
        let version = fields.string_or_number(name);
        fields.checked(name, version, |version| names::version(version))
    }

    fn input(&self) -> Value {
        json!({
            "type": "string",
            "minLength": 1,
            "maxLength": names::MAX_VERSION_BYTES,
            "pattern": "^[a-zA-Z0-9\\-_.]+$",
        })
    }

    fn output(&self) -> Value {
        json!({"type": "string"})
    }
}

/// A part of a body that is a body itself.
pub struct PartField<T>(PhantomData<fn() -> T>);

/// A part of a body that the server reads later, as a body of its own.
#[must_use]
pub const fn part<T>() -> PartField<T> {
    PartField(PhantomData)
}

impl<T> fmt::Debug for PartField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartField")
    }
}

impl<T: ApiBody + Clone + Default + PartialEq> FieldKind for PartField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a JSON object"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        fields.forget(&[name]);
        None
    }

    fn input(&self) -> Value {
        reference(T::NAME)
    }

    fn output(&self) -> Value {
        self.input()
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        into.push((T::NAME.to_owned(), T::schema()));
        T::nested(into);
    }
}

/// Another body.
pub struct BodyField<T>(PhantomData<fn() -> T>);

/// Another body, in an answer.
#[must_use]
pub const fn nested<T: ApiBody>() -> BodyField<T> {
    BodyField(PhantomData)
}

impl<T> fmt::Debug for BodyField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyField")
    }
}

impl<T: ApiBody> BodyField<T> {
    /// Its schema in an answer.
    #[must_use]
    pub fn output(&self) -> Value {
        reference(T::NAME)
    }

    /// The schemas that its own refers to.
    pub fn nested(&self, into: &mut Vec<(String, Value)>) {
        into.push((T::NAME.to_owned(), T::schema()));
        T::nested(into);
    }
}
