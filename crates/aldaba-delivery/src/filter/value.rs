//! Values of a payload, and the operands they are compared with.

use super::MAX_VALUES_PER_PATH;
use super::number::{JsonNumber, NumberLiteral};
use serde::Deserializer as _;
use serde::de::{self, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// Numbers that are not whole are compared by their digits.
const NUMBER_COMPARISON_COST: u64 = 3;

/// A payload value, as far as operators need it.
#[derive(Clone, Debug)]
pub(super) enum PayloadValue<'p> {
    Null,
    Boolean(bool),
    JsonNumber(JsonNumber<'p>),
    /// UTF-8, except for half a surrogate pair, which JSON allows.
    Text(Cow<'p, [u8]>),
    /// The unparsed JSON.
    List(&'p str),
    Object,
}

impl<'p> PayloadValue<'p> {
    /// Classifies valid JSON.
    pub(super) fn of(text: &'p str) -> Self {
        match text.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b't') => Self::Boolean(true),
            Some(b'f') => Self::Boolean(false),
            Some(b'"') => Self::Text(string(text)),
            Some(b'[') => Self::List(text),
            Some(b'{') => Self::Object,
            _ => Self::JsonNumber(JsonNumber::of(text)),
        }
    }
}

/// The decoded bytes of a valid JSON string.
fn string(json: &str) -> Cow<'_, [u8]> {
    let inside = json.as_bytes().get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if !inside.contains(&b'\\') {
        return Cow::Borrowed(inside);
    }
    let bytes = serde_json::Deserializer::from_str(json).deserialize_bytes(BytesVisitor);
    bytes.map(Cow::Owned).unwrap_or_default()
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

/// The operand of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    JsonNumber(NumberLiteral),
    Text(Box<str>),
}

impl Scalar {
    /// Whether both are equal. Values of different types never are: `5` is not `"5"`.
    pub(super) fn is(&self, value: &PayloadValue<'_>) -> bool {
        match (self, value) {
            (Self::Null, PayloadValue::Null) => true,
            (Self::Boolean(one), PayloadValue::Boolean(two)) => one == two,
            (Self::JsonNumber(one), PayloadValue::JsonNumber(two)) => one.number().compare(two).is_eq(),
            (Self::Text(one), PayloadValue::Text(two)) => one.as_bytes() == &**two,
            _ => false,
        }
    }

    /// The order of the value relative to this operand; `None`: they have no order.
    pub(super) fn order(&self, value: &PayloadValue<'_>) -> Option<Ordering> {
        match (self, value) {
            (Self::JsonNumber(this), PayloadValue::JsonNumber(value)) => Some(value.compare(&this.number())),
            (Self::Text(this), PayloadValue::Text(value)) => Some((**value).cmp(this.as_bytes())),
            _ => None,
        }
    }

    /// Converts the operand into a value.
    pub(super) fn value(&self) -> PayloadValue<'_> {
        match self {
            Self::Null => PayloadValue::Null,
            Self::Boolean(value) => PayloadValue::Boolean(*value),
            Self::JsonNumber(number) => PayloadValue::JsonNumber(number.number()),
            Self::Text(text) => PayloadValue::Text(Cow::Borrowed(text.as_bytes())),
        }
    }

    /// The length of a text; 0 for other types.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// The cost of one comparison.
    pub(super) fn cost(&self) -> u64 {
        match self {
            Self::JsonNumber(_) => NUMBER_COMPARISON_COST,
            _ => 1,
        }
    }

    /// A total order in which equal values are adjacent: by type, then by value. Lists and objects come last.
    pub(super) fn rank(&self, value: &PayloadValue<'_>) -> Ordering {
        let kind = |value: &PayloadValue<'_>| match value {
            PayloadValue::Null => 0,
            PayloadValue::Boolean(_) => 1,
            PayloadValue::JsonNumber(_) => 2,
            PayloadValue::Text(_) => 3,
            PayloadValue::List(_) | PayloadValue::Object => 4,
        };
        match (self, value) {
            (Self::Boolean(one), PayloadValue::Boolean(two)) => one.cmp(two),
            (Self::JsonNumber(one), PayloadValue::JsonNumber(two)) => one.number().compare(two),
            (Self::Text(one), PayloadValue::Text(two)) => one.as_bytes().cmp(two),
            _ => kind(&self.value()).cmp(&kind(value)),
        }
    }

    /// Whether it is a substring of a text, or an item of a list.
    pub(super) fn is_in(&self, value: &PayloadValue<'_>) -> bool {
        match (self, value) {
            (Self::Text(substring), PayloadValue::Text(text)) => contains_substring(text, substring),
            (_, PayloadValue::List(list)) => self.is_item_of(list),
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

/// Calls `visit` with the first items of a list, up to [`MAX_VALUES_PER_PATH`], until it returns `false`.
pub(super) fn each_item<'p>(list: &'p str, visit: impl FnMut(PayloadValue<'p>) -> bool) {
    // It stops with an error if the list continues.
    let _ = serde_json::Deserializer::from_str(list).deserialize_seq(ItemsVisitor(visit));
}

struct ItemsVisitor<F>(F);

impl<'de, F: FnMut(PayloadValue<'de>) -> bool> Visitor<'de> for ItemsVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        for _ in 0..MAX_VALUES_PER_PATH {
            let Some(item) = items.next_element::<&RawValue>()? else { break };
            if !(self.0)(PayloadValue::of(item.get())) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a text contains a substring, in linear time.
pub(super) fn contains_substring(text: &[u8], substring: &str) -> bool {
    match std::str::from_utf8(text) {
        Ok(text) => text.contains(substring),
        // The substring is whole characters, so it never contains half a surrogate pair.
        Err(_) => substring.is_empty() || text.utf8_chunks().any(|chunk| chunk.valid().contains(substring)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> PayloadValue<'_> {
        PayloadValue::of(json)
    }

    #[test]
    fn strings_are_unescaped() {
        for (json, bytes) in [
            (r#""plain""#, &b"plain"[..]),
            (r#""""#, b""),
            (r#""a\"\\\/\n\u00e9\ud83d\ude00""#, "a\"\\/\né😀".as_bytes()),
            (r#""half \ud83d""#, b"half \xed\xa0\xbd"),
        ] {
            let PayloadValue::Text(text) = value(json) else { panic!("{json} is a text") };
            assert_eq!(*text, *bytes, "{json}");
        }
    }

    #[test]
    fn lists_contain_their_items_and_texts_their_substrings() {
        let text = |text: &str| Scalar::Text(text.into());
        assert!(text("eu").is_in(&value(r#"["us", "e\u0075"]"#)));
        assert!(!text("eu").is_in(&value(r#"["us", "eur", ["eu"], {"eu": "eu"}]"#)));
        assert!(Scalar::JsonNumber(NumberLiteral::new("1")).is_in(&value("[0, 1.0]")));
        assert!(Scalar::Null.is_in(&value("[0, null]")));
        assert!(!Scalar::Null.is_in(&value("[]")));
        assert!(text("ell").is_in(&value(r#""hello""#)));
        assert!(text("").is_in(&value(r#""""#)));
        assert!(!text("hello!").is_in(&value(r#""hello""#)));
        assert!(!Scalar::JsonNumber(NumberLiteral::new("1")).is_in(&value(r#""1""#)));
        assert!(!text("a").is_in(&value(r#"{"a": "a"}"#)));
        assert!(text("b").is_in(&value(r#""\ud83da\ud83db""#)), "next to half a surrogate pair");
    }

    #[test]
    fn only_the_first_thousand_items_of_a_list_are_compared() {
        let list = |before: usize| format!("[{}1,{}]", "0,".repeat(before), vec!["0"; 5000].join(","));
        let one = Scalar::JsonNumber(NumberLiteral::new("1"));
        assert!(one.is_in(&value(&list(999))));
        assert!(!one.is_in(&value(&list(1000))));
    }
}
