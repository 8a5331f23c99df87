//! JSON as PostgreSQL's JSONB stores and compares it. Decided here, so that both databases and every copy decide alike.

use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Limits of numbers. JSONB keeps all digits of a number, up to about 130,000; these limits are far above any real value.
const MAX_NUMBER_LENGTH: usize = 400;
const MAX_EXPONENT: u64 = 1000;

/// The maximum depth of nesting, which also bounds the recursion of the comparison.
const MAX_DEPTH: usize = 500;

/// The body as text, if JSONB can store it: JSON of a bounded depth, with no NUL and no lone surrogates in its strings,
/// and with numbers of a bounded size.
pub(super) fn fit_for_jsonb(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let mut cursor = Cursor::new(text)?;
    while let Some(byte) = cursor.peek() {
        match byte {
            b'"' => {
                let written = cursor.string();
                if written.contains("\\u") && text_of(written)?.contains('\0') {
                    return None;
                }
            }
            b'-' | b'0'..=b'9' => {
                let written = cursor.word();
                let exponent = exponent(written)?;
                if written.len() > MAX_NUMBER_LENGTH || exponent.unsigned_abs() > MAX_EXPONENT {
                    return None;
                }
            }
            _ => cursor.step(),
        }
    }
    Some(text)
}

/// Whether two documents are equal as JSONB: the order of keys, spaces and the spelling of numbers and strings do not
/// matter, and of a repeated key the last value counts. A document that JSONB cannot store equals only itself.
pub(super) fn are_equal(one: &str, other: &str) -> bool {
    let read = |text| Cursor::new(text)?.node();
    one == other || matches!((read(one), read(other)), (Some(one), Some(other)) if one == other)
}

#[derive(PartialEq)]
enum Node<'a> {
    /// `true`, `false` or `null`.
    Word(&'a str),
    Number(Number),
    Text(String),
    List(Vec<Node<'a>>),
    Object(BTreeMap<String, Node<'a>>),
}

/// A number as digits without zeros at either end, and a power of ten.
#[derive(PartialEq)]
struct Number {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Number {
    fn read(written: &str) -> Option<Self> {
        let exponent = exponent(written)?;
        let mantissa = written.split(['e', 'E']).next().unwrap_or(written);
        let unsigned = mantissa.trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all = format!("{whole}{fraction}");
        let short = all.trim_end_matches('0');
        let digits = short.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let shift = (all.len() - short.len()) as i64 - fraction.len() as i64;
        Some(Self {
            negative: mantissa.len() != unsigned.len(),
            digits,
            exponent: exponent.checked_add(shift)?,
        })
    }
}

/// The exponent of a number; `None` if it overflows.
fn exponent(written: &str) -> Option<i64> {
    written.split_once(['e', 'E']).map_or(Some(0), |(_, exponent)| exponent.parse().ok())
}

/// Decodes the text between quotes. `None` for a lone surrogate.
fn text_of(written: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{written}\"")).ok()
}

/// A position in a document that is valid JSON of a bounded depth.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Option<Self> {
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let start = Self { text, at: 0 };
        (start.depth() <= MAX_DEPTH).then_some(start)
    }

    fn depth(&self) -> usize {
        let (mut depth, mut deepest) = (0_usize, 0);
        let mut cursor = Self { ..*self };
        while let Some(byte) = cursor.peek() {
            match byte {
                b'"' => {
                    cursor.string();
                    continue;
                }
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(depth);
            cursor.step();
        }
        deepest
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.at += 1;
    }

    /// Reads up to the first byte that `is_end` accepts.
    fn until(&mut self, mut is_end: impl FnMut(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().position(&mut is_end).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads the text between quotes.
    fn string(&mut self) -> &'a str {
        self.step();
        let mut escaped = false;
        let written = self.until(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        self.step();
        written
    }

    /// Reads a number, `true`, `false` or `null`.
    fn word(&mut self) -> &'a str {
        self.until(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))
    }

    /// Skips spaces, commas and colons, which carry no information in a valid document.
    fn skip(&mut self) -> Option<u8> {
        self.until(|byte| !(byte.is_ascii_whitespace() || matches!(byte, b',' | b':')));
        self.peek()
    }

    fn node(&mut self) -> Option<Node<'a>> {
        match self.skip()? {
            b'"' => text_of(self.string()).map(Node::Text),
            b'[' => {
                let mut list = Vec::new();
                self.step();
                while self.skip()? != b']' {
                    list.push(self.node()?);
                }
                self.step();
                Some(Node::List(list))
            }
            b'{' => {
                let mut object = BTreeMap::new();
                self.step();
                while self.skip()? != b'}' {
                    let key = text_of(self.string())?;
                    object.insert(key, self.node()?);
                }
                self.step();
                Some(Node::Object(object))
            }
            b'-' | b'0'..=b'9' => Number::read(self.word()).map(Node::Number),
            _ => Some(Node::Word(self.word())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{are_equal, fit_for_jsonb};

    #[test]
    fn bodies_that_jsonb_cannot_store_do_not_fit() {
        let deep = format!("{}{}", "[".repeat(501), "]".repeat(501));
        let long = "1".repeat(500);
        let bad: [&[u8]; 15] = [
            b"",
            b"hello",
            b"{",
            b"\xff",
            b"[1] 2",
            br#""\u0000""#,
            br#"{"\u0000": 1}"#,
            br#"["\\\u0000"]"#,
            br#""\ud800""#,
            br#""\udc00\ud800""#,
            br#""\ud800\u0041""#,
            b"1e9999",
            b"[1e-99999999999999999999]",
            deep.as_bytes(),
            long.as_bytes(),
        ];
        for body in bad {
            assert_eq!(fit_for_jsonb(body), None, "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn other_bodies_fit() {
        let good = [
            "null",
            " [1, -0.5e+3, \"\"] ",
            r#"{"a": "\\u0000", "b": "\ud83d\ude00", "ñ": "\"\u00e9\n"}"#,
            "1e308",
            &format!("{}{}", "[".repeat(500), "]".repeat(500)),
            "123456789012345678901234567890.000000000000000000000000001",
        ];
        for body in good {
            assert_eq!(fit_for_jsonb(body.as_bytes()), Some(body));
        }
    }

    #[test]
    fn spelling_does_not_matter_and_values_do() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null]}"#, r#"{ "b" : [ true , null ], "a" : 1.0 }"#),
            ("[100, 0.01, 0, -3e2]", "[1e2, 1E-2, -0.000, -300.0]"),
            ("1e-600", &format!("0.{}1", "0".repeat(599))),
            (r#""\u00e9\/""#, r#""é/""#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            ("no JSON", "no JSON"),
            (
                &format!("{}{}", "[".repeat(500), "]".repeat(500)),
                &format!("{}{}", "[ ".repeat(500), "]".repeat(500)),
            ),
        ] {
            assert!(are_equal(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "10"),
            ("1", "-1"),
            ("0.10000000000000000000000000001", "0.1"),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":2,"a":1}"#, r#"{"a":2}"#),
            ("[1,2]", "[2,1]"),
            ("1", "\"1\""),
            ("null", "false"),
            ("[[]]", "[[],[]]"),
            ("no JSON", "no  JSON"),
        ] {
            assert!(!are_equal(one, other), "{one} {other}");
        }
    }
}
