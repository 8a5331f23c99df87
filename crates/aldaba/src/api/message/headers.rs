//! Headers of a message for filters. They are not sent.

use crate::api::request::json::Fields;
use aldaba_api::read::{FieldKind, strings};
use aldaba_api::value::Shows;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const MAX_HEADERS: usize = aldaba_api::MAX_MESSAGE_HEADERS;
/// Bytes.
const MAX_NAME_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 1024;
const FIELD: &str = "headers";

/// Reads headers, with names in lower case. `None`: something is wrong.
pub(crate) fn take(given: &RawValue) -> Option<Vec<(String, String)>> {
    let mut fields = Fields::of(FIELD, given);
    let given = strings(MAX_HEADERS).read(&mut fields, FIELD).unwrap_or_default();
    let headers = checked(&mut fields, given.into_iter().collect());
    fields.finish().is_ok().then_some(headers)
}

/// Checks the headers of a body, and notes problems.
pub(crate) fn checked(fields: &mut Fields, mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    for (name, value) in &mut headers {
        if let Some(why) = wrong(name, value) {
            fields.problem_at(&[FIELD, name], why);
        }
        name.make_ascii_lowercase();
    }
    headers.sort_unstable();
    if let Some([(name, _), _]) = headers.array_windows().find(|[(one, _), (two, _)]| one == two) {
        fields.problem_at(&[FIELD, name], "is given twice: names differ only in upper and lower case");
    }
    headers
}

fn wrong(name: &str, value: &str) -> Option<String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(token) {
        return Some(format!("is no name of a header: 1 to {MAX_NAME_BYTES} letters, digits or `-`"));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Some(format!("may be {MAX_VALUE_BYTES} bytes long at most; it is {}", value.len()));
    }
    value.chars().any(char::is_control).then(|| "must hold no control characters".to_owned())
}

/// Headers in an answer: null if there are none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownHeaders<'a>(pub(crate) &'a [(String, String)]);

impl Shows<Option<BTreeMap<String, String>>> for ShownHeaders<'_> {
    fn is_null(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for ShownHeaders<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            return serializer.serialize_none();
        }
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
