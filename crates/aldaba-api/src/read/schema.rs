//! The schemas of bodies, for the API's document.

use serde_json::{Map, Value, json};

/// A schema of an object, as its fields are declared.
#[derive(Debug)]
pub struct ObjectSchema {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

/// Whether a field is in each body: its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence(&'static str);

impl Presence {
    /// By the name of a mode.
    #[must_use]
    pub const fn of(mode: &'static str) -> Self {
        Self(mode)
    }

    fn is_required(self) -> bool {
        self.0 == "required"
    }

    fn is_always_shown(self) -> bool {
        !matches!(self.0, "nullable" | "omitted")
    }
}

impl ObjectSchema {
    /// One without fields.
    #[must_use]
    pub fn new() -> Self {
        Self { properties: Map::new(), required: Vec::new() }
    }

    /// A field of a request.
    pub fn input(&mut self, name: &'static str, presence: Presence, about: &str, schema: Value) {
        self.add(name, presence.is_required(), about, schema);
    }

    /// A field of a change.
    pub fn patch(&mut self, name: &'static str, about: &str, schema: Value) {
        self.add(name, false, about, schema);
    }

    /// A field of an answer.
    pub fn output(&mut self, name: &'static str, presence: Presence, about: &str, schema: Value) {
        self.add(name, presence.is_always_shown(), about, schema);
    }

    fn add(&mut self, name: &'static str, is_required: bool, about: &str, schema: Value) {
        let mut schema = if is_required { schema } else { or_null(schema) };
        if is_required {
            self.required.push(name);
        }
        if !about.is_empty() {
            schema["description"] = about.into();
        }
        self.properties.insert(name.to_owned(), schema);
    }

    /// The whole; `is_strict`: it has no other fields.
    #[must_use]
    pub fn finish(self, about: &str, is_strict: bool) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !about.is_empty() {
            schema["description"] = about.into();
        }
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        if is_strict {
            schema["additionalProperties"] = false.into();
        }
        schema
    }
}

impl Default for ObjectSchema {
    fn default() -> Self {
        Self::new()
    }
}

/// The same, or null.
fn or_null(mut schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(only)) => {
            schema["type"] = json!([only, "null"]);
            schema
        }
        _ => json!({"oneOf": [schema, {"type": "null"}]}),
    }
}

/// The lines of a comment as one text.
#[must_use]
pub fn about(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
    lines.join("\n")
}
