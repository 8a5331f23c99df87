//! Reads of the lanes.

use super::rows::{self, count};
use crate::{
    Content, DueQuery, Endpoint, FoundLane, GateRecord, LaneTarget, LanesCursor, LanesPage, LanesQuery, Seq,
    Turn, Waiting,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashSet;

/// Before every turn there is.
const START: Turn = Turn { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

/// Two searches, because SQLite uses only the first part of `(due_at, seq) > (?, ?)` for a search,
/// and thousands of deliveries can share one due time. Neither reads more than the limit.
const DUE: &str = "
    SELECT seq, message, due_at, attempts, clock_start FROM delivery INDEXED BY delivery_lane
    WHERE state = 0 AND endpoint = ?1 AND due_at = ?2 AND seq > ?3
    UNION ALL
    SELECT seq, message, due_at, attempts, clock_start FROM delivery INDEXED BY delivery_lane
    WHERE state = 0 AND endpoint = ?1 AND due_at > ?2
    ORDER BY due_at, seq LIMIT ?4";

/// Everything that waits for an ordered endpoint is marked as such.
const ORDERED: &str = "
    SELECT seq, message, due_at, attempts, clock_start FROM delivery INDEXED BY delivery_ordered
    WHERE state = 0 AND ordered = 1 AND endpoint = ?1 AND seq > ?2
    ORDER BY seq LIMIT ?3";

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
        "SELECT event_type, payload, version, sealed_headers FROM message WHERE app = ?1 AND id = ?2 AND expunged = 0",
    )?;
    let mut content = |(app, message): &(AppId, MessageId)| {
        find.query_row((app.as_bytes(), message.as_bytes()), |row| rows::content(row, 0)).optional()
    };
    messages.iter().map(&mut content).collect()
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

pub(super) fn gates(connection: &Connection) -> rusqlite::Result<Vec<GateRecord>> {
    connection
        .prepare_cached(&format!("SELECT {} FROM gate ORDER BY origin, scope", rows::GATE))?
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
    fn an_ordered_lane_is_refilled_by_number_without_sorting() {
        assert_eq!(plan(ORDERED), "SEARCH delivery USING INDEX delivery_ordered (endpoint=? AND rowid>?)");
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
