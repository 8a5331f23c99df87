//! Between rows and values. A value that this version does not know is an error, never a panic.

use super::codes::{Code, State, Unknown};
use super::{filters, names};
use crate::{
    Application, Attempt, Content, DeliveryState, DeliveryStatus, Endpoint, EndpointConfig, GateRecord,
    HealthChange, HealthChangeNumber, LastError, Message, Seq, Subscription, Waiting,
};
use aldaba_delivery::{AppId, Filter, Gate, GateKey, GateScope, Health, Id, Origin, Timestamp, WhenDisabled};
use bytes::Bytes;
use rusqlite::Row;
use rusqlite::types::Type;
use std::sync::Arc;
use std::time::Duration;

pub(super) const APPLICATION: &str =
    "id, org, uid, name, throttle_rate, metadata, created_at, updated_at, alert_email";

pub(super) fn application(row: &Row<'_>) -> rusqlite::Result<Application> {
    Ok(Application {
        id: id(row, 0)?,
        org: id(row, 1)?,
        uid: row.get(2)?,
        name: row.get(3)?,
        throttle_rate: row.get(4)?,
        alert_email: row.get(8)?,
        metadata: row.get(5)?,
        created_at: moment(row, 6)?,
        updated_at: moment(row, 7)?,
    })
}

/// An endpoint is deleted by its own mark or by its application's: a condition for statements about `endpoint`.
pub(super) const THERE: &str = "endpoint.deleted = 0
    AND NOT EXISTS (SELECT 1 FROM application AS owner WHERE owner.id = endpoint.app AND owner.deleted)";

pub(super) const ENDPOINT: &str =
    "id, app, org, uid, url, description, version, disabled, event_types, channels,
    throttle_rate, policy, profile, metadata, sealed, created_at, updated_at,
    deleted OR EXISTS (SELECT 1 FROM application AS owner WHERE owner.id = endpoint.app AND owner.deleted),
    health_status,
    health_failure_count, health_failing_since, health_changed_at, health_next_probe_at, health_probe_gap,
    health_quiet_until, http2, ordering, when_disabled, health_released_at, health_epoch, error_at,
    error_status, coalesce(error_text, ''), filter, direct, health_released_by_person";

pub(super) fn endpoint(row: &Row<'_>) -> rusqlite::Result<Endpoint> {
    Ok(Endpoint {
        id: id(row, 0)?,
        app: id(row, 1)?,
        org: id(row, 2)?,
        config: EndpointConfig {
            uid: row.get(3)?,
            url: row.get(4)?,
            description: row.get(5)?,
            version: row.get(6)?,
            disabled: row.get(7)?,
            when_disabled: Code::from_code(row.get(27)?)?,
            event_types: list(row, 8)?,
            channels: list(row, 9)?,
            filter: filter(row, 33)?,
            throttle_rate: row.get(10)?,
            policy: row.get(11)?,
            profile: row.get(12)?,
            http2: row.get(25)?,
            ordering: Code::from_code(row.get(26)?)?,
            metadata: row.get(13)?,
        },
        sealed: row.get(14)?,
        created_at: moment(row, 15)?,
        updated_at: moment(row, 16)?,
        deleted: row.get(17)?,
        direct: row.get(34)?,
        health: Health {
            status: Code::from_code(row.get(18)?)?,
            failure_count: row.get(19)?,
            failing_since: moment_or_none(row, 20)?,
            changed_at: moment_or_none(row, 21)?,
            next_probe_at: moment_or_none(row, 22)?,
            probe_gap: span(row, 23)?,
            quiet_until: moment_or_none(row, 24)?,
            released_at: moment_or_none(row, 28)?,
            released_by_person: row.get(35)?,
            epoch: row.get(29)?,
        },
        last_error: match moment_or_none(row, 30)? {
            Some(at) => Some(LastError { at, status_code: row.get(31)?, text: row.get(32)? }),
            None => None,
        },
    })
}

pub(super) const SUBSCRIPTION: &str =
    "id, disabled, event_types, channels, ordering <> 0, when_disabled, filter, direct";

pub(super) fn subscription(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    Ok(Subscription {
        id: id(row, 0)?,
        disabled: row.get(1)?,
        holds: WhenDisabled::from_code(row.get(5)?)? == WhenDisabled::Hold,
        event_types: list(row, 2)?.into(),
        channels: list(row, 3)?.into(),
        ordered: row.get(4)?,
        filter: filter(row, 6)?,
        direct: row.get(7)?,
    })
}

pub(super) const MESSAGE: &str = "id, app, channels, created_at, event_type, payload, version, sealed_headers, event_id, tags, deliver_at, headers,
    only_for, expunged, job, payload_until";

/// The same without its payload.
pub(super) const BARE_MESSAGE: &str =
    "id, app, channels, created_at, event_type, x'', version, NULL, event_id, tags, deliver_at, headers,
    only_for, expunged, job, payload_until";

pub(super) fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: id(row, 0)?,
        app: id(row, 1)?,
        channels: list(row, 2)?,
        created_at: moment(row, 3)?,
        content: content(row, 4)?,
        tags: list(row, 9)?,
        deliver_at: moment_or_none(row, 10)?,
        headers: headers(row, 11)?,
        only_for: id_or_none(row, 12)?,
        expunged: row.get(13)?,
        job: row.get(14)?,
        payload_until: moment_or_none(row, 15)?,
    })
}

fn filter(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Arc<Filter>>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    let filter = filters::filter(text).ok_or_else(|| Unknown::text("filter of an endpoint", text))?;
    Ok(Some(filter))
}

/// Names and values by turns.
pub(super) fn headers(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<(String, String)>> {
    let mut parts = list(row, column)?.into_iter();
    let mut headers = Vec::with_capacity(parts.len() / 2);
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        headers.push((name, value));
    }
    Ok(headers)
}

/// From five columns: `event_type, payload, version, sealed_headers, event_id`.
pub(super) fn content(row: &Row<'_>, first: usize) -> rusqlite::Result<Content> {
    Ok(Content {
        event_type: row.get(first)?,
        payload: blob(row, first + 1)?,
        version: row.get(first + 2)?,
        sealed_headers: row.get::<_, Option<Vec<u8>>>(first + 3)?.map(Bytes::from),
        event_id: row.get(first + 4)?,
    })
}

/// The columns of a waiting delivery.
macro_rules! waiting_columns {
    () => {
        "seq, message, due_at, attempts, clock_start, replayed, CASE ordered WHEN 2 THEN NULL ELSE coalesce(place, seq) END"
    };
}
pub(in crate::sqlite) use waiting_columns;

pub(super) fn waiting(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    Ok(Waiting {
        seq: Seq(row.get(0)?),
        message: id(row, 1)?,
        due_at: moment(row, 2)?,
        attempts: row.get(3)?,
        clock_start: moment(row, 4)?,
        replayed: row.get(5)?,
        place: row.get::<_, Option<i64>>(6)?.map(Seq),
    })
}

pub(super) const DELIVERY: &str = "seq, endpoint, message, attempts, clock_start, state, due_at, coalesce(settled_at, 0), coalesce(reason, 0),
    replayed, CASE ordered WHEN 2 THEN NULL ELSE coalesce(place, seq) END, retries";

pub(super) fn delivery(row: &Row<'_>) -> rusqlite::Result<DeliveryStatus> {
    let state = match State::from_code(row.get(5)?)? {
        State::Waiting => DeliveryState::Waiting { due_at: moment(row, 6)? },
        State::Delivered => DeliveryState::Delivered { at: moment(row, 7)? },
        State::Dead => DeliveryState::Dead { at: moment(row, 7)?, reason: Code::from_code(row.get(8)?)? },
        State::Skipped => {
            DeliveryState::Skipped { at: moment(row, 7)?, reason: Code::from_code(row.get(8)?)? }
        }
    };
    Ok(DeliveryStatus {
        seq: Seq(row.get(0)?),
        endpoint: id(row, 1)?,
        message: id(row, 2)?,
        attempts: row.get(3)?,
        clock_start: moment(row, 4)?,
        replayed: row.get(9)?,
        place: row.get::<_, Option<i64>>(10)?.map(Seq),
        retries: row.get(11)?,
        state,
    })
}

pub(super) const ATTEMPT: &str =
    "id, seq, message, endpoint, started_at, duration, status_code, failure, error,
    response, made_by, success";

/// The same without what came back.
pub(super) const BARE_ATTEMPT: &str =
    "id, seq, message, endpoint, started_at, duration, status_code, failure, error, x'', made_by, success";

pub(super) fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        id: id(row, 0)?,
        seq: Seq(row.get(1)?),
        message: id(row, 2)?,
        endpoint: id(row, 3)?,
        started_at: moment(row, 4)?,
        duration: span(row, 5)?,
        status_code: row.get(6)?,
        failure: row.get::<_, Option<i64>>(7)?.map(Code::from_code).transpose()?,
        error: row.get(8)?,
        response: blob(row, 9)?,
        trigger: Code::from_code(row.get(10)?)?,
        success: row.get(11)?,
    })
}

pub(super) const GATE: &str =
    "org, origin, scope, failures, held_until, hold, failed_at, probing, since, why";

pub(super) fn gate(row: &Row<'_>) -> rusqlite::Result<GateRecord> {
    let origin: String = row.get(1)?;
    let scope: Vec<u8> = row.get(2)?;
    let scope = match scope.is_empty() {
        true => GateScope::Host,
        false => GateScope::Application(AppId::from_slice(&scope).map_err(wrong_id)?),
    };
    Ok(GateRecord {
        key: GateKey { org: id(row, 0)?, origin: Origin::from_stored(&origin), scope },
        gate: Gate {
            failures: row.get(3)?,
            held_until: moment_or_none(row, 4)?,
            hold: span(row, 5)?,
            failed_at: moment_or_none(row, 6)?,
            probing: row.get(7)?,
            since: moment_or_none(row, 8)?,
        },
        why: row.get(9)?,
    })
}

pub(super) const HEALTH_CHANGE: &str = "number, at, was, became, cause, detail";

pub(super) fn health_change(row: &Row<'_>) -> rusqlite::Result<HealthChange> {
    Ok(HealthChange {
        number: HealthChangeNumber(row.get(0)?),
        at: moment(row, 1)?,
        was: Code::from_code(row.get(2)?)?,
        became: Code::from_code(row.get(3)?)?,
        cause: Code::from_code(row.get(4)?)?,
        detail: row.get(5)?,
    })
}

pub(super) const IS_GATE: &str = "org = ?1 AND origin = ?2 AND scope = ?3";

/// How a gate's key is written. The host itself is an empty scope.
pub(super) fn gate_key(key: &GateKey) -> (&[u8; 20], &str, &[u8]) {
    let scope: &[u8] = match &key.scope {
        GateScope::Host => &[],
        GateScope::Application(app) => app.as_bytes(),
    };
    (key.org.as_bytes(), key.origin.as_str(), scope)
}

/// 292 years are enough for a span.
pub(super) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// A limit or a count as SQLite knows numbers.
pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn id<K: aldaba_delivery::IdKind>(row: &Row<'_>, column: usize) -> rusqlite::Result<Id<K>> {
    row.get(column).map(Id::from_bytes)
}

pub(super) fn id_or_none<K: aldaba_delivery::IdKind>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<Id<K>>> {
    Ok(row.get::<_, Option<[u8; 20]>>(column)?.map(Id::from_bytes))
}

pub(super) fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

pub(super) fn moment_or_none(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

fn span(row: &Row<'_>, column: usize) -> rusqlite::Result<Duration> {
    let nanos: i64 = row.get(column)?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| Unknown::number("span of time", nanos))
}

pub(super) fn list(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<String>> {
    names::read(row.get_ref(column)?.as_str()?)
}

fn blob(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}

fn wrong_id(error: aldaba_delivery::IdError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(error))
}
