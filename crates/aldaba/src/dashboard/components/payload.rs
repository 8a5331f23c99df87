//! Texts of others, shown so that nothing in them hides: control characters and marks that turn the direction of writing become visible.

use aldaba_engine::escaped;

/// A text as HTML, with a sign in the place of what would not be seen. Line ends and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut plain = 0;
    for (at, sign) in text.char_indices() {
        if let Some(name) = hidden(sign) {
            html.push_str(&escaped(&text[plain..at]));
            html.push_str(&format!(
                "<span class=\"hidden-sign\" title=\"U+{:04X}\">{name}</span>",
                u32::from(sign)
            ));
            plain = at + sign.len_utf8();
        }
    }
    html.push_str(&escaped(&text[plain..]));
    html
}

/// What stands for a sign that is not seen.
fn hidden(sign: char) -> Option<String> {
    match sign {
        '\n' | '\t' => None,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(sign)).map(String::from),
        '\u{7f}' => Some("␡".to_owned()),
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => Some(format!("⟨U+{:04X}⟩", u32::from(sign))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_of_others_hides_or_is_markup() {
        let html = visible("</script>\u{202e}gpj\0\r\n\tñ");
        assert_eq!(
            html,
            "&lt;/script&gt;<span class=\"hidden-sign\" title=\"U+202E\">⟨U+202E⟩</span>gpj\
             <span class=\"hidden-sign\" title=\"U+0000\">␀</span><span class=\"hidden-sign\" title=\"U+000D\">␍</span>\n\tñ"
        );
        assert_eq!(visible("{\"n\": 12345678901234567890.10}"), "{&quot;n&quot;: 12345678901234567890.10}");
    }
}
