//! The health of endpoints: how attempts and people change it, and its history.

use crate::operations::column::{Parameter, count};
use crate::operations::endpoint;
use crate::operations::stored::{assignments, columns, parameters, stored, width};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Rules, Transaction, alert, replay};
use crate::{
    Changed, Endpoint, HEALTH_CHANGES_KEPT, HealthChange, HealthChangeNumber, NewAttempt, Order, Page,
    Record, Replay,
};
use aldaba_delivery::{AppId, Condition, ConditionCause, EndpointId, Health, Timestamp, TurnedOff};

stored! { HealthChange { number, at, was, became, cause, detail } }

statements! {
    BEFORE = format!("SELECT {}, disabled FROM endpoint WHERE id = ?1", columns::<Health>());
    SET = format!("UPDATE endpoint SET {} WHERE id = ?{}", assignments::<Health>(), width::<Health>() + 1);
    /// An older error that is written late leaves a newer one in its place.
    SET_ERROR = "UPDATE endpoint SET error_at = ?2, error_status = ?3, error_text = ?4
        WHERE id = ?1 AND (error_at IS NULL OR error_at <= ?2)";
    LAST_NUMBER = "SELECT coalesce(max(number), 0) FROM health_change WHERE endpoint = ?1";
    NOTE = "INSERT INTO health_change (endpoint, number, at, was, became, cause, detail)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    FORGET = "DELETE FROM health_change WHERE endpoint = ?1 AND number <= ?2";
    FORGET_ALL = "DELETE FROM health_change WHERE endpoint = ?1";
    PAGE[order] = format!(
        "SELECT {} FROM health_change WHERE endpoint = ?1 AND number {} ?2 ORDER BY number {} LIMIT ?3",
        columns::<HealthChange>(), order.beyond, order.word
    );
}

/// The health of an endpoint, and whether it is turned off.
pub(crate) fn of(tx: &dyn Transaction, endpoint: EndpointId) -> Result<Option<(Health, bool)>> {
    tx.one(&BEFORE, values![endpoint])
}

/// Writes what an attempt has made of an endpoint's health, as far as a person has not changed it since. Returns whether it is
/// written as it was made.
pub(crate) fn after_attempt(
    tx: &dyn Transaction,
    rules: Rules,
    record: &Record,
    made: &Health,
) -> Result<bool> {
    let Some((before, disabled)) = of(tx, record.endpoint)? else { return Ok(false) };
    let health = made.reconciled(&before);
    if health == before {
        return Ok(false);
    }
    set(tx, record.endpoint, &health)?;
    alert::after_health(tx, rules, record.endpoint, record.at, (&before, &health, disabled))?;
    let detail = record.attempt.as_ref().map_or("", |attempt| &attempt.error);
    let cause = ConditionCause::of_attempt(health.status);
    let (was, became) = (before.lasting_condition(disabled), health.lasting_condition(disabled));
    note(tx, record.endpoint, record.at, (was, became), cause, detail)?;
    Ok(health == *made)
}

pub(crate) fn set_last_error(tx: &dyn Transaction, endpoint: EndpointId, attempt: &NewAttempt) -> Result<()> {
    let ended_at = attempt.started_at + attempt.duration;
    tx.execute(&SET_ERROR, values![endpoint, ended_at, attempt.status_code, attempt.error]).map(drop)
}

/// Makes an endpoint active that is not, and starts a replay of what has died since its outage began.
pub(crate) fn resume(
    tx: &dyn Transaction,
    rules: Rules,
    (app, endpoint): (AppId, EndpointId),
    at: Timestamp,
    recovery: Option<&Replay>,
) -> Result<Changed> {
    let Some(before) = endpoint::by_id(tx, app, endpoint)? else { return Ok(Changed::NotFound) };
    let resumed = match before.health.resume(before.config.disabled, at) {
        Ok(Some(resumed)) => resumed,
        Ok(None) => return Ok(Changed::Unchanged),
        Err(TurnedOff) => return Ok(Changed::TurnedOff),
    };
    // Both or none.
    if recovery.is_some() && !replay::has_room(tx, app)? {
        return Ok(Changed::TooMany);
    }
    let cause = Some(ConditionCause::Resumed);
    by_operator(tx, rules, &before, before.config.disabled, (&resumed, cause), at)?;
    let failing_since = before.health.outage_began();
    let recovery = match recovery.zip(failing_since) {
        Some((planned, began)) => replay::recover(tx, planned, began)?,
        None => None,
    };
    Ok(Changed::Resumed { failing_since, recovery })
}

/// Writes what a person has made of an endpoint's health. `cause`: for its history, where it is noted there.
pub(crate) fn by_operator(
    tx: &dyn Transaction,
    rules: Rules,
    before: &Endpoint,
    disabled: bool,
    (health, cause): (&Health, Option<ConditionCause>),
    at: Timestamp,
) -> Result<()> {
    set(tx, before.id, health)?;
    alert::after_health(tx, rules, before.id, at, (&before.health, health, disabled))?;
    let Some(cause) = cause else { return Ok(()) };
    let was = before.health.lasting_condition(before.config.disabled);
    note(tx, before.id, at, (was, health.lasting_condition(disabled)), cause, "")
}

fn set(tx: &dyn Transaction, endpoint: EndpointId, health: &Health) -> Result<()> {
    let mut parameters = parameters(health);
    parameters.push(endpoint.value());
    tx.execute(&SET, &parameters).map(drop)
}

/// Keeps a change of the condition, and removes the oldest where there are too many.
fn note(
    tx: &dyn Transaction,
    endpoint: EndpointId,
    at: Timestamp,
    (was, became): (Condition, Condition),
    cause: ConditionCause,
    detail: &str,
) -> Result<()> {
    if was == became {
        return Ok(());
    }
    let number = tx.number(&LAST_NUMBER, values![endpoint])? + 1;
    tx.execute(&NOTE, values![endpoint, number, at, was, became, cause, detail])?;
    tx.execute(&FORGET, values![endpoint, number - count(HEALTH_CHANGES_KEPT)]).map(drop)
}

pub(crate) fn forget_changes(tx: &dyn Transaction, endpoint: EndpointId) -> Result<()> {
    tx.execute(&FORGET_ALL, values![endpoint]).map(drop)
}

pub(crate) fn changes(
    reading: &dyn Reading,
    endpoint: EndpointId,
    page: Page<HealthChangeNumber>,
    order: Order,
) -> Result<Vec<HealthChange>> {
    let first = match order {
        Order::Ascending => i64::MIN,
        Order::Descending => i64::MAX,
    };
    let after = page.after.map_or(first, |number| number.0);
    reading.all(PAGE.by(order), values![endpoint, after, page.limit])
}
