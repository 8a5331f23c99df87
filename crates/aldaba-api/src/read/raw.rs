//! Values that have not been built: what they begin with says what they are.

use serde_json::value::RawValue;

/// In the words of a message.
pub(super) fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
    }
}

/// Why a body is none.
pub(super) fn unreadable(body: &[u8], error: &serde_json::Error) -> String {
    match body.trim_ascii_start() {
        [b'{', ..] if error.is_data() => error.to_string(),
        _ if error.is_data() => "expected a JSON object".to_owned(),
        _ => format!("invalid JSON: {error}"),
    }
}

pub(super) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

pub(super) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

pub(super) fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// A whole number that is not negative.
pub(super) fn whole(value: &RawValue) -> Option<u64> {
    value.get().parse().ok()
}

pub(super) fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

/// A string, or what is wrong with it.
pub(super) fn string(value: &RawValue) -> Result<String, String> {
    if !is_string(value) {
        return Err(format!("expected a string, not {}", kind(value)));
    }
    serde_json::from_str(value.get()).map_err(|error| error.to_string())
}
