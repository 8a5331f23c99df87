//! Replays: kept and read. `step.rs` makes their steps, `search.rs` finds what those are about.

mod search;
mod step;

pub(super) use search::in_dead_letter;
pub(super) use step::{count_matches, reopen, step};

use super::codes::Code;
use super::names;
use super::rows::{self, count, id, moment};
use crate::{Changed, Order, Replay, ReplayEnd, ReplayFilter, ReplayState, ReplaysQuery};
use aldaba_delivery::{AppId, MessageId, OrgId, ReplayId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str =
    "id, org, app, endpoint, kind, state, since, until, wanted, status_class, rate, reached,
    looked_at, opened, created_at, updated_at, event_types, channel, tag, died_since";

const DEAD: u8 = 1;
const DELIVERED: u8 = 2;
const MISSING: u8 = 4;
const CANCELLED: u8 = 8;

const RUNNING_OF: &str = "SELECT count(*) FROM replay INDEXED BY replay_app WHERE app = ?1 AND state = 0";

pub(super) fn create(connection: &Connection, replay: &Replay) -> rusqlite::Result<Changed> {
    if !has_room(connection, replay.app)? {
        return Ok(Changed::TooMany);
    }
    insert(connection, replay)?;
    Ok(Changed::Done { removed: Vec::new() })
}

/// Whether an application may have one more that runs.
pub(super) fn has_room(connection: &Connection, app: AppId) -> rusqlite::Result<bool> {
    let mut running = connection.prepare_cached(RUNNING_OF)?;
    let running: i64 = running.query_row((app.as_bytes(),), |row| row.get(0))?;
    Ok(running < count(Replay::MOST_RUNNING))
}

fn insert(connection: &Connection, replay: &Replay) -> rusqlite::Result<()> {
    let filter = &replay.filter;
    let bit = |wanted, bit| if wanted { bit } else { 0 };
    let wanted = bit(filter.dead, DEAD)
        | bit(filter.delivered, DELIVERED)
        | bit(filter.missing, MISSING)
        | bit(filter.cancelled, CANCELLED);
    let sql = format!(
        "INSERT INTO replay ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        replay.id.as_bytes(),
        replay.org.as_bytes(),
        replay.app.as_bytes(),
        replay.endpoint.as_bytes(),
        replay.kind.code(),
        replay.state.code(),
        filter.since.millis(),
        filter.until.millis(),
        wanted,
        filter.status_class,
        replay.rate,
        replay.reached.map(|id| *id.as_bytes()),
        count(replay.looked_at as usize),
        count(replay.opened as usize),
        replay.created_at.millis(),
        replay.updated_at.millis(),
        names::write(&filter.event_types),
        filter.channel,
        filter.tag,
        filter.died_since.map(Timestamp::millis),
    ])?;
    Ok(())
}

/// Starts a replay of what has died for its endpoint since an outage began; there must be room for it. `None`:
/// nothing has.
pub(super) fn recover(
    connection: &Connection,
    planned: &Replay,
    began: Timestamp,
) -> rusqlite::Result<Option<Box<Replay>>> {
    let mut died = connection.prepare_cached(
        "SELECT 1 FROM dead_letter INDEXED BY dead_letter_endpoint WHERE endpoint = ?1 AND settled_at >= ?2",
    )?;
    if !died.exists((planned.endpoint.as_bytes(), began.millis()))? {
        return Ok(None);
    }
    let mut oldest =
        connection.prepare_cached("SELECT id FROM message WHERE app = ?1 ORDER BY id LIMIT 1")?;
    let oldest: Option<MessageId> =
        oldest.query_row((planned.app.as_bytes(),), |row| id(row, 0)).optional()?;
    let replay = planned.of_outage(began, oldest.map_or(began, |oldest| oldest.created_at()));
    insert(connection, &replay)?;
    Ok(Some(Box::new(replay)))
}

pub(super) fn cancel(
    connection: &Connection,
    org: OrgId,
    id: ReplayId,
    at: Timestamp,
) -> rusqlite::Result<Changed> {
    let Some(mut replay) = one(connection, org, id)? else {
        return Ok(Changed::NotFound);
    };
    if replay.state != ReplayState::Running {
        return Ok(Changed::Stale);
    }
    (replay.state, replay.updated_at) = (ReplayState::Cancelled, at);
    keep(connection, &replay)?;
    Ok(Changed::Done { removed: Vec::new() })
}

/// How far it has come.
fn keep(connection: &Connection, replay: &Replay) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE replay SET state = ?2, reached = ?3, looked_at = ?4, opened = ?5, updated_at = ?6 WHERE id = ?1",
    )?;
    update.execute((
        replay.id.as_bytes(),
        replay.state.code(),
        replay.reached.map(|id| *id.as_bytes()),
        count(replay.looked_at as usize),
        count(replay.opened as usize),
        replay.updated_at.millis(),
    ))?;
    Ok(())
}

pub(super) fn one(connection: &Connection, org: OrgId, id: ReplayId) -> rusqlite::Result<Option<Replay>> {
    find(connection, id).map(|found| found.filter(|replay| replay.org == org))
}

fn find(connection: &Connection, id: ReplayId) -> rusqlite::Result<Option<Replay>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM replay WHERE id = ?1"))?
        .query_row((id.as_bytes(),), read)
        .optional()
}

pub(super) fn running(connection: &Connection) -> rusqlite::Result<Vec<Replay>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM replay WHERE state = 0 ORDER BY id"))?
        .query_map((), read)?
        .collect()
}

pub(super) fn list(connection: &Connection, query: ReplaysQuery) -> rusqlite::Result<Vec<Replay>> {
    let (beyond, order) = match query.order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM replay INDEXED BY replay_org
         WHERE org = ?1 AND (?2 IS NULL OR id {beyond} ?2) AND (?3 IS NULL OR min(state, 2) = ?3)
             AND (?4 IS NULL OR kind = ?4)
         ORDER BY id {order} LIMIT ?5"
    );
    let after = query.page.after.map(|id| *id.as_bytes());
    let kind = query.kind.map(Code::code);
    // The states are numbered so that those which ended early come last.
    let ended = query.ended.map(|end| match end {
        ReplayEnd::NotYet => ReplayState::Running.code(),
        ReplayEnd::Well => ReplayState::Finished.code(),
        ReplayEnd::Early => ReplayState::Cancelled.code(),
    });
    connection
        .prepare_cached(&sql)?
        .query_map((query.org.as_bytes(), after, ended, kind, count(query.page.limit)), read)?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Replay> {
    let wanted: u8 = row.get(8)?;
    let number = |column| row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0));
    Ok(Replay {
        id: id(row, 0)?,
        org: id(row, 1)?,
        app: id(row, 2)?,
        endpoint: id(row, 3)?,
        kind: Code::from_code(row.get(4)?)?,
        state: Code::from_code(row.get(5)?)?,
        filter: ReplayFilter {
            since: moment(row, 6)?,
            until: moment(row, 7)?,
            dead: wanted & DEAD != 0,
            delivered: wanted & DELIVERED != 0,
            missing: wanted & MISSING != 0,
            cancelled: wanted & CANCELLED != 0,
            status_class: row.get(9)?,
            event_types: rows::list(row, 16)?,
            channel: row.get(17)?,
            tag: row.get(18)?,
            died_since: rows::moment_or_none(row, 19)?,
        },
        rate: row.get(10)?,
        reached: row.get::<_, Option<[u8; 20]>>(11)?.map(MessageId::from_bytes),
        looked_at: number(12)?,
        opened: number(13)?,
        created_at: moment(row, 14)?,
        updated_at: moment(row, 15)?,
    })
}

#[cfg(test)]
mod tests {
    use super::RUNNING_OF;
    use super::search::{ATTEMPTS, MESSAGES};
    use crate::sqlite::in_memory;

    #[test]
    fn messages_their_last_attempts_and_running_replays_are_found_without_sorting() {
        let connection = in_memory().unwrap();
        for statement in [MESSAGES, ATTEMPTS, RUNNING_OF] {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let parameters = vec![0; explain.parameter_count()];
            let mut plan = explain.query(rusqlite::params_from_iter(parameters)).unwrap();
            while let Some(step) = plan.next().unwrap() {
                let step: String = step.get(3).unwrap();
                assert!(!step.contains("SCAN") && !step.contains("TEMP B-TREE"), "{statement}\n{step}");
            }
        }
    }
}
