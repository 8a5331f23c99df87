//! What stands in a payload, and what it is compared with.

use super::MAX_VALUES_PER_PATH;
use super::number::{Number, Written};
use serde::Deserializer as _;
use serde::de::{self, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// Where one of two numbers is not whole their digits are compared.
const LOOKS_AT_A_NUMBER: u64 = 3;

/// A value of a payload, as far as operators care.
#[derive(Clone, Debug)]
pub(super) enum Value<'p> {
    Null,
    Boolean(bool),
    Number(Number<'p>),
    /// UTF-8, except where the payload has half of a surrogate pair: that is allowed in JSON.
    Text(Cow<'p, [u8]>),
    /// As it is written.
    List(&'p str),
    Object,
}

impl<'p> Value<'p> {
    /// Of valid JSON.
    pub(super) fn of(text: &'p str) -> Self {
        match text.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b't') => Self::Boolean(true),
            Some(b'f') => Self::Boolean(false),
            Some(b'"') => Self::Text(string(text)),
            Some(b'[') => Self::List(text),
            Some(b'{') => Self::Object,
            _ => Self::Number(Number::of(text)),
        }
    }
}

/// The bytes that a string of valid JSON stands for.
fn string(json: &str) -> Cow<'_, [u8]> {
    let inside = json.as_bytes().get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if !inside.contains(&b'\\') {
        return Cow::Borrowed(inside);
    }
    let bytes = serde_json::Deserializer::from_str(json).deserialize_bytes(Bytes);
    bytes.map(Cow::Owned).unwrap_or_default()
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    Number(Written),
    Text(Box<str>),
}

impl Scalar {
    /// Values of different kinds are never the same: `5` is not `"5"`.
    pub(super) fn is(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Null, Value::Null) => true,
            (Self::Boolean(one), Value::Boolean(two)) => one == two,
            (Self::Number(one), Value::Number(two)) => one.number().compare(two).is_eq(),
            (Self::Text(one), Value::Text(two)) => one.as_bytes() == &**two,
            _ => false,
        }
    }

    /// How the value stands to this; `None`: they cannot be put in an order.
    pub(super) fn order(&self, value: &Value<'_>) -> Option<Ordering> {
        match (self, value) {
            (Self::Number(this), Value::Number(value)) => Some(value.compare(&this.number())),
            (Self::Text(this), Value::Text(value)) => Some((**value).cmp(this.as_bytes())),
            _ => None,
        }
    }

    /// The same as a value.
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Number(number) => Value::Number(number.number()),
            Self::Text(text) => Value::Text(Cow::Borrowed(text.as_bytes())),
        }
    }

    /// How long it is as a text; 0 for all else.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// Looks that comparing with it takes.
    pub(super) fn looks(&self) -> u64 {
        match self {
            Self::Number(_) => LOOKS_AT_A_NUMBER,
            _ => 1,
        }
    }

    /// In an order in which equal ones are beside each other: by kind, then as they are compared. Lists and objects
    /// come last.
    pub(super) fn rank(&self, value: &Value<'_>) -> Ordering {
        let kind = |value: &Value<'_>| match value {
            Value::Null => 0,
            Value::Boolean(_) => 1,
            Value::Number(_) => 2,
            Value::Text(_) => 3,
            Value::List(_) | Value::Object => 4,
        };
        match (self, value) {
            (Self::Boolean(one), Value::Boolean(two)) => one.cmp(two),
            (Self::Number(one), Value::Number(two)) => one.number().compare(two),
            (Self::Text(one), Value::Text(two)) => one.as_bytes().cmp(two),
            _ => kind(&self.value()).cmp(&kind(value)),
        }
    }

    /// A part of a text, or an item of a list.
    pub(super) fn is_in(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Text(part), Value::Text(text)) => holds_part(text, part),
            (_, Value::List(list)) => self.is_item_of(list),
            _ => false,
        }
    }

    fn is_item_of(&self, list: &str) -> bool {
        let mut found = false;
        each_item(list, |item| {
            found = self.is(&item);
            !found
        });
        found
    }
}

/// Calls `look` with the first items of a list, up to [`MAX_VALUES_PER_PATH`], until it says that it has seen enough.
pub(super) fn each_item<'p>(list: &'p str, look: impl FnMut(Value<'p>) -> bool) {
    // It ends early with an error where the list goes on.
    let _ = serde_json::Deserializer::from_str(list).deserialize_seq(Items(look));
}

struct Items<F>(F);

impl<'de, F: FnMut(Value<'de>) -> bool> Visitor<'de> for Items<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        for _ in 0..MAX_VALUES_PER_PATH {
            let Some(item) = items.next_element::<&RawValue>()? else { break };
            if !(self.0)(Value::of(item.get())) {
                break;
            }
        }
        Ok(())
    }
}

/// In a time that grows with the text alone, whatever the two are.
pub(super) fn holds_part(text: &[u8], part: &str) -> bool {
    match std::str::from_utf8(text) {
        Ok(text) => text.contains(part),
        // The part is whole characters, so half a surrogate pair is never in it.
        Err(_) => part.is_empty() || text.utf8_chunks().any(|chunk| chunk.valid().contains(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value<'_> {
        Value::of(json)
    }

    #[test]
    fn a_text_is_what_it_stands_for() {
        for (json, bytes) in [
            (r#""plain""#, &b"plain"[..]),
            (r#""""#, b""),
            (r#""a\"\\\/\n\u00e9\ud83d\ude00""#, "a\"\\/\né😀".as_bytes()),
            (r#""half \ud83d""#, b"half \xed\xa0\xbd"),
        ] {
            let Value::Text(text) = value(json) else { panic!("{json} is a text") };
            assert_eq!(*text, *bytes, "{json}");
        }
    }

    #[test]
    fn lists_contain_their_items_and_texts_their_parts() {
        let text = |text: &str| Scalar::Text(text.into());
        assert!(text("eu").is_in(&value(r#"["us", "e\u0075"]"#)));
        assert!(!text("eu").is_in(&value(r#"["us", "eur", ["eu"], {"eu": "eu"}]"#)));
        assert!(Scalar::Number(Written::new("1")).is_in(&value("[0, 1.0]")));
        assert!(Scalar::Null.is_in(&value("[0, null]")));
        assert!(!Scalar::Null.is_in(&value("[]")));
        assert!(text("ell").is_in(&value(r#""hello""#)));
        assert!(text("").is_in(&value(r#""""#)));
        assert!(!text("hello!").is_in(&value(r#""hello""#)));
        assert!(!Scalar::Number(Written::new("1")).is_in(&value(r#""1""#)));
        assert!(!text("a").is_in(&value(r#"{"a": "a"}"#)));
        assert!(text("b").is_in(&value(r#""\ud83da\ud83db""#)), "beside what is no character");
    }

    #[test]
    fn the_first_thousand_items_of_a_list_are_looked_at() {
        let list = |before: usize| format!("[{}1,{}]", "0,".repeat(before), vec!["0"; 5000].join(","));
        let one = Scalar::Number(Written::new("1"));
        assert!(one.is_in(&value(&list(999))));
        assert!(!one.is_in(&value(&list(1000))));
    }
}
