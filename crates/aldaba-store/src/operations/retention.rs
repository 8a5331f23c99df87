//! Finds what is no longer kept. Every statement searches an index from a place in it.

use super::column::{Columns, FromRow};
use super::transaction::{ReadingExt, statements, values};
use super::{Reading, Result, Statement, application};
use crate::{Cut, KeptEndpoint, MessagesCursor, PayloadsCursor, Settled, Stale, Walked};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};

impl FromRow for Settled {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (at, seq) = columns.take()?;
        Ok(Self { at, seq })
    }
}

impl FromRow for KeptEndpoint {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (app, id, org, policy, deleted, direct) = columns.take()?;
        Ok(Self { app, id, org, policy, deleted, direct })
    }
}

/// Settled deliveries of an endpoint in a state, up to a place, the oldest first.
fn settled(state: &str) -> String {
    format!(
        "SELECT settled_at, seq FROM delivery
         WHERE {state} AND endpoint = ?1 AND settled_at <= ?2 AND (settled_at < ?2 OR seq < ?3)
         ORDER BY settled_at, seq LIMIT ?4"
    )
}

statements! {
    ENDPOINTS = "SELECT app, id, org, policy, deleted, direct FROM endpoint WHERE app = ?1 AND id > ?2
        UNION ALL SELECT app, id, org, policy, deleted, direct FROM endpoint WHERE app > ?1
        ORDER BY app, id LIMIT ?3";
    NEWEST = "SELECT settled_at, seq FROM delivery WHERE state = 1 AND endpoint = ?1 AND settled_at >= ?2
        ORDER BY settled_at DESC, seq DESC LIMIT ?3";
    DELIVERED = settled("state = 1");
    /// With those that were skipped.
    DEAD = settled("state >= 2");
    DISCARDED = settled("state = 2 AND discarded = 1");
    ENDPOINT_UNUSED = "SELECT 1 FROM endpoint AS e WHERE e.id = ?1
        AND (e.deleted = 1 OR e.direct = 1
            OR EXISTS (SELECT 1 FROM application WHERE application.id = e.app AND application.deleted = 1))
        AND NOT EXISTS (SELECT 1 FROM delivery WHERE state = 0 AND endpoint = e.id)
        AND NOT EXISTS (SELECT 1 FROM delivery WHERE state = 1 AND endpoint = e.id)
        AND NOT EXISTS (SELECT 1 FROM delivery WHERE state >= 2 AND endpoint = e.id)
        AND NOT EXISTS (SELECT 1 FROM endpoint_minute WHERE endpoint = e.id)
        AND NOT EXISTS (SELECT 1 FROM endpoint_hour WHERE endpoint = e.id)";
    DELETED_APPLICATIONS = "SELECT id FROM application WHERE deleted = 1 AND id > ?1 ORDER BY id LIMIT ?2";
    APPLICATION_UNUSED = "SELECT 1 FROM application AS a WHERE a.id = ?1 AND a.deleted = 1
        AND NOT EXISTS (SELECT 1 FROM endpoint WHERE app = a.id)
        AND NOT EXISTS (SELECT 1 FROM message WHERE app = a.id)";
    MESSAGES = "SELECT id FROM message WHERE app = ?1 AND id > ?2 AND id < ?3 ORDER BY id LIMIT ?4";
    NEXT_APPLICATION = "SELECT app FROM message WHERE app > ?1 ORDER BY app LIMIT 1";
    HAS_DELIVERY = "SELECT 1 FROM delivery WHERE message = ?1 LIMIT 1";
    HAS_WAITING = "SELECT 1 FROM delivery WHERE message = ?1 AND state = 0 LIMIT 1";
    PAYLOADS = "SELECT payload_until, app, id FROM message
        WHERE payload_until IS NOT NULL AND expunged = 0 AND payload_until = ?1 AND app = ?2 AND id > ?3
            AND payload_until <= ?4
        UNION ALL SELECT payload_until, app, id FROM message
        WHERE payload_until IS NOT NULL AND expunged = 0 AND payload_until = ?1 AND app > ?2
            AND payload_until <= ?4
        UNION ALL SELECT payload_until, app, id FROM message
        WHERE payload_until IS NOT NULL AND expunged = 0 AND payload_until > ?1 AND payload_until <= ?4
        ORDER BY payload_until, app, id LIMIT ?5";
}

pub(crate) fn kept_endpoints(
    reading: &dyn Reading,
    after: Option<(AppId, EndpointId)>,
    limit: usize,
) -> Result<Vec<KeptEndpoint>> {
    let (app, id) = after.unwrap_or((AppId::from_bytes([0; 20]), EndpointId::from_bytes([0; 20])));
    let mut kept: Vec<KeptEndpoint> = reading.all(&ENDPOINTS, values![app, id, limit])?;
    // All of an application stand together, and its mark is theirs.
    for of_one in kept.chunk_by_mut(|a, b| a.app == b.app) {
        if let Some(first) = of_one.first()
            && application::is_deleted(reading, first.app)?
        {
            of_one.iter_mut().for_each(|endpoint| endpoint.deleted = true);
        }
    }
    Ok(kept)
}

pub(crate) fn newest_delivered(
    reading: &dyn Reading,
    endpoints: &[EndpointId],
    after: Option<Settled>,
    limit: usize,
) -> Result<Vec<Settled>> {
    let (mut newest, mut floor) = (Vec::new(), after);
    for endpoint in endpoints {
        let from = floor.map_or(Timestamp::MIN, |floor| floor.at);
        let found: Vec<Settled> = reading.all(&NEWEST, values![endpoint, from, limit])?;
        newest.extend(found.into_iter().filter(|settled| floor.is_none_or(|floor| *settled > floor)));
        // Those of the next endpoint have to be newer than the oldest that still counts.
        newest.sort_unstable_by(|a, b| b.cmp(a));
        newest.truncate(limit);
        floor = newest.get(limit.wrapping_sub(1)).copied().or(floor);
    }
    Ok(newest)
}

pub(crate) fn cut_off(reading: &dyn Reading, cuts: &[Cut], limit: usize) -> Result<Vec<Stale>> {
    let mut stale = Vec::new();
    for cut in cuts {
        let ends: [(&Statement, Option<Settled>); 3] = [
            (&DELIVERED, cut.delivered),
            (&DEAD, cut.dead),
            // Those before the end of the dead ones are among them.
            (&DISCARDED, cut.discarded.filter(|end| cut.dead.is_none_or(|dead| *end > dead))),
        ];
        for (statement, before) in ends {
            let (Some(before), room) = (before, limit - stale.len()) else { continue };
            let found: Vec<Settled> =
                reading.all(statement, values![cut.endpoint, before.at, before.seq, room])?;
            stale.extend(found.into_iter().map(Stale::Delivery));
        }
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

pub(crate) fn is_endpoint_unused(reading: &dyn Reading, endpoint: EndpointId) -> Result<bool> {
    reading.exists(&ENDPOINT_UNUSED, values![endpoint])
}

pub(crate) fn unused_endpoints(reading: &dyn Reading, endpoints: &[EndpointId]) -> Result<Vec<Stale>> {
    let mut stale = Vec::new();
    for endpoint in endpoints {
        stale.extend(is_endpoint_unused(reading, *endpoint)?.then_some(Stale::Endpoint(*endpoint)));
    }
    Ok(stale)
}

/// Applications that are deleted and still have a history, by id.
pub(crate) fn deleted_applications(
    reading: &dyn Reading,
    after: Option<AppId>,
    limit: usize,
) -> Result<Vec<AppId>> {
    reading.all(&DELETED_APPLICATIONS, values![after.unwrap_or(AppId::from_bytes([0; 20])), limit])
}

pub(crate) fn is_application_unused(reading: &dyn Reading, app: AppId) -> Result<bool> {
    reading.exists(&APPLICATION_UNUSED, values![app])
}

pub(crate) fn unused_applications(
    reading: &dyn Reading,
    after: Option<AppId>,
    limit: usize,
) -> Result<Walked<AppId>> {
    let found = deleted_applications(reading, after, limit)?;
    let mut stale = Vec::new();
    for app in &found {
        stale.extend(is_application_unused(reading, *app)?.then_some(Stale::Application(*app)));
    }
    Ok(Walked { stale, until: found.last().copied(), more: found.len() == limit })
}

pub(crate) fn has_delivery(reading: &dyn Reading, message: MessageId) -> Result<bool> {
    reading.exists(&HAS_DELIVERY, values![message])
}

/// Application by application, each from a moment on.
pub(crate) fn lonely_messages(
    reading: &dyn Reading,
    after: Option<MessagesCursor>,
    (since, before): (Timestamp, Timestamp),
    limit: usize,
) -> Result<Walked<MessagesCursor>> {
    let (first, end) = (MessageId::first_at(since), MessageId::first_at(before));
    let mut cursor = after;
    let mut walked = Walked { stale: Vec::new(), until: after, more: false };
    let mut looked_at = 0;
    loop {
        let MessagesCursor { app, message } = match cursor {
            Some(cursor) => cursor,
            None => match reading.one(&NEXT_APPLICATION, values![AppId::from_bytes([0; 20])])? {
                Some(app) => MessagesCursor { app, message: first },
                None => return Ok(Walked { until: None, ..walked }),
            },
        };
        let found: Vec<MessageId> = reading.all(&MESSAGES, values![app, message, end, limit - looked_at])?;
        looked_at += found.len().max(1);
        for message in &found {
            walked.until = Some(MessagesCursor { app, message: *message });
            if !has_delivery(reading, *message)? {
                walked.stale.push(Stale::Message(app, *message));
            }
        }
        if looked_at >= limit {
            walked.more = true;
            return Ok(walked);
        }
        match reading.one(&NEXT_APPLICATION, values![app])? {
            Some(app) => {
                cursor = Some(MessagesCursor { app, message: first });
                walked.until = cursor;
            }
            None => return Ok(Walked { until: None, ..walked }),
        }
    }
}

pub(crate) fn old_payloads(
    reading: &dyn Reading,
    after: Option<PayloadsCursor>,
    now: Timestamp,
    limit: usize,
) -> Result<Walked<PayloadsCursor>> {
    let from = after.unwrap_or(PayloadsCursor {
        until: Timestamp::MIN,
        app: AppId::from_bytes([0; 20]),
        message: MessageId::from_bytes([0; 20]),
    });
    let found: Vec<(Timestamp, AppId, MessageId)> =
        reading.all(&PAYLOADS, values![from.until, from.app, from.message, now, limit])?;
    let mut walked = Walked { stale: Vec::new(), until: None, more: found.len() == limit };
    for (until, app, message) in found {
        walked.until = Some(PayloadsCursor { until, app, message });
        if !reading.exists(&HAS_WAITING, values![message])? {
            walked.stale.push(Stale::Payload(app, message));
        }
    }
    Ok(walked)
}
