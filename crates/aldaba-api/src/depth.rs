//! Limits of payloads.

/// The deepest nesting of a payload.
pub const MAX_PAYLOAD_DEPTH: usize = 128;

/// Whether valid JSON is nested deeper than [`MAX_PAYLOAD_DEPTH`].
pub fn is_too_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
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
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_PAYLOAD_DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    false
}
