//! Makes texts of others harmless: names, errors and URLs come from customers and from their servers.

/// A text on one line, of bounded length: control characters, line ends and marks that turn the direction of writing become
/// spaces.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut is_cut = false;
    for (count, word) in
        text.split(|c| is_unprintable(c) || c == ' ').filter(|word| !word.is_empty()).enumerate()
    {
        if count > 0 {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max_chars * 4 {
            break;
        }
    }
    if let Some((at, _)) = line.char_indices().nth(max_chars) {
        line.truncate(at);
        is_cut = true;
    }
    if is_cut {
        line.push('…');
    }
    line
}

fn is_unprintable(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text as HTML: none of it is markup.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_is_one_short_line() {
        let text = "a\r\nBcc: victim@example.com\u{2028}b\u{202e}c\0d\te  f\u{85}";
        assert_eq!(one_line(text, 99), "a Bcc: victim@example.com b c d e f");
        assert_eq!(one_line("ñandú", 4), "ñand…");
        assert_eq!(one_line(&"x".repeat(1_000_000), 10), format!("{}…", "x".repeat(10)));
        assert_eq!(one_line("\r\n", 10), "");
    }

    #[test]
    fn no_text_of_others_is_markup() {
        assert_eq!(escaped("<a href='x'>\"&</a>"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&lt;/a&gt;");
    }
}
