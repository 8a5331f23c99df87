//! Keeps the server's layers apart: only `questions/` reads the store, and it does not know HTTP.

use super::source::{SourceFile, Token, TokenKind};

const SERVER: &str = "crates/aldaba/src/";
/// The layer that answers questions about what is stored.
const QUESTIONS: &str = "crates/aldaba/src/questions/";

pub(super) fn problems(files: &[SourceFile]) -> Vec<String> {
    let server = files.iter().filter(|file| file.path.starts_with(SERVER) && !file.is_test());
    server.flat_map(file_problems).collect()
}

fn file_problems(file: &SourceFile) -> Vec<String> {
    let (found, rule): (Vec<_>, _) = if file.path.starts_with(QUESTIONS) {
        (file.tokens.iter().filter(|token| is(token, "axum")).collect(), "questions do not know axum")
    } else {
        let reads = file.tokens.windows(4).filter(|call| is_call_of_store(call));
        (reads.map(|call| &call[1]).collect(), "only `questions/` reads the store: add a question there")
    };
    found.into_iter().map(|token| format!("{}:{}: {rule}", file.path, token.line)).collect()
}

/// Whether four tokens are `.store()`.
fn is_call_of_store(call: &[Token]) -> bool {
    let is_sign = |at: usize, sign| call[at].kind == TokenKind::Punctuation(sign);
    is_sign(0, '.') && is(&call[1], "store") && is_sign(2, '(') && is_sign(3, ')')
}

fn is(token: &Token, name: &str) -> bool {
    matches!(&token.kind, TokenKind::Identifier(found) if found == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_read_the_store_and_they_do_not_know_axum() {
        let found = |path: &str, text: &str| problems(&[SourceFile::new(path.to_owned(), text)]);
        let reads = "fn f() {\n    api.engine\n        .store()\n        .message(app);\n}";
        assert_eq!(
            found("crates/aldaba/src/api/stats.rs", reads),
            ["crates/aldaba/src/api/stats.rs:3: only `questions/` reads the store: add a question there"]
        );
        assert_eq!(found("crates/aldaba/src/questions/message.rs", reads), Vec::<String>::new());
        assert_eq!(found("crates/aldaba-engine/src/lib.rs", reads), Vec::<String>::new());
        assert_eq!(
            found("crates/aldaba/src/api/stats.rs", "// engine.store()\nflag.store(true);"),
            Vec::<String>::new()
        );
        let http = "use axum::Router;";
        assert_eq!(
            found("crates/aldaba/src/questions/host.rs", http),
            ["crates/aldaba/src/questions/host.rs:1: questions do not know axum"]
        );
        assert_eq!(found("crates/aldaba/src/api/host.rs", http), Vec::<String>::new());
    }
}
