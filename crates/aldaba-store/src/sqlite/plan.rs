//! How SQLite would carry a statement out, for tests.

use super::open::in_memory;
use crate::operations;

pub(super) fn plan(statement: &str) -> String {
    let database = in_memory().unwrap();
    let mut explain = database.connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
    let parameters = vec![0; explain.parameter_count()];
    let steps = explain
        .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
        .unwrap()
        .collect::<Result<Vec<String>, _>>()
        .unwrap();
    steps.join("; ")
}

/// Statements that may read a whole table, because it is small or all of it is wanted.
const WHOLE_TABLES: [&str; 19] = [
    // A bounded part of an index, which is counted.
    "LIMIT ?2) AS dead",
    "LIMIT ?2) AS waiting",
    // A bounded number of them.
    "AS newest GROUP BY app, endpoint, reason",
    // How many resolved alerts each organization has: all of an index that is bounded for each.
    "FROM alert WHERE resolved_at IS NOT NULL GROUP BY org",
    // A bounded part of an index, which is counted.
    "LIMIT ?2) AS held",
    "LIMIT ?3) AS scheduled",
    "FROM api_key ORDER BY id",
    // One for each erasure of the last time.
    "FROM erasure WHERE state = 0 ORDER BY id",
    // All of an index that has only these.
    "FROM endpoint WHERE health_status >= 1",
    "WHERE certificate_expires_at IS NOT NULL",
    "FROM event_type ORDER BY org, name",
    "FROM gate",
    "FROM policy ORDER BY org, name",
    // Read once, at the start.
    "FROM pending_alert",
    "FROM portal_cut ORDER BY app, session, issued_before",
    "FROM profile ORDER BY org, name",
    "FROM revoked_token ORDER BY mark",
    "FROM message_count WHERE day <",
    "FROM replay WHERE state = 0",
];
/// Statements that sort a few rows: the attempts of one message, what one key finds, the minutes of a day, and a bounded number
/// of the newest dead letters.
const SORTED: [&str; 4] = [
    "FROM attempt WHERE message = ?4 AND id",
    "GROUP BY endpoint, minute / 60",
    "GROUP BY minute / 60 ORDER BY minute / 60",
    "AS newest GROUP BY app, endpoint, reason",
];

#[test]
fn every_statement_of_the_operations_searches_an_index_without_sorting() {
    let mut wrong = Vec::new();
    for statement in operations::statements() {
        let (text, plan) = (statement.text(), plan(statement.text()));
        let is_one_of = |list: &[&str]| list.iter().any(|part| text.contains(part));
        let scans = plan.contains("SCAN") && !is_one_of(&WHOLE_TABLES);
        let sorts = plan.contains("TEMP B-TREE") && !is_one_of(&SORTED);
        if scans || sorts {
            wrong.push(format!("{text}\n    {plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// To plan a statement takes longer than to run it.
#[test]
fn a_statement_is_planned_once_whatever_is_bound_to_it() {
    let database = in_memory().unwrap();
    let mut planned_again = Vec::new();
    for statement in operations::statements() {
        let mut prepared = database.connection.prepare(statement.text()).unwrap();
        for value in 1..4 {
            for number in 1..=prepared.parameter_count() {
                prepared.raw_bind_parameter(number, value).unwrap();
            }
            // What is bound may be refused: it was planned before.
            let _ = prepared.raw_query().next();
        }
        if prepared.get_status(rusqlite::StatementStatus::RePrepare) > 0 {
            planned_again.push(statement.text());
        }
    }
    assert!(planned_again.is_empty(), "{}", planned_again.join("\n\n"));
}

/// Where SQLite would take another index than the one that was made for it, were the statement written otherwise.
#[test]
fn statements_with_a_choice_take_the_index_that_was_made_for_them() {
    for (part, index) in [
        ("AND resource = ?5", "audit_resource (org=? AND resource=? AND id"),
        ("AND kind = ?5", "audit_kind (org=? AND kind=? AND id"),
        ("AND app = ?5", "audit_app (org=? AND app=? AND id"),
        ("dispatched <> 0", "delivery_message (message=?)"),
        ("SELECT url FROM endpoint WHERE app", "(app=?)"),
        (
            "SELECT message, state FROM delivery WHERE endpoint = ?1 AND state = 0",
            "delivery_lane (endpoint=?)",
        ),
        ("FROM attempt WHERE (success = 0", "attempt_unusual (endpoint=? AND id>? AND id<?)"),
        ("FROM attempt WHERE endpoint", "attempt_endpoint (endpoint=? AND id>? AND id<?)"),
        ("SELECT settled_at, seq FROM delivery WHERE state = 1", "delivery_delivered (endpoint=?"),
        (
            "WHERE state = 0 AND endpoint = ?1 AND due_at = ?2 AND seq > ?3",
            "delivery_lane (endpoint=? AND due_at=? AND rowid>?)",
        ),
        ("AND coalesce(place, seq) > ?2", "delivery_in_order (endpoint=? AND <expr>>?)"),
        ("AND due_at <= ?3", "COVERING INDEX delivery_due (due_at=? AND seq>?)"),
        ("AND due_at > ?1\n        ORDER BY", "COVERING INDEX delivery_due (due_at=? AND seq>?)"),
        (
            "SELECT id FROM endpoint WHERE app = ?1 AND id > ?2",
            "COVERING INDEX endpoint_walk (app=? AND id>?)",
        ),
        ("AND clock_start > ?2", "delivery_tried (endpoint=? AND clock_start=? AND rowid>?)"),
        ("AND endpoint = ?1 AND clock_start < ?2", "delivery_tried (endpoint=? AND clock_start<?)"),
        (
            "SELECT 1 FROM delivery WHERE state = 0 AND endpoint = ?1 AND due_at < ?2",
            "delivery_lane (endpoint=? AND due_at<?)",
        ),
    ] {
        let found: Vec<_> =
            operations::statements().into_iter().filter(|one| one.text().contains(part)).collect();
        assert!(!found.is_empty(), "no statement has {part}");
        for statement in found {
            let plan = plan(statement.text());
            assert!(plan.contains(index), "{statement:?}\n    {plan}");
        }
    }
}
