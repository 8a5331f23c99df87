//! Alerts. Those of organizations and of the server are written as the engine judges; those of endpoints follow the endpoint's
//! health, in the commit that changes it.

use super::column::{Column, Columns, FromRow, Parameter, count, unknown};
use super::retention::ExpiredItem;
use super::stored::{columns, insert, parameters, stored};
use super::transaction::{ReadingExt, Value, statements, values};
use super::{Reading, Result, Rules, Slice, Transaction};
use super::{health, lists, setting};
use crate::{Alert, AlertsQuery, Changed, ListPage, PendingAlert};
use aldaba_delivery::alert::AlertRule;
use aldaba_delivery::{AlertId, AppId, EndpointId, Health, OrgId, Timestamp};
use std::borrow::Cow;

stored! { Alert {
    id, org, app, endpoint, rule, value, threshold, fired_at, resolved_at, acknowledged_at, acknowledged_by,
} }

stored! { PendingAlert { org, rule, threshold, since } }

statements! {
    INSERT = format!("{} ON CONFLICT DO NOTHING", insert::<Alert>("alert"));
    RESOLVE = "UPDATE alert SET resolved_at = ?2 WHERE id = ?1 AND resolved_at IS NULL";
    ACKNOWLEDGE = "UPDATE alert SET acknowledged_at = ?3, acknowledged_by = ?4
        WHERE id = ?1 AND org = ?2 AND resolved_at IS NULL AND acknowledged_at IS NULL";
    ONE = format!("SELECT {} FROM alert WHERE id = ?1 AND org = ?2", columns::<Alert>());
    ALL[order] = page("org = ?1", order.word);
    FIRING[order] = page("org = ?1 AND resolved_at IS NULL", order.word);
    OF_APPLICATION[order] = page("app = ?1 AND app IS NOT NULL", order.word);
    JUDGED = format!(
        "SELECT {} FROM alert WHERE endpoint IS NULL AND resolved_at IS NULL AND id > ?1 ORDER BY id LIMIT ?2",
        columns::<Alert>()
    );
    OWNER = "SELECT org, app FROM endpoint WHERE id = ?1";
    NEWEST_OF_ENDPOINT = "SELECT id, resolved_at FROM alert
        WHERE endpoint = ?1 AND endpoint IS NOT NULL ORDER BY id DESC LIMIT 1";
    /// Who has taken note of it has seen it end.
    REOPEN = "UPDATE alert SET resolved_at = NULL, acknowledged_at = NULL, acknowledged_by = NULL WHERE id = ?1";
    ALERTING = "SELECT endpoint FROM alert
        WHERE endpoint > ?1 AND endpoint IS NOT NULL AND resolved_at IS NULL ORDER BY endpoint LIMIT ?2";
    RESOLVE_ENDPOINT = "UPDATE alert SET resolved_at = ?2
        WHERE endpoint = ?1 AND endpoint IS NOT NULL AND resolved_at IS NULL";
    RESOLVE_APPLICATION = "UPDATE alert SET resolved_at = ?2
        WHERE app = ?1 AND app IS NOT NULL AND resolved_at IS NULL";
    PUT_PENDING = format!(
        "{} ON CONFLICT (org, rule) DO UPDATE SET threshold = excluded.threshold, since = excluded.since",
        insert::<PendingAlert>("pending_alert")
    );
    END_PENDING = "DELETE FROM pending_alert WHERE org = ?1 AND rule = ?2";
    PENDING = format!("SELECT {} FROM pending_alert", columns::<PendingAlert>());
    PAST = "SELECT org, count(*) FROM alert WHERE resolved_at IS NOT NULL GROUP BY org";
    OLDEST = "SELECT id, resolved_at FROM alert WHERE org = ?1 AND resolved_at IS NOT NULL
        ORDER BY resolved_at, id LIMIT ?2";
    REMOVE = "DELETE FROM alert WHERE id = ?1 AND resolved_at IS NOT NULL";
    IDS_OF_APPLICATION = "SELECT id FROM alert WHERE app = ?1 AND app IS NOT NULL ORDER BY id LIMIT ?2";
    REMOVE_ANY = "DELETE FROM alert WHERE id = ?1";
}

fn page(which: &str, direction: &str) -> String {
    format!(
        "SELECT {} FROM alert WHERE {which} AND id > ?2 AND id < ?3 ORDER BY id {direction} LIMIT ?4",
        columns::<Alert>()
    )
}

/// By its name.
impl Parameter for AlertRule {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self.name()))
    }
}

impl Column for AlertRule {
    fn read(value: Value<'_>) -> Result<Self> {
        let name = String::read(value)?;
        Self::from_name(&name).ok_or_else(|| unknown("rule of an alert", name))
    }
}

/// The shortest text that means the same number.
impl Parameter for f64 {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Owned(self.to_string()))
    }
}

impl Column for f64 {
    fn read(value: Value<'_>) -> Result<Self> {
        let text = String::read(value)?;
        text.parse().map_err(|_| unknown("number of an alert", text))
    }
}

/// How many resolved ones an organization has.
struct Past {
    org: OrgId,
    count: usize,
}

impl FromRow for Past {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        Ok(Self { org: columns.take()?, count: columns.take()? })
    }
}

/// Writes what firing and resolving of rules makes.
pub(crate) fn write(
    tx: &dyn Transaction,
    fired: &[Alert],
    resolved: &[(AlertId, Timestamp)],
) -> Result<Changed> {
    for alert in fired {
        tx.execute(&INSERT, &parameters(alert))?;
    }
    for (id, at) in resolved {
        tx.execute(&RESOLVE, values![id, at])?;
    }
    Ok(Changed::done())
}

/// Writes since when rules are beyond their thresholds, and when that was judged.
pub(crate) fn write_pending(
    tx: &dyn Transaction,
    pending: &[PendingAlert],
    over: &[(OrgId, AlertRule)],
    judged_at: Timestamp,
) -> Result<Changed> {
    for (org, rule) in over {
        tx.execute(&END_PENDING, values![org, rule])?;
    }
    for alert in pending {
        tx.execute(&PUT_PENDING, &parameters(alert))?;
    }
    setting::put(tx, PendingAlert::JUDGED_SETTING, &judged_at.millis().to_be_bytes())
}

pub(crate) fn pending(reading: &dyn Reading) -> Result<Vec<PendingAlert>> {
    reading.all(&PENDING, values![])
}

/// One that is resolved, or that somebody has taken note of before, stays as it is.
pub(crate) fn acknowledge(
    tx: &dyn Transaction,
    org: OrgId,
    id: AlertId,
    at: Timestamp,
    by: &str,
) -> Result<Changed> {
    if tx.execute(&ACKNOWLEDGE, values![id, org, at, by])? > 0 {
        return Ok(Changed::done());
    }
    Ok(if one(tx, org, id)?.is_some() { Changed::Unchanged } else { Changed::NotFound })
}

/// Writes what a change of an endpoint's health means for its alert: it fires when the failures in a row pass the limit or the
/// endpoint is given up, and is resolved with the first success, or by a person who resumes the endpoint or turns it `off`.
pub(crate) fn after_health(
    tx: &dyn Transaction,
    rules: Rules,
    endpoint: EndpointId,
    at: Timestamp,
    (before, after, off): (&Health, &Health, bool),
) -> Result<()> {
    let breaks = |health: &Health| rules.endpoint_failures.filter(|limit| health.is_alerting(*limit));
    match breaks(after).filter(|_| !off) {
        Some(_) if breaks(before).is_some() => Ok(()),
        Some(limit) => fire_of_endpoint(tx, endpoint, limit, at, after),
        // An alert may be of another limit. Without a failure before, there is none.
        None if before.is_alerting(0) => resolve_of_endpoint(tx, endpoint, at),
        None => Ok(()),
    }
}

/// The endpoints of which an alert fires, by id.
pub(crate) fn alerting_endpoints(
    reading: &dyn Reading,
    after: Option<EndpointId>,
    limit: usize,
) -> Result<Vec<EndpointId>> {
    let after = after.unwrap_or(EndpointId::from_bytes([0; 20]));
    reading.all(&ALERTING, values![after, limit])
}

/// Resolves the alerts of those of these endpoints that are well under the present rules, or off.
pub(crate) fn settle_of_endpoints(
    tx: &dyn Transaction,
    rules: Rules,
    endpoints: &[EndpointId],
    at: Timestamp,
) -> Result<Changed> {
    for endpoint in endpoints {
        let found = health::of(tx, *endpoint)?;
        let is_alerting = found.is_some_and(|(health, off)| {
            !off && rules.endpoint_failures.is_some_and(|limit| health.is_alerting(limit))
        });
        if !is_alerting {
            resolve_of_endpoint(tx, *endpoint, at)?;
        }
    }
    Ok(Changed::done())
}

fn fire_of_endpoint(
    tx: &dyn Transaction,
    endpoint: EndpointId,
    limit: u32,
    at: Timestamp,
    health: &Health,
) -> Result<()> {
    let newest: Option<(AlertId, Option<Timestamp>)> = tx.one(&NEWEST_OF_ENDPOINT, values![endpoint])?;
    match newest {
        Some((_, None)) => return Ok(()),
        Some((id, Some(resolved_at))) if at.since(resolved_at) <= Alert::REOPENED_WITHIN => {
            return tx.execute(&REOPEN, values![id]).map(drop);
        }
        _ => {}
    }
    let Some((org, app)) = tx.one::<(OrgId, AppId)>(&OWNER, values![endpoint])? else { return Ok(()) };
    let mut random = [0; 15];
    random.copy_from_slice(&endpoint.as_bytes()[5..]);
    let alert = Alert {
        // An endpoint has one alert at a time, so its own random part makes the id unique.
        id: AlertId::new(at, random),
        org,
        app: Some(app),
        endpoint: Some(endpoint),
        rule: AlertRule::EndpointFailing,
        // One that is given up at once, as after a 410, is as bad as one with a failure too many.
        value: f64::from(health.failure_count.max(limit.saturating_add(1))),
        threshold: f64::from(limit),
        fired_at: at,
        resolved_at: None,
        acknowledged_at: None,
        acknowledged_by: None,
    };
    tx.execute(&INSERT, &parameters(&alert)).map(drop)
}

/// The endpoint has recovered, or is gone.
pub(crate) fn resolve_of_endpoint(tx: &dyn Transaction, endpoint: EndpointId, at: Timestamp) -> Result<()> {
    tx.execute(&RESOLVE_ENDPOINT, values![endpoint, at]).map(drop)
}

/// The application is gone.
pub(crate) fn resolve_of_application(tx: &dyn Transaction, app: AppId, at: Timestamp) -> Result<()> {
    tx.execute(&RESOLVE_APPLICATION, values![app, at]).map(drop)
}

/// Removes some of the alerts of an application, and returns how many.
pub(crate) fn remove_of_application(tx: &dyn Transaction, app: AppId, limit: usize) -> Result<usize> {
    let ids: Vec<AlertId> = tx.all(&IDS_OF_APPLICATION, values![app, limit])?;
    for id in &ids {
        tx.execute(&REMOVE_ANY, values![id])?;
    }
    Ok(ids.len())
}

pub(crate) fn one(reading: &dyn Reading, org: OrgId, id: AlertId) -> Result<Option<Alert>> {
    reading.one(&ONE, values![id, org])
}

pub(crate) fn list(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    query: &AlertsQuery,
) -> Result<ListPage<Alert, AlertId>> {
    let (statement, owner) = match (query.app, query.firing) {
        (Some(app), _) => (&OF_APPLICATION, *app.as_bytes()),
        (None, Some(true)) => (&FIRING, *query.org.as_bytes()),
        (None, _) => (&ALL, *query.org.as_bytes()),
    };
    let page = |low: AlertId, high: AlertId, rows: usize| {
        reading.all::<Alert>(statement.by(query.part.order), values![owner, low, high, rows])
    };
    let wanted = |alert: Alert, _: &mut lists::Looked| Ok(Some(alert).filter(|alert| query.takes(alert)));
    lists::walk(lists::Range::from(&query.part), slice, page, |alert| alert.id, wanted)
}

pub(crate) fn judged(reading: &dyn Reading, after: Option<AlertId>, limit: usize) -> Result<Vec<Alert>> {
    let after = after.unwrap_or(AlertId::from_bytes([0; 20]));
    reading.all(&JUDGED, values![after, limit])
}

/// Resolved ones from before a moment, and of each organization those that are too many: the oldest first.
pub(crate) fn old(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let mut items = Vec::new();
    for Past { org, count: there } in reading.all::<Past>(&PAST, values![])? {
        let surplus = there.saturating_sub(Alert::MAX_RESOLVED);
        let oldest: Vec<(AlertId, Timestamp)> =
            reading.all(&OLDEST, values![org, count(limit - items.len())])?;
        let gone = oldest.into_iter().enumerate();
        let gone = gone.take_while(|(number, (_, resolved_at))| *number < surplus || *resolved_at < before);
        items.extend(gone.map(|(_, (id, _))| ExpiredItem::Alert(id)));
        if items.len() >= limit {
            break;
        }
    }
    Ok(items)
}

pub(crate) fn remove(tx: &dyn Transaction, id: AlertId) -> Result<usize> {
    tx.execute(&REMOVE, values![id])
}
