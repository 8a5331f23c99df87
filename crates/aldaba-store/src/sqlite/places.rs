//! Deliveries of ordered endpoints whose messages were for later take their places in the order.

use super::rows::{self, count, waiting_columns};
use crate::{Changed, Placed};
use aldaba_delivery::{EndpointId, Timestamp};
use rusqlite::{Connection, OptionalExtension};

const NEXT: &str = "
    SELECT due_at FROM delivery INDEXED BY delivery_takes_place WHERE state = 0 AND ordered = 2 AND due_at >= ?1
    ORDER BY due_at LIMIT 1";

const DUE: &str = "
    SELECT seq, endpoint FROM delivery INDEXED BY delivery_takes_place WHERE state = 0 AND ordered = 2 AND due_at <= ?1
    ORDER BY due_at, seq LIMIT ?2";

/// A place is a number of the same count that deliveries are numbered by, and like those it is never given twice: it is
/// behind everything that was accepted before, and before everything that is accepted later.
const NUMBER: &str = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'delivery' RETURNING seq";

const TAKE: &str = "UPDATE delivery SET ordered = 1, place = ?2 WHERE seq = ?1";

pub(super) fn next_at(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let mut find = connection.prepare_cached(NEXT)?;
    find.query_row((Timestamp::MIN.millis(),), |row| rows::moment(row, 0)).optional()
}

pub(super) fn take(connection: &Connection, now: Timestamp, limit: usize) -> rusqlite::Result<Changed> {
    let due: Vec<(i64, EndpointId)> = connection
        .prepare_cached(DUE)?
        .query_map((now.millis(), count(limit)), |row| Ok((row.get(0)?, rows::id(row, 1)?)))?
        .collect::<Result<_, _>>()?;
    let mut number = connection.prepare_cached(NUMBER)?;
    let mut take = connection.prepare_cached(TAKE)?;
    let mut read =
        connection.prepare_cached(concat!("SELECT ", waiting_columns!(), " FROM delivery WHERE seq = ?1"))?;
    let mut owner = connection.prepare_cached("SELECT app FROM endpoint WHERE id = ?1")?;
    let mut placed = Vec::with_capacity(due.len());
    for (seq, endpoint) in due {
        let place: i64 = number.query_row((), |row| row.get(0))?;
        take.execute((seq, place))?;
        let waiting = read.query_row((seq,), rows::waiting)?;
        match owner.query_row((endpoint.as_bytes(),), |row| rows::id(row, 0)).optional()? {
            Some(app) => placed.push(Placed { endpoint, app, waiting }),
            None => tracing::error!(%endpoint, "deliveries wait for an endpoint that has no row"),
        }
    }
    Ok(if placed.is_empty() { Changed::Unchanged } else { Changed::Placed(placed) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn what_is_to_take_its_place_is_found_in_its_index_without_sorting() {
        for statement in [NEXT, DUE] {
            let plan = plan(statement);
            assert!(plan.starts_with("SEARCH delivery USING"), "{plan}");
            assert!(plan.contains("delivery_takes_place") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
