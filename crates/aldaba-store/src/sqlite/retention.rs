//! Finds what is no longer kept. Every statement walks an index from a place in it.

use super::rows::{self, count};
use crate::{
    Cut, Hour, KeptEndpoint, MessagesCursor, PayloadsCursor, Seq, Settled, Stale, StoredKey, Walked,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use rusqlite::{Connection, Row, Statement};

const ENDPOINTS: &str = "
    SELECT app, id, org, policy, deleted, direct FROM endpoint INDEXED BY endpoint_walk
    WHERE app = ?1 AND id > ?2
    UNION ALL
    SELECT app, id, org, policy, deleted, direct FROM endpoint INDEXED BY endpoint_walk
    WHERE app > ?1
    ORDER BY app, id LIMIT ?3";

pub(super) fn kept_endpoints(
    connection: &Connection,
    after: Option<(AppId, EndpointId)>,
    limit: usize,
) -> rusqlite::Result<Vec<KeptEndpoint>> {
    let (app, id): (&[u8], &[u8]) = match &after {
        Some((app, id)) => (app.as_bytes(), id.as_bytes()),
        None => (&[], &[]),
    };
    let endpoint = |row: &Row<'_>| {
        Ok(KeptEndpoint {
            app: rows::id(row, 0)?,
            id: rows::id(row, 1)?,
            org: rows::id(row, 2)?,
            policy: row.get(3)?,
            deleted: row.get(4)?,
            direct: row.get(5)?,
        })
    };
    let mut kept = connection
        .prepare_cached(ENDPOINTS)?
        .query_map((app, id, count(limit)), endpoint)?
        .collect::<Result<Vec<_>, _>>()?;
    // All of an application stand together, and its mark is theirs.
    let mut deleted = connection.prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND deleted = 1")?;
    for of_one in kept.chunk_by_mut(|a, b| a.app == b.app) {
        if let Some(first) = of_one.first()
            && deleted.exists((first.app.as_bytes(),))?
        {
            of_one.iter_mut().for_each(|endpoint| endpoint.deleted = true);
        }
    }
    Ok(kept)
}

const NEWEST: &str = "
    SELECT settled_at, seq FROM delivery INDEXED BY delivery_delivered
    WHERE state = 1 AND endpoint = ?1 AND settled_at >= ?2
    ORDER BY settled_at DESC, seq DESC LIMIT ?3";

pub(super) fn newest_delivered(
    connection: &Connection,
    endpoints: &[EndpointId],
    after: Option<Settled>,
    limit: usize,
) -> rusqlite::Result<Vec<Settled>> {
    let mut find = connection.prepare_cached(NEWEST)?;
    let (mut newest, mut floor) = (Vec::new(), after);
    for endpoint in endpoints {
        let from = floor.map_or(Timestamp::MIN, |floor| floor.at);
        let found = find.query_map((endpoint.as_bytes(), from.millis(), count(limit)), settled)?;
        for settled in found {
            let settled = settled?;
            newest.extend(floor.is_none_or(|floor| settled > floor).then_some(settled));
        }
        // Those of the next endpoint have to be newer than the oldest that still counts.
        newest.sort_unstable_by(|a, b| b.cmp(a));
        newest.truncate(limit);
        floor = newest.get(limit.wrapping_sub(1)).copied().or(floor);
    }
    Ok(newest)
}

fn settled(row: &Row<'_>) -> rusqlite::Result<Settled> {
    Ok(Settled { at: rows::moment(row, 0)?, seq: Seq(row.get(1)?) })
}

const DELIVERED: &str = "
    SELECT settled_at, seq FROM delivery INDEXED BY delivery_delivered
    WHERE state = 1 AND endpoint = ?1 AND settled_at <= ?2 AND (settled_at < ?2 OR seq < ?3)
    ORDER BY settled_at, seq LIMIT ?4";
const DEAD: &str = "
    SELECT settled_at, seq FROM delivery INDEXED BY delivery_dead
    WHERE state >= 2 AND endpoint = ?1 AND settled_at <= ?2 AND (settled_at < ?2 OR seq < ?3)
    ORDER BY settled_at, seq LIMIT ?4";
const DISCARDED: &str = "
    SELECT settled_at, seq FROM delivery INDEXED BY delivery_discarded
    WHERE state = 2 AND discarded = 1 AND endpoint = ?1 AND settled_at <= ?2 AND (settled_at < ?2 OR seq < ?3)
    ORDER BY settled_at, seq LIMIT ?4";

pub(super) fn cut_off(connection: &Connection, cuts: &[Cut], limit: usize) -> rusqlite::Result<Vec<Stale>> {
    let (mut delivered, mut dead) = (connection.prepare_cached(DELIVERED)?, connection.prepare_cached(DEAD)?);
    let mut discarded = connection.prepare_cached(DISCARDED)?;
    let mut stale = Vec::new();
    for cut in cuts {
        let ends = [
            (&mut delivered, cut.delivered),
            (&mut dead, cut.dead),
            // Those before the end of the dead ones are among them.
            (&mut discarded, cut.discarded.filter(|end| cut.dead.is_none_or(|dead| *end > dead))),
        ];
        for (find, before) in ends {
            let (Some(before), room) = (before, limit - stale.len()) else { continue };
            let of = (cut.endpoint.as_bytes(), before.at.millis(), before.seq.0, count(room));
            for found in find.query_map(of, settled)? {
                stale.push(Stale::Delivery(found?));
            }
        }
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

const MINUTES: &str =
    "SELECT minute FROM endpoint_minute WHERE endpoint = ?1 AND minute < ?2 ORDER BY minute LIMIT ?3";
const HOURS: &str = "SELECT hour FROM endpoint_hour WHERE endpoint = ?1 AND hour < ?2 ORDER BY hour LIMIT ?3";

/// Of each endpoint the hours first: they must not be left behind when it goes with its last minute.
pub(super) fn old_counters(
    connection: &Connection,
    endpoints: &[EndpointId],
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Stale>> {
    let (mut hours, mut minutes) = (connection.prepare_cached(HOURS)?, connection.prepare_cached(MINUTES)?);
    let (first_hour, first_minute) = (first_hour(before), before.millis().div_euclid(60_000));
    let mut stale = Vec::new();
    for endpoint in endpoints {
        let of = |kept: i64, room: usize| (endpoint.as_bytes(), kept, count(room));
        for hour in hours.query_map(of(first_hour, limit - stale.len()), |row| row.get(0))? {
            stale.push(Stale::HourCounters(*endpoint, Hour(hour?)));
        }
        for minute in minutes.query_map(of(first_minute, limit - stale.len()), |row| row.get(0))? {
            stale.push(Stale::Counters(*endpoint, minute?));
        }
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

/// The first that did not begin before a moment.
fn first_hour(before: Timestamp) -> i64 {
    let Hour(hour) = Hour::of(Timestamp::from_millis(before.millis().saturating_sub(1)));
    hour.saturating_add(1)
}

const APPLICATION_HOURS: &str =
    "SELECT DISTINCT hour FROM application_hour WHERE app = ?1 AND hour < ?2 ORDER BY hour LIMIT ?3";

pub(super) fn old_application_counters(
    connection: &Connection,
    apps: &[AppId],
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Stale>> {
    let mut find = connection.prepare_cached(APPLICATION_HOURS)?;
    let mut stale = Vec::new();
    for app in apps {
        let of = (app.as_bytes(), first_hour(before), count(limit - stale.len()));
        for hour in find.query_map(of, |row| row.get(0))? {
            stale.push(Stale::ApplicationCounters(*app, Hour(hour?)));
        }
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

const ENDPOINT_UNUSED: &str = "
    SELECT 1 FROM endpoint AS e WHERE e.id = ?1 AND (e.deleted = 1 OR e.direct = 1
        OR EXISTS (SELECT 1 FROM application WHERE id = e.app AND deleted = 1))
    AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_lane WHERE state = 0 AND endpoint = e.id)
    AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_delivered WHERE state = 1 AND endpoint = e.id)
    AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_dead WHERE state >= 2 AND endpoint = e.id)
    AND NOT EXISTS (SELECT 1 FROM endpoint_minute WHERE endpoint = e.id)
    AND NOT EXISTS (SELECT 1 FROM endpoint_hour WHERE endpoint = e.id)";

/// Whether endpoints are deleted, or were nobody's, with nothing that refers to them.
pub(super) struct EndpointUnused<'c>(rusqlite::CachedStatement<'c>);

impl<'c> EndpointUnused<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached(ENDPOINT_UNUSED).map(Self)
    }

    pub(super) fn is(&mut self, endpoint: EndpointId) -> rusqlite::Result<bool> {
        self.0.exists((endpoint.as_bytes(),))
    }
}

pub(super) fn unused_endpoints(
    connection: &Connection,
    endpoints: &[EndpointId],
) -> rusqlite::Result<Vec<Stale>> {
    let mut unused = EndpointUnused::new(connection)?;
    let mut stale = Vec::new();
    for endpoint in endpoints {
        stale.extend(unused.is(*endpoint)?.then_some(Stale::Endpoint(*endpoint)));
    }
    Ok(stale)
}

const APPLICATIONS: &str = "
    SELECT id FROM application INDEXED BY application_deleted WHERE deleted = 1 AND id > ?1
    ORDER BY id LIMIT ?2";
const APPLICATION_UNUSED: &str = "
    SELECT 1 FROM application AS a WHERE a.id = ?1 AND a.deleted = 1
    AND NOT EXISTS (SELECT 1 FROM endpoint INDEXED BY endpoint_walk WHERE app = a.id)
    AND NOT EXISTS (SELECT 1 FROM message INDEXED BY message_app WHERE app = a.id)";

pub(super) fn application_unused(connection: &Connection, app: AppId) -> rusqlite::Result<bool> {
    connection.prepare_cached(APPLICATION_UNUSED)?.exists((app.as_bytes(),))
}

pub(super) fn unused_applications(
    connection: &Connection,
    after: Option<AppId>,
    limit: usize,
) -> rusqlite::Result<Walked<AppId>> {
    let start: &[u8] = after.as_ref().map_or(&[], |app| app.as_bytes());
    let mut find = connection.prepare_cached(APPLICATIONS)?;
    let found: Vec<AppId> =
        find.query_map((start, count(limit)), |row| rows::id(row, 0))?.collect::<Result<_, _>>()?;
    let mut stale = Vec::new();
    for app in &found {
        stale.extend(application_unused(connection, *app)?.then_some(Stale::Application(*app)));
    }
    Ok(Walked { stale, until: found.last().copied(), more: found.len() == limit })
}

const MESSAGES: &str =
    "SELECT rowid, app, id, created_at FROM message WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
pub(super) const DELIVERY_OF: &str = "SELECT 1 FROM delivery INDEXED BY delivery_message WHERE message = ?1";

pub(super) fn lonely_messages(
    connection: &Connection,
    after: Option<MessagesCursor>,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Walked<MessagesCursor>> {
    let mut find = connection.prepare_cached(MESSAGES)?;
    let mut delivery = connection.prepare_cached(DELIVERY_OF)?;
    let mut walked = Walked { stale: Vec::new(), until: None, more: false };
    let mut steps = 0;
    let mut found = find.query((after.map_or(i64::MIN, |cursor| cursor.0), count(limit)))?;
    while let Some(row) = found.next()? {
        if rows::moment(row, 3)? >= before {
            return Ok(walked);
        }
        steps += 1;
        walked.until = Some(MessagesCursor(row.get(0)?));
        let (app, message): (AppId, MessageId) = (rows::id(row, 1)?, rows::id(row, 2)?);
        if !delivery.exists((message.as_bytes(),))? {
            walked.stale.push(Stale::Message(app, message));
        }
    }
    walked.more = steps == limit;
    Ok(walked)
}

const PAYLOADS: &str = "
    SELECT payload_until, rowid, app, id FROM message INDEXED BY message_payload_until
    WHERE payload_until IS NOT NULL AND expunged = 0 AND payload_until = ?1 AND rowid > ?2 AND payload_until <= ?3
    UNION ALL
    SELECT payload_until, rowid, app, id FROM message INDEXED BY message_payload_until
    WHERE payload_until IS NOT NULL AND expunged = 0 AND payload_until > ?1 AND payload_until <= ?3
    ORDER BY payload_until, rowid LIMIT ?4";
const WAITS: &str = "SELECT 1 FROM delivery INDEXED BY delivery_message WHERE message = ?1 AND state = 0";

pub(super) fn old_payloads(
    connection: &Connection,
    after: Option<PayloadsCursor>,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Walked<PayloadsCursor>> {
    let (mut find, mut waits) = (connection.prepare_cached(PAYLOADS)?, connection.prepare_cached(WAITS)?);
    let mut walked = Walked { stale: Vec::new(), until: None, more: false };
    let mut steps = 0;
    let from = after.unwrap_or(PayloadsCursor { until: Timestamp::MIN, message: i64::MIN });
    let mut found = find.query((from.until.millis(), from.message, now.millis(), count(limit)))?;
    while let Some(row) = found.next()? {
        steps += 1;
        walked.until = Some(PayloadsCursor { until: rows::moment(row, 0)?, message: row.get(1)? });
        let (app, message): (AppId, MessageId) = (rows::id(row, 2)?, rows::id(row, 3)?);
        if !waits.exists((message.as_bytes(),))? {
            walked.stale.push(Stale::Payload(app, message));
        }
    }
    walked.more = steps == limit;
    Ok(walked)
}

const KEYS: &str = "
    SELECT owner, kind, key, expires_at FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key > ?3
    UNION ALL
    SELECT owner, kind, key, expires_at FROM unique_key WHERE owner = ?1 AND kind > ?2
    UNION ALL
    SELECT owner, kind, key, expires_at FROM unique_key WHERE owner > ?1
    ORDER BY owner, kind, key LIMIT ?4";

pub(super) fn expired_keys(
    connection: &Connection,
    after: Option<&StoredKey>,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Walked<StoredKey>> {
    let (owner, kind, key): (&[u8], i64, &[u8]) = match after {
        Some(after) => (&after.owner, after.kind.into(), &after.key),
        None => (&[], 0, &[]),
    };
    let mut find = connection.prepare_cached(KEYS)?;
    let mut found = find.query((owner, kind, key, count(limit)))?;
    let mut walked = Walked { stale: Vec::new(), until: None, more: false };
    let mut steps = 0;
    while let Some(row) = found.next()? {
        steps += 1;
        let key = StoredKey { owner: row.get(0)?, kind: row.get(1)?, key: row.get(2)? };
        if row.get::<_, Option<i64>>(3)?.is_some_and(|expires_at| expires_at <= now.millis()) {
            walked.stale.push(Stale::Key(key.clone()));
        }
        walked.until = Some(key);
    }
    walked.more = steps == limit;
    Ok(walked)
}

/// The engine bounds how many there are: few enough to look at them all.
pub(super) fn old_gates(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Stale>> {
    let select = format!("SELECT {} FROM gate WHERE held_until < ?1 LIMIT ?2", rows::GATE);
    let mut find: Statement<'_> = connection.prepare(&select)?;
    find.query_map((before.millis(), count(limit)), rows::gate)?
        .map(|gate| gate.map(|gate| Stale::Gate(gate.key, before)))
        .collect()
}

const ENDED_REPLAYS: &str = "
    SELECT id FROM replay INDEXED BY replay_ended WHERE state > 0 AND updated_at < ?1
    ORDER BY updated_at LIMIT ?2";

/// An ended replay is not changed any more: its last change is its end.
pub(super) fn ended_replays(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Stale>> {
    let mut find = connection.prepare_cached(ENDED_REPLAYS)?;
    find.query_map((before.millis(), count(limit)), |row| Ok(Stale::Replay(rows::id(row, 0)?, before)))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn every_walk_is_a_search_in_an_index_without_sorting() {
        for statement in [
            ENDPOINTS,
            NEWEST,
            DELIVERED,
            DEAD,
            DISCARDED,
            MINUTES,
            HOURS,
            APPLICATION_HOURS,
            ENDPOINT_UNUSED,
            APPLICATIONS,
            APPLICATION_UNUSED,
            MESSAGES,
            DELIVERY_OF,
            PAYLOADS,
            WAITS,
            KEYS,
            ENDED_REPLAYS,
        ] {
            let plan = plan(statement);
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{statement}\n{plan}");
        }
        for statement in [ENDPOINTS, NEWEST, DELIVERED, DEAD, DISCARDED] {
            assert!(plan(statement).contains("COVERING INDEX"), "{statement}");
        }
    }
}
