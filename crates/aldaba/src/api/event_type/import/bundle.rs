//! Extracts a schema from an OpenAPI document with everything that it refers to.

use super::webhooks::Flaw;
use aldaba_engine::Schemas;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SCHEMAS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const ONES: [&str; 12] = [
    "not",
    "if",
    "then",
    "else",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];
/// The limits on a chain of references, and on the schemas that one needs.
const MAX_REFERENCE_DEPTH: usize = 32;
const MAX_PARTS: usize = 1_000;
/// Keywords of OpenAPI 3.0 that are translated or left out.
const REWORDED: [&str; 3] = ["nullable", "exclusiveMinimum", "exclusiveMaximum"];

/// An OpenAPI document with schemas.
pub(super) struct Document<'d> {
    pub(super) root: &'d Value,
    /// The schemas are of OpenAPI 3.0, which has its own keywords.
    pub(super) older: bool,
}

/// A self-contained schema.
pub(super) struct Bundle {
    pub(super) schema: Value,
    /// The origins of the parts under `$defs`.
    pub(super) origins: BTreeMap<String, Vec<String>>,
}

impl<'d> Document<'d> {
    /// The target of a reference inside the document, and its location; a target that is a reference is followed.
    pub(super) fn follow(
        &self,
        mut value: &'d Value,
        mut place: Vec<String>,
    ) -> Result<(&'d Value, Vec<String>), Flaw> {
        for _ in 0..MAX_REFERENCE_DEPTH {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok((value, place));
            };
            (value, place) = self.find(reference, &place)?;
        }
        Err(Flaw::new(&place, "refers to itself"))
    }

    fn find(&self, reference: &str, from: &[String]) -> Result<(&'d Value, Vec<String>), Flaw> {
        let flaw = |why: &str| {
            let shown: String = reference.chars().take(100).collect();
            Flaw::new(&[from, &["$ref".to_owned()]].concat(), format!("`{shown}` {why}"))
        };
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(flaw(
                "is outside of this document, and nothing is fetched; put it into the document",
            ));
        };
        let found = self.root.pointer(pointer).ok_or_else(|| flaw("is not in this document"))?;
        Ok((found, self.place(pointer)))
    }

    /// The steps of a pointer, for `loc`.
    fn place(&self, pointer: &str) -> Vec<String> {
        let mut value = Some(self.root);
        let step = |token: &str| {
            let name = token.replace("~1", "/").replace("~0", "~");
            let (next, shown) = match value {
                Some(Value::Array(items)) => {
                    (name.parse().ok().and_then(|n: usize| items.get(n)), format!("[{name}]"))
                }
                Some(other) => (other.get(&name), name),
                None => (None, name),
            };
            value = next;
            shown
        };
        pointer.split('/').skip(1).map(step).collect()
    }

    pub(super) fn bundle(&self, schema: &'d Value, place: &[String]) -> Result<Bundle, Flaw> {
        let mut parts = Parts {
            document: self,
            names: BTreeMap::new(),
            origins: BTreeMap::new(),
            queue: Vec::new(),
            room: Schemas::MAX_BYTES,
        };
        // An example at the top is in the schema itself, not behind a reference.
        let alone = schema.as_object().is_some_and(|keywords| keywords.len() == 1);
        let (schema, place) =
            if alone { self.follow(schema, place.to_vec())? } else { (schema, place.to_vec()) };
        let mut root = parts.rewritten(schema, &place)?;
        let mut defs = Map::new();
        while let Some((name, part, place)) = parts.queue.pop() {
            parts.grow(name.len() + KEY, &place)?;
            let part = parts.rewritten(part, &place)?;
            defs.insert(name, part);
        }
        if let (Some(keywords), false) = (root.as_object_mut(), defs.is_empty()) {
            keywords.insert("$defs".into(), Value::Object(defs));
        }
        Ok(Bundle { schema: root, origins: parts.origins })
    }
}

/// The parts of a bundle besides its top.
struct Parts<'a, 'd> {
    document: &'a Document<'d>,
    /// By the reference.
    names: BTreeMap<String, String>,
    origins: BTreeMap<String, Vec<String>>,
    /// The parts to rewrite, with their locations in the document.
    queue: Vec<(String, &'d Value, Vec<String>)>,
    /// The bytes that are left. They are counted while the bundle is made: expanded for every webhook it can be far
    /// larger than the document.
    room: usize,
}

/// The bytes of a key besides its text: quotes and a colon.
const KEY: usize = 3;

impl Parts<'_, '_> {
    fn grow(&mut self, bytes: usize, place: &[String]) -> Result<(), Flaw> {
        let too_large = || {
            let most = Schemas::MAX_BYTES;
            Flaw::new(place, format!("may have {most} bytes with all that it refers to; it has more"))
        };
        self.room = self.room.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// Copies a value without references.
    fn copied(&mut self, value: &Value, place: &[String]) -> Result<Value, Flaw> {
        self.grow(bytes(value), place)?;
        Ok(value.clone())
    }

    /// Copies a value with references to `$defs`. In OpenAPI they start at the top of the document.
    fn rewritten(&mut self, schema: &Value, place: &[String]) -> Result<Value, Flaw> {
        let Value::Object(keywords) = schema else { return self.copied(schema, place) };
        self.grow(2, place)?;
        let within = |more: &[&str]| -> Vec<String> {
            place.iter().cloned().chain(more.iter().map(|part| (*part).to_owned())).collect()
        };
        let mut copy = Map::new();
        for (word, value) in keywords {
            if self.document.older && REWORDED.contains(&word.as_str()) && value.is_boolean() {
                copy.insert(word.clone(), value.clone());
                continue;
            }
            self.grow(word.len() + KEY, place)?;
            let rewritten = match (word.as_str(), value) {
                ("$ref", Value::String(reference)) => self.part(reference, place)?,
                (word, Value::Object(members)) if SCHEMAS.contains(&word) => {
                    let mut schemas = Map::new();
                    for (name, member) in members {
                        self.grow(name.len() + KEY, place)?;
                        schemas.insert(name.clone(), self.rewritten(member, &within(&[word, name]))?);
                    }
                    Value::Object(schemas)
                }
                (word, Value::Array(items)) if LISTS.contains(&word) || ONES.contains(&word) => {
                    let item = |(n, item)| self.rewritten(item, &within(&[word, &format!("[{n}]")]));
                    Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
                }
                (word, value) if ONES.contains(&word) => self.rewritten(value, &within(&[word]))?,
                _ => self.copied(value, place)?,
            };
            copy.insert(word.clone(), rewritten);
        }
        if self.document.older {
            modernize(&mut copy);
        }
        Ok(Value::Object(copy))
    }

    fn part(&mut self, reference: &str, place: &[String]) -> Result<Value, Flaw> {
        let name = match self.names.get(reference) {
            Some(name) => name.clone(),
            None => self.name(reference, place)?,
        };
        let reference = format!("#/$defs/{name}");
        self.grow(reference.len() + 2, place)?;
        Ok(reference.into())
    }

    /// The name under `$defs` of a reference's target: its last word, if that is free.
    fn name(&mut self, reference: &str, place: &[String]) -> Result<String, Flaw> {
        let (part, origin) = self.document.find(reference, place)?;
        if self.names.len() >= MAX_PARTS {
            return Err(Flaw::new(place, format!("needs more than {MAX_PARTS} other schemas")));
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let last: String = origin.last().map_or("schema", String::as_str).chars().map(plain).collect();
        let numbered = (2..).map(|n| format!("{last}_{n}"));
        let mut names = std::iter::once(last.clone()).chain(numbered);
        let name = names.find(|name| !self.origins.contains_key(name)).unwrap_or(last);
        self.names.insert(reference.to_owned(), name.clone());
        self.origins.insert(name.clone(), origin.clone());
        self.queue.push((name.clone(), part, origin));
        Ok(name)
    }
}

/// The minimum length in JSON.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(bytes).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, value)| name.len() + KEY + bytes(value)).sum::<usize>()
        }
    }
}

/// Translates keywords of OpenAPI 3.0 to JSON Schema.
fn modernize(keywords: &mut Map<String, Value>) {
    if keywords.remove("nullable") == Some(Value::Bool(true)) {
        if let Some(Value::String(kind)) = keywords.get("type") {
            let kinds = json!([kind, "null"]);
            keywords.insert("type".into(), kinds);
        }
        if let Some(Value::Array(values)) = keywords.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let Some(Value::Bool(excluded)) = keywords.get(exclusive).cloned() else { continue };
        keywords.remove(exclusive);
        if let (true, Some(limit)) = (excluded, keywords.get(bound).cloned()) {
            keywords.remove(bound);
            keywords.insert(exclusive.into(), limit);
        }
    }
}
