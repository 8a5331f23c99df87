//! How SQLite would carry a statement out, for tests.

use super::in_memory;

pub(super) fn plan(statement: &str) -> String {
    let connection = in_memory().unwrap();
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
    let parameters = vec![0; explain.parameter_count()];
    let steps = explain
        .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
        .unwrap()
        .collect::<Result<Vec<String>, _>>()
        .unwrap();
    steps.join("; ")
}
