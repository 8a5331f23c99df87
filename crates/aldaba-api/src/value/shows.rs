//! What a server may show as a value of an answer: it need not own what it shows.

use crate::{Json, Secret};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A value that reads as a `T` in JSON.
pub trait Shows<T: ?Sized>: Serialize {
    /// Whether it is null.
    fn is_null(&self) -> bool {
        false
    }
}

macro_rules! shows {
    ($($type:ty as $shown:ty),* $(,)?) => { $(impl Shows<$shown> for $type {})* };
}

shows! {
    String as String, str as String, Box<str> as String, Cow<'_, str> as String,
    Secret as Secret, String as Secret, str as Secret,
    bool as bool, f64 as f64,
    u8 as u8, u16 as u16, u8 as u32, u16 as u32, u32 as u32,
    u32 as u64, u64 as u64, usize as u64, usize as usize,
    Json as Json, RawValue as Json, Cow<'_, RawValue> as Json, Value as Json,
    Value as Value, Json as Value,
}

impl<A: Shows<B>, B> Shows<Option<B>> for Option<A> {
    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl<A: Shows<B>, B> Shows<Vec<B>> for Vec<A> {}

impl<A: Shows<B>, B> Shows<Vec<B>> for [A] {}

impl<A: Shows<B> + ?Sized, B> Shows<B> for &A {
    fn is_null(&self) -> bool {
        (**self).is_null()
    }
}

impl<K: Shows<String> + Ord, A: Shows<B>, B> Shows<BTreeMap<String, B>> for BTreeMap<K, A> {}

/// Writes the fields of an answer into another one.
pub trait WriteFields {
    /// Writes them.
    ///
    /// # Errors
    /// As the map has them.
    fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}
