//! Extracts the top-level payload fields that a profile sends as headers. Nothing else is built, and parsing
//! stops after the last field.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The longest value for a header.
const MAX_CHARS: usize = 256;

/// The value of each field: a string, number or boolean that a header may contain.
pub(super) fn find(body: &[u8], names: &[String]) -> Vec<Option<String>> {
    let mut found = vec![None; names.len()];
    if !names.is_empty() {
        let mut scan = FieldScan { names, found: &mut found, left: names.len() };
        // Parsing ends with an error once all fields are found.
        let _ = serde_json::Deserializer::from_slice(body).deserialize_map(&mut scan);
    }
    found.into_iter().map(|value: Option<Option<String>>| value.flatten()).collect()
}

struct FieldScan<'a> {
    names: &'a [String],
    /// Outer `None`: not seen yet.
    found: &'a mut [Option<Option<String>>],
    left: usize,
}

impl<'de> Visitor<'de> for &mut FieldScan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(index) = map.next_key_seed(FieldKey(self.names))? {
            match index {
                Some(index) if self.found[index].is_none() => {
                    self.found[index] = Some(shown(map.next_value::<&RawValue>()?.get()));
                    self.left -= 1;
                    if self.left == 0 {
                        return Err(A::Error::custom("all are found"));
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A key, as its index among the names.
struct FieldKey<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for FieldKey<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldKey<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|name| name == key))
    }
}

/// The value as header text.
fn shown(json: &str) -> Option<String> {
    let text = match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok()?,
        b'{' | b'[' | b'n' => return None,
        _ => json.to_owned(),
    };
    let fits = (1..=MAX_CHARS).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_ascii() == text;
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(body: &str) -> Option<String> {
        find(body.as_bytes(), &["jobId".to_owned()]).pop().flatten()
    }

    #[test]
    fn only_top_level_fields_are_found() {
        assert_eq!(one(r#"{"a":{"jobId":"inner"},"jobId":"j-1","b":[1]}"#).as_deref(), Some("j-1"));
        assert_eq!(one(r#"{ "job\u0049d" : "caf\u0065" }"#).as_deref(), Some("cafe"));
        assert_eq!(one(r#"{"jobId":"first","jobId":"second"}"#).as_deref(), Some("first"));
        assert_eq!(one(r#"{"JobId":"a","jobId ":"b","x":"jobId"}"#), None);
        for (json, text) in [("42", "42"), ("-1.50e3", "-1.50e3"), ("true", "true"), ("\"a b\"", "a b")] {
            assert_eq!(one(&format!("{{\"jobId\":{json}}}")).as_deref(), Some(text));
        }
    }

    #[test]
    fn values_that_no_header_may_contain_are_ignored() {
        let long = format!("\"{}\"", "x".repeat(MAX_CHARS + 1));
        for json in
            ["null", "{}", "[1]", "\"\"", "\" a\"", "\"a\\r\\nX-Evil: 1\"", "\"ñ\"", "\"\\u0000\"", &long]
        {
            assert_eq!(one(&format!("{{\"jobId\":{json}}}")), None, "{json}");
        }
        for body in ["", "[]", "null", "{\"jobId\"", "no JSON at all"] {
            assert_eq!(one(body), None, "{body}");
        }
    }

    #[test]
    fn several_fields_are_found_in_one_pass_that_ends_with_the_last() {
        let names = ["b".to_owned(), "a".to_owned()];
        // The rest is not parsed: it is not JSON.
        let found = find(br#"{"x":0,"a":1,"b":"two", then nothing"#, &names);
        assert_eq!(found, [Some("two".to_owned()), Some("1".to_owned())]);
    }
}
