//! Splits Rust source into tokens: identifiers, comments and punctuation, without the contents of strings.

/// One Rust file.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Relative to the root of the repository.
    pub(super) path: String,
    pub(super) tokens: Vec<Token>,
}

/// A token and the line it begins on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: TokenKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Identifier(String),
    /// One line of a comment, without its marks.
    Comment(String),
    Punctuation(char),
    /// A string, a character or a number.
    Literal,
}

impl SourceFile {
    pub(super) fn new(path: String, text: &str) -> Self {
        let mut lexer = Lexer { text: text.chars().collect(), at: 0, line: 1, tokens: Vec::new() };
        lexer.run();
        Self { path, tokens: lexer.tokens }
    }

    /// Whether the whole file is for tests.
    pub(super) fn is_test(&self) -> bool {
        let in_folder = |part: &str| matches!(part, "tests" | "benches");
        self.path.split('/').any(in_folder) || self.path.ends_with("/tests.rs")
    }

    /// The name of the file without its extension.
    pub(super) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".rs").unwrap_or(name)
    }
}

struct Lexer {
    text: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl Lexer {
    fn run(&mut self) {
        while let Some(sign) = self.peek(0) {
            match sign {
                '/' if self.peek(1) == Some('/') => self.line_comment(),
                '/' if self.peek(1) == Some('*') => self.block_comment(),
                '"' => self.string(),
                'r' | 'b' | 'c' if self.raw_string() => {}
                'b' | 'c' if self.peek(1) == Some('"') => {
                    self.next();
                    self.string();
                }
                'b' if self.peek(1) == Some('\'') => {
                    self.next();
                    self.quote();
                }
                '\'' => self.quote(),
                sign if is_word(sign) => self.word(),
                sign if sign.is_whitespace() => {
                    self.next();
                }
                sign => {
                    self.push(TokenKind::Punctuation(sign));
                    self.next();
                }
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(sign == '\n');
        Some(sign)
    }

    fn push(&mut self, kind: TokenKind) {
        self.tokens.push(Token { line: self.line, kind });
    }

    fn line_comment(&mut self) {
        let mut text = String::new();
        while let Some(sign) = self.peek(0).filter(|sign| *sign != '\n') {
            text.push(sign);
            self.next();
        }
        self.push(TokenKind::Comment(text.trim_start_matches(['/', '!']).to_owned()));
    }

    fn block_comment(&mut self) {
        let (mut depth, mut text) = (0_usize, String::new());
        while let Some(sign) = self.peek(0) {
            let step = match (sign, self.peek(1)) {
                ('/', Some('*')) => depth + 1,
                ('*', Some('/')) => depth - 1,
                _ => {
                    if sign == '\n' {
                        self.push(TokenKind::Comment(std::mem::take(&mut text)));
                    }
                    text.push(sign);
                    self.next();
                    continue;
                }
            };
            depth = step;
            self.next();
            self.next();
            if depth == 0 {
                break;
            }
        }
        self.push(TokenKind::Comment(text));
    }

    fn string(&mut self) {
        self.push(TokenKind::Literal);
        self.next();
        while let Some(sign) = self.next() {
            match sign {
                '\\' => {
                    self.next();
                }
                '"' => return,
                _ => {}
            }
        }
    }

    /// Reads a raw string or a raw identifier, if one begins here.
    fn raw_string(&mut self) -> bool {
        let prefix = usize::from(self.peek(0) != Some('r'));
        if self.peek(prefix) != Some('r') {
            return false;
        }
        let mut hashes = 0;
        while self.peek(prefix + 1 + hashes) == Some('#') {
            hashes += 1;
        }
        if self.peek(prefix + 1 + hashes) != Some('"') {
            return false;
        }
        self.push(TokenKind::Literal);
        for _ in 0..prefix + hashes + 2 {
            self.next();
        }
        while let Some(sign) = self.next() {
            if sign == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                for _ in 0..hashes {
                    self.next();
                }
                break;
            }
        }
        true
    }

    /// Reads a character or a lifetime.
    fn quote(&mut self) {
        let is_lifetime = self.peek(1).is_some_and(is_word) && self.peek(2) != Some('\'');
        self.push(TokenKind::Literal);
        self.next();
        if is_lifetime {
            while self.peek(0).is_some_and(is_word) {
                self.next();
            }
            return;
        }
        if self.next() == Some('\\') {
            self.next();
        }
        while let Some(sign) = self.next() {
            if sign == '\'' {
                return;
            }
        }
    }

    fn word(&mut self) {
        let mut text = String::new();
        while let Some(sign) = self.peek(0).filter(|sign| is_word(*sign)) {
            text.push(sign);
            self.next();
        }
        let is_number = text.starts_with(|sign: char| sign.is_ascii_digit());
        self.push(if is_number { TokenKind::Literal } else { TokenKind::Identifier(text) });
    }
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identifiers and comments, with their lines.
    fn seen(text: &str) -> Vec<(usize, String)> {
        let tokens = SourceFile::new("a.rs".into(), text).tokens.into_iter();
        let words = tokens.filter_map(|token| match token.kind {
            TokenKind::Identifier(text) | TokenKind::Comment(text) => {
                Some((token.line, text.trim().to_owned()))
            }
            _ => None,
        });
        words.collect()
    }

    fn words(text: &str) -> Vec<String> {
        seen(text).into_iter().map(|(_, word)| word).collect()
    }

    #[test]
    fn strings_and_characters_are_left_out() {
        assert_eq!(words(r#"a("b \" c", 'd', '\'', b'e', b"f", '"') g"#), ["a", "g"]);
        assert_eq!(words("a r#\"b \" c\"# br\"d\" e"), ["a", "e"]);
        assert_eq!(words("fn a<'b>(c: &'static str) { 0x_ff 1_u8 }"), ["fn", "a", "c", "str"]);
    }

    #[test]
    fn comments_are_read_with_their_lines() {
        let text = "//! one\nfn a() {} // two\n\"\n\" /* three\nfour */ b";
        let expected = [(1, "one"), (2, "fn"), (2, "a"), (2, "two"), (4, "three"), (5, "four"), (5, "b")];
        assert_eq!(seen(text), expected.map(|(line, word)| (line, word.to_owned())));
    }

    #[test]
    fn tests_are_known_by_their_paths() {
        let is_test = |path: &str| SourceFile::new(path.into(), "").is_test();
        assert!(is_test("crates/a/tests/b.rs") && is_test("crates/a/src/b/tests.rs"));
        assert!(is_test("crates/a/src/b/tests/c.rs"));
        assert!(!is_test("crates/test-servers/src/lib.rs") && !is_test("crates/a/src/attests.rs"));
    }
}
