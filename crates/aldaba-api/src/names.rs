//! Checks names and texts that callers choose.

/// The longest name.
pub const MAX_COMPARED_BYTES: usize = 256;
/// The longest version, in bytes.
pub const MAX_VERSION_BYTES: usize = 32;

/// Checks an event type or another name: letters, digits, `-`, `_` and `.`.
///
/// # Errors
/// Says what is wrong.
pub fn name(text: &str) -> Result<(), String> {
    if fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_COMPARED_BYTES} letters, digits, `-`, `_` or `.`"))
}

/// The longest name of a policy or a wire profile.
pub const MAX_CATALOG_NAME_BYTES: usize = 64;

/// Checks the name of a policy or a wire profile.
///
/// # Errors
/// Says what is wrong.
pub fn catalog_name(text: &str) -> Result<(), String> {
    if text.len() <= MAX_CATALOG_NAME_BYTES && fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("use 1 to {MAX_CATALOG_NAME_BYTES} letters, digits, `-`, `_` or `.`"))
}

/// Checks a channel: like a name, with `:` and `+`.
///
/// # Errors
/// Says what is wrong.
pub fn channel(text: &str) -> Result<(), String> {
    if fits(text, b"-_.:+") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_COMPARED_BYTES} letters, digits, `-`, `_`, `.`, `:` or `+`"))
}

/// Checks a tag: like a name, with `/`, `\\` and `#`.
///
/// # Errors
/// Says what is wrong.
pub fn tag(text: &str) -> Result<(), String> {
    if fits(text, b"-_./\\#") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_COMPARED_BYTES} letters, digits, `-`, `_`, `.`, `/`, `\\` or `#`"))
}

/// Checks the version of a payload's schema.
///
/// # Errors
/// Says what is wrong.
pub fn version(text: &str) -> Result<(), String> {
    if text.len() <= MAX_VERSION_BYTES && fits(text, b"-_.") {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_VERSION_BYTES} letters, digits, `-`, `_` or `.`"))
}

/// Checks a caller's own name for an object. It must not look like an id of the same kind.
///
/// # Errors
/// Says what is wrong.
pub fn uid(text: &str, prefix: &str) -> Result<(), String> {
    name(text)?;
    if text.starts_with(prefix) {
        return Err(format!("must not begin with `{prefix}`: ids begin with it"));
    }
    Ok(())
}

/// Checks a text for people.
///
/// # Errors
/// Says what is wrong.
pub fn text(text: &str, longest: usize) -> Result<(), String> {
    if text.len() > longest {
        return Err(format!("may be {longest} bytes long at most"));
    }
    if text.chars().any(|c| c <= '\u{8}') {
        return Err("must not contain control characters".into());
    }
    Ok(())
}

/// Checks a name for people, which lists and mails show in one line.
///
/// # Errors
/// Says what is wrong.
pub fn line(text: &str) -> Result<(), String> {
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err("must not contain line breaks or other control characters".into());
    }
    if text.trim().is_empty() {
        return Err("must not be blank".into());
    }
    Ok(())
}

/// The longest name of a key, in bytes.
pub const MAX_KEY_NAME_BYTES: usize = 256;

/// Checks the name of a key or of a token.
///
/// # Errors
/// Says what is wrong.
pub fn key_name(name: &str) -> Result<(), String> {
    match name {
        _ if !(1..=MAX_KEY_NAME_BYTES).contains(&name.len()) => {
            Err(format!("must be 1 to {MAX_KEY_NAME_BYTES} bytes long"))
        }
        name if name.chars().any(char::is_control) => Err("must hold no control characters".into()),
        _ => Ok(()),
    }
}

/// The longest mail address, in bytes.
pub const MAX_EMAIL_BYTES: usize = 254;

/// Checks a mail address. Whether mail can be sent there is for a mail server to say.
///
/// # Errors
/// Says what is wrong.
pub fn email(text: &str) -> Result<(), String> {
    let atoms = |part: &str, marks: &str| {
        let fits = |c: char| c.is_alphanumeric() || marks.contains(c);
        !part.starts_with('-') && part.split('.').all(|atom| !atom.is_empty() && atom.chars().all(fits))
    };
    match text.rsplit_once('@') {
        _ if text.len() > MAX_EMAIL_BYTES => Err(format!("may be {MAX_EMAIL_BYTES} bytes long at most")),
        Some((name, host)) if atoms(name, "!#$&'*+-/=^_`{|}~") && atoms(host, "-") => Ok(()),
        _ => Err("must be one plain mail address, such as people@example.com".into()),
    }
}

fn fits(text: &str, signs: &[u8]) -> bool {
    (1..=MAX_COMPARED_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(&byte))
}
