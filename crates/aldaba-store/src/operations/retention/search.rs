//! Searches for what is no longer kept. Every statement walks an index from a position in it.

use crate::operations::column::from_row;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{
    Reading, Result, Statement, alert, application, audit, erasure, gate, keys, replay, statistics, token,
};
use crate::{Hour, KeptEndpoint, PortalExpiry, RemovedCredential, RetentionBudget, Seq};
use aldaba_delivery::{
    AlertId, AppId, AuditId, EndpointId, ErasureId, GateKey, MessageId, ReplayId, Timestamp,
};

/// The position of a settled delivery in the order of the ends. Two deliveries never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettledPosition {
    pub at: Timestamp,
    pub seq: Seq,
}

/// Of one endpoint: settled deliveries before these positions are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoff {
    pub endpoint: EndpointId,
    pub delivered: Option<SettledPosition>,
    pub dead: Option<SettledPosition>,
    /// Of the dead ones, those that somebody has discarded.
    pub discarded: Option<SettledPosition>,
}

/// Something that is no longer kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpiredItem {
    /// A settled delivery with its attempts, and its message if that was the last delivery of it.
    Delivery(SettledPosition),
    /// A message that no delivery is left of.
    Message(AppId, MessageId),
    /// The payload of a message that is kept itself.
    Payload(AppId, MessageId),
    /// An idempotency key or an event id whose time is over.
    Key(StoredKey),
    /// The counters of an endpoint for one minute since the Unix epoch.
    Counters(EndpointId, i64),
    /// The counters of an endpoint for one hour.
    HourCounters(EndpointId, Hour),
    /// The counters of an application for one hour, of all event types.
    ApplicationCounters(AppId, Hour),
    /// A gate that has held nobody since this moment.
    Gate(GateKey, Timestamp),
    /// A replay that has ended before this moment.
    Replay(ReplayId, Timestamp),
    Erasure(ErasureId, Timestamp),
    /// A deleted endpoint that nothing refers to.
    Endpoint(EndpointId),
    /// A deleted application that nothing refers to.
    Application(AppId),
    /// A row of the audit log.
    Audit(AuditId),
    /// A resolved alert.
    Alert(AlertId),
    /// What says of a token that it counts no longer, if the token would have ended before this moment.
    RevokedToken([u8; 32], Timestamp),
    /// The same of portal tokens.
    PortalExpiry(PortalExpiry),
}

/// What must not happen twice, as it is kept. Only a store looks inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredKey {
    pub owner: [u8; 20],
    pub kind: u8,
    pub key: Vec<u8>,
}

/// A message, application by application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessagesCursor {
    pub app: AppId,
    pub message: MessageId,
}

/// A message whose payload is kept until a moment of its own, in the order of those moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayloadsCursor {
    pub until: Timestamp,
    pub app: AppId,
    pub message: MessageId,
}

/// One bounded search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// Settled deliveries that are cut off, of each endpoint the oldest first.
    Deliveries(Vec<Cutoff>),
    /// Counters of endpoints for minutes that were over before a moment, and for hours that began before it: an hour must
    /// not outlive its minutes, or nobody would find it when its endpoint is gone.
    Counters(Vec<EndpointId>, Timestamp),
    /// Counters of applications for hours that began before a moment.
    ApplicationCounters(Vec<AppId>, Timestamp),
    /// Those of these endpoints that are deleted, and that no delivery and no counter refers to.
    Endpoints(Vec<EndpointId>),
    /// Deleted applications without endpoints and messages.
    Applications { after: Option<AppId> },
    /// Messages that were made between two moments and that no delivery is left of.
    Messages { after: Option<MessagesCursor>, created: (Timestamp, Timestamp) },
    /// Messages whose payloads were to be kept until `now` at most, and of which nothing waits.
    Payloads { after: Option<PayloadsCursor>, now: Timestamp },
    /// Keys that count no longer.
    Keys { after: Option<StoredKey>, before: Timestamp },
    /// Gates that have held nobody since a moment.
    Gates(Timestamp),
    /// Replays and erasures that have ended before a moment, the oldest first.
    Replays(Timestamp),
    /// Rows of the audit log from before a moment, the oldest first.
    Audit(Timestamp),
    /// Alerts that were resolved before a moment, and those that are too many.
    Alerts(Timestamp),
    /// Ended tokens that would have ended before a moment anyway.
    Revocations(Timestamp),
}

/// What a search has found.
#[derive(Debug)]
pub(crate) struct SearchPage {
    pub(crate) items: Vec<ExpiredItem>,
    /// How to go on where the search ended at its limit: from where it was, or the same again once this is removed.
    pub(crate) next: Option<Search>,
}

impl Search {
    pub(super) fn run(&self, reading: &dyn Reading, budget: RetentionBudget) -> Result<SearchPage> {
        let (limit, rows) = (budget.found, budget.rows);
        let items = match self {
            Self::Applications { after } => return unused_applications(reading, *after, rows),
            Self::Messages { after, created } => return lonely_messages(reading, *after, *created, rows),
            Self::Payloads { after, now } => return old_payloads(reading, *after, *now, rows),
            Self::Keys { after, before } => return keys::expired(reading, after.as_ref(), *before, rows),
            Self::Endpoints(endpoints) => {
                return Ok(SearchPage { items: unused_endpoints(reading, endpoints)?, next: None });
            }
            Self::Deliveries(cutoffs) => cut_off(reading, cutoffs, limit),
            Self::Counters(endpoints, before) => statistics::old_counters(reading, endpoints, *before, limit),
            Self::ApplicationCounters(apps, before) => {
                statistics::old_application_counters(reading, apps, *before, limit)
            }
            Self::Gates(before) => gate::old(reading, *before, limit),
            Self::Replays(before) => ended_tasks(reading, *before, limit),
            Self::Alerts(before) => alert::old(reading, *before, limit),
            Self::Audit(before) => audit::old(reading, *before, limit),
            Self::Revocations(before) => token::needless(reading, *before, limit),
        }?;
        let next = (items.len() >= limit).then(|| self.clone());
        Ok(SearchPage { items, next })
    }
}

impl ExpiredItem {
    /// What memory may forget with it.
    pub(super) fn credential(self) -> Option<RemovedCredential> {
        match self {
            Self::RevokedToken(mark, _) => Some(RemovedCredential::RevokedToken(mark)),
            Self::PortalExpiry(expiry) => Some(RemovedCredential::PortalExpiry(expiry)),
            Self::Application(app) => Some(RemovedCredential::Application(app)),
            _ => None,
        }
    }
}

from_row!(SettledPosition { at, seq });

from_row!(KeptEndpoint { app, id, org, policy, deleted, direct });

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

pub(super) fn newest_delivered(
    reading: &dyn Reading,
    endpoints: &[EndpointId],
    after: Option<SettledPosition>,
    limit: usize,
) -> Result<Vec<SettledPosition>> {
    let (mut newest, mut floor) = (Vec::new(), after);
    for endpoint in endpoints {
        let from = floor.map_or(Timestamp::MIN, |floor| floor.at);
        let found: Vec<SettledPosition> = reading.all(&NEWEST, values![endpoint, from, limit])?;
        newest.extend(found.into_iter().filter(|settled| floor.is_none_or(|floor| *settled > floor)));
        // Those of the next endpoint have to be newer than the oldest that still counts.
        newest.sort_unstable_by(|a, b| b.cmp(a));
        newest.truncate(limit);
        floor = newest.get(limit.wrapping_sub(1)).copied().or(floor);
    }
    Ok(newest)
}

fn ended_tasks(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let mut ended = replay::ended(reading, before, limit)?;
    ended.extend(erasure::ended(reading, before, limit - ended.len())?);
    Ok(ended)
}

fn cut_off(reading: &dyn Reading, cutoffs: &[Cutoff], limit: usize) -> Result<Vec<ExpiredItem>> {
    let mut stale = Vec::new();
    for cutoff in cutoffs {
        let ends: [(&'static Statement, Option<SettledPosition>); 3] = [
            (&DELIVERED, cutoff.delivered),
            (&DEAD, cutoff.dead),
            // Those before the end of the dead ones are among them.
            (&DISCARDED, cutoff.discarded.filter(|end| cutoff.dead.is_none_or(|dead| *end > dead))),
        ];
        for (statement, before) in ends {
            let (Some(before), room) = (before, limit - stale.len()) else { continue };
            let found: Vec<SettledPosition> =
                reading.all(statement, values![cutoff.endpoint, before.at, before.seq, room])?;
            stale.extend(found.into_iter().map(ExpiredItem::Delivery));
        }
        if stale.len() >= limit {
            break;
        }
    }
    Ok(stale)
}

pub(super) fn is_endpoint_unused(reading: &dyn Reading, endpoint: EndpointId) -> Result<bool> {
    reading.exists(&ENDPOINT_UNUSED, values![endpoint])
}

fn unused_endpoints(reading: &dyn Reading, endpoints: &[EndpointId]) -> Result<Vec<ExpiredItem>> {
    let mut stale = Vec::new();
    for endpoint in endpoints {
        stale.extend(is_endpoint_unused(reading, *endpoint)?.then_some(ExpiredItem::Endpoint(*endpoint)));
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

pub(super) fn is_application_unused(reading: &dyn Reading, app: AppId) -> Result<bool> {
    reading.exists(&APPLICATION_UNUSED, values![app])
}

fn unused_applications(reading: &dyn Reading, after: Option<AppId>, limit: usize) -> Result<SearchPage> {
    let found = deleted_applications(reading, after, limit)?;
    let mut stale = Vec::new();
    for app in &found {
        stale.extend(is_application_unused(reading, *app)?.then_some(ExpiredItem::Application(*app)));
    }
    let next = (found.len() == limit).then(|| Search::Applications { after: found.last().copied() });
    Ok(SearchPage { items: stale, next })
}

pub(super) fn has_delivery(reading: &dyn Reading, message: MessageId) -> Result<bool> {
    reading.exists(&HAS_DELIVERY, values![message])
}

/// Application by application, each from a moment on.
fn lonely_messages(
    reading: &dyn Reading,
    after: Option<MessagesCursor>,
    created: (Timestamp, Timestamp),
    limit: usize,
) -> Result<SearchPage> {
    let (first, end) = (MessageId::first_at(created.0), MessageId::first_at(created.1));
    let begin = |after: AppId| -> Result<Option<MessagesCursor>> {
        let app: Option<AppId> = reading.one(&NEXT_APPLICATION, values![after])?;
        Ok(app.map(|app| MessagesCursor { app, message: first }))
    };
    let mut cursor = match after {
        None => begin(AppId::from_bytes([0; 20]))?,
        after => after,
    };
    let (mut items, mut rows) = (Vec::new(), 0);
    while let Some(MessagesCursor { app, message }) = cursor {
        let found: Vec<MessageId> = reading.all(&MESSAGES, values![app, message, end, limit - rows])?;
        rows += found.len().max(1);
        for message in &found {
            cursor = Some(MessagesCursor { app, message: *message });
            if !has_delivery(reading, *message)? {
                items.push(ExpiredItem::Message(app, *message));
            }
        }
        if rows >= limit {
            return Ok(SearchPage { items, next: Some(Search::Messages { after: cursor, created }) });
        }
        cursor = begin(app)?;
    }
    Ok(SearchPage { items, next: None })
}

fn old_payloads(
    reading: &dyn Reading,
    after: Option<PayloadsCursor>,
    now: Timestamp,
    limit: usize,
) -> Result<SearchPage> {
    let from = after.unwrap_or(PayloadsCursor {
        until: Timestamp::MIN,
        app: AppId::from_bytes([0; 20]),
        message: MessageId::from_bytes([0; 20]),
    });
    let found: Vec<(Timestamp, AppId, MessageId)> =
        reading.all(&PAYLOADS, values![from.until, from.app, from.message, now, limit])?;
    let last = found.last().map(|&(until, app, message)| PayloadsCursor { until, app, message });
    let next = (found.len() == limit).then_some(Search::Payloads { after: last, now });
    let mut items = Vec::new();
    for (_, app, message) in found {
        if !reading.exists(&HAS_WAITING, values![message])? {
            items.push(ExpiredItem::Payload(app, message));
        }
    }
    Ok(SearchPage { items, next })
}
