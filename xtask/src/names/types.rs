//! Limits how many types share a name: a reader who searches for a type should find that one.

use super::source::{SourceFile, TokenKind};
use std::collections::BTreeMap;

/// Definitions of one name in all crates together.
const MAX_DEFINITIONS: usize = 3;
/// Each module may have these, by convention.
const CONVENTIONAL: [&str; 2] = ["Error", "Options"];

/// Every type name with too many definitions, with their locations.
pub(super) fn problems(files: &[SourceFile]) -> Vec<String> {
    let mut definitions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.contains("/src/") && !file.is_test()) {
        for (line, name) in defined(file) {
            definitions.entry(name).or_default().push(format!("{}:{line}", file.path));
        }
    }
    let repeated = definitions
        .into_iter()
        .filter(|(name, found)| found.len() > MAX_DEFINITIONS && !CONVENTIONAL.contains(name));
    repeated
        .map(|(name, found)| {
            format!(
                "`{name}` names {} types; at most {MAX_DEFINITIONS} are allowed: qualify them ({})",
                found.len(),
                found.join(", ")
            )
        })
        .collect()
}

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Types that are named in it are associated types.
    Implementation,
    Test,
    Other,
}

/// The types that a file defines, except in tests and deprecated aliases: line and name.
fn defined(file: &SourceFile) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let tokens: Vec<_> =
        file.tokens.iter().filter(|token| !matches!(token.kind, TokenKind::Comment(_))).collect();
    let word = |at: usize| match tokens.get(at).map(|token| &token.kind) {
        Some(TokenKind::Identifier(word)) => word.as_str(),
        _ => "",
    };
    let (mut next_block, mut is_skipped, mut parentheses) = (Block::Other, false, 0_usize);
    let mut begins_item = true;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut begins_next = false;
        match &token.kind {
            TokenKind::Punctuation('#') if is_punctuation(tokens.get(at + 1), '[') => {
                let end = attribute_end(&tokens, at + 1);
                let words: Vec<_> = (at..end).map(word).collect();
                is_skipped |= words.contains(&"deprecated")
                    || (words.contains(&"cfg") && words.contains(&"test") && !words.contains(&"not"));
                (at, begins_next) = (end, true);
            }
            TokenKind::Punctuation('(' | '[') => parentheses += 1,
            TokenKind::Punctuation(')' | ']') => {
                parentheses = parentheses.saturating_sub(1);
                // `pub(crate)`
                begins_next = parentheses == 0 && begins_item;
            }
            TokenKind::Punctuation('{') => {
                blocks.push(if is_skipped { Block::Test } else { next_block });
                (next_block, is_skipped, parentheses, begins_next) = (Block::Other, false, 0, true);
            }
            TokenKind::Punctuation('}') => {
                blocks.pop();
                (parentheses, begins_next) = (0, true);
            }
            TokenKind::Punctuation(';') if parentheses == 0 => {
                (next_block, is_skipped, begins_next) = (Block::Other, false, true);
            }
            TokenKind::Identifier(keyword) if begins_item => match keyword.as_str() {
                "pub" | "unsafe" | "crate" | "super" | "in" | "auto" => begins_next = true,
                "impl" => next_block = Block::Implementation,
                "struct" | "enum" | "trait" | "type" | "union" if !word(at + 1).is_empty() => {
                    let is_associated = keyword == "type" && blocks.last() == Some(&Block::Implementation);
                    if !is_skipped && !is_associated && !blocks.contains(&Block::Test) {
                        found.push((token.line, word(at + 1)));
                    }
                    if keyword == "trait" {
                        next_block = Block::Implementation;
                    }
                }
                _ => {}
            },
            _ => {}
        }
        // What is between the parentheses of `pub(crate)` is still the beginning of an item.
        begins_item = begins_next || (begins_item && parentheses > 0);
        at += 1;
    }
    found
}

fn is_punctuation(token: Option<&&super::source::Token>, sign: char) -> bool {
    token.is_some_and(|token| token.kind == TokenKind::Punctuation(sign))
}

/// Where the bracket closes that opens at `open`.
fn attribute_end(tokens: &[&super::source::Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::Punctuation('[') => depth += 1,
            TokenKind::Punctuation(']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(path.into(), text)
    }

    fn names(text: &str) -> Vec<String> {
        defined(&file("crates/a/src/b.rs", text)).iter().map(|(_, name)| (*name).to_owned()).collect()
    }

    #[test]
    fn definitions_are_found_at_any_depth() {
        let text = "
            //! struct Comment
            #[derive(Debug)]
            pub(crate) struct One<T>(T);
            pub(in crate::a) enum Two { A { type_: u8 } }
            unsafe trait Three { type Associated; fn f() -> impl Clone { struct Four; } }
            impl Three for One<u8> { type Associated = [u8; 2]; }
            type Five = fn(impl Clone) -> u8;
            mod inner { struct Six { field: &'static str } }
            fn f() { let text = \"struct No\"; let struct_ = 1; }
        ";
        assert_eq!(names(text), ["One", "Two", "Three", "Four", "Five", "Six"]);
    }

    #[test]
    fn types_in_tests_and_deprecated_types_do_not_count() {
        let text = "
            #[cfg(test)]
            mod tests { struct No; mod inner { enum No {} } }
            #[cfg(test)]
            pub(crate) struct No { field: [u8; 3] }
            #[cfg(test)]
            use super::No;
            #[cfg(not(test))]
            #[deprecated(note = \"a\")]
            pub type No = Yes;
            struct Yes;
        ";
        assert_eq!(names(text), ["Yes"]);
    }

    #[test]
    fn a_name_with_too_many_definitions_is_reported_with_their_locations() {
        let source =
            |number: usize| file(&format!("crates/c{number}/src/lib.rs"), "\nstruct Value; struct Error;");
        let mut files: Vec<_> = (0..MAX_DEFINITIONS).map(source).collect();
        files.push(file("crates/a/src/tests.rs", "struct Value;"));
        files.push(file("crates/a/tests/b.rs", "struct Value;"));
        assert_eq!(problems(&files), Vec::<String>::new());
        files.push(source(9));
        let found = problems(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("`Value` names 4 types"), "{found:?}");
        assert!(found[0].contains("crates/c9/src/lib.rs:2"), "{found:?}");
    }
}
