//! What is copied: ids, and requests as a line for a shell.

use crate::dashboard::texts::ShellTexts;
use aldaba_engine::escaped;
use std::fmt::Write as _;

/// An id or another code, with a button that copies all of it.
pub(crate) fn copyable(t: &dyn ShellTexts, text: &str) -> String {
    let (text, copy) = (escaped(text), escaped(&t.copy()));
    format!(
        "<span class=\"copyable\"><code>{text}</code><button type=\"button\" class=\"copy\" data-copy=\"{text}\" \
         aria-label=\"{copy} {text}\" hidden>{copy}</button></span>"
    )
}

/// A request as a curl command for a POSIX shell. The body arrives byte for byte: what a shell or a terminal could change is
/// written in octal.
pub(crate) fn curl(url: &str, headers: &[(String, String)], body: &[u8]) -> String {
    let text = std::str::from_utf8(body).ok().filter(|text| text.chars().all(is_plain));
    let mut command = String::new();
    if text.is_none() {
        command.push_str("printf '");
        for byte in body {
            match byte {
                b' '..=b'~' if !b"'\\%".contains(byte) => command.push(char::from(*byte)),
                _ => drop(write!(command, "\\{byte:03o}")),
            }
        }
        command.push_str("' | ");
    }
    command.push_str("curl --globoff --request POST ");
    for (name, value) in headers {
        command.push_str(&format!("--header {} ", quoted(&format!("{name}: {value}"))));
    }
    match text {
        // Unlike `--data`, it does not read a file where the text begins with @.
        Some(text) => command.push_str(&format!("--data-raw {}", quoted(text))),
        None => command.push_str("--data-binary @-"),
    }
    command.push_str(&format!(" {}", quoted(url)));
    command
}

/// Whether a sign looks like what it is, and no shell changes it within quotes.
fn is_plain(sign: char) -> bool {
    sign == '\n'
        || sign == '\t'
        || (!sign.is_control() && super::visible(sign.encode_utf8(&mut [0; 4])).find("hidden-sign").is_none())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What curl would send, by a shell that runs `cat` and `printf` in its place.
    fn sent(body: &[u8]) -> Vec<u8> {
        let command = curl("http://127.0.0.1:9/", &[], body);
        let script = format!(
            "curl() {{ while [ $# -gt 0 ]; do case \"$1\" in --data-raw) printf %s \"$2\";; --data-binary) cat;; esac; shift; done; }}\n{command}"
        );
        Command::new("sh").args(["-c", &script]).output().unwrap().stdout
    }

    #[test]
    fn a_shell_sends_the_same_bytes() {
        for body in [
            &br#"{"n": 12345678901234567890.10, "n": "it's 100%"}"#[..],
            "@file \u{202e} ñ \\n".as_bytes(),
            b"@/etc/passwd",
            b"\0\x01\xff'\\%d",
            b"",
            b"a\nb\tc",
            b"trailing\n\n",
        ] {
            assert_eq!(sent(body), body, "{}", curl("http://x/", &[], body));
        }
    }

    #[test]
    fn headers_and_urls_cannot_leave_their_quotes() {
        let headers = [("x-a".to_owned(), "'; rm -rf /; '".to_owned())];
        let command = curl("http://x/'$(id)", &headers, b"{}");
        assert!(command.contains("--header 'x-a: '\\''; rm -rf /; '\\'''"), "{command}");
        assert!(command.ends_with("'http://x/'\\''$(id)'"), "{command}");
    }
}
