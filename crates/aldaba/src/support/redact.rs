//! Takes secrets out of texts. Nothing in the archive should have one; this is for what nobody has thought of, such as lines of
//! other programs in a log.

use crate::config::Config;

/// What secrets of Aldaba and tokens begin with.
const PREFIXES: [&str; 5] = ["whsec_", "whsk_", "whpk_", aldaba_engine::KEY_PREFIX, "eyJ"];
const HIDDEN: &str = "(hidden)";
/// A shorter secret would be found in plain words.
const MIN_LENGTH: usize = 8;

pub(super) struct Redaction {
    /// The secrets of this installation.
    known: Vec<String>,
}

impl Redaction {
    pub(super) fn of(config: &Config) -> Self {
        let mut known = Vec::new();
        if let Some(secret) = &config.jwt_secret {
            known.push(String::from_utf8_lossy(secret.as_bytes()).into_owned());
        }
        if let Some(token) = &config.metrics_token {
            known.push(token.0.clone());
        }
        for file in [crate::keys::JWT_FILE, aldaba_engine::ENCRYPTION_FILE] {
            if let Ok(text) = std::fs::read_to_string(config.data().join(file)) {
                known.push(text.trim().to_owned());
            }
        }
        known.retain(|secret| secret.len() >= MIN_LENGTH);
        Self { known }
    }

    pub(super) fn applied(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.known {
            text = text.replace(secret, HIDDEN);
        }
        text.split_inclusive(is_edge).map(|word| self.word(word)).collect()
    }

    fn word(&self, word: &str) -> String {
        let (bare, edge) = match word.char_indices().next_back() {
            Some((at, last)) if is_edge(last) => word.split_at(at),
            _ => (word, ""),
        };
        if let Some(at) = PREFIXES.iter().filter_map(|prefix| bare.find(prefix)).min() {
            return format!("{}{HIDDEN}{edge}", url(&bare[..at]));
        }
        format!("{}{edge}", url(bare))
    }
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
        Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}{path}{query}"),
        None => format!("{scheme}://{authority}{path}{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_stays() {
        let redaction = Redaction { known: vec!["the secret of this server".into()] };
        for (text, expected) in [
            ("nothing to hide: 42, \"a\"", "nothing to hide: 42, \"a\""),
            ("a=the secret of this server.", "a=(hidden)."),
            ("key=\"whsec_abc/+=\" more", "key=\"(hidden)\" more"),
            ("secret=whsec_abc more", "secret=(hidden) more"),
            ("Bearer eyJhbGciOi.J9.x\n", "Bearer (hidden)\n"),
            ("to https://u:p@a.example:8/x?k=v, again", "to https://(hidden)@a.example:8/x?…, again"),
            ("http://u:p@a.example/whsec_x", "http://(hidden)@a.example/(hidden)"),
            ("http://a.example/x", "http://a.example/x"),
        ] {
            assert_eq!(redaction.applied(text), expected);
        }
    }
}
