//! Checks names and texts that callers choose.

/// The longest name.
pub const MAX_COMPARED_BYTES: usize = 256;
const MAX_VERSION_BYTES: usize = 32;

/// Checks an event type or another name: letters, digits, `-`, `_` and `.`.
pub fn name(text: &str) -> Result<(), String> {
    if fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_COMPARED_BYTES} letters, digits, `-`, `_` or `.`"))
}

pub fn channel(text: &str) -> Result<(), String> {
    if fits(text, b"-_.:+") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_COMPARED_BYTES} letters, digits, `-`, `_`, `.`, `:` or `+`"))
}

pub fn tag(text: &str) -> Result<(), String> {
    if fits(text, b"-_./\\#") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_COMPARED_BYTES} letters, digits, `-`, `_`, `.`, `/`, `\\` or `#`"))
}

/// Checks the version of a payload's schema.
pub fn version(text: &str) -> Result<(), String> {
    if text.len() <= MAX_VERSION_BYTES && fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_VERSION_BYTES} letters, digits, `-`, `_` or `.`"))
}

/// Checks a caller's own name for an object. It must not look like an id of the same kind.
pub fn uid(text: &str, prefix: &str) -> Result<(), String> {
    name(text)?;
    if text.starts_with(prefix) {
        return Err(format!("must not begin with `{prefix}`: ids begin with it"));
    }
    Ok(())
}

/// Checks a text for people.
pub fn text(text: &str, longest: usize) -> Result<(), String> {
    if text.len() > longest {
        return Err(format!("may be {longest} bytes long at most"));
    }
    if text.chars().any(|c| c <= '\u{8}') {
        return Err("must not contain control characters".into());
    }
    Ok(())
}

fn fits(text: &str, signs: &[u8]) -> bool {
    (1..=MAX_COMPARED_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(&byte))
}
