//! Reads of the lanes.

use super::rows::{self, count};
use crate::{
    Content, DueQuery, Endpoint, GateRecord, LanesCursor, LanesPage, LanesQuery, Seq, Turn, Waiting,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashSet;

/// Before every turn there is.
const START: Turn = Turn { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };

pub(super) const DUE: &str = "SELECT seq, message, due_at, attempts, clock_start
    FROM delivery INDEXED BY delivery_lane
    WHERE state = 0 AND endpoint = ?1 AND (due_at, seq) > (?2, ?3)
    ORDER BY due_at, seq LIMIT ?4";

pub(super) fn due(connection: &Connection, query: DueQuery) -> rusqlite::Result<Vec<Waiting>> {
    let after = query.after.unwrap_or(START);
    connection
        .prepare_cached(DUE)?
        .query_map(
            (query.endpoint.as_bytes(), after.due_at.millis(), after.seq.0, count(query.limit)),
            rows::waiting,
        )?
        .collect()
}

pub(super) const LANES: &str = "SELECT due_at, seq, endpoint
    FROM delivery INDEXED BY delivery_due
    WHERE state = 0 AND (due_at, seq) > (?1, ?2) AND due_at <= ?3
    ORDER BY due_at, seq LIMIT ?4";

pub(super) fn lanes(connection: &Connection, query: LanesQuery) -> rusqlite::Result<LanesPage> {
    let LanesCursor(after) = query.after.unwrap_or(LanesCursor(START));
    let limit = query.limit.max(1);
    let mut statement = connection.prepare_cached(LANES)?;
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
            page.lanes.push((endpoint, last.due_at));
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
    let mut find =
        connection.prepare_cached("SELECT event_type, payload FROM message WHERE app = ?1 AND id = ?2")?;
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

pub(super) fn gates(connection: &Connection) -> rusqlite::Result<Vec<GateRecord>> {
    connection
        .prepare_cached(&format!("SELECT {} FROM gate ORDER BY origin, scope", rows::GATE))?
        .query_map((), rows::gate)?
        .collect()
}
