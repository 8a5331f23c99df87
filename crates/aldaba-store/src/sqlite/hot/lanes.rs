//! Reads of the lanes.

use crate::operations::column::count;
use crate::operations::delivery::WAITING_COLUMNS;
use crate::operations::stored::columns;
use crate::operations::{Result, application};
use crate::sqlite::transaction::{SqliteTransaction, all, one, prepare};
use crate::{
    Content, DueQuery, Endpoint, FoundLane, LanePosition, LaneTarget, LanesCursor, LanesPage, LanesQuery,
    OrphansCursor, OrphansPage, OrphansQuery, PendingDelivery, Seq,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Before every turn there is.
const START: LanePosition = LanePosition { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

/// Two searches, because SQLite uses only the first part of `(due_at, seq) > (?, ?)` for a search,
/// and thousands of deliveries can share one due time. Neither reads more than the limit.
pub(super) static DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {WAITING_COLUMNS} FROM delivery INDEXED BY delivery_lane
         WHERE state = 0 AND endpoint = ?1 AND due_at = ?2 AND seq > ?3
         UNION ALL
         SELECT {WAITING_COLUMNS} FROM delivery INDEXED BY delivery_lane
         WHERE state = 0 AND endpoint = ?1 AND due_at > ?2
         ORDER BY due_at, seq LIMIT ?4"
    )
});

/// Everything that waits for an ordered endpoint is marked as such, once it has its place.
static ORDERED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {WAITING_COLUMNS} FROM delivery INDEXED BY delivery_in_order
         WHERE state = 0 AND ordered = 1 AND endpoint = ?1 AND coalesce(place, seq) > ?2
         ORDER BY coalesce(place, seq) LIMIT ?3"
    )
});

pub(super) fn due(connection: &Connection, query: DueQuery) -> Result<Vec<PendingDelivery>> {
    let after = query.after.unwrap_or(START);
    let (endpoint, limit) = (query.endpoint.as_bytes(), count(query.limit));
    if query.ordered {
        return all(&mut *prepare(connection, &ORDERED)?, (endpoint, after.seq.0, limit));
    }
    let from = (endpoint, after.due_at.millis(), after.seq.0, limit);
    all(&mut *prepare(connection, &DUE)?, from)
}

const LANES: &str = "
    SELECT due_at, seq, endpoint FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND due_at = ?1 AND seq > ?2 AND due_at <= ?3
    UNION ALL
    SELECT due_at, seq, endpoint FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND due_at > ?1 AND due_at <= ?3
    ORDER BY due_at, seq LIMIT ?4";

const APP: &str = "SELECT app FROM endpoint WHERE id = ?1";

pub(super) fn lanes(connection: &Connection, query: LanesQuery) -> Result<LanesPage> {
    let LanesCursor(after) = query.after.unwrap_or(LanesCursor(START));
    let limit = query.limit.max(1);
    let mut statement = connection.prepare_cached(LANES)?;
    let mut app = connection.prepare_cached(APP)?;
    let mut rows =
        statement.query((after.due_at.millis(), after.seq.0, query.until.millis(), count(limit)))?;
    let mut page = LanesPage::default();
    let mut seen = HashSet::new();
    let mut walked = 0;
    let mut last = after;
    while let Some(row) = rows.next()? {
        walked += 1;
        last = LanePosition { due_at: Timestamp::from_millis(row.get(0)?), seq: Seq(row.get(1)?) };
        let endpoint = EndpointId::from_bytes(row.get(2)?);
        if seen.insert(endpoint) {
            match one(&mut app, (endpoint.as_bytes(),))? {
                Some(app) => page.lanes.push(FoundLane { endpoint, app, due_at: last.due_at }),
                None => tracing::error!(%endpoint, "deliveries wait for an endpoint that has no row"),
            }
        }
    }
    if walked == limit {
        page.next = Some(LanesCursor(last));
    }
    Ok(page)
}

static CONTENT: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {} FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0", columns::<Content>())
});

pub(super) fn contents(
    connection: &Connection,
    messages: &[(AppId, MessageId)],
) -> Result<Vec<Option<Content>>> {
    let mut find = connection.prepare_cached(&CONTENT)?;
    messages.iter().map(|(app, message)| one(&mut find, (app.as_bytes(), message.as_bytes()))).collect()
}

/// How long a payload is stands before it.
pub(super) fn has_payload(
    connection: &Connection,
    app: AppId,
    message: MessageId,
    payload: &[u8],
) -> Result<Option<bool>> {
    let key = (app.as_bytes(), message.as_bytes());
    let mut measure =
        connection.prepare_cached("SELECT length(payload) FROM message WHERE app = ?1 AND id = ?2")?;
    match measure.query_row(key, |row| row.get::<_, i64>(0)).optional()? {
        None => return Ok(None),
        // One that was deleted is empty.
        Some(length) if length != 0 && length != count(payload.len()) => return Ok(Some(false)),
        Some(_) => {}
    }
    let mut compare = connection
        .prepare_cached("SELECT payload = ?3 FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0")?;
    Ok(compare.query_row((key.0, key.1, payload), |row| row.get(0)).optional()?)
}

static ENDPOINT: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} FROM endpoint WHERE id = ?1", columns::<Endpoint>()));

/// Deleted ones too: their waiting deliveries still have to end.
pub(super) fn lane_targets(connection: &Connection, ids: &[EndpointId]) -> Result<Vec<LaneTarget>> {
    let mut find = connection.prepare_cached(&ENDPOINT)?;
    let mut rate = connection.prepare_cached("SELECT throttle_rate FROM application WHERE id = ?1")?;
    let mut targets = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(endpoint) = one::<Endpoint>(&mut find, (id.as_bytes(),))? {
            let app_rate = one::<Option<u16>>(&mut rate, (endpoint.app.as_bytes(),))?.flatten();
            targets.push(LaneTarget { endpoint, app_rate });
        }
    }
    Ok(targets)
}

const ENDPOINTS_OF: &str = "
    SELECT id FROM endpoint INDEXED BY endpoint_walk WHERE app = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

pub(super) fn orphans(connection: &Connection, query: OrphansQuery) -> Result<OrphansPage> {
    let mut page = OrphansPage::default();
    if !application::is_deleted(&SqliteTransaction(connection), query.app)? {
        return Ok(page);
    }
    let limit = query.limit.max(1);
    let start: &[u8] = query.after.as_ref().map_or(&[], |after| after.endpoint.as_bytes());
    let mut others = connection.prepare_cached(ENDPOINTS_OF)?;
    let others: Vec<EndpointId> = all(&mut others, (query.app.as_bytes(), start, count(limit)))?;
    let lanes = query.after.map(|OrphansCursor { endpoint, turn }| (endpoint, Some(turn)));
    let mut looked_at = 0;
    for (endpoint, after) in lanes.into_iter().chain(others.into_iter().map(|endpoint| (endpoint, None))) {
        let room = limit - looked_at;
        let found = due(connection, DueQuery { endpoint, ordered: false, after, limit: room })?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn a_lane_is_refilled_from_its_place_in_the_index_without_sorting() {
        assert_eq!(
            plan(&DUE),
            "MERGE (UNION ALL); LEFT; \
             SEARCH delivery USING INDEX delivery_lane (endpoint=? AND due_at=? AND rowid>?); RIGHT; \
             SEARCH delivery USING INDEX delivery_lane (endpoint=? AND due_at>?)"
        );
    }

    #[test]
    fn an_ordered_lane_is_refilled_by_place_without_sorting() {
        assert_eq!(plan(&ORDERED), "SEARCH delivery USING INDEX delivery_in_order (endpoint=? AND <expr>>?)");
    }

    #[test]
    fn what_a_deleted_application_has_left_is_walked_in_indexes() {
        let plan = plan(ENDPOINTS_OF);
        assert!(plan.contains("COVERING INDEX") && !plan.contains("SCAN"), "{plan}");
    }

    #[test]
    fn lanes_are_found_in_the_index_alone() {
        assert_eq!(
            plan(LANES),
            "MERGE (UNION ALL); LEFT; \
             SEARCH delivery USING COVERING INDEX delivery_due (due_at=? AND seq>?); RIGHT; \
             SEARCH delivery USING COVERING INDEX delivery_due (due_at>? AND due_at<?)"
        );
    }
}
