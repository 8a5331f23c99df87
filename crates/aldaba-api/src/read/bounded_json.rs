//! JSON from outside may be as long and as full as its sender wishes. A value takes many times the memory of its text, so only
//! what is needed is built, and it has a bound.

use super::problem::Problem;
use super::repeats;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Fields of a body, those that mean nothing among them.
const MAX_FIELDS: usize = 1000;
/// Bytes of memory that what is built of one body may take, as far as can be told from its text.
const MAX_BUILT_BYTES: usize = 32 << 20;

/// The first of many, and how many there are.
#[derive(Debug)]
pub struct First<T> {
    /// The first.
    pub items: T,
    /// How many there are.
    pub count: usize,
}

/// The fields of an object, each with its raw value.
#[derive(Debug)]
pub struct RawFields {
    /// The last of those with the same name.
    pub fields: BTreeMap<String, Box<RawValue>>,
    /// The names that were given more than once.
    pub repeated: Vec<String>,
}

/// The fields of an object, and which of them were repeated.
///
/// # Errors
/// If it is not an object, or has too many fields.
pub fn raw_fields(body: &[u8]) -> Result<RawFields, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let First { items, count } = json.deserialize_map(RawObject { most: MAX_FIELDS })?;
    json.end()?;
    if count > MAX_FIELDS {
        return Err(serde_json::Error::custom(format!(
            "may have {MAX_FIELDS} fields at most; it has {count}"
        )));
    }
    Ok(items)
}

/// The fields of an object. Of those with the same name the last counts.
///
/// # Errors
/// As [`raw_fields`].
pub fn fields(body: &[u8]) -> Result<BTreeMap<String, Box<RawValue>>, serde_json::Error> {
    raw_fields(body).map(|RawFields { fields, .. }| fields)
}

/// Up to so many items of a list.
///
/// # Errors
/// If it is not a list.
pub fn items(list: &RawValue, most: usize) -> Result<First<Vec<&RawValue>>, serde_json::Error> {
    serde_json::Deserializer::from_str(list.get()).deserialize_seq(Items { most, item: PhantomData })
}

/// Up to so many entries of an object, and the names that it has more than once.
///
/// # Errors
/// If it is not an object.
pub fn entries(object: &RawValue, most: usize) -> Result<First<RawFields>, serde_json::Error> {
    serde_json::Deserializer::from_str(object.get()).deserialize_map(RawObject { most })
}

/// Builds a whole body.
///
/// # Errors
/// If it is not such JSON, or would take too much memory.
pub fn body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    build(body).map_err(|why| Problem::decode(&["body"], why))
}

/// Builds a value, unless that takes too much memory.
///
/// # Errors
/// Says why.
pub fn build<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    if built_bytes(json) > MAX_BUILT_BYTES {
        return Err("has too many values; send fewer".into());
    }
    repeats::refuse(json)?;
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

/// A guess on the safe side. A list is a row of values that grows by doubling; the smallest object has a node with
/// room for eleven entries.
fn built_bytes(json: &[u8]) -> usize {
    let (mut bytes, mut in_string, mut escaped) = (json.len(), false, false);
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        bytes += match byte {
            b'"' => {
                in_string = true;
                32
            }
            b',' => 64,
            b':' => 96,
            b'[' => 128,
            b'{' => 640,
            _ => 0,
        };
    }
    bytes
}

/// A list of which no more is kept than it may have.
#[derive(Debug)]
pub struct AtMost<T, const LIMIT: usize>(pub First<Vec<T>>);

impl<'de, T: Deserialize<'de>, const LIMIT: usize> Deserialize<'de> for AtMost<T, LIMIT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items { most: LIMIT, item: PhantomData }).map(Self)
    }
}

struct Items<T> {
    most: usize,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = First<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < self.most {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(First { count: items.len(), items }),
            }
        }
        let mut count = items.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(First { items, count })
    }
}

struct RawObject {
    most: usize,
}

impl<'de> Visitor<'de> for RawObject {
    type Value = First<RawFields>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut items = RawFields { fields: BTreeMap::new(), repeated: Vec::new() };
        let mut count = 0;
        while count < self.most {
            let Some((name, value)) = object.next_entry::<String, Box<RawValue>>()? else {
                return Ok(First { items, count });
            };
            if let Some(before) = items.fields.get_mut(&name) {
                *before = value;
                items.repeated.push(name);
            } else {
                items.fields.insert(name, value);
            }
            count += 1;
        }
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(First { items, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn of_a_long_list_no_more_is_kept_than_it_may_have() {
        let list = raw(&format!("[{}1]", "1,".repeat(99_999)));
        let First { items, count } = items(&list, 10).unwrap();
        assert_eq!((items.len(), count), (10, 100_000));
        assert!(items.capacity() < 100);
        let AtMost(First { items, count }) = serde_json::from_str::<AtMost<u8, 3>>("[1,2,3,\"x\"]").unwrap();
        assert_eq!((items, count), (vec![1, 2, 3], 4));
        serde_json::from_str::<AtMost<u8, 3>>("[1,\"x\"]").map(drop).unwrap_err();
    }

    #[test]
    fn of_a_large_object_no_more_is_kept_than_it_may_have() {
        let many: Vec<_> = (0..100_000).map(|number| format!("\"{number}\":1")).collect();
        let object = raw(&format!("{{{}}}", many.join(",")));
        let First { items: RawFields { fields: items, .. }, count } = entries(&object, 10).unwrap();
        assert_eq!((items.len(), count), (10, 100_000));
        let error = fields(object.get().as_bytes()).unwrap_err();
        assert!(error.to_string().contains("may have 1000 fields at most; it has 100000"), "{error}");
        let twice = fields(b"{\"a\": 1, \"b\": [1], \"a\": 2}").unwrap();
        assert_eq!((twice["a"].get(), twice["b"].get()), ("2", "[1]"));
        fields(b"{} 1").unwrap_err();
        fields(b"{\"a\": }").unwrap_err();
        fields(b"{\"a\": \"\xff\"}").unwrap_err();
    }

    #[test]
    fn what_would_take_many_times_its_text_is_not_built() {
        for small in ["{\"\":1}", "1", "[]", "[{}]"] {
            let list = format!("[{}{small}]", format!("{small},").repeat((1 << 20) / small.len()));
            assert!(build::<Value>(list.as_bytes()).is_err(), "{small}");
        }
        let text = format!("[\"{}\"]", "{[,:".repeat(1 << 18));
        build::<Value>(text.as_bytes()).expect("brackets in strings are text");
        let usual = format!("[{}1]", "{\"name\": \"a name of usual length\", \"size\": 12},".repeat(20_000));
        build::<Value>(usual.as_bytes()).expect("a megabyte of usual JSON");
    }
}
