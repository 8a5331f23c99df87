//! Takes secrets out of texts. Our own texts should have none; this is for what nobody has thought of, and for lines of other
//! programs in a log.

use crate::config::{Config, SettingShown, Source};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use std::path::Path;

/// What secrets of Aldaba and tokens begin with.
const PREFIXES: [&str; 5] = ["whsec_", "whsk_", "whpk_", aldaba_engine::KEY_PREFIX, "eyJ"];
/// What comes before a secret in logs, in lower case.
const MARKERS: [&str; 6] = ["bearer ", "basic ", "password=", "token=", "password\":", "token\":"];
const HIDDEN: &str = "(hidden)";
/// Stands for what is hidden until all is found. It ends no word.
const PLACE: char = '\u{E000}';
/// A shorter secret would be found in plain words.
const MIN_LENGTH: usize = 8;

pub(super) struct Redaction {
    /// The secrets of this installation, the longest first: one may be a part of another.
    known: Vec<String>,
    /// Those that are only looked for as whole words, in logs.
    short: Vec<String>,
}

impl Redaction {
    pub(super) fn of(config: &Config, settings: &[SettingShown]) -> Self {
        let mut secrets = Vec::new();
        for setting in settings.iter().filter(|setting| setting.value == HIDDEN) {
            if let Some(value) = given(setting) {
                secrets.extend(parts_of(&setting.key, &value).map(str::to_owned));
                secrets.push(value);
            }
        }
        if let Some(key) = &config.encryption_key {
            let hex: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
            secrets.extend([hex.to_uppercase(), hex, STANDARD.encode(key.0)]);
        }
        for file in [crate::keys::JWT_FILE, aldaba_engine::ENCRYPTION_FILE] {
            if let Ok(text) = std::fs::read_to_string(config.data().join(file)) {
                secrets.push(text.trim().to_owned());
            }
        }
        Self::new(&secrets)
    }

    fn new(secrets: &[String]) -> Self {
        let mut forms: Vec<_> = secrets.iter().flat_map(|secret| forms_of(secret)).collect();
        forms.retain(|form| !form.is_empty());
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let (known, short) = forms.into_iter().partition(|form| form.len() >= MIN_LENGTH);
        Self { known, short }
    }

    /// For texts that we have made. What is JSON stays JSON.
    pub(super) fn of_our_own(&self, text: &str) -> String {
        shown(&words_hidden(&self.known_hidden(text)))
    }

    /// For lines of any program.
    pub(super) fn of_log(&self, text: &str) -> String {
        let mut text = self.known_hidden(text);
        for secret in &self.short {
            text = whole_word_hidden(&text, secret);
        }
        let text = words_hidden(&text);
        shown(&text.split_inclusive('\n').map(marked_hidden).collect::<String>())
    }

    fn known_hidden(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.known {
            text = text.replace(secret, PLACE.encode_utf8(&mut [0; 4]));
        }
        text
    }
}

fn shown(text: &str) -> String {
    text.replace(PLACE, HIDDEN)
}

/// The value of a hidden setting.
fn given(setting: &SettingShown) -> Option<String> {
    let value = match &setting.source {
        Source::Variable(name) => std::env::var(name).ok()?,
        Source::File(file) => in_file(file, &setting.key)?,
        // No option of the command is secret.
        Source::Flag | Source::Default => return None,
    };
    Some(value.trim().to_owned())
}

fn in_file(file: &Path, key: &str) -> Option<String> {
    let table: toml::Table = std::fs::read_to_string(file).ok()?.parse().ok()?;
    let value = table.get(key)?;
    value.as_str().map(str::to_owned)
}

/// The secrets inside of a setting: the password of a URL, the values of headers.
fn parts_of<'a>(key: &str, value: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
    let user = value.split_once("://").and_then(|(_, rest)| Some(rest.rsplit_once('@')?.0));
    let password = user.and_then(|user| Some(user.split_once(':')?.1));
    let headers = if key == "otlp_headers" { value } else { "" };
    let values = headers.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
    // The secret of `Bearer abc` is `abc`.
    let values = values.flat_map(|value| [Some(value), value.split_once(' ').map(|(_, secret)| secret)]);
    password.into_iter().chain(values.flatten())
}

/// How a log may have a secret: as it is, decoded, and each of them in JSON.
fn forms_of(secret: &str) -> Vec<String> {
    let decoded = percent_decode_str(secret).decode_utf8_lossy().into_owned();
    let in_json = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    vec![in_json(secret), in_json(&decoded), secret.to_owned(), decoded]
}

fn whole_word_hidden(text: &str, secret: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(secret) {
        let end = at + secret.len();
        let (before, after) = (text[..at].chars().next_back(), text[end..].chars().next());
        if before.into_iter().chain(after).any(char::is_alphanumeric) {
            continue;
        }
        out.push_str(&text[done..at]);
        out.push(PLACE);
        done = end;
    }
    out.push_str(&text[done..]);
    out
}

/// Hides what follows a marker: up to the end of its quotes, or of the word.
fn marked_hidden(line: &str) -> String {
    // It has the same length.
    let lower = line.to_ascii_lowercase();
    let mut out = String::with_capacity(line.len());
    let mut done = 0;
    while let Some(end) =
        MARKERS.iter().filter_map(|marker| Some(done + lower[done..].find(marker)? + marker.len())).min()
    {
        let rest = line[end..].trim_start_matches([' ', '\\']);
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let rest = quote.map_or(rest, |_| &rest[1..]);
        let ends = |c: char| match quote {
            Some(quote) => c == quote || c == '\n',
            None => c.is_whitespace() || "\"'`&".contains(c),
        };
        let length = rest.find(ends).unwrap_or(rest.len());
        let begin = line.len() - rest.len();
        out.push_str(&line[done..begin]);
        if length > 0 {
            out.push(PLACE);
        }
        done = begin + length;
    }
    out.push_str(&line[done..]);
    out
}

fn words_hidden(text: &str) -> String {
    text.split_inclusive(is_edge).map(word).collect()
}

fn word(word: &str) -> String {
    let (bare, edge) = match word.char_indices().next_back() {
        Some((at, last)) if is_edge(last) => word.split_at(at),
        _ => (word, ""),
    };
    let secret = |prefix: &&str| {
        let at = bare.find(*prefix)?;
        (*prefix != aldaba_engine::KEY_PREFIX || is_key(&bare[at..])).then_some(at)
    };
    if let Some(at) = PREFIXES.iter().filter_map(secret).min() {
        return format!("{}{PLACE}{edge}", mail_hidden(&url(&bare[..at])));
    }
    format!("{}{edge}", mail_hidden(&url(bare)))
}

/// Names of metrics begin as keys do, and have small letters only.
fn is_key(word: &str) -> bool {
    word.bytes().any(|byte| !byte.is_ascii_lowercase() && byte != b'_')
}

/// Ends a word: what a secret does not have.
fn is_edge(c: char) -> bool {
    c.is_whitespace() || "\"'`,;()[]{}<>".contains(c)
}

/// Takes the user, the password and the query out of a URL.
fn url(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?…"),
        None => (rest, ""),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{PLACE}@{host}{path}{query}"),
        None => format!("{scheme}://{authority}{path}{query}"),
    }
}

/// Takes the local part out of mail addresses.
fn mail_hidden(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('@') {
        let local = before.trim_end_matches(|c: char| c.is_alphanumeric() || "!#$%*+-.^_~".contains(c));
        out.push_str(local);
        if local.len() < before.len() {
            out.push(PLACE);
        }
        out.push('@');
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_stays() {
        let redaction = Redaction::new(&["the secret of this server".into()]);
        for (text, expected) in [
            ("nothing to hide: 42, \"a\"", "nothing to hide: 42, \"a\""),
            ("a=the secret of this server.", "a=(hidden)."),
            ("key=\"whsec_abc/+=\" more", "key=\"(hidden)\" more"),
            ("aldaba_lanes{state=\"idle\"} 4", "aldaba_lanes{state=\"idle\"} 4"),
            ("key aldaba_x7Qp more", "key (hidden) more"),
            ("secret=whsec_abc more", "secret=(hidden) more"),
            ("Bearer eyJhbGciOi.J9.x\n", "Bearer (hidden)\n"),
            ("to https://u:p@a.example:8/x?k=v, again", "to https://(hidden)@a.example:8/x?…, again"),
            ("http://u:p@a.example/whsec_x", "http://(hidden)@a.example/(hidden)"),
            ("http://a.example/x", "http://a.example/x"),
            ("http://a.example/x?a=the secret of this server&b=c", "http://a.example/x?…"),
            ("to=ann.b+c@a.example, b@c.example.", "to=(hidden)@a.example, (hidden)@c.example."),
        ] {
            assert_eq!(redaction.of_our_own(text), expected);
            assert_eq!(redaction.of_log(text), expected);
        }
    }

    #[test]
    fn what_follows_a_marker_is_taken_out_of_a_log() {
        let redaction = Redaction::new(&[]);
        for (line, expected) in [
            ("Authorization: Bearer a,b;c more\n", "Authorization: Bearer (hidden) more\n"),
            ("-H 'authorization: basic dTpw' more", "-H 'authorization: basic (hidden)' more"),
            ("password=a,b(c) token=d&e=f\nnext", "password=(hidden) token=(hidden)&e=f\nnext"),
            ("PASSWORD=\"two words\" more", "PASSWORD=\"(hidden)\" more"),
            ("{\"password\": \"two words\", \"a\": 1}", "{\"password\": \"(hidden)\", \"a\": 1}"),
            ("password= Token=x", "password= (hidden)"),
            ("a tokens=", "a tokens="),
        ] {
            assert_eq!(redaction.of_log(line), expected);
        }
    }

    #[test]
    fn the_secrets_inside_of_settings_are_known_raw_and_decoded() {
        for (key, value, expected) in [
            ("smtp_url", "smtp://user:p%40ss@host:1", &["p%40ss"][..]),
            ("egress_proxy", "socks5://host:1", &[]),
            ("otlp_headers", "x-key=abc=, authorization=Bearer d e", &["abc=", "Bearer d e", "d e"]),
            ("encryption_key", "abc==", &[]),
        ] {
            assert_eq!(parts_of(key, value).collect::<Vec<_>>(), expected);
        }
        let redaction = Redaction::new(&["p%40\"s".into(), "longer%20secret".into(), "on".into()]);
        for (line, expected) in [
            ("p%40\"s p@\"s p@\\\"s", "(hidden) (hidden) (hidden)"),
            ("xlonger secretx longer%20secret", "x(hidden)x (hidden)"),
            ("on one-on, done", "(hidden) one-(hidden), done"),
        ] {
            assert_eq!(redaction.of_log(line), expected);
        }
        assert_eq!(redaction.of_our_own("on"), "on", "a number or a word of JSON must stay");
    }
}
