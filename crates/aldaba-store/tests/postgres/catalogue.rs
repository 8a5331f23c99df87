//! What a database has, as lines that do not depend on the engine: columns, primary keys, indexes and first rows.

use rusqlite::{Connection, Params};
use std::collections::BTreeSet;
use tokio_postgres::Client;

/// How many commits a file has, for its watermark, and which attempts are counted already, by the places of their rows.
const TOTALS_OF_SQLITE_ALONE: [&str; 3] = ["commits", "commits_negated", "types_counted"];

pub(crate) fn of_sqlite(connection: &Connection) -> BTreeSet<String> {
    let all = |query: &str| -> Vec<String> { texts(connection, query, ()) };
    let mut lines: BTreeSet<String> =
        all("SELECT 'total ' || name || ' ' || value FROM total").into_iter().collect();
    for total in TOTALS_OF_SQLITE_ALONE {
        assert!(lines.remove(&format!("total {total} 0")), "{total}: {lines:?}");
    }
    for table in all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        let columns = "SELECT 'column ' || ?1 || '.' || name || ' ' || CASE hidden WHEN 0 THEN type ELSE 'generated' END
                || CASE WHEN \"notnull\" OR pk THEN '' ELSE ' null' END || coalesce(' default ' || dflt_value, '')
            FROM pragma_table_xinfo(?1)";
        lines.extend(texts(connection, columns, [&table]));
        let key = texts(connection, "SELECT name FROM pragma_table_info(?1) WHERE pk ORDER BY pk", [&table]);
        if !key.is_empty() {
            lines.insert(format!("primary key {table} ({})", key.join(", ")));
        }
        let unnamed = "SELECT name FROM pragma_index_list(?1) WHERE origin = 'u'";
        for index in texts(connection, unnamed, [&table]) {
            let columns = texts(connection, "SELECT name FROM pragma_index_info(?1)", [&index]);
            lines.insert(format!("unique {table} ({})", columns.join(", ")));
        }
        let indexes = "SELECT name FROM pragma_index_list(?1) WHERE origin = 'c'";
        lines.extend(
            texts(connection, indexes, [&table])
                .iter()
                .map(|index| index_of_sqlite(connection, (&table, &key), index)),
        );
    }
    lines
}

fn index_of_sqlite(connection: &Connection, (table, key): (&str, &[String]), index: &str) -> String {
    let text = texts(connection, "SELECT sql FROM sqlite_schema WHERE name = ?1", [index]).concat();
    let (head, rest) = text.split_once('(').unwrap();
    let (first, condition) = rest.split_once("WHERE ").unwrap_or((rest, ""));
    let mut columns = plain(first);
    let is_unique = head.contains("UNIQUE");
    // SQLite appends the primary key by itself: as the number of the row, or as what the table is sorted by.
    let is_sorted = "SELECT 1 FROM pragma_table_list WHERE name = ?1 AND (wr OR EXISTS (
        SELECT 1 FROM pragma_table_info(?1) WHERE pk AND type = 'INTEGER'))";
    if !is_unique && connection.prepare(is_sorted).unwrap().exists([table]).unwrap() {
        let is_named = |name: &String| parts(first).any(|part| part == name);
        columns.extend(key.iter().filter(|name| !is_named(name)).map(|name| format!(", {name}")));
    }
    line_of_index((table, index), &columns, is_unique, &plain(condition))
}

/// The columns of an index that stand by themselves, and not in an expression.
fn parts(columns: &str) -> impl Iterator<Item = &str> {
    let end = columns.trim_end().trim_end_matches(')');
    let end = end.split('(').next().unwrap_or(end);
    end.split(", ")
}

fn texts(connection: &Connection, query: &str, parameters: impl Params) -> Vec<String> {
    let mut statement = connection.prepare(query).unwrap();
    statement.query_map(parameters, |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

pub(crate) async fn of_postgres(client: &Client) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let columns = "SELECT c.relname, a.attname,
            CASE WHEN a.attgenerated <> '' THEN 'generated' ELSE t.typname END, a.attnotnull,
            pg_get_expr(d.adbin, d.adrelid), l.collname
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
        LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum AND a.attgenerated = ''
        LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0";
    for row in client.query(columns, &[]).await.unwrap() {
        let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let (is_required, default, collation): (bool, Option<String>, Option<String>) =
            (row.get(3), row.get(4), row.get(5));
        assert!(collation.is_none_or(|name| name == "C"), "{table}.{column} is not sorted by its bytes");
        let kind = match &kind[..] {
            "int8" => "INTEGER",
            "text" => "TEXT",
            "bytea" => "BLOB",
            other => other,
        };
        let null = if is_required { "" } else { " null" };
        let default = default.map(|value| format!(" default {}", plain_value(&value))).unwrap_or_default();
        lines.insert(format!("column {table}.{column} {kind}{null}{default}"));
    }
    let indexes = "SELECT t.relname, c.relname, i.indisprimary, i.indisunique, k.oid IS NOT NULL,
            (SELECT string_agg(pg_get_indexdef(c.oid, n, true), ', ' ORDER BY n)
                FROM generate_series(1, i.indnatts) AS n),
            coalesce(pg_get_expr(i.indpred, t.oid, true), '')
        FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
        LEFT JOIN pg_constraint AS k ON k.conindid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace";
    for row in client.query(indexes, &[]).await.unwrap() {
        let (table, index): (String, String) = (row.get(0), row.get(1));
        let (is_primary, is_unique, is_constraint): (bool, bool, bool) = (row.get(2), row.get(3), row.get(4));
        let (columns, condition): (String, String) = (row.get(5), row.get(6));
        lines.insert(match (is_primary, is_constraint) {
            (true, _) => format!("primary key {table} ({columns})"),
            (false, true) => format!("unique {table} ({columns})"),
            _ => line_of_index((&table, &index), &plain(&columns), is_unique, &plain(&condition)),
        });
    }
    let rows = "SELECT 'total ' || name || ' ' || value FROM total";
    lines.extend(client.query(rows, &[]).await.unwrap().iter().map(|row| row.get(0)));
    lines
}

fn line_of_index((table, index): (&str, &str), columns: &str, is_unique: bool, condition: &str) -> String {
    let unique = if is_unique { "unique " } else { "" };
    format!("{unique}index {index} on {table} ({columns}) where {condition}")
}

/// An expression without what the engines write differently: brackets, spaces and capitals.
fn plain(expression: &str) -> String {
    let words: String = expression.to_lowercase().chars().filter(|one| !matches!(one, '(' | ')')).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value without its type.
fn plain_value(value: &str) -> &str {
    value.split("::").next().unwrap_or(value)
}
