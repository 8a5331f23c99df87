//! Endpoints, and the addresses that something was dispatched to.

use crate::operations::column::{Columns, FromRow, Parameter, Row, count, from_row};
use crate::operations::stored::{
    ColumnName, Stored, assignments, columns, insert, parameters, stored, width,
};
use crate::operations::transaction::{ReadingExt, Value, statements, values};
use crate::operations::{
    Reading, Result, Rules, Transaction, alert, application, health, lists, policy, profile,
};
use crate::{
    CertificateDate, Changed, Endpoint, EndpointConfig, Fence, LastError, Order, OrderingObstacle, Page,
    ResourceKey, SealedSecrets, Subscription,
};
use aldaba_delivery::{AppId, EndpointId, Filter, Health, Ordering, OrgId, Timestamp, WhenDisabled};
use std::collections::HashSet;
use std::sync::Arc;

stored! { EndpointConfig {
    uid, url, description, name, owner_email, version, disabled, when_disabled, event_types, channels, filter, throttle_rate, policy,
    profile, http2, ordering, metadata,
} }

stored! { Health, "health_" {
    status, failure_count, failing_since, changed_at, next_probe_at, probe_gap, quiet_until, released_at,
    released_by_person, epoch,
} }

stored! { Endpoint {
    id, app, org, config: [EndpointConfig], sealed, created_at, updated_at, deleted: "deleted" as DELETED, direct,
    health: [Health], last_error: [Option<LastError>],
} }

impl FromRow for Option<LastError> {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (at, status_code, text): (Option<Timestamp>, _, Option<String>) = columns.take()?;
        Ok(at.map(|at| LastError { at, status_code, text: text.unwrap_or_default() }))
    }
}

impl Stored for Option<LastError> {
    fn columns(into: &mut Vec<ColumnName>) {
        let names = ["error_at", "error_status", "error_text"];
        into.extend(names.map(|name| ColumnName { name, select: None }));
    }

    fn values<'a>(&'a self, into: &mut Vec<Value<'a>>) {
        match self {
            None => into.extend([Value::Null, Value::Null, Value::Null]),
            Some(LastError { at, status_code, text }) => {
                into.extend([at.value(), status_code.value(), text.value()]);
            }
        }
    }
}

/// An endpoint is deleted by its own mark or by that of its application.
const DELETED: &str = "CASE WHEN endpoint.deleted = 1 OR EXISTS (SELECT 1 FROM application AS owner
    WHERE owner.id = endpoint.app AND owner.deleted = 1) THEN 1 ELSE 0 END";

/// A condition for statements about `endpoint`: it is not deleted.
pub(crate) const NOT_DELETED: &str = "endpoint.deleted = 0 AND NOT EXISTS (SELECT 1 FROM application AS owner
    WHERE owner.id = endpoint.app AND owner.deleted = 1)";

from_row!(SealedSecrets { endpoint, app, sealed });

const SUBSCRIPTION: &str = "id, disabled, event_types, channels, ordering, when_disabled, filter, direct";

impl FromRow for Subscription {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (id, disabled) = columns.take()?;
        let (event_types, channels): (Box<[String]>, Box<[String]>) = columns.take()?;
        let (ordering, when_disabled): (Ordering, WhenDisabled) = columns.take()?;
        let (filter, direct): (Option<Arc<Filter>>, bool) = columns.take()?;
        let ordered = ordering.is_fifo();
        Ok(Self { id, disabled, ordered, when_disabled, event_types, channels, filter, direct })
    }
}

statements! {
    INSERT = format!("{} ON CONFLICT DO NOTHING", insert::<Endpoint>("endpoint"));
    UPDATE = {
        let (all, last) = (assignments::<EndpointConfig>(), width::<EndpointConfig>());
        format!(
            "UPDATE endpoint SET {all}, sealed = ?{}, updated_at = ?{} WHERE id = ?{}",
            last + 1, last + 2, last + 3
        )
    };
    DELETE = format!(
        "UPDATE endpoint SET deleted = 1, uid = NULL, updated_at = ?3
         WHERE id = ?1 AND app = ?2 AND direct = 0 AND {NOT_DELETED}"
    );
    REPLACE_SECRETS = format!(
        "UPDATE endpoint SET sealed = ?4, updated_at = ?5, certificate_expires_at = ?6
         WHERE id = ?1 AND app = ?2 AND direct = 0 AND sealed = ?3 AND {NOT_DELETED}"
    );
    SECRETS = "SELECT id, app, sealed FROM endpoint WHERE id > ?1 AND deleted = 0 AND direct = 0 ORDER BY id LIMIT ?2";
    DATE_CERTIFICATE = "UPDATE endpoint SET certificate_expires_at = ?3 WHERE id = ?1 AND sealed = ?2";
    UID_TAKEN = "SELECT 1 FROM endpoint WHERE app = ?1 AND uid = ?2 AND id <> ?3";
    COUNT = "SELECT count(*) FROM endpoint WHERE app = ?1 AND deleted = 0 AND direct = 0";
    OWN = format!(
        "SELECT {} FROM endpoint WHERE id = ?1 AND app = ?2 AND direct = 0 AND {NOT_DELETED}",
        columns::<Endpoint>()
    );
    WITH_ADDRESSES = format!(
        "SELECT {} FROM endpoint WHERE id = ?1 AND app = ?2 AND {NOT_DELETED}", columns::<Endpoint>()
    );
    BY_UID = format!(
        "SELECT {} FROM endpoint WHERE app = ?1 AND uid = ?2 AND {NOT_DELETED}", columns::<Endpoint>()
    );
    OF_APPLICATION = format!("SELECT {} FROM endpoint WHERE id = ?1 AND app = ?2", columns::<Endpoint>());
    PAGE[order] = format!(
        "SELECT {} FROM endpoint
         WHERE app = ?1 AND id > ?2 AND id < ?3 AND deleted = 0 AND direct = 0 ORDER BY id {} LIMIT ?4",
        columns::<Endpoint>(), order.word
    );
    SUBSCRIPTIONS = format!(
        "SELECT {SUBSCRIPTION} FROM endpoint WHERE app = ?1 AND deleted = 0 AND direct = 0 ORDER BY id"
    );
    ONE_SUBSCRIPTION = format!("SELECT {SUBSCRIPTION} FROM endpoint WHERE id = ?1 AND {NOT_DELETED}");
    IS_THERE = format!("SELECT 1 FROM endpoint WHERE id = ?1 AND {NOT_DELETED}");
    OWNER = "SELECT app FROM endpoint WHERE id = ?1";
    URLS_OF_ORGANIZATION = format!("SELECT url FROM endpoint WHERE org = ?1 AND {NOT_DELETED}");
    URLS_OF_APPLICATION = format!("SELECT url FROM endpoint WHERE app = ?1 AND {NOT_DELETED}");
    /// One more than can be marked in one commit.
    MANY_WAIT = "SELECT 1 FROM delivery WHERE state = 0 AND endpoint = ?1 LIMIT 1 OFFSET ?2";
    /// A delivery that was never tried and is not due yet takes its place in the order when it is due.
    MARK_ORDERED = "UPDATE delivery SET ordered = CASE WHEN due_at > ?2 AND attempts = 0 THEN 2 ELSE 1 END
        WHERE state = 0 AND endpoint = ?1 AND ordered = 0";
}

pub(crate) fn create(tx: &dyn Transaction, rules: Rules, endpoint: &Endpoint) -> Result<Changed> {
    if !application::exists(tx, endpoint.app, endpoint.org)? {
        return Ok(Changed::NotFound);
    }
    if let Some(refusal) = refusal(tx, endpoint)? {
        return Ok(refusal);
    }
    if tx.number(&COUNT, values![endpoint.app])? >= count(rules.endpoints_per_application) {
        return Ok(Changed::TooMany);
    }
    let inserted = insert_row(tx, endpoint)?;
    application::raise_version(tx, endpoint.app)?;
    Ok(Changed::made(inserted, endpoint.id.as_bytes()))
}

/// Returns 0 where the endpoint or address is there already.
pub(crate) fn insert_row(tx: &dyn Transaction, endpoint: &Endpoint) -> Result<usize> {
    tx.execute(&INSERT, &parameters(endpoint))
}

/// What a configuration is refused for: its uid, or a policy or profile that is not there.
fn refusal(reading: &dyn Reading, endpoint: &Endpoint) -> Result<Option<Changed>> {
    let Endpoint { id, app, org, config, .. } = endpoint;
    if let Some(uid) = &config.uid
        && reading.exists(&UID_TAKEN, values![app, uid, id])?
    {
        return Ok(Some(Changed::UidTaken));
    }
    if !policy::is_known(reading, *org, &config.policy)? {
        return Ok(Some(Changed::NoSuchPolicy));
    }
    let known = profile::is_known(reading, *org, config.profile.as_deref())?;
    Ok((!known).then_some(Changed::NoSuchProfile))
}

pub(crate) fn update(
    tx: &dyn Transaction,
    rules: Rules,
    endpoint: &Endpoint,
    was: &Fence,
    resume: bool,
) -> Result<Changed> {
    let before = match tx.one::<Endpoint>(&OWN, values![endpoint.id, endpoint.app])? {
        None => return Ok(Changed::NotFound),
        Some(before) if Fence::from(&before) != *was => return Ok(Changed::Stale),
        Some(before) => before,
    };
    if let Some(refusal) = refusal(tx, endpoint)? {
        return Ok(refusal);
    }
    if let Some(obstacle) = change_ordering(tx, endpoint, before.config.ordering)? {
        return Ok(Changed::NotOrderable(obstacle));
    }
    let mut parameters = parameters(&endpoint.config);
    parameters.extend([endpoint.sealed.value(), endpoint.updated_at.value(), endpoint.id.value()]);
    tx.execute(&UPDATE, &parameters)?;
    if let Some((health, cause)) = endpoint.after_controls_change(&before, resume) {
        let off = endpoint.config.disabled;
        health::by_operator(tx, rules, &before, off, (&health, cause), endpoint.updated_at)?;
    }
    application::raise_version(tx, endpoint.app)?;
    Ok(Changed::done())
}

/// Prepares the waiting deliveries for another ordering. An endpoint that ceases to be ordered leaves the marks: nothing
/// looks at them.
fn change_ordering(
    tx: &dyn Transaction,
    endpoint: &Endpoint,
    before: Ordering,
) -> Result<Option<OrderingObstacle>> {
    let Endpoint { id, updated_at: now, .. } = endpoint;
    let after = endpoint.config.ordering;
    if after.is_fifo() && !before.is_fifo() {
        if tx.exists(&MANY_WAIT, values![id, OrderingObstacle::MAX_PENDING])? {
            return Ok(Some(OrderingObstacle::TooManyPending));
        }
        tx.execute(&MARK_ORDERED, values![id, now])?;
    }
    Ok(None)
}

pub(crate) fn delete(
    tx: &dyn Transaction,
    app: AppId,
    endpoint: EndpointId,
    at: Timestamp,
) -> Result<Changed> {
    if tx.execute(&DELETE, values![endpoint, app, at])? == 0 {
        return Ok(Changed::NotFound);
    }
    alert::resolve_of_endpoint(tx, endpoint, at)?;
    application::raise_version(tx, app)?;
    Ok(Changed::Done { removed: vec![endpoint] })
}

pub(crate) fn replace_secrets(
    tx: &dyn Transaction,
    app: AppId,
    endpoint: EndpointId,
    (was, sealed, certificate_expires_at): (&[u8], &[u8], Option<Timestamp>),
    at: Timestamp,
) -> Result<Changed> {
    let replaced = values![endpoint, app, was, sealed, at, certificate_expires_at];
    if tx.execute(&REPLACE_SECRETS, replaced)? == 0 {
        let there = tx.exists(&OWN, values![endpoint, app])?;
        return Ok(if there { Changed::Stale } else { Changed::NotFound });
    }
    application::raise_version(tx, app)?;
    Ok(Changed::done())
}

pub(crate) fn sealed_secrets(
    reading: &dyn Reading,
    after: Option<EndpointId>,
    limit: usize,
) -> Result<Vec<SealedSecrets>> {
    let after = after.unwrap_or(EndpointId::from_bytes([0; 20]));
    reading.all(&SECRETS, values![after, limit])
}

/// An endpoint whose secrets have changed meanwhile is passed over: its date was written with them.
pub(crate) fn date_certificates(tx: &dyn Transaction, dates: &[CertificateDate]) -> Result<Changed> {
    for CertificateDate { endpoint, of, expires_at } in dates {
        tx.execute(&DATE_CERTIFICATE, values![endpoint, of, expires_at])?;
    }
    Ok(Changed::done())
}

/// By id first, then by uid. An address is found too.
pub(crate) fn find(reading: &dyn Reading, app: AppId, key: &ResourceKey) -> Result<Option<Endpoint>> {
    if let Ok(id) = key.parse::<EndpointId>()
        && let Some(found) = by_id(reading, app, id)?
    {
        return Ok(Some(found));
    }
    reading.one(&BY_UID, values![app, key])
}

pub(crate) fn by_id(reading: &dyn Reading, app: AppId, endpoint: EndpointId) -> Result<Option<Endpoint>> {
    reading.one(&WITH_ADDRESSES, values![endpoint, app])
}

/// A deleted one too.
pub(crate) fn with_deleted(
    reading: &dyn Reading,
    app: AppId,
    endpoint: EndpointId,
) -> Result<Option<Endpoint>> {
    reading.one(&OF_APPLICATION, values![endpoint, app])
}

pub(crate) fn list(
    reading: &dyn Reading,
    app: AppId,
    page: Page<EndpointId>,
    order: Order,
) -> Result<Vec<Endpoint>> {
    let (low, high) = lists::bounds(page.after, order);
    let mut found: Vec<Endpoint> = reading.all(PAGE.by(order), values![app, low, high, page.limit])?;
    found.retain(|endpoint| !endpoint.deleted);
    Ok(found)
}

pub(crate) fn subscriptions(reading: &dyn Reading, app: AppId) -> Result<Vec<Subscription>> {
    reading.all(&SUBSCRIPTIONS, values![app])
}

pub(crate) fn subscription(reading: &dyn Reading, endpoint: EndpointId) -> Result<Option<Subscription>> {
    reading.one(&ONE_SUBSCRIPTION, values![endpoint])
}

/// Whether an endpoint is not deleted.
pub(crate) fn is_there(reading: &dyn Reading, endpoint: EndpointId) -> Result<bool> {
    reading.exists(&IS_THERE, values![endpoint])
}

pub(crate) fn owner(reading: &dyn Reading, endpoint: EndpointId) -> Result<Option<AppId>> {
    reading.one(&OWNER, values![endpoint])
}

/// Reads the URLs of an organization or an application once: it is seldom asked.
pub(crate) fn has_endpoints_at(
    reading: &dyn Reading,
    org: OrgId,
    app: Option<AppId>,
    starts: &[String],
) -> Result<Vec<bool>> {
    if starts.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = HashSet::new();
    let mut note = |row: &dyn Row| {
        if let Value::Text(url) = row.value(0)? {
            let start = crate::contract::health::url_start(&url);
            if !found.contains(start) {
                found.insert(start.to_owned());
            }
        }
        Ok(())
    };
    match app {
        None => reading.query(&URLS_OF_ORGANIZATION, values![org], &mut note)?,
        Some(app) if application::exists(reading, app, org)? => {
            reading.query(&URLS_OF_APPLICATION, values![app], &mut note)?;
        }
        Some(_) => {}
    }
    Ok(starts.iter().map(|start| found.contains(start)).collect())
}
