//! What a message carries for filters to look at, beside its payload. Nothing of it is sent.

use crate::api::request::json::Fields;
use crate::api::response::error::Error;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

const MOST: usize = aldaba_api::MAX_MESSAGE_HEADERS;
/// Bytes.
const LONGEST_NAME: usize = 256;
const LONGEST_VALUE: usize = 1024;
const FIELD: &str = "headers";

/// By name in lower case.
pub(crate) fn take(given: &RawValue) -> Result<Vec<(String, String)>, Error> {
    let mut fields = Fields::of(FIELD, given);
    let given = fields.strings(FIELD, MOST);
    let headers = checked(&mut fields, given);
    fields.finish()?;
    Ok(headers)
}

/// Of a body, with what is wrong noted.
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
    if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(token) {
        return Some(format!("is no name of a header: 1 to {LONGEST_NAME} letters, digits or `-`"));
    }
    if value.len() > LONGEST_VALUE {
        return Some(format!("may be {LONGEST_VALUE} bytes long at most; it is {}", value.len()));
    }
    value.chars().any(char::is_control).then(|| "must hold no control characters".to_owned())
}

/// Null where there are none.
pub(crate) fn write<S: Serializer>(headers: &&[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    if headers.is_empty() {
        return serializer.serialize_none();
    }
    let mut map = serializer.serialize_map(Some(headers.len()))?;
    for (name, value) in *headers {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
