//! The document's form: without its descriptions, summaries and examples it is what `openapi_snapshot.jsonl` says.

use crate::support::running::Running;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

const FILE: &str = "tests/server/requests/openapi_snapshot.jsonl";
const REWRITE: &str = "ALDABA_REWRITE_SNAPSHOT";
/// Differences that a failure lists.
const MAX_LISTED: usize = 60;

/// What is for people alone.
fn is_prose(name: &str, value: &Value) -> bool {
    match name {
        "description" | "summary" => value.is_string(),
        "example" | "examples" => true,
        _ => false,
    }
}

/// In an order that says nothing, and without prose. The names of properties are none.
fn normalized(value: &Value, are_names: bool) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(name, value)| are_names || !is_prose(name, value));
            let kept: BTreeMap<_, _> = kept
                .map(|(name, value)| {
                    let mut value = normalized(value, !are_names && name == "properties");
                    if let (Value::Array(items), "required") = (&mut value, name.as_str()) {
                        items.sort_by_key(ToString::to_string);
                    }
                    (name.clone(), value)
                })
                .collect();
            Value::Object(kept.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(|item| normalized(item, false)).collect(),
        other => other.clone(),
    }
}

/// The operations and the schemas, each under its place.
fn parts(document: &Value) -> BTreeMap<String, Value> {
    let of = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let operations = of(&document["paths"]).into_iter().flat_map(|(path, methods)| {
        let one = move |(method, described): (String, Value)| (format!("{path} {method}"), described);
        of(&methods).into_iter().map(one)
    });
    let schemas = of(&document["components"]["schemas"]);
    let schemas = schemas.into_iter().map(|(name, schema)| (format!("schema {name}"), schema));
    operations.chain(schemas).map(|(place, part)| (place, normalized(&part, false))).collect()
}

/// Each value with the way to it.
fn leaves(place: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            object.iter().for_each(|(name, value)| leaves(&format!("{place} / {name}"), value, into));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                let name = item["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
                leaves(&format!("{place} / {name}"), item, into);
            }
        }
        leaf => drop(into.insert(place.to_owned(), leaf.to_string())),
    }
}

fn all_leaves(parts: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    parts.iter().for_each(|(place, part)| leaves(place, part, &mut all));
    all
}

/// One line for each value that is not the same in both.
fn differences(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let (before, after) = (all_leaves(before), all_leaves(after));
    let gone = before.iter().filter(|(place, value)| after.get(*place) != Some(value));
    let new = after.iter().filter(|(place, value)| before.get(*place) != Some(value));
    let mut found: Vec<_> = gone.map(|(place, value)| (place, 0, value)).collect();
    found.extend(new.map(|(place, value)| (place, 1, value)));
    found.sort_unstable();
    found.iter().map(|(place, side, value)| format!("{} {place}: {value}", ["-", "+"][*side])).collect()
}

fn written(parts: &BTreeMap<String, Value>) -> String {
    let mut text = String::new();
    for (place, part) in parts {
        let _ = writeln!(text, "{}", json!({ place: part }));
    }
    text
}

#[tokio::test]
async fn the_document_changes_only_where_its_snapshot_does() {
    let server = Running::start().await;
    let after = parts(&server.client.get("/openapi.json").await.expect(200));
    server.stop().await;
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(FILE, written(&after)).unwrap();
    }
    let text = std::fs::read_to_string(FILE).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Map<String, Value>>(line).unwrap());
    let before: BTreeMap<String, Value> = lines.flatten().collect();
    assert!(before.len() > 200, "{FILE} has only {} lines", before.len());
    let found = differences(&before, &after);
    assert!(
        found.is_empty(),
        "The API's document has changed at {} places. If that is meant, run this test with {REWRITE}=1 and look at the \
         difference of {FILE}.\n{}",
        found.len(),
        found[..found.len().min(MAX_LISTED)].join("\n"),
    );
}

#[test]
fn a_changed_type_is_a_difference_and_a_changed_description_is_none() {
    let document = |kind: &str, about: &str| {
        let field = json!({"type": kind, "description": about});
        let schema = json!({"properties": {"description": field}, "required": ["description"]});
        parts(&json!({"components": {"schemas": {"A": schema}}}))
    };
    let before = document("string", "one");
    assert_eq!(differences(&before, &document("string", "other")), Vec::<String>::new());
    let place = "schema A / properties / description / type";
    let changed = [format!("- {place}: \"string\""), format!("+ {place}: \"integer\"")];
    assert_eq!(differences(&before, &document("integer", "one")), changed);
}
