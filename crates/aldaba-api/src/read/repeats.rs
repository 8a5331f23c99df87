//! Names that an object has more than once. Of two values one would be lost, and readers differ in which.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// Refuses JSON in which an object has a name twice, at any depth. What is no JSON is passed over: reading it says more.
///
/// # Errors
/// Names the field.
pub(super) fn refuse(json: &[u8]) -> Result<(), String> {
    let mut names = Vec::new();
    let _ = Unrepeated(&mut names).deserialize(&mut serde_json::Deserializer::from_slice(json));
    match names.first() {
        Some(name) => Err(format!("has the field \"{name}\" twice in one object")),
        None => Ok(()),
    }
}

/// Walks through a value, and stops at a name that was there already.
struct Unrepeated<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Unrepeated<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unrepeated<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _value: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Unrepeated(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = object.next_key::<String>()? {
            if names.contains(&name) {
                self.0.push(name);
                object.next_value::<IgnoredAny>()?;
                return Err(A::Error::custom("a name is there twice"));
            }
            names.insert(name);
            object.next_value_seed(Unrepeated(&mut *self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::refuse;

    #[test]
    fn a_name_that_is_given_twice_is_named_at_any_depth() {
        for (json, name) in [
            (r#"{"a": 1, "b": {"a": 1}, "a": 2}"#, "a"),
            (r#"[1, {"x": [{"y": 1.5, "\u0079": null}]}]"#, "y"),
        ] {
            let why = refuse(json.as_bytes()).unwrap_err();
            assert_eq!(why, format!("has the field \"{name}\" twice in one object"));
        }
        for json in [r#"{"a": {"b": true}, "b": [{"a": -1}, {"a": "text"}]}"#, "null", r#"{"a": "#, "{} {}"] {
            refuse(json.as_bytes()).unwrap();
        }
    }
}
