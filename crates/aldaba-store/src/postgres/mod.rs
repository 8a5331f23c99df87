//! What PostgreSQL has of the store so far: its schema, and how it reads the statements of the operations. Tests alone use it:
//! they run every statement on a real PostgreSQL, so that the operations stay portable.

/// The tables and indexes, in an empty database.
pub const SCHEMA: &str = include_str!("schema.sql");

/// A statement with its parameters as PostgreSQL writes them: `$1` in place of `?1`. Text in quotes stays as it is.
pub fn statement(text: &str) -> String {
    // A quote within quotes is written twice, so every second part is outside of quotes.
    let translate = |(number, part): (usize, &str)| match number % 2 {
        0 => part.replace('?', "$"),
        _ => part.to_owned(),
    };
    text.split('\'').enumerate().map(translate).collect::<Vec<_>>().join("'")
}

#[test]
fn parameters_are_translated_and_text_in_quotes_is_not() {
    let translated = statement("SELECT ?1 WHERE a = '?2''?3' AND b IN (?12, '')");
    assert_eq!(translated, "SELECT $1 WHERE a = '?2''?3' AND b IN ($12, '')");
}
