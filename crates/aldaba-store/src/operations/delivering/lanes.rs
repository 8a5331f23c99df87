//! Reads of the lanes.

use crate::operations::column::count;
use crate::operations::delivery::WAITING_COLUMNS;
use crate::operations::stored::columns;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, application, endpoint};
use crate::{
    Content, DueQuery, Endpoint, FoundLane, LanePosition, LaneTarget, LanesCursor, LanesPage, LanesQuery,
    OrphansCursor, OrphansPage, OrphansQuery, PendingDelivery, Seq,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use std::collections::HashSet;

/// Before every position there is.
const START: LanePosition = LanePosition { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

statements! {
    /// Two searches, because SQLite uses only the first part of `(due_at, seq) > (?, ?)` for a search,
    /// and thousands of deliveries can share one due time. Neither reads more than the limit.
    DUE = format!(
        "SELECT {WAITING_COLUMNS} FROM delivery
         WHERE state = 0 AND endpoint = ?1 AND due_at = ?2 AND seq > ?3
         UNION ALL
         SELECT {WAITING_COLUMNS} FROM delivery
         WHERE state = 0 AND endpoint = ?1 AND due_at > ?2
         ORDER BY due_at, seq LIMIT ?4"
    );
    /// Everything that waits for an ordered endpoint is marked as such, once it has its place.
    ORDERED = format!(
        "SELECT {WAITING_COLUMNS} FROM delivery
         WHERE state = 0 AND ordered = 1 AND endpoint = ?1 AND coalesce(place, seq) > ?2
         ORDER BY coalesce(place, seq) LIMIT ?3"
    );
    LANES = "SELECT due_at, seq, endpoint FROM delivery
        WHERE state = 0 AND due_at = ?1 AND seq > ?2 AND due_at <= ?3
        UNION ALL
        SELECT due_at, seq, endpoint FROM delivery WHERE state = 0 AND due_at > ?1 AND due_at <= ?3
        ORDER BY due_at, seq LIMIT ?4";
    CONTENT =
        format!("SELECT {} FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0", columns::<Content>());
    PAYLOAD_BYTES = "SELECT length(payload) FROM message WHERE app = ?1 AND id = ?2";
    IS_PAYLOAD = "SELECT CASE WHEN payload = ?3 THEN 1 ELSE 0 END FROM message
        WHERE app = ?1 AND id = ?2 AND expunged = 0";
    /// Deleted endpoints too: their waiting deliveries still have to end.
    TARGET = format!("SELECT {} FROM endpoint WHERE endpoint.id = ?1", columns::<Endpoint>());
    RATE = "SELECT throttle_rate FROM application WHERE id = ?1";
    ENDPOINTS_OF = "SELECT id FROM endpoint WHERE app = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
}

pub(crate) fn due(reading: &dyn Reading, query: DueQuery) -> Result<Vec<PendingDelivery>> {
    let DueQuery { endpoint, ordered, after, limit } = query;
    let LanePosition { due_at, seq } = after.unwrap_or(START);
    match ordered {
        true => reading.all(&ORDERED, values![endpoint, seq, limit]),
        false => reading.all(&DUE, values![endpoint, due_at, seq, limit]),
    }
}

pub(crate) fn lanes(reading: &dyn Reading, query: LanesQuery) -> Result<LanesPage> {
    let LanesCursor(after) = query.after.unwrap_or(LanesCursor(START));
    let limit = query.limit.max(1);
    let found: Vec<(Timestamp, Seq, EndpointId)> =
        reading.all(&LANES, values![after.due_at, after.seq, query.until, limit])?;
    let last = found.last().map(|&(due_at, seq, _)| LanesCursor(LanePosition { due_at, seq }));
    let mut page = LanesPage { lanes: Vec::new(), next: last.filter(|_| found.len() == limit) };
    let mut seen = HashSet::new();
    for (due_at, _, endpoint) in found {
        if seen.insert(endpoint) {
            match endpoint::owner(reading, endpoint)? {
                Some(app) => page.lanes.push(FoundLane { endpoint, app, due_at }),
                None => tracing::error!(%endpoint, "deliveries wait for an endpoint that has no row"),
            }
        }
    }
    Ok(page)
}

pub(crate) fn contents(
    reading: &dyn Reading,
    messages: &[(AppId, MessageId)],
) -> Result<Vec<Option<Content>>> {
    messages.iter().map(|(app, message)| reading.one(&CONTENT, values![app, message])).collect()
}

/// The length of a payload stands before it, and is compared first.
pub(crate) fn has_payload(
    reading: &dyn Reading,
    app: AppId,
    message: MessageId,
    payload: &[u8],
) -> Result<Option<bool>> {
    match reading.one::<i64>(&PAYLOAD_BYTES, values![app, message])? {
        None => Ok(None),
        // One that was deleted is empty.
        Some(length) if length != 0 && length != count(payload.len()) => Ok(Some(false)),
        Some(_) => reading.one(&IS_PAYLOAD, values![app, message, payload]),
    }
}

pub(crate) fn targets(reading: &dyn Reading, ids: &[EndpointId]) -> Result<Vec<LaneTarget>> {
    let mut targets = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(endpoint) = reading.one::<Endpoint>(&TARGET, values![id])? {
            let app_rate = reading.one::<Option<u16>>(&RATE, values![endpoint.app])?.flatten();
            targets.push(LaneTarget { endpoint, app_rate });
        }
    }
    Ok(targets)
}

pub(crate) fn orphans(reading: &dyn Reading, query: OrphansQuery) -> Result<OrphansPage> {
    let mut page = OrphansPage::default();
    if !application::is_deleted(reading, query.app)? {
        return Ok(page);
    }
    let limit = query.limit.max(1);
    let start: &[u8] = query.after.as_ref().map_or(&[], |after| after.endpoint.as_bytes());
    let others: Vec<EndpointId> = reading.all(&ENDPOINTS_OF, values![query.app, start, limit])?;
    let lanes = query.after.map(|OrphansCursor { endpoint, turn }| (endpoint, Some(turn)));
    let mut looked_at = 0;
    for (endpoint, after) in lanes.into_iter().chain(others.into_iter().map(|endpoint| (endpoint, None))) {
        let room = limit - looked_at;
        let found = due(reading, DueQuery { endpoint, ordered: false, after, limit: room })?;
        let last = found.last().map(PendingDelivery::position).or(after).unwrap_or(START);
        page.waiting.extend(found.iter().map(|waiting| (endpoint, *waiting)));
        // One that the last page has come to the end of is no step forward.
        looked_at += found.len().max(usize::from(after.is_none()));
        if looked_at >= limit {
            page.next = Some(OrphansCursor { endpoint, turn: last });
            break;
        }
    }
    Ok(page)
}
