//! Rejects retired words in identifiers, comments and names of files. A `#[deprecated]` item keeps its name.

use super::source::{SourceFile, Token, TokenKind};
use std::collections::HashMap;

/// A retired word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RetiredWord {
    /// In lower case: a part of an identifier, or a word of a comment. With a capital: a whole identifier.
    word: String,
    instead: String,
    /// A comment with this phrase may have the word.
    except: Option<String>,
}

/// Reads the list: in each line a word, what to say instead, and an optional exception, separated by `|`.
pub(super) fn read(list: &str) -> Result<HashMap<String, RetiredWord>, String> {
    let mut words = HashMap::new();
    for (number, line) in list.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let wrong = |why: &str| format!("retired-words.txt:{}: {why}", number + 1);
        let (word, instead, except) = match cells[..] {
            [word, instead] => (word, instead, None),
            [word, instead, except] => (word, instead, Some(except.to_owned())),
            _ => return Err(wrong("expected `word | what to say instead`, and an optional exception")),
        };
        if word.is_empty() || instead.is_empty() || !word.chars().all(char::is_alphanumeric) {
            return Err(wrong("expected one word, and what to say instead"));
        }
        let entry = RetiredWord { word: word.to_owned(), instead: instead.to_owned(), except };
        if words.insert(entry.word.clone(), entry).is_some() {
            return Err(wrong("the word is listed twice"));
        }
    }
    Ok(words)
}

/// Every retired word in the files, with its file, its line, and what to say instead.
pub(super) fn problems(retired: &HashMap<String, RetiredWord>, files: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        let mut report = |line: usize, entry: &RetiredWord| {
            let RetiredWord { word, instead, .. } = entry;
            problems.push(format!("{}:{line}: `{word}` is retired: {instead}", file.path));
        };
        for part in parts(file.stem()) {
            if let Some(entry) = retired.get(&part) {
                report(1, entry);
            }
        }
        let mut deprecation = Deprecation::None;
        for (at, token) in file.tokens.iter().enumerate() {
            deprecation = deprecation.next(&file.tokens[..=at]);
            match &token.kind {
                TokenKind::Identifier(_) if deprecation == Deprecation::Item => {}
                TokenKind::Identifier(identifier) => {
                    let whole = retired.get(identifier).filter(|entry| is_capital(&entry.word));
                    let parts = parts(identifier);
                    let found = parts.iter().filter_map(|part| retired.get(part)).chain(whole);
                    found.for_each(|entry| report(token.line, entry));
                }
                TokenKind::Comment(text) => {
                    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
                    for word in words.filter(|word| !word.is_empty()) {
                        let found = parts(word).into_iter().filter_map(|part| retired.get(&part));
                        let found = found.filter(|entry| !is_excepted(entry, text));
                        found.for_each(|entry| report(token.line, entry));
                    }
                }
                TokenKind::Punctuation(_) | TokenKind::Literal => {}
            }
        }
    }
    problems
}

/// Whether a token belongs to the name of a deprecated item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deprecation {
    None,
    /// Within `#[deprecated(…)]` or `#[expect(deprecated)]`.
    Attribute,
    /// Between the attribute and the end of the item's name.
    Item,
}

impl Deprecation {
    /// The state at the last of these tokens, after the state at the one before it.
    fn next(self, tokens: &[Token]) -> Self {
        let Some((last, before)) = tokens.split_last() else { return self };
        match (self, &last.kind) {
            (Self::None, TokenKind::Identifier(word)) if word == "deprecated" && in_attribute(before) => {
                Self::Attribute
            }
            (Self::Attribute, TokenKind::Punctuation(']')) => Self::Item,
            (Self::Item, TokenKind::Punctuation('(' | '=' | ';' | '{')) => Self::None,
            _ => self,
        }
    }
}

/// Whether these tokens end with `#[` or `#[expect(`.
fn in_attribute(tokens: &[Token]) -> bool {
    let is = |token: &Token, sign: char| token.kind == TokenKind::Punctuation(sign);
    match tokens {
        [.., hash, open] if is(hash, '#') && is(open, '[') => true,
        [.., open, Token { kind: TokenKind::Identifier(word), .. }, _] => is(open, '[') && word == "expect",
        _ => false,
    }
}

fn is_capital(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
}

fn is_excepted(entry: &RetiredWord, text: &str) -> bool {
    entry.except.as_ref().is_some_and(|phrase| text.contains(phrase))
}

/// The words that an identifier is made of, in lower case.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let signs: Vec<_> = identifier.chars().collect();
    for (at, sign) in signs.iter().enumerate() {
        let after_lower = at > 0 && !signs[at - 1].is_uppercase();
        let before_lower = signs.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins = sign.is_uppercase() && (after_lower || before_lower);
        if (begins || *sign == '_') && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if *sign != '_' {
            part.extend(sign.to_lowercase());
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "# Words.\n\ntally | counters\nknocks | requests | knocks until somebody\nTries | ConflictRetry\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        problems(&read(LIST).unwrap(), &[SourceFile::new(path.into(), text)])
    }

    #[test]
    fn identifiers_are_split_into_words() {
        assert_eq!(parts("snake_case"), ["snake", "case"]);
        assert_eq!(parts("CamelCase"), ["camel", "case"]);
        assert_eq!(parts("HTTPServer2"), ["http", "server2"]);
        assert_eq!(parts("__MAX_BYTES"), ["max", "bytes"]);
    }

    #[test]
    fn a_retired_word_is_found_in_identifiers_comments_and_names_of_files() {
        let problem = |line: usize| format!("crates/a/src/b.rs:{line}: `tally` is retired: counters");
        for text in [
            "let tally = 1;",
            "struct DemoTally;",
            "const TALLY_SIZE: u8 = 1;",
            "// The tally.",
            "/* a\n*/ tally",
        ] {
            let line = text.lines().count();
            assert_eq!(found("crates/a/src/b.rs", text), [problem(line)], "{text}");
        }
        assert_eq!(found("crates/a/src/tally.rs", "").len(), 1);
        for text in ["\"the tally\"", "let tallying = 1;", "// vitally"] {
            assert_eq!(found("crates/a/src/b.rs", text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_word_with_a_capital_is_a_whole_identifier() {
        assert_eq!(found("crates/a/src/b.rs", "struct Tries;").len(), 1);
        assert_eq!(
            found("crates/a/src/b.rs", "// It tries. Tries again.\nlet tries = MaxTries;"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_phrase_may_be_excepted() {
        assert_eq!(found("crates/a/src/b.rs", "/// It knocks until somebody answers."), Vec::<String>::new());
        assert_eq!(found("crates/a/src/b.rs", "/// It knocks.").len(), 1);
    }

    #[test]
    fn a_deprecated_item_keeps_its_name() {
        for text in [
            "#[deprecated(note = \"use `a`\")]\n#[must_use]\npub fn tally(self) {}",
            "#[deprecated]\npub type Tries = ConflictRetry;",
            "#[expect(deprecated, reason = \"a\")]\npub use a::TALLY;",
        ] {
            assert_eq!(found("crates/a/src/b.rs", text), Vec::<String>::new(), "{text}");
        }
        for text in ["#[deprecated]\nfn a() { tally() }", "fn a(deprecated: bool) { tally() }"] {
            assert_eq!(found("crates/a/src/b.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused_with_the_line() {
        for list in ["tally", "tally |", "two words | a", "a | b\na | c"] {
            assert!(read(list).unwrap_err().starts_with("retired-words.txt:"), "{list}");
        }
    }
}
