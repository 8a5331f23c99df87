//! The schemas of bodies, for the API's document.

use super::parsed::ApiBody;
use serde_json::{Map, Value, json};

/// What the document says of the values of a field.
pub trait KindSchema {
    /// Its schema in a request.
    fn input(&self) -> Value;

    /// Its schema in an answer.
    fn output(&self) -> Value;

    /// The schemas that its own refers to.
    fn nested(&self, _into: &mut Vec<(String, Value)>) {}
}

/// A field as it is declared.
pub struct DeclaredField {
    /// In JSON.
    pub name: &'static str,
    /// Its mode ([`form`](super::form)).
    pub mode: &'static str,
    /// An older name, and its mode in answers.
    pub older: (Option<&'static str>, &'static str),
    /// Its comment.
    pub about: String,
    /// Its values.
    pub kind: Box<dyn KindSchema>,
}

impl std::fmt::Debug for DeclaredField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DeclaredField").field(&self.name).field(&self.mode).finish()
    }
}

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A request that says all.
    Whole,
    /// A request that says what changes.
    Patch,
    /// An answer.
    Shown,
}

impl Form {
    /// Whether each body has a field of this mode.
    fn requires(self, mode: &str) -> bool {
        match self {
            Self::Whole => matches!(mode, "required" | "needed"),
            Self::Patch => false,
            Self::Shown => !matches!(mode, "nullable" | "omitted"),
        }
    }
}

/// One of the forms of a body.
#[derive(Debug)]
pub struct Variant {
    /// The word that stands for it.
    pub word: &'static str,
    /// Its comment.
    pub about: &'static [&'static str],
    /// The fields that it has besides.
    pub fields: Vec<DeclaredField>,
}

/// A body as the document describes it.
#[derive(Debug)]
pub struct Described {
    /// Its schema.
    pub schema: Value,
    /// The schemas that its own refers to.
    pub nested: Vec<(String, Value)>,
}

impl Described {
    /// A body of these groups of fields. A request has no others.
    pub fn of<const GROUPS: usize>(form: Form, about: &[&str], groups: [Vec<DeclaredField>; GROUPS]) -> Self {
        let (mut properties, mut required, mut nested) = (Map::new(), Vec::new(), Vec::new());
        let mut add = |name: &'static str, mode: &str, about: &str, schema: Value| {
            let is_required = form.requires(mode);
            let may_be_null = !is_required || matches!(mode, "or_none" | "stated");
            let mut schema = if may_be_null { or_null(schema) } else { schema };
            if is_required {
                required.push(name);
            }
            if !about.is_empty() {
                schema["description"] = about.into();
            }
            properties.insert(name.to_owned(), schema);
        };
        for DeclaredField { name, mode, older, about, kind } in groups.into_iter().flatten() {
            kind.nested(&mut nested);
            if form != Form::Shown {
                add(name, mode, &about, kind.input());
                continue;
            }
            add(name, mode, &about, kind.output());
            if let (Some(older), mode) = older {
                add(older, mode, "The same, for older clients.", kind.output());
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        let about = self::about(about);
        if !about.is_empty() {
            schema["description"] = about.into();
        }
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if form != Form::Shown {
            schema["additionalProperties"] = false.into();
        }
        Self { schema, nested }
    }

    /// A body that has one of these forms, by the word in a field.
    pub fn variants(form: Form, about: &[&str], tag: &str, variants: Vec<Variant>) -> Self {
        let (mut forms, mut nested) = (Vec::new(), Vec::new());
        for Variant { word, about, fields } in variants {
            let mut described = Self::of(form, about, [fields]);
            described.schema["properties"][tag] = json!({"type": "string", "enum": [word]});
            match described.schema["required"].as_array_mut() {
                Some(required) => required.push(tag.into()),
                None => described.schema["required"] = json!([tag]),
            }
            forms.push(described.schema);
            nested.extend(described.nested);
        }
        Self { schema: json!({"description": self::about(about), "oneOf": forms}), nested }
    }

    /// With another body's fields too.
    pub fn with<T: ApiBody>(&mut self) {
        nest::<T>(&mut self.nested);
        if self.schema.get("allOf").is_none() {
            self.schema = json!({"allOf": [self.schema.take()]});
        }
        if let Some(all) = self.schema["allOf"].as_array_mut() {
            // Those of its own come last.
            all.insert(all.len() - 1, reference(T::NAME));
        }
    }

    /// With the fields of each of these.
    #[must_use]
    pub fn with_all(mut self, parts: &[fn(&mut Self)]) -> Self {
        parts.iter().for_each(|part| part(&mut self));
        self
    }
}

/// The schema of a body, and those that it refers to.
pub fn nest<T: ApiBody>(into: &mut Vec<(String, Value)>) {
    let Described { schema, nested } = T::described();
    into.push((T::NAME.to_owned(), schema));
    into.extend(nested);
}

/// What stands for a body that is described elsewhere.
#[must_use]
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The same, or null. What may be anything may be null.
fn or_null(mut schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(only)) => {
            schema["type"] = json!([only, "null"]);
            schema
        }
        None if schema.as_object().is_some_and(Map::is_empty) => schema,
        _ => json!({"oneOf": [schema, {"type": "null"}]}),
    }
}

/// The lines of a comment as one text.
#[must_use]
pub fn about(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
    lines.join("\n")
}
