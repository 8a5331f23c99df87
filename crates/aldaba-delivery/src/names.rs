//! What names and texts that callers choose may look like, wherever they come in.

/// Bytes of a name.
pub const MAX_COMPARED_BYTES: usize = 256;
const MAX_VERSION_BYTES: usize = 32;

/// Letters, digits, `-`, `_` and `.`: event types, and names for things.
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

/// The version of a payload's form.
pub fn version(text: &str) -> Result<(), String> {
    if text.len() <= MAX_VERSION_BYTES && fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_VERSION_BYTES} letters, digits, `-`, `_` or `.`"))
}

/// The caller's own name for a thing. It must not look like an id of ours for the same kind.
pub fn uid(text: &str, prefix: &str) -> Result<(), String> {
    name(text)?;
    if text.starts_with(prefix) {
        return Err(format!("must not begin with `{prefix}`: that is how ids begin"));
    }
    Ok(())
}

/// A text for people.
pub fn text(text: &str, longest: usize) -> Result<(), String> {
    if text.len() > longest {
        return Err(format!("may be {longest} bytes long at most"));
    }
    if text.chars().any(|c| c <= '\u{8}') {
        return Err("must hold no control characters".into());
    }
    Ok(())
}

fn fits(text: &str, signs: &[u8]) -> bool {
    (1..=MAX_COMPARED_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(&byte))
}
