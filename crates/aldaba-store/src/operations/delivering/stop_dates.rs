//! Finds what waits past its stop date, of one endpoint.
//!
//! Two walks, each along an index from a place in it. A delivery that was never tried is due when its clock starts, and is
//! found in the index of its lane. One that was tried is due later, and is in an index of its own.

use crate::operations::delivery::WAITING_COLUMNS;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, lanes};
use crate::{DueQuery, LanePosition, PendingDelivery, Seq, StartedCursor, StartedPage, StartedQuery};
use aldaba_delivery::{EndpointId, Timestamp};

statements! {
    TRIED = format!(
        "SELECT {WAITING_COLUMNS} FROM delivery
         WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 AND clock_start = ?2 AND seq > ?3
         UNION ALL
         SELECT {WAITING_COLUMNS} FROM delivery
         WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 AND clock_start > ?2
         ORDER BY clock_start, seq LIMIT ?4"
    );
    ANY_UNTRIED = "SELECT 1 FROM delivery WHERE state = 0 AND endpoint = ?1 AND due_at < ?2 LIMIT 1";
    ANY_TRIED = "SELECT 1 FROM delivery
        WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 AND clock_start < ?2 LIMIT 1";
}

const START: Seq = Seq(i64::MIN);

pub(crate) fn started_before(reading: &dyn Reading, query: StartedQuery) -> Result<StartedPage> {
    let StartedQuery { endpoint, before, .. } = query;
    let limit = query.limit.max(1);
    let first = LanePosition { due_at: Timestamp::MIN, seq: START };
    let (mut page, mut looked_at) = (StartedPage::default(), 0);
    let tried_from = match query.after.unwrap_or(StartedCursor::Untried(first)) {
        StartedCursor::Untried(after) => {
            let mut reached = after;
            // Also those that were tried, which the other walk finds: they are passed over.
            for row in lanes::due(reading, DueQuery { endpoint, ordered: false, after: Some(after), limit })?
            {
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
    let (since, seq) = tried_from;
    let tried: Vec<PendingDelivery> = reading.all(&TRIED, values![endpoint, since, seq, room + 1])?;
    for (number, row) in tried.into_iter().enumerate() {
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

pub(crate) fn have_started_before(
    reading: &dyn Reading,
    endpoints: &[(EndpointId, Timestamp)],
) -> Result<Vec<EndpointId>> {
    let mut found = Vec::new();
    for (endpoint, before) in endpoints {
        let of = values![endpoint, before];
        if reading.exists(&ANY_UNTRIED, of)? || reading.exists(&ANY_TRIED, of)? {
            found.push(*endpoint);
        }
    }
    Ok(found)
}
