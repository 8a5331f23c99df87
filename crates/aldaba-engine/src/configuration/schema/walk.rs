//! A look at a schema before it is compiled: what cannot be compiled or run in bounds is refused here, with the
//! place and what to do.
//!
//! Some keywords apply another schema to the same value (`allOf`, `$ref`): *in place*. Others go on to a property or
//! an item. Only the first kind can go round in circles without looking at the payload.

use super::SchemaError;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// How many schemas may be applied to the same value one inside the other.
const DEEPEST: usize = 32;
/// In how many ways the schemas beside an `unevaluated…` may be reached: each is compiled once more for it.
const MOST_BESIDE_UNEVALUATED: u64 = 2_000;
/// In how many ways schemas that do not look at the value may be reached from one place.
const MOST_SILENT: u64 = 1_000;
const MOST_PATTERNS: usize = 50;
const LONGEST_PATTERN: usize = 1_000;

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
/// Schemas with one of these look at every value they are applied to.
pub(super) const LOOKING: [&str; 5] = ["type", "const", "enum", "required", "properties"];

/// What the prices of looking depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) patterns: usize,
    /// Of those, for the names of properties.
    pub(super) name_patterns: usize,
    pub(super) has_property_names: bool,
    /// The most ways in which schemas that do not look are reached from one place.
    pub(super) silent: u64,
    pub(super) alternatives: bool,
}

/// `own_name`: the keyword that gives a schema a name of its own in its draft.
pub(super) fn walk(schema: &Value, own_name: &'static str) -> Result<Shape, SchemaError> {
    let (known, queue, queued) = (HashMap::new(), Vec::new(), HashSet::new());
    let mut walk = Walk { root: schema, own_name, known, queue, queued };
    walk.later(schema, &[]);
    let (mut shape, mut unevaluated) = (Shape::default(), 0u64);
    while let Some((schema, place)) = walk.queue.pop() {
        let reach = walk.in_place(schema, &place, 1)?;
        shape.silent = shape.silent.max(reach.silent);
        if reach.silent > MOST_SILENT {
            return Err(SchemaError::new(
                &place,
                format!(
                    "combines more than {MOST_SILENT} schemas that say nothing of a type; give each a `type`"
                ),
            ));
        }
        let Some(keywords) = schema.as_object() else { continue };
        if UNEVALUATED.iter().any(|word| keywords.contains_key(*word)) {
            unevaluated = unevaluated.saturating_add(reach.ways);
            if unevaluated > MOST_BESIDE_UNEVALUATED {
                let why = format!(
                    "`unevaluatedProperties` and `unevaluatedItems` stand beside more than {MOST_BESIDE_UNEVALUATED} \
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
    shape: &mut Shape,
) -> Result<(), SchemaError> {
    let names = keywords.get("patternProperties").and_then(Value::as_object);
    let names: Vec<_> = names.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let pattern = keywords.get("pattern").and_then(Value::as_str);
    shape.has_property_names |= keywords.contains_key("propertyNames");
    shape.name_patterns += names.len();
    for pattern in names.into_iter().chain(pattern) {
        shape.patterns += 1;
        if pattern.len() > LONGEST_PATTERN {
            let why = format!("has a pattern of more than {LONGEST_PATTERN} bytes");
            return Err(SchemaError::new(place, why));
        }
    }
    if shape.patterns > MOST_PATTERNS {
        return Err(SchemaError::new(&[], format!("has more than {MOST_PATTERNS} patterns")));
    }
    Ok(())
}

/// What is applied to the value that a schema is applied to.
#[derive(Clone, Copy)]
struct Reach {
    /// How many schemas, each as often as it is reached.
    ways: u64,
    /// The same of those that apply no other schema and do not look at the value.
    silent: u64,
    /// How many one inside the other.
    height: usize,
}

struct Walk<'s> {
    root: &'s Value,
    own_name: &'static str,
    /// By where the schema is in memory.
    known: HashMap<usize, Reach>,
    /// Schemas for other values, and their places.
    queue: Vec<(&'s Value, Vec<String>)>,
    queued: HashSet<usize>,
}

impl<'s> Walk<'s> {
    fn later(&mut self, schema: &'s Value, place: &[String]) {
        if self.queued.insert(std::ptr::from_ref(schema).addr()) {
            self.queue.push((schema, place.to_vec()));
        }
    }

    fn in_place(&mut self, schema: &'s Value, place: &[String], depth: usize) -> Result<Reach, SchemaError> {
        let address = std::ptr::from_ref(schema).addr();
        if let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        let Some(keywords) = schema.as_object() else {
            return Ok(Reach { ways: 1, silent: 1, height: 1 });
        };
        check_keywords(keywords, self.own_name, place)?;
        let looks = LOOKING.iter().any(|word| keywords.get(*word).is_some_and(|value| !is_empty(value)));
        let inner = self.inner(keywords, place)?;
        let leaf = u64::from(!looks && inner.is_empty());
        let mut reach = Reach { ways: 1, silent: leaf, height: 1 };
        for (schema, place) in inner {
            let below = if depth < DEEPEST { self.in_place(schema, &place, depth + 1)? } else { TOO_DEEP };
            reach.ways = reach.ways.saturating_add(below.ways);
            reach.silent = reach.silent.saturating_add(below.silent);
            reach.height = reach.height.max(below.height.saturating_add(1));
        }
        if reach.height > DEEPEST {
            let why = format!(
                "refers to itself, or to more than {DEEPEST} schemas one after the other, without going on to a \
                 property or an item"
            );
            return Err(SchemaError::new(place, why));
        }
        self.later_parts(keywords, place);
        self.known.insert(address, reach);
        // Those that are only ever applied in place have patterns and the like, too.
        self.later(schema, place);
        Ok(reach)
    }

    /// The schemas that are applied in place.
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

    /// What a reference names, and its place.
    fn resolve(&self, reference: &str) -> Result<(&'s Value, Vec<String>), String> {
        if reference == "#" {
            return Ok((self.root, Vec::new()));
        }
        let Some(pointer) = reference.strip_prefix("#/").filter(|pointer| !pointer.contains('%')) else {
            return Err(format!(
                "`{}` is not followed: a reference begins with `#/` and has no percent signs. Put what it names under \
                 `$defs`",
                shortened(reference)
            ));
        };
        let missing = || format!("`{}` is not in the schema", shortened(reference));
        let (mut found, mut place) = (self.root, Vec::new());
        for token in pointer.split('/') {
            let name = token.replace("~1", "/").replace("~0", "~");
            let (next, step) = match found {
                // What has a name of its own is another document.
                Value::Object(members) if !place.is_empty() && members.contains_key(self.own_name) => {
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

    /// The schemas for properties and items, and those that wait to be referred to.
    fn later_parts(&mut self, keywords: &'s Map<String, Value>, place: &[String]) {
        for word in MAPS {
            for (name, schema) in keywords.get(word).and_then(Value::as_object).into_iter().flatten() {
                self.later(schema, &within(place, &[word, name]));
            }
        }
        for word in ONES {
            match keywords.get(word) {
                Some(Value::Array(items)) => {
                    for (n, item) in items.iter().enumerate() {
                        self.later(item, &within(place, &[word, &format!("[{n}]")]));
                    }
                }
                Some(schema) => self.later(schema, &within(place, &[word])),
                None => {}
            }
        }
    }
}

const TOO_DEEP: Reach = Reach { ways: 1, silent: 1, height: DEEPEST };

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn check_keywords(
    keywords: &Map<String, Value>,
    own_name: &'static str,
    place: &[String],
) -> Result<(), SchemaError> {
    for word in ["$dynamicRef", "$recursiveRef"] {
        if keywords.contains_key(word) {
            let why = "is not supported; use `$ref` with `#/…`";
            return Err(SchemaError::new(&within(place, &[word]), why));
        }
    }
    // References inside would count from there.
    if !place.is_empty() && keywords.contains_key(own_name) {
        let why = "may stand at the top of a schema only; refer to its parts with `#/…`";
        return Err(SchemaError::new(&within(place, &[own_name]), why));
    }
    Ok(())
}

fn within(place: &[String], more: &[&str]) -> Vec<String> {
    place.iter().cloned().chain(more.iter().map(|part| (*part).to_owned())).collect()
}

const LONGEST_SHOWN: usize = 100;

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_SHOWN {
        return text.to_owned();
    }
    text.chars().take(LONGEST_SHOWN).chain(['…']).collect()
}
