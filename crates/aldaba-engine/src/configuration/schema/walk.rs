//! Checks a schema before it is compiled, and refuses what cannot be compiled or run within limits.
//!
//! Some keywords apply another schema to the same value (`allOf`, `$ref`): *in place*. Others apply it to a
//! property or an item. Only the first kind can be circular without consuming the payload.

use super::SchemaError;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// How deeply schemas may be nested in place.
const MAX_DEPTH: usize = 32;
/// The most paths to schemas beside an `unevaluated…` keyword: each is compiled once more for it.
const MAX_BESIDE_UNEVALUATED: u64 = 2_000;
/// The most paths from one schema to schemas that do not access the value.
const MAX_UNTYPED: u64 = 1_000;
const MAX_PATTERNS: usize = 50;
const MAX_PATTERN_BYTES: usize = 1_000;

const LISTS_IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const ONES_IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const MAPS_IN_PLACE: [&str; 2] = ["dependentSchemas", "dependencies"];
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const ONES: [&str; 9] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
    "prefixItems",
];
const ALTERNATIVES: [&str; 4] = ["anyOf", "oneOf", "not", "if"];
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Schemas with one of these keywords access every value they are applied to.
pub(super) const TYPED_KEYWORDS: [&str; 5] = ["type", "const", "enum", "required", "properties"];

/// The properties of a schema that determine access costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaShape {
    pub(super) patterns: usize,
    /// Of those, patterns for property names.
    pub(super) name_patterns: usize,
    pub(super) has_property_names: bool,
    /// The most paths from one schema to schemas that do not access the value.
    pub(super) untyped: u64,
    pub(super) alternatives: bool,
}

/// Checks a schema. `id_keyword`: the draft's keyword for a schema's own id.
pub(super) fn walk(schema: &Value, id_keyword: &'static str) -> Result<SchemaShape, SchemaError> {
    let (known, queue, queued) = (HashMap::new(), Vec::new(), HashSet::new());
    let mut walk = SchemaWalk { root: schema, id_keyword, known, queue, queued };
    walk.enqueue(schema, &[]);
    let (mut shape, mut unevaluated) = (SchemaShape::default(), 0u64);
    while let Some((schema, place)) = walk.queue.pop() {
        let reach = walk.reach_of(schema, &place, 1)?;
        shape.untyped = shape.untyped.max(reach.untyped);
        if reach.untyped > MAX_UNTYPED {
            return Err(SchemaError::new(
                &place,
                format!("combines more than {MAX_UNTYPED} schemas without a type; give each a `type`"),
            ));
        }
        let Some(keywords) = schema.as_object() else { continue };
        if UNEVALUATED.iter().any(|word| keywords.contains_key(*word)) {
            unevaluated = unevaluated.saturating_add(reach.ways);
            if unevaluated > MAX_BESIDE_UNEVALUATED {
                let why = format!(
                    "`unevaluatedProperties` and `unevaluatedItems` apply beside more than {MAX_BESIDE_UNEVALUATED} \
                     other schemas; use `additionalProperties` or fewer references"
                );
                return Err(SchemaError::new(&place, why));
            }
        }
        shape.alternatives |= ALTERNATIVES.iter().any(|word| keywords.contains_key(*word));
        count_patterns(keywords, &place, &mut shape)?;
    }
    Ok(shape)
}

fn count_patterns(
    keywords: &Map<String, Value>,
    place: &[String],
    shape: &mut SchemaShape,
) -> Result<(), SchemaError> {
    let names = keywords.get("patternProperties").and_then(Value::as_object);
    let names: Vec<_> = names.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let pattern = keywords.get("pattern").and_then(Value::as_str);
    shape.has_property_names |= keywords.contains_key("propertyNames");
    shape.name_patterns += names.len();
    for pattern in names.into_iter().chain(pattern) {
        shape.patterns += 1;
        if pattern.len() > MAX_PATTERN_BYTES {
            let why = format!("has a pattern of more than {MAX_PATTERN_BYTES} bytes");
            return Err(SchemaError::new(place, why));
        }
    }
    if shape.patterns > MAX_PATTERNS {
        return Err(SchemaError::new(&[], format!("has more than {MAX_PATTERNS} patterns")));
    }
    Ok(())
}

/// The schemas that are applied in place with one schema.
#[derive(Clone, Copy)]
struct SchemaReach {
    /// The number of schemas, counted once per path.
    ways: u64,
    /// Of those, leaves that do not access the value.
    untyped: u64,
    /// The depth of nesting.
    height: usize,
}

struct SchemaWalk<'s> {
    root: &'s Value,
    id_keyword: &'static str,
    /// By the schema's address.
    known: HashMap<usize, SchemaReach>,
    /// Schemas for other values, with their paths.
    queue: Vec<(&'s Value, Vec<String>)>,
    queued: HashSet<usize>,
}

impl<'s> SchemaWalk<'s> {
    fn enqueue(&mut self, schema: &'s Value, place: &[String]) {
        if self.queued.insert(std::ptr::from_ref(schema).addr()) {
            self.queue.push((schema, place.to_vec()));
        }
    }

    fn reach_of(
        &mut self,
        schema: &'s Value,
        place: &[String],
        depth: usize,
    ) -> Result<SchemaReach, SchemaError> {
        let address = std::ptr::from_ref(schema).addr();
        if let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        let Some(keywords) = schema.as_object() else {
            return Ok(SchemaReach { ways: 1, untyped: 1, height: 1 });
        };
        check_keywords(keywords, self.id_keyword, place)?;
        let cost =
            TYPED_KEYWORDS.iter().any(|word| keywords.get(*word).is_some_and(|value| !is_empty(value)));
        let inner = self.inner(keywords, place)?;
        let leaf = u64::from(!cost && inner.is_empty());
        let mut reach = SchemaReach { ways: 1, untyped: leaf, height: 1 };
        for (schema, place) in inner {
            let below = if depth < MAX_DEPTH { self.reach_of(schema, &place, depth + 1)? } else { TOO_DEEP };
            reach.ways = reach.ways.saturating_add(below.ways);
            reach.untyped = reach.untyped.saturating_add(below.untyped);
            reach.height = reach.height.max(below.height.saturating_add(1));
        }
        if reach.height > MAX_DEPTH {
            let why = format!(
                "refers to itself, or to more than {MAX_DEPTH} schemas one after the other, without going on to a \
                 property or an item"
            );
            return Err(SchemaError::new(place, why));
        }
        self.enqueue_parts(keywords, place);
        self.known.insert(address, reach);
        // Schemas that are applied only in place also have patterns and the like.
        self.enqueue(schema, place);
        Ok(reach)
    }

    /// The subschemas that are applied in place.
    fn inner(
        &self,
        keywords: &'s Map<String, Value>,
        place: &[String],
    ) -> Result<Vec<(&'s Value, Vec<String>)>, SchemaError> {
        let mut inner = Vec::new();
        for word in LISTS_IN_PLACE {
            let items = keywords.get(word).and_then(Value::as_array).into_iter().flatten();
            inner
                .extend(items.enumerate().map(|(n, item)| (item, within(place, &[word, &format!("[{n}]")]))));
        }
        for word in ONES_IN_PLACE {
            inner.extend(keywords.get(word).map(|schema| (schema, within(place, &[word]))));
        }
        for word in MAPS_IN_PLACE {
            let members = keywords.get(word).and_then(Value::as_object).into_iter().flatten();
            let schemas = members.filter(|(_, value)| !value.is_array());
            inner.extend(schemas.map(|(name, schema)| (schema, within(place, &[word, name]))));
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            let found = self.resolve(reference);
            let found = found.map_err(|why| SchemaError::new(&within(place, &["$ref"]), why))?;
            inner.push(found);
        }
        Ok(inner)
    }

    /// Resolves a reference to a schema and its path.
    fn resolve(&self, reference: &str) -> Result<(&'s Value, Vec<String>), String> {
        if reference == "#" {
            return Ok((self.root, Vec::new()));
        }
        let Some(pointer) = reference.strip_prefix("#/").filter(|pointer| !pointer.contains('%')) else {
            return Err(format!(
                "`{}` is not supported: a reference must begin with `#/` and contain no percent sign. Move its target to \
                 `$defs`",
                shortened(reference)
            ));
        };
        let missing = || format!("`{}` is not in the schema", shortened(reference));
        let (mut found, mut place) = (self.root, Vec::new());
        for token in pointer.split('/') {
            let name = token.replace("~1", "/").replace("~0", "~");
            let (next, step) = match found {
                // A schema with an id of its own is another document.
                Value::Object(members) if !place.is_empty() && members.contains_key(self.id_keyword) => {
                    return Err(missing());
                }
                Value::Object(members) => (members.get(&name), name),
                Value::Array(items) => {
                    let index = name.parse::<usize>().ok();
                    (index.and_then(|index| items.get(index)), format!("[{name}]"))
                }
                _ => (None, name),
            };
            found = next.ok_or_else(missing)?;
            place.push(step);
        }
        Ok((found, place))
    }

    /// Enqueues the schemas for properties and items, and definitions.
    fn enqueue_parts(&mut self, keywords: &'s Map<String, Value>, place: &[String]) {
        for word in MAPS {
            for (name, schema) in keywords.get(word).and_then(Value::as_object).into_iter().flatten() {
                self.enqueue(schema, &within(place, &[word, name]));
            }
        }
        for word in ONES {
            match keywords.get(word) {
                Some(Value::Array(items)) => {
                    for (n, item) in items.iter().enumerate() {
                        self.enqueue(item, &within(place, &[word, &format!("[{n}]")]));
                    }
                }
                Some(schema) => self.enqueue(schema, &within(place, &[word])),
                None => {}
            }
        }
    }
}

const TOO_DEEP: SchemaReach = SchemaReach { ways: 1, untyped: 1, height: MAX_DEPTH };

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn check_keywords(
    keywords: &Map<String, Value>,
    id_keyword: &'static str,
    place: &[String],
) -> Result<(), SchemaError> {
    for word in ["$dynamicRef", "$recursiveRef"] {
        if keywords.contains_key(word) {
            let why = "is not supported; use `$ref` with `#/…`";
            return Err(SchemaError::new(&within(place, &[word]), why));
        }
    }
    // References inside would be relative to it.
    if !place.is_empty() && keywords.contains_key(id_keyword) {
        let why = "is allowed only at the top of a schema; refer to its parts with `#/…`";
        return Err(SchemaError::new(&within(place, &[id_keyword]), why));
    }
    Ok(())
}

fn within(place: &[String], more: &[&str]) -> Vec<String> {
    place.iter().cloned().chain(more.iter().map(|part| (*part).to_owned())).collect()
}

const MAX_SHOWN_CHARS: usize = 100;

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect()
}
