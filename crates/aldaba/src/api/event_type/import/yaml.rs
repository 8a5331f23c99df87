//! Reads YAML as JSON.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::HashMap;

/// The nesting limit, that of JSON.
const MAX_DEPTH: usize = 127;
/// The limits on a document with its aliases expanded: values, and bytes of texts.
const MAX_VALUES: usize = 200_000;
const MAX_BYTES: usize = 8 << 20;

/// Reads one document and expands its aliases.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let at = |why: String| format!("line {}: {why}", span.start.line());
        reader.take(event).map_err(at)?;
    }
    reader.document.ok_or_else(|| "there is no document".into())
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    document: Option<Value>,
    anchors: HashMap<usize, (Value, Size)>,
    size: Size,
}

/// An open list or object.
struct Open {
    anchor: usize,
    /// The size of everything before it.
    before: Size,
    items: Items,
}

enum Items {
    List(Vec<Value>),
    Object { members: Map<String, Value>, key: Option<String> },
}

#[derive(Clone, Copy, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.document.is_some() => {
                Err("there is a second document; only one is taken".into())
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => self.alias(anchor),
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref()),
            Event::SequenceStart(anchor, tag) => self.begin(anchor, tag, Items::List(Vec::new())),
            Event::MappingStart(anchor, tag) => {
                self.begin(anchor, tag, Items::Object { members: Map::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn grow(&mut self, more: Size) -> Result<(), String> {
        self.size.values = self.size.values.saturating_add(more.values);
        self.size.bytes = self.size.bytes.saturating_add(more.bytes);
        if self.size.values > MAX_VALUES || self.size.bytes > MAX_BYTES {
            return Err(format!(
                "there are more than {MAX_VALUES} values or {MAX_BYTES} bytes, aliases written out"
            ));
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, tag: Option<Cow<'_, Tag>>, items: Items) -> Result<(), String> {
        if let Some(tag) = tag {
            return Err(format!("the tag {tag} is not supported"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("values are nested more than {MAX_DEPTH} levels deep"));
        }
        if self.wants_key() {
            return Err("a key is a list or an object; keys are texts".into());
        }
        self.open.push(Open { anchor, before: self.size, items });
        self.grow(Size { values: 1, bytes: 0 })
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(Open { anchor, before, items }) = self.open.pop() else { return Ok(()) };
        let value = match items {
            Items::List(items) => Value::Array(items),
            Items::Object { members, .. } => Value::Object(members),
        };
        self.keep(anchor, &value, before);
        self.put(value)
    }

    /// Remembers the value of an anchor.
    fn keep(&mut self, anchor: usize, value: &Value, before: Size) {
        if anchor > 0 {
            let Size { values, bytes } = self.size;
            let size = Size { values: values - before.values, bytes: bytes - before.bytes };
            self.anchors.insert(anchor, (value.clone(), size));
        }
    }

    fn alias(&mut self, anchor: usize) -> Result<(), String> {
        let inside_itself = || "an alias stands inside what it names".to_owned();
        let (value, size) = self.anchors.get(&anchor).ok_or_else(inside_itself)?;
        let (value, size) = match self.wants_key() {
            // Checked before the copy, which is the purpose of the limit.
            false if self.size.values + size.values > MAX_VALUES => (Value::Null, *size),
            false if self.size.bytes + size.bytes > MAX_BYTES => (Value::Null, *size),
            _ => (value.clone(), *size),
        };
        self.grow(size)?;
        match value {
            Value::String(key) if self.wants_key() => self.key(key),
            _ if self.wants_key() => Err("a key is an alias of something that is no text".into()),
            value => self.put(value),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), String> {
        let before = self.size;
        self.grow(Size { values: 1, bytes: text.len() })?;
        let is_text = match tag {
            None => style != ScalarStyle::Plain,
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => true,
            Some(tag) => return Err(format!("the tag {tag} is not supported")),
        };
        if self.wants_key() {
            // A status code as a key is text too.
            self.keep(anchor, &Value::String(text.to_owned()), before);
            return self.key(text.to_owned());
        }
        let value = if is_text { Value::String(text.to_owned()) } else { plain(text)? };
        self.keep(anchor, &value, before);
        self.put(value)
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { items: Items::Object { key: None, .. }, .. }))
    }

    fn key(&mut self, name: String) -> Result<(), String> {
        if name == "<<" {
            return Err("`<<` (merging) is not supported; write the fields out".into());
        }
        if let Some(Open { items: Items::Object { members, key }, .. }) = self.open.last_mut() {
            if members.contains_key(&name) {
                return Err(format!("the key `{name}` is given twice"));
            }
            *key = Some(name);
        }
        Ok(())
    }

    fn put(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.document = Some(value),
            Some(Items::List(items)) => items.push(value),
            Some(Items::Object { members, key }) => {
                let name = key.take().ok_or("a key is no text")?;
                members.insert(name, value);
            }
        }
        Ok(())
    }
}

/// The value of an unquoted text, by YAML's core schema.
fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text)? {
            Some(number) => Value::Number(number),
            None => Value::String(text.to_owned()),
        },
    })
}

fn number(text: &str) -> Result<Option<Number>, String> {
    let no_json = || format!("{text} is no number that JSON has");
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) =
            text.strip_prefix(prefix).filter(|digits| digits.chars().all(|c| c.is_digit(radix)))
        {
            return match digits {
                "" => Ok(None),
                digits => u64::from_str_radix(digits, radix).map(|n| Some(n.into())).map_err(|_| no_json()),
            };
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(no_json());
    }
    let of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+');
    let begins = unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|c: char| c.is_ascii_digit());
    if !begins || !unsigned.chars().all(of_number) {
        return Ok(None);
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = text.parse::<i64>() {
        return Ok(Some(number.into()));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Ok(Some(number.into()));
    }
    // A version such as 1.2.3, or a date, is text.
    let Ok(number) = text.parse::<f64>() else { return Ok(None) };
    Number::from_f64(number).map(Some).ok_or_else(no_json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_what_the_core_schema_says() {
        let text = "a: 1\nb: [-2, 0x1F, 0o17, 1.50, 1e3, .5, 18446744073709551615]\nc: [true, False, ~, null, ]\n\
                    d: {x: 'true', y: \"1\", z: !!str 5}\ne: [3.1.0, 2024-01-31, yes, x-, 1_000, 0x, '']\n200: ok\nf: |\n  two\n  lines\n";
        assert_eq!(
            read(text).unwrap(),
            json!({
                "a": 1,
                "b": [-2, 31, 15, 1.5, 1000.0, 0.5, 18_446_744_073_709_551_615_u64],
                "c": [true, false, null, null],
                "d": {"x": "true", "y": "1", "z": "5"},
                "e": ["3.1.0", "2024-01-31", "yes", "x-", "1_000", "0x", ""],
                "200": "ok",
                "f": "two\nlines\n",
            })
        );
        assert_eq!(read("{\"a\": [1, \"x\"]}").unwrap(), json!({"a": [1, "x"]}));
    }

    #[test]
    fn aliases_are_written_out_up_to_a_limit() {
        assert_eq!(read("a: &x {b: [1]}\nc: *x").unwrap(), json!({"a": {"b": [1]}, "c": {"b": [1]}}));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..30 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(read(&bomb).unwrap_err().contains("aliases"));
        let long = format!("a: &a '{}'\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 1000].join(", "));
        assert!(read(&long).unwrap_err().contains("bytes"));
        assert!(read("a: &a [*a]").is_err());
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_line() {
        for (text, why) in [
            ("a: 1\na: 2", "twice"),
            ("a: .inf", "JSON"),
            ("a: 1e999", "JSON"),
            ("? [a]\n: 1", "keys are texts"),
            ("a: &x 1\nb:\n  <<: *x", "merging"),
            ("a: !mine 1", "tag"),
            ("a\n---\nb", "second document"),
            ("a: [1", "line"),
            ("", "no document"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(read("x\n\ny: !t 1").is_err());
        assert!(read("a: 1\nb: !t 1").unwrap_err().starts_with("line 2"));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(read(&deep).is_err());
        let block: String = (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert!(read(&block).is_err());
    }
}
