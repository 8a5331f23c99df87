//! Reads of the lanes.

use super::rows::{self, count, waiting_columns};
use crate::{
    Content, DueQuery, Endpoint, FoundLane, GateRecord, LaneTarget, LanesCursor, LanesPage, LanesQuery,
    OrphansCursor, OrphansPage, OrphansQuery, Seq, Turn, Waiting,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashSet;

/// Before every turn there is.
const START: Turn = Turn { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

/// Two searches, because SQLite uses only the first part of `(due_at, seq) > (?, ?)` for a search,
/// and thousands of deliveries can share one due time. Neither reads more than the limit.
const DUE: &str = concat!(
    "
    SELECT ",
    waiting_columns!(),
    " FROM delivery INDEXED BY delivery_lane
    WHERE state = 0 AND endpoint = ?1 AND due_at = ?2 AND seq > ?3
    UNION ALL
    SELECT ",
    waiting_columns!(),
    " FROM delivery INDEXED BY delivery_lane
    WHERE state = 0 AND endpoint = ?1 AND due_at > ?2
    ORDER BY due_at, seq LIMIT ?4",
);

/// Everything that waits for an ordered endpoint is marked as such, once it has its place.
const ORDERED: &str = concat!(
    "
    SELECT ",
    waiting_columns!(),
    " FROM delivery INDEXED BY delivery_in_order
    WHERE state = 0 AND ordered = 1 AND endpoint = ?1 AND coalesce(place, seq) > ?2
    ORDER BY coalesce(place, seq) LIMIT ?3",
);

pub(super) fn due(connection: &Connection, query: DueQuery) -> rusqlite::Result<Vec<Waiting>> {
    let after = query.after.unwrap_or(START);
    if query.ordered {
        return connection
            .prepare_cached(ORDERED)?
            .query_map((query.endpoint.as_bytes(), after.seq.0, count(query.limit)), rows::waiting)?
            .collect();
    }
    connection
        .prepare_cached(DUE)?
        .query_map(
            (query.endpoint.as_bytes(), after.due_at.millis(), after.seq.0, count(query.limit)),
            rows::waiting,
        )?
        .collect()
}

const LANES: &str = "
    SELECT due_at, seq, endpoint FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND due_at = ?1 AND seq > ?2 AND due_at <= ?3
    UNION ALL
    SELECT due_at, seq, endpoint FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND due_at > ?1 AND due_at <= ?3
    ORDER BY due_at, seq LIMIT ?4";

const APP: &str = "SELECT app FROM endpoint WHERE id = ?1";

pub(super) fn lanes(connection: &Connection, query: LanesQuery) -> rusqlite::Result<LanesPage> {
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
        last = Turn { due_at: Timestamp::from_millis(row.get(0)?), seq: Seq(row.get(1)?) };
        let endpoint = EndpointId::from_bytes(row.get(2)?);
        if seen.insert(endpoint) {
            match app.query_row((endpoint.as_bytes(),), |row| rows::id(row, 0)).optional()? {
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

pub(super) fn contents(
    connection: &Connection,
    messages: &[(AppId, MessageId)],
) -> rusqlite::Result<Vec<Option<Content>>> {
    let mut find = connection.prepare_cached(
        "SELECT event_type, payload, version, sealed_headers, event_id FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0",
    )?;
    let mut content = |(app, message): &(AppId, MessageId)| {
        find.query_row((app.as_bytes(), message.as_bytes()), |row| rows::content(row, 0)).optional()
    };
    messages.iter().map(&mut content).collect()
}

/// How long a payload is stands before it.
pub(super) fn has_payload(
    connection: &Connection,
    app: AppId,
    message: MessageId,
    payload: &[u8],
) -> rusqlite::Result<Option<bool>> {
    let snapshot = connection.unchecked_transaction()?;
    let key = (app.as_bytes(), message.as_bytes());
    let mut measure =
        snapshot.prepare_cached("SELECT length(payload) FROM message WHERE app = ?1 AND id = ?2")?;
    match measure.query_row(key, |row| row.get::<_, i64>(0)).optional()? {
        None => return Ok(None),
        // One that was deleted is empty.
        Some(length) if length != 0 && length != count(payload.len()) => return Ok(Some(false)),
        Some(_) => {}
    }
    let mut compare = snapshot
        .prepare_cached("SELECT payload = ?3 FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0")?;
    compare.query_row((key.0, key.1, payload), |row| row.get(0)).optional()
}

pub(super) fn lane_endpoints(connection: &Connection, ids: &[EndpointId]) -> rusqlite::Result<Vec<Endpoint>> {
    let mut find =
        connection.prepare_cached(&format!("SELECT {} FROM endpoint WHERE id = ?1", rows::ENDPOINT))?;
    let mut endpoint = |id: &EndpointId| find.query_row((id.as_bytes(),), rows::endpoint).optional();
    ids.iter().filter_map(|id| endpoint(id).transpose()).collect()
}

pub(super) fn lane_targets(connection: &Connection, ids: &[EndpointId]) -> rusqlite::Result<Vec<LaneTarget>> {
    let mut rate = connection.prepare_cached("SELECT throttle_rate FROM application WHERE id = ?1")?;
    let mut target = |endpoint: Endpoint| {
        let app_rate = rate.query_row((endpoint.app.as_bytes(),), |row| row.get(0)).optional()?.flatten();
        Ok(LaneTarget { endpoint, app_rate })
    };
    lane_endpoints(connection, ids)?.into_iter().map(&mut target).collect()
}

const DELETED_APPLICATIONS: &str = "
    SELECT id FROM application INDEXED BY application_deleted WHERE deleted = 1 AND id > ?1 ORDER BY id LIMIT ?2";

pub(super) fn deleted_applications(
    connection: &Connection,
    after: Option<AppId>,
    limit: usize,
) -> rusqlite::Result<Vec<AppId>> {
    let start: &[u8] = after.as_ref().map_or(&[], |app| app.as_bytes());
    let mut find = connection.prepare_cached(DELETED_APPLICATIONS)?;
    find.query_map((start, count(limit)), |row| rows::id(row, 0))?.collect()
}

const ENDPOINTS_OF: &str = "
    SELECT id FROM endpoint INDEXED BY endpoint_walk WHERE app = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

pub(super) fn orphans(connection: &Connection, query: OrphansQuery) -> rusqlite::Result<OrphansPage> {
    let mut page = OrphansPage::default();
    let mut deleted = connection.prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND deleted = 1")?;
    if !deleted.exists((query.app.as_bytes(),))? {
        return Ok(page);
    }
    let limit = query.limit.max(1);
    let start: &[u8] = query.after.as_ref().map_or(&[], |after| after.endpoint.as_bytes());
    let mut others = connection.prepare_cached(ENDPOINTS_OF)?;
    let others = others
        .query_map((query.app.as_bytes(), start, count(limit)), |row| rows::id(row, 0))?
        .collect::<Result<Vec<EndpointId>, _>>()?;
    let lanes = query.after.map(|OrphansCursor { endpoint, turn }| (endpoint, Some(turn)));
    let mut looked_at = 0;
    for (endpoint, after) in lanes.into_iter().chain(others.into_iter().map(|endpoint| (endpoint, None))) {
        let room = limit - looked_at;
        let found = due(connection, DueQuery { endpoint, ordered: false, after, limit: room })?;
        let last = found.last().map(Waiting::turn).or(after).unwrap_or(START);
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

pub(super) fn gates(connection: &Connection) -> rusqlite::Result<Vec<GateRecord>> {
    connection
        .prepare_cached(&format!("SELECT {} FROM gate ORDER BY org, origin, scope", rows::GATE))?
        .query_map((), rows::gate)?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn a_lane_is_refilled_from_its_place_in_the_index_without_sorting() {
        assert_eq!(
            plan(DUE),
            "MERGE (UNION ALL); LEFT; \
             SEARCH delivery USING INDEX delivery_lane (endpoint=? AND due_at=? AND rowid>?); RIGHT; \
             SEARCH delivery USING INDEX delivery_lane (endpoint=? AND due_at>?)"
        );
    }

    #[test]
    fn an_ordered_lane_is_refilled_by_place_without_sorting() {
        assert_eq!(plan(ORDERED), "SEARCH delivery USING INDEX delivery_in_order (endpoint=? AND <expr>>?)");
    }

    #[test]
    fn what_a_deleted_application_has_left_is_walked_in_indexes() {
        for statement in [DELETED_APPLICATIONS, ENDPOINTS_OF] {
            let plan = plan(statement);
            assert!(plan.contains("COVERING INDEX") && !plan.contains("SCAN"), "{plan}");
        }
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
