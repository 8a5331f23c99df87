//! Replays: kept, stepped and read.

use super::codes::Code;
use super::counters::Counters;
use super::monotonic::{Monotonic, Slice};
use super::names;
use super::remove::SLICE;
use super::rows::{self, count, id, moment};
use crate::{
    Changed, DeliveryState, DeliveryStatus, Dispatched, Order, Replay, ReplayCount, ReplayEnd, ReplayFilter,
    ReplayState, ReplayStep, ReplayStepped, ReplaysQuery, Seq, Subscription, Waiting,
};
use aldaba_delivery::filter::{Facts, Filters};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, ReplayId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str =
    "id, org, app, endpoint, kind, state, since, until, wanted, status_class, rate, reached,
    looked_at, opened, created_at, updated_at, event_types, channel, tag, died_since";

const DEAD: u8 = 1;
const DELIVERED: u8 = 2;
const MISSING: u8 = 4;
const CANCELLED: u8 = 8;

/// Tags lie behind the payload, and are read only for who asks for them.
const MESSAGES: &str = "
    SELECT id, created_at, event_type, channels, CASE WHEN ?6 THEN tags ELSE '' END FROM message
    WHERE app = ?1 AND id >= ?2 AND (?3 IS NULL OR id > ?3) AND id <= ?4 ORDER BY id LIMIT ?5";
/// The attempts of a delivery, the newest first, and then those of former rounds and of other endpoints.
const ATTEMPTS: &str = "
    SELECT endpoint, status_code FROM attempt INDEXED BY attempt_message
    WHERE message = ?1 AND seq <= ?2 ORDER BY seq DESC, id DESC";

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

/// A step ends by the clock too: what it looks at may lie behind large payloads.
pub(super) fn step(
    connection: &Connection,
    clock: &Monotonic,
    step: &ReplayStep,
    counters: &mut Counters,
) -> rusqlite::Result<ReplayStepped> {
    let slice = Slice::begin(clock, SLICE);
    let Some(mut replay) = find(connection, step.id)? else {
        return Ok(ReplayStepped { replay: None, opened: Vec::new() });
    };
    let mut opened = Vec::new();
    if replay.state != ReplayState::Running {
        return Ok(ReplayStepped { replay: Some(replay), opened });
    }
    replay.updated_at = step.now;
    let Some(endpoint) = subscription(connection, replay.endpoint)? else {
        replay.state = ReplayState::EndpointGone;
        keep(connection, &replay)?;
        return Ok(ReplayStepped { replay: Some(replay), opened });
    };
    let left = step.most.saturating_sub(replay.opened);
    let open = step.open.min(usize::try_from(left).unwrap_or(usize::MAX));
    let search = Search::new(connection, &replay, &endpoint, step.now);
    let walk = search.walk(replay.reached, step.look, &slice, |message, settled| {
        let at = search.not_before(message)?;
        opened.push(reopen(connection, replay.endpoint, message, settled, at)?);
        Ok(opened.len() < open)
    })?;
    counters.opened(opened.len());
    replay.reached = walk.reached.or(replay.reached);
    replay.looked_at += walk.messages;
    replay.opened += opened.len() as u64;
    if walk.done {
        replay.state = ReplayState::Finished;
    } else if replay.opened >= step.most {
        replay.state = ReplayState::TooMany;
    }
    keep(connection, &replay)?;
    Ok(ReplayStepped { replay: Some(replay), opened })
}

/// Counts until the slice is over, from where the next count can go on.
pub(super) fn count_matches(
    connection: &Connection,
    slice: &Slice<'_>,
    replay: &Replay,
    after: Option<MessageId>,
    look: usize,
) -> rusqlite::Result<ReplayCount> {
    let Some(endpoint) = subscription(connection, replay.endpoint)? else {
        return Ok(ReplayCount { matched: 0, rows: 0, next: None });
    };
    let search = Search::new(connection, replay, &endpoint, replay.created_at);
    let mut matched = 0;
    let walk = search.walk(after, look, slice, |_, _| {
        matched += 1;
        Ok(true)
    })?;
    let next = if walk.done { None } else { walk.reached };
    Ok(ReplayCount { matched, rows: walk.rows, next })
}

fn subscription(connection: &Connection, endpoint: EndpointId) -> rusqlite::Result<Option<Subscription>> {
    connection
        .prepare_cached(&format!(
            "SELECT {} FROM endpoint WHERE id = ?1 AND {}",
            rows::SUBSCRIPTION,
            rows::THERE
        ))?
        .query_row((endpoint.as_bytes(),), rows::subscription)
        .optional()
}

/// The messages that a replay is about, as they are now.
struct Search<'a> {
    connection: &'a Connection,
    replay: &'a Replay,
    endpoint: &'a Subscription,
    /// The endpoint's, if it has one.
    filters: Option<Filters>,
    now: Timestamp,
}

#[derive(Default)]
struct Walk {
    reached: Option<MessageId>,
    messages: u64,
    /// Messages, their deliveries and the attempts of those.
    rows: usize,
    /// There are no more.
    done: bool,
}

impl<'a> Search<'a> {
    fn new(
        connection: &'a Connection,
        replay: &'a Replay,
        endpoint: &'a Subscription,
        now: Timestamp,
    ) -> Self {
        let filters = endpoint.filter.clone().map(Filters::of_one);
        Self { connection, replay, endpoint, filters, now }
    }

    /// Looks at messages in their order and calls `take` for each that is wanted, with the settled delivery that
    /// it has. `take` says whether to go on. It ends at `look` rows or with the slice, and comes forward by one
    /// message at least, or a slow machine would never come to an end.
    fn walk(
        &self,
        after: Option<MessageId>,
        look: usize,
        slice: &Slice<'_>,
        mut take: impl FnMut(MessageId, Option<Seq>) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<Walk> {
        let filter = &self.replay.filter;
        let mut messages = self.connection.prepare_cached(MESSAGES)?;
        let from = after.unwrap_or_else(|| MessageId::first_at(filter.since));
        let (last, after) = (MessageId::last_at(filter.until), after.map(|id| *id.as_bytes()));
        let (app, tagged) = (self.replay.app.as_bytes(), filter.tag.is_some());
        let mut found =
            messages.query((app, from.as_bytes(), after, last.as_bytes(), count(look), tagged))?;
        let mut walk = Walk::default();
        while let Some(row) = found.next()? {
            let message = id(row, 0)?;
            let (channels, tags) = (rows::list(row, 3)?, rows::list(row, 4)?);
            let event_type = row.get_ref(2)?.as_str()?;
            walk.reached = Some(message);
            walk.messages += 1;
            walk.rows += 1;
            let mut goes_on = true;
            if filter.wants(moment(row, 1)?, event_type, &channels, &tags)
                && let Some(settled) = self.wanted(message, event_type, &channels, &mut walk.rows)?
            {
                goes_on = take(message, settled)?;
            }
            if !goes_on || walk.rows >= look || slice.is_over() {
                return Ok(walk);
            }
        }
        walk.done = true;
        Ok(walk)
    }

    /// `Some` for a message that the endpoint is to get, with the settled delivery that it has.
    fn wanted(
        &self,
        message: MessageId,
        event_type: &str,
        channels: &[String],
        rows: &mut usize,
    ) -> rusqlite::Result<Option<Option<Seq>>> {
        let filter = &self.replay.filter;
        let delivery = self.delivery(message, rows)?;
        let seq = delivery.as_ref().map(|delivery| delivery.seq);
        let wanted = match delivery.map(|delivery| (delivery.seq, delivery.state)) {
            None | Some((_, DeliveryState::Skipped { .. })) => {
                filter.missing
                    && self.endpoint.lists(event_type, channels)
                    && self.passes(message, event_type, channels)?
                    && self.is_for_it(message)?
            }
            // Somebody has sent it there by hand. That was that, and is no record of the address.
            Some(_) if self.endpoint.direct && !self.is_for_it(message)? => false,
            Some((_, DeliveryState::Waiting { .. })) => false,
            Some((seq, DeliveryState::Delivered { .. })) => {
                filter.delivered && self.has_status(message, seq, rows)?
            }
            Some((seq, DeliveryState::Dead { at, reason })) => {
                filter.wants_dead(at, reason, in_dead_letter(self.connection, seq)?)
                    && self.has_status(message, seq, rows)?
            }
        };
        let can_be_sent = wanted && !self.is_expunged(message)? && !self.would_hold_up_others(message)?;
        Ok(can_be_sent.then_some(seq))
    }

    /// Whether the endpoint's own filter lets the message through.
    fn passes(&self, message: MessageId, event_type: &str, channels: &[String]) -> rusqlite::Result<bool> {
        let Some(filters) = &self.filters else { return Ok(true) };
        let mut find = self
            .connection
            .prepare_cached("SELECT payload, tags, headers FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        find.query_row(key, |row| {
            let (tags, headers) = (rows::list(row, 1)?, rows::headers(row, 2)?);
            let payload = row.get_ref(0)?.as_blob()?;
            let facts = Facts { event_type, channels, tags: &tags, headers: &headers, payload };
            Ok(filters.over(facts).passes(0))
        })
    }

    fn delivery(&self, message: MessageId, rows: &mut usize) -> rusqlite::Result<Option<DeliveryStatus>> {
        let select = format!("SELECT {} FROM delivery WHERE message = ?1", rows::DELIVERY);
        let mut of_message = self.connection.prepare_cached(&select)?;
        let mut found = of_message.query((message.as_bytes(),))?;
        let mut delivery = None;
        while let Some(row) = found.next()? {
            *rows += 1;
            if id::<_>(row, 1)? == self.endpoint.id {
                delivery = Some(rows::delivery(row)?);
            }
        }
        Ok(delivery)
    }

    /// Whether the last answer was of the class that is asked for, if one is. A round that ended without an
    /// attempt has that of the round before.
    fn has_status(&self, message: MessageId, Seq(seq): Seq, rows: &mut usize) -> rusqlite::Result<bool> {
        let filter = &self.replay.filter;
        if filter.status_class.is_none() {
            return Ok(true);
        }
        let mut attempts = self.connection.prepare_cached(ATTEMPTS)?;
        let mut found = attempts.query((message.as_bytes(), seq))?;
        while let Some(row) = found.next()? {
            *rows += 1;
            if id::<_>(row, 0)? == self.endpoint.id {
                return Ok(filter.wants_status(row.get(1)?));
            }
        }
        Ok(filter.wants_status(None))
    }

    /// What was sent to one endpoint alone is missing nowhere else.
    fn is_for_it(&self, message: MessageId) -> rusqlite::Result<bool> {
        let mut find =
            self.connection.prepare_cached("SELECT only_for FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        let only = find.query_row(key, |row| rows::id_or_none(row, 0)).optional()?.flatten();
        Ok(only.map_or(!self.endpoint.direct, |only| only == self.endpoint.id))
    }

    /// Without its payload there is nothing to send.
    fn is_expunged(&self, message: MessageId) -> rusqlite::Result<bool> {
        let mut find =
            self.connection.prepare_cached("SELECT expunged FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        Ok(find.query_row(key, |row| row.get(0)).optional()?.unwrap_or(false))
    }

    /// An ordered endpoint takes nothing that is to be delivered later, from a replay neither.
    fn would_hold_up_others(&self, message: MessageId) -> rusqlite::Result<bool> {
        Ok(self.endpoint.ordered && self.not_before(message)? > self.now)
    }

    /// What is to be delivered later still is.
    fn not_before(&self, message: MessageId) -> rusqlite::Result<Timestamp> {
        let mut find =
            self.connection.prepare_cached("SELECT deliver_at FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        let later = find.query_row(key, |row| rows::moment_or_none(row, 0)).optional()?.flatten();
        Ok(later.map_or(self.now, |later| later.max(self.now)))
    }
}

fn in_dead_letter(connection: &Connection, Seq(seq): Seq) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM dead_letter WHERE seq = ?1")?.exists((seq,))
}

/// Another round, in the place of the settled one: a new number, so that it stands behind what waits
/// already, and a fresh count of attempts.
fn reopen(
    connection: &Connection,
    endpoint: EndpointId,
    message: MessageId,
    settled: Option<Seq>,
    now: Timestamp,
) -> rusqlite::Result<Waiting> {
    if let Some(Seq(seq)) = settled {
        connection.prepare_cached("DELETE FROM delivery WHERE seq = ?1")?.execute((seq,))?;
        connection.prepare_cached("DELETE FROM dead_letter WHERE seq = ?1")?.execute((seq,))?;
    }
    connection
        .prepare_cached(
            "INSERT INTO delivery (endpoint, message, due_at, clock_start, ordered, dispatched, app)
             SELECT ?1, ?2, ?3, ?3, endpoint.ordering <> 0,
                 CASE WHEN NOT endpoint.direct OR message.only_for IS NOT endpoint.id THEN 0
                     WHEN message.job IS NULL THEN ?4 ELSE ?5 END,
                 CASE WHEN endpoint.direct THEN endpoint.app END
             FROM endpoint LEFT JOIN message ON message.app = endpoint.app AND message.id = ?2
             WHERE endpoint.id = ?1",
        )?
        .execute((
            endpoint.as_bytes(),
            message.as_bytes(),
            now.millis(),
            Dispatched::ByAddress.code(),
            Dispatched::AsJob.code(),
        ))?;
    let seq = Seq(connection.last_insert_rowid());
    Ok(Waiting { seq, message, due_at: now, attempts: 0, clock_start: now })
}

#[cfg(test)]
mod tests {
    use super::*;
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
