//! Everything that is in a database, and what was removed from it where somebody keeps that: simulations judge a run by all
//! that ever was.

use super::column::{FromRow, from_row};
use super::retention::SettledPosition;
use super::stored::columns;
use super::transaction::{ReadingExt, statements, values};
use super::{
    Reading, Result, Statement, application, audit, delivery, lanes, message, organizations, replay, source,
    statistics,
};
use crate::{Attempt, AuditEntry, CountKind, DeliveryStatus, Endpoint, Hour, Message, ReopenEvent, Seq};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Timestamp};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The version of an application's configuration.
pub fn version(reading: &dyn Reading, app: AppId) -> Result<Option<u64>> {
    application::version(reading, app)
}

pub fn delivery(reading: &dyn Reading, seq: Seq) -> Result<Option<DeliveryStatus>> {
    delivery::one(reading, seq)
}

/// All rounds of a message, in the order of their numbers.
pub fn deliveries(reading: &dyn Reading, message: MessageId) -> Result<Vec<DeliveryStatus>> {
    delivery::of_message(reading, message)
}

/// The tables whose removed rows are kept, in tables of the same form named `removed_…`.
pub const KEPT_WHEN_REMOVED: [&str; 8] = [
    "endpoint",
    "message",
    "delivery",
    "attempt",
    "endpoint_minute",
    "endpoint_hour",
    "organization_minute",
    "organization_hour",
];
/// Payloads as they were before they were deleted.
pub const EXPUNGED: &str = "
    CREATE TABLE expunged_payload (message BLOB NOT NULL PRIMARY KEY, payload BLOB NOT NULL);
    CREATE TRIGGER keep_payload BEFORE UPDATE OF payload ON message WHEN NEW.expunged = 1 AND OLD.expunged = 0
    BEGIN INSERT OR IGNORE INTO expunged_payload VALUES (OLD.id, OLD.payload); END;";

/// A view of a whole database. Endpoints, messages, deliveries, attempts and counters that were removed are among the others.
#[derive(Debug)]
pub struct Everything {
    pub endpoints: BTreeMap<EndpointId, Endpoint>,
    pub messages: Vec<Message>,
    pub deliveries: Vec<DeliveryStatus>,
    pub attempts: Vec<Attempt>,
    pub audit: Vec<AuditEntry>,
    pub minutes: Vec<Counted>,
    pub hours: Vec<Counted>,
    pub organization_minutes: Vec<CountedOrganization>,
    pub organization_hours: Vec<CountedOrganization>,
    /// Messages of a day, by whose quota they count for.
    pub messages_of_day: BTreeMap<(i64, [u8; 20]), i64>,
    /// Up to here minutes are summed up as hours.
    pub hours_summed: Hour,
    /// How many deliveries wait, as it is counted.
    pub waiting: u64,
    applications: BTreeSet<AppId>,
    removed_endpoints: BTreeSet<EndpointId>,
    kept_messages: BTreeSet<(AppId, MessageId)>,
    kept_deliveries: BTreeSet<Seq>,
}

/// Counters of an endpoint in a minute or an hour since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub endpoint: EndpointId,
    pub span: i64,
    pub attempts: i64,
    pub successes: i64,
    pub delivered: i64,
    pub dead: i64,
}

/// Counts of an organization in a minute or an hour since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct CountedOrganization {
    pub org: OrgId,
    pub span: i64,
    pub accepted: i64,
    pub delivered: i64,
    pub retried: i64,
    pub dead: i64,
}

from_row!(CountedOrganization { org, span, accepted, delivered, retried, dead });

/// What is read of organizations, by the column of the span.
fn counts(span: &str) -> String {
    let dead: Vec<_> = CountKind::COLUMNS.into_iter().filter(|column| column.starts_with("dead_")).collect();
    format!("org, {span}, accepted, delivered, retry, {}", dead.join(" + "))
}

from_row!(Counted { endpoint, span, attempts, successes, delivered, dead });

/// The rows that are there, and those that were removed.
struct Both {
    there: Statement,
    removed: Statement,
}

impl Both {
    fn read<T: FromRow>(&'static self, reading: &dyn Reading) -> Result<(Vec<T>, Vec<T>)> {
        Ok((reading.all(&self.there, values![])?, reading.all(&self.removed, values![])?))
    }
}

macro_rules! both {
    ($($name:ident: $table:literal, $columns:expr;)+) => {$(
        static $name: Both = Both {
            there: Statement::new(|| format!("SELECT {} FROM {}", $columns, $table)),
            removed: Statement::new(|| format!("SELECT {} FROM removed_{1} AS {1}", $columns, $table)),
        };
    )+};
}

both! {
    ENDPOINTS: "endpoint", columns::<Endpoint>();
    MESSAGES: "message", columns::<Message>();
    DELIVERIES: "delivery", delivery::COLUMNS;
    ATTEMPTS: "attempt", columns::<Attempt>();
    MINUTES: "endpoint_minute", "endpoint, minute, attempts, successes, delivered, dead";
    HOURS: "endpoint_hour", "endpoint, hour, attempts, successes, delivered, dead";
    ORGANIZATION_MINUTES: "organization_minute", counts("minute");
    ORGANIZATION_HOURS: "organization_hour", counts("hour");
}

statements! {
    unlisted:
    APPLICATIONS = "SELECT id FROM application WHERE deleted = 0";
    AUDIT = format!("SELECT {} FROM audit", audit::COLUMNS);
    MESSAGE_COUNTS = "SELECT day, owner, count FROM message_count";
    PAYLOADS = "SELECT message, payload FROM expunged_payload";
    WAITING = format!("SELECT {} FROM delivery WHERE state = 0", delivery::COLUMNS);
    OF_APPLICATION = format!("SELECT {} FROM endpoint WHERE app = ?1", columns::<Endpoint>());
    NAMED = "SELECT id FROM message WHERE app = ?1 AND event_id = ?2 ORDER BY id LIMIT 1";
    HAS_EVENT = format!("{} UNION ALL {} LIMIT 1", event_among("message"), event_among("removed_message"));
    NEWER = "SELECT policy, count(*) FROM endpoint JOIN delivery ON delivery.endpoint = endpoint.id
        WHERE endpoint.app = ?1 AND state = 1 AND (settled_at > ?2 OR settled_at = ?2 AND seq > ?3)
        GROUP BY policy";
}

fn event_among(table: &str) -> String {
    format!(
        "SELECT 1 FROM {table} WHERE app = ?1 AND CASE WHEN ?2 IS NULL
         THEN coalesce((SELECT e.payload FROM expunged_payload AS e WHERE e.message = {table}.id), payload) = ?3
         ELSE event_id = ?2 END"
    )
}

impl Everything {
    pub fn read(reading: &dyn Reading) -> Result<Self> {
        let (messages, removed) = MESSAGES.read::<Message>(reading)?;
        let kept_messages = messages.iter().map(|message| (message.app, message.id)).collect();
        let mut messages = all((messages, removed));
        let payloads: Vec<(MessageId, Bytes)> = reading.all(&PAYLOADS, values![])?;
        let mut payloads: BTreeMap<_, _> = payloads.into_iter().collect();
        for message in &mut messages {
            message.content.payload = payloads.remove(&message.id).unwrap_or(message.content.payload.clone());
        }
        let (deliveries, removed) = DELIVERIES.read::<DeliveryStatus>(reading)?;
        let kept_deliveries = deliveries.iter().map(|delivery| delivery.seq).collect();
        let (there, removed_endpoints) = ENDPOINTS.read::<Endpoint>(reading)?;
        let counts: Vec<(i64, [u8; 20], i64)> = reading.all(&MESSAGE_COUNTS, values![])?;
        let messages_of_day = counts.into_iter().map(|(day, owner, count)| ((day, owner), count)).collect();
        Ok(Self {
            removed_endpoints: removed_endpoints.iter().map(|endpoint| endpoint.id).collect(),
            endpoints: by_id(there, removed_endpoints),
            messages,
            deliveries: all((deliveries, removed)),
            attempts: all(ATTEMPTS.read(reading)?),
            audit: reading.all(&AUDIT, values![])?,
            minutes: all(MINUTES.read(reading)?),
            hours: all(HOURS.read(reading)?),
            organization_minutes: all(ORGANIZATION_MINUTES.read(reading)?),
            organization_hours: all(ORGANIZATION_HOURS.read(reading)?),
            messages_of_day,
            hours_summed: statistics::hours_summed(reading)?,
            waiting: organizations::total_waiting(reading)?,
            applications: reading.all(&APPLICATIONS, values![])?.into_iter().collect(),
            kept_messages,
            kept_deliveries,
        })
    }

    pub fn has_application(&self, app: AppId) -> bool {
        self.applications.contains(&app)
    }

    /// Whether it is an address that was removed: the next dispatch made it anew.
    pub fn was_removed(&self, address: EndpointId) -> bool {
        self.removed_endpoints.contains(&address)
    }

    /// What the server can still read.
    pub fn has_message(&self, app: AppId, message: MessageId) -> bool {
        self.kept_messages.contains(&(app, message))
    }

    pub fn has_delivery(&self, seq: Seq) -> bool {
        self.kept_deliveries.contains(&seq)
    }
}

fn all<T>((mut there, removed): (Vec<T>, Vec<T>)) -> Vec<T> {
    there.extend(removed);
    there
}

/// An address that was made anew is one.
fn by_id(there: Vec<Endpoint>, removed: Vec<Endpoint>) -> BTreeMap<EndpointId, Endpoint> {
    removed.into_iter().chain(there).map(|endpoint| (endpoint.id, endpoint)).collect()
}

/// With those that were removed.
pub fn endpoints(reading: &dyn Reading) -> Result<BTreeMap<EndpointId, Endpoint>> {
    let (there, removed) = ENDPOINTS.read(reading)?;
    Ok(by_id(there, removed))
}

/// A deleted one too.
pub fn endpoint(reading: &dyn Reading, id: EndpointId) -> Result<Option<Endpoint>> {
    Ok(lanes::targets(reading, &[id])?.pop().map(|target| target.endpoint))
}

/// Every endpoint and address of an application, deleted ones too.
pub fn endpoints_of(reading: &dyn Reading, app: AppId) -> Result<Vec<Endpoint>> {
    reading.all(&OF_APPLICATION, values![app])
}

/// All deliveries that wait.
pub fn waiting(reading: &dyn Reading) -> Result<Vec<DeliveryStatus>> {
    reading.all(&WAITING, values![])
}

pub fn is_replaying(reading: &dyn Reading) -> Result<bool> {
    Ok(!replay::running(reading)?.is_empty())
}

/// How many delivered ones of an application have ended after a place, by the policies of their endpoints.
pub fn newer(reading: &dyn Reading, app: AppId, place: SettledPosition) -> Result<BTreeMap<String, usize>> {
    let counts: Vec<(String, usize)> = reading.all(&NEWER, values![app, place.at, place.seq])?;
    Ok(counts.into_iter().collect())
}

/// Whether an event of a source is or was there, by its id if it has one.
pub fn has_event(reading: &dyn Reading, app: AppId, id: Option<&str>, body: &[u8]) -> Result<bool> {
    reading.exists(&HAS_EVENT, values![app, id, body])
}

/// The oldest message of an application that has an event id.
pub fn named(reading: &dyn Reading, app: AppId, event_id: &str) -> Result<Option<MessageId>> {
    reading.one(&NAMED, values![app, event_id])
}

/// The rounds of an event that have failed, and that a repeat opens again. Endpoints that came later do not count.
pub fn failed_rounds(reading: &dyn Reading, app: AppId, event_id: &str) -> Result<Vec<Seq>> {
    let Some(message) = named(reading, app, event_id)? else { return Ok(Vec::new()) };
    if !message::has_content(reading, app, message)? {
        return Ok(Vec::new());
    }
    let reopen = ReopenEvent {
        org: OrgId::from_bytes([0; 20]),
        app,
        message,
        wanting: Vec::new(),
        now: Timestamp::MIN,
    };
    let targets = reopen.targets(&source::rounds(reading, message)?, |_| false);
    Ok(targets.into_iter().filter_map(|(_, settled)| settled).collect())
}
