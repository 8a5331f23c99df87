//! Finds what waits past its stop date, of one endpoint.
//!
//! Two walks, each along an index from a place in it. A delivery that was never tried is due when its clock starts, and is
//! found in the index of its lane. One that was tried is due later, and is in an index of its own.

use super::lanes::DUE;
use crate::operations::Result;
use crate::operations::column::count;
use crate::operations::delivery::WAITING_COLUMNS;
use crate::sqlite::transaction::all;
use crate::{LanePosition, PendingDelivery, Seq, StartedCursor, StartedPage, StartedQuery};
use aldaba_delivery::{EndpointId, Timestamp};
use rusqlite::Connection;
use std::sync::LazyLock;

static TRIED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {WAITING_COLUMNS} FROM delivery INDEXED BY delivery_tried
         WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 AND clock_start = ?2 AND seq > ?3
         UNION ALL
         SELECT {WAITING_COLUMNS} FROM delivery INDEXED BY delivery_tried
         WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 AND clock_start > ?2
         ORDER BY clock_start, seq LIMIT ?4"
    )
});

const ANY_UNTRIED: &str = "
    SELECT 1 FROM delivery INDEXED BY delivery_lane WHERE state = 0 AND endpoint = ?1 AND due_at < ?2 LIMIT 1";

const ANY_TRIED: &str = "
    SELECT 1 FROM delivery INDEXED BY delivery_tried
    WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 AND clock_start < ?2 LIMIT 1";

const START: Seq = Seq(i64::MIN);

pub(super) fn started_before(connection: &Connection, query: StartedQuery) -> Result<StartedPage> {
    let StartedQuery { endpoint, before, .. } = query;
    let limit = query.limit.max(1);
    let first = LanePosition { due_at: Timestamp::MIN, seq: START };
    let (mut page, mut looked_at) = (StartedPage::default(), 0);
    let walk = |statement: &str, (from, seq): (Timestamp, Seq), limit: usize| {
        let from = (endpoint.as_bytes(), from.millis(), seq.0, count(limit));
        all::<PendingDelivery>(&mut *connection.prepare_cached(statement)?, from)
    };
    let tried_from = match query.after.unwrap_or(StartedCursor::Untried(first)) {
        StartedCursor::Untried(after) => {
            let mut reached = after;
            // Also those that were tried, which the other walk finds: they are passed over.
            for row in walk(&DUE, (after.due_at, after.seq), limit)? {
                if row.due_at >= before {
                    page.rest_since = page.rest_since.into_iter().chain([row.due_at]).min();
                    break;
                }
                looked_at += 1;
                reached = row.position();
                if row.clock_start < row.due_at {
                    continue;
                }
                if row.clock_start < before {
                    page.waiting.push(row);
                } else {
                    page.rest_since = page.rest_since.into_iter().chain([row.clock_start]).min();
                }
            }
            if looked_at >= limit {
                page.next = Some(StartedCursor::Untried(reached));
                return Ok(page);
            }
            (Timestamp::MIN, START)
        }
        StartedCursor::Tried { clock_start, seq } => (clock_start, seq),
    };
    // One more than there is room for, so that a page which is full says whether there is another.
    let room = limit - looked_at;
    for (number, row) in walk(&TRIED, tried_from, room + 1)?.into_iter().enumerate() {
        if row.clock_start >= before {
            page.rest_since = page.rest_since.into_iter().chain([row.clock_start]).min();
            break;
        }
        if number == room {
            let last = page.waiting.last().map(|last| (last.clock_start, last.seq)).unwrap_or(tried_from);
            page.next = Some(StartedCursor::Tried { clock_start: last.0, seq: last.1 });
            break;
        }
        page.waiting.push(row);
    }
    Ok(page)
}

pub(super) fn have_started_before(
    connection: &Connection,
    endpoints: &[(EndpointId, Timestamp)],
) -> Result<Vec<EndpointId>> {
    let mut untried = connection.prepare_cached(ANY_UNTRIED)?;
    let mut tried = connection.prepare_cached(ANY_TRIED)?;
    let mut found = Vec::new();
    for (endpoint, before) in endpoints {
        let of = (endpoint.as_bytes(), before.millis());
        if untried.exists(of)? || tried.exists(of)? {
            found.push(*endpoint);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn what_is_past_its_stop_date_is_searched_in_indexes_without_sorting() {
        for (statement, index) in [
            (DUE.as_str(), "delivery_lane (endpoint=? AND due_at"),
            (TRIED.as_str(), "delivery_tried (endpoint=? AND clock_start"),
            (ANY_UNTRIED, "delivery_lane (endpoint=? AND due_at<?)"),
            (ANY_TRIED, "delivery_tried (endpoint=? AND clock_start<?)"),
        ] {
            let plan = plan(statement);
            assert!(plan.contains(index), "{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
