//! Replays: kept and read. `search.rs` finds the messages that they are about, `step.rs` makes their steps.

mod search;
mod step;

pub(crate) use step::{count_matches, open_round, step};

#[cfg(any(test, feature = "conformance"))]
pub(super) fn all_statements() -> Vec<&'static super::Statement> {
    [statements(), search::statements(), step::statements()].concat()
}

use super::column::{Columns, FromRow, Parameter, count};
use super::retention::ExpiredItem;
use super::stored::{ColumnName, Stored, columns, insert, parameters, stored};
use super::transaction::{ReadingExt, Value, statements, values};
use super::{Reading, Result, Transaction, message};
use crate::{Changed, Replay, ReplayEnd, ReplayFilter, ReplayState, ReplaysQuery};
use aldaba_delivery::{AppId, OrgId, ReplayId, Timestamp};

stored! { Replay {
    id, org, app, endpoint, kind, state, rate, reached, looked_at, opened, created_at, updated_at,
    filter: [ReplayFilter],
} }

const DEAD: u8 = 1;
const DELIVERED: u8 = 2;
const MISSING: u8 = 4;
const CANCELLED: u8 = 8;

statements! {
    INSERT = insert::<Replay>("replay");
    RUNNING_OF = "SELECT count(*) FROM replay WHERE app = ?1 AND state = 0";
    PROGRESS = "UPDATE replay SET state = ?2, reached = ?3, looked_at = ?4, opened = ?5, updated_at = ?6
        WHERE id = ?1";
    ONE = format!("SELECT {} FROM replay WHERE id = ?1", columns::<Replay>());
    RUNNING = format!("SELECT {} FROM replay WHERE state = 0 ORDER BY id", columns::<Replay>());
    PAGE[order] = format!(
        "SELECT {} FROM replay WHERE org = ?1 AND id > ?2 AND id < ?3 AND state >= ?4 AND state <= ?5
             AND kind >= ?6 AND kind <= ?7
         ORDER BY id {} LIMIT ?8", columns::<Replay>(), order.word
    );
    HAS_DIED = "SELECT 1 FROM dead_letter WHERE endpoint = ?1 AND settled_at >= ?2 LIMIT 1";
    ENDED = "SELECT id FROM replay WHERE state > 0 AND updated_at < ?1 ORDER BY updated_at LIMIT ?2";
    REMOVE_ENDED = "DELETE FROM replay WHERE id = ?1 AND state > 0 AND updated_at < ?2";
}

pub(crate) fn create(tx: &dyn Transaction, replay: &Replay) -> Result<Changed> {
    if !has_room(tx, replay.app)? {
        return Ok(Changed::TooMany);
    }
    tx.execute(&INSERT, &parameters(replay))?;
    Ok(Changed::done())
}

/// Whether an application may have one more that runs.
pub(crate) fn has_room(reading: &dyn Reading, app: AppId) -> Result<bool> {
    Ok(reading.number(&RUNNING_OF, values![app])? < count(Replay::MAX_RUNNING))
}

/// Which deliveries are wanted is one number.
impl Stored for ReplayFilter {
    fn columns(into: &mut Vec<ColumnName>) {
        let names =
            ["since", "until", "wanted", "status_class", "event_types", "channel", "tag", "died_since"];
        into.extend(names.map(|name| ColumnName { name, select: None }));
    }

    fn values<'a>(&'a self, into: &mut Vec<Value<'a>>) {
        let bits = [
            (self.dead, DEAD),
            (self.delivered, DELIVERED),
            (self.missing, MISSING),
            (self.cancelled, CANCELLED),
        ];
        let wanted: u8 = bits.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, bit)| bit).sum();
        into.extend([
            self.since.value(),
            self.until.value(),
            Value::Integer(wanted.into()),
            self.status_class.value(),
            self.event_types.value(),
            self.channel.value(),
            self.tag.value(),
            self.died_since.value(),
        ]);
    }
}

impl FromRow for ReplayFilter {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (since, until, wanted, status_class): (_, _, u8, _) = columns.take()?;
        let (event_types, channel, tag, died_since) = columns.take()?;
        let wants = |bit| wanted & bit != 0;
        Ok(Self {
            since,
            until,
            event_types,
            channel,
            tag,
            dead: wants(DEAD),
            cancelled: wants(CANCELLED),
            delivered: wants(DELIVERED),
            missing: wants(MISSING),
            status_class,
            died_since,
        })
    }
}

/// Starts a replay of what has died for its endpoint since an outage began; there must be room for it. `None`: nothing has.
pub(crate) fn recover(
    tx: &dyn Transaction,
    planned: &Replay,
    began: Timestamp,
) -> Result<Option<Box<Replay>>> {
    if !tx.exists(&HAS_DIED, values![planned.endpoint, began])? {
        return Ok(None);
    }
    let oldest = message::oldest(tx, planned.app)?;
    let replay = planned.of_outage(began, oldest.map_or(began, |oldest| oldest.created_at()));
    tx.execute(&INSERT, &parameters(&replay))?;
    Ok(Some(Box::new(replay)))
}

pub(crate) fn cancel(tx: &dyn Transaction, org: OrgId, id: ReplayId, at: Timestamp) -> Result<Changed> {
    let Some(mut replay) = find(tx, org, id)? else { return Ok(Changed::NotFound) };
    if replay.state != ReplayState::Running {
        return Ok(Changed::Stale);
    }
    (replay.state, replay.updated_at) = (ReplayState::Cancelled, at);
    keep_progress(tx, &replay)?;
    Ok(Changed::done())
}

fn keep_progress(tx: &dyn Transaction, replay: &Replay) -> Result<()> {
    let Replay { id, state, reached, looked_at, opened, updated_at, .. } = replay;
    tx.execute(&PROGRESS, values![id, state, reached, looked_at, opened, updated_at]).map(drop)
}

pub(crate) fn find(reading: &dyn Reading, org: OrgId, id: ReplayId) -> Result<Option<Replay>> {
    Ok(reading.one(&ONE, values![id])?.filter(|replay: &Replay| replay.org == org))
}

pub(crate) fn running(reading: &dyn Reading) -> Result<Vec<Replay>> {
    reading.all(&RUNNING, values![])
}

pub(crate) fn list(reading: &dyn Reading, query: ReplaysQuery) -> Result<Vec<Replay>> {
    let (low, high) = super::lists::bounds(query.page.after, query.order);
    // The states are numbered so that those which ended early come last.
    let (first_state, last_state) = match query.ended {
        None => (0_i64, i64::MAX),
        Some(ReplayEnd::NotYet) => (0, 0),
        Some(ReplayEnd::Well) => (1, 1),
        Some(ReplayEnd::Early) => (2, i64::MAX),
    };
    let kind = query.kind.map(super::codes::Code::code);
    let (first_kind, last_kind) = (kind.unwrap_or(0), kind.unwrap_or(i64::MAX));
    let (org, limit) = (query.org, query.page.limit);
    let values = values![org, low, high, first_state, last_state, first_kind, last_kind, limit];
    reading.all(PAGE.by(query.order), values)
}

/// Those that have ended before a moment, the oldest first. An ended replay is not changed any more: its last change is its end.
pub(crate) fn ended(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let ids: Vec<ReplayId> = reading.all(&ENDED, values![before, limit])?;
    Ok(ids.into_iter().map(|id| ExpiredItem::Replay(id, before)).collect())
}

pub(crate) fn remove_ended(tx: &dyn Transaction, id: ReplayId, before: Timestamp) -> Result<usize> {
    tx.execute(&REMOVE_ENDED, values![id, before])
}
