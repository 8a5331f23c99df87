//! Gates: hosts that an organization holds back from.

use crate::operations::column::{Column, Parameter, unknown};
use crate::operations::retention::ExpiredItem;
use crate::operations::stored::{columns, insert, parameters, replacements, stored};
use crate::operations::transaction::{ReadingExt, Value, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{Changed, GateRecord};
use aldaba_delivery::{AppId, Gate, GateKey, GateScope, OrgId, Origin, Timestamp};
use std::borrow::Cow;

stored! { GateKey { org, origin, scope } }

stored! { Gate { failures, held_until, hold, failed_at, probing, since } }

stored! { GateRecord { key: [GateKey], gate: [Gate], why } }

const KEY: &str = "org = ?1 AND origin = ?2 AND scope = ?3";

statements! {
    ALL = format!("SELECT {} FROM gate ORDER BY org, origin, scope", columns::<GateRecord>());
    SET = format!(
        "{} ON CONFLICT (org, origin, scope) DO UPDATE SET {}",
        insert::<GateRecord>("gate"), replacements::<GateRecord>()
    );
    REMOVE = format!("DELETE FROM gate WHERE {KEY}");
    OF_APPLICATION = "SELECT origin FROM gate WHERE org = ?1 AND scope = ?2";
    REMOVE_HOST = "DELETE FROM gate WHERE org = ?1 AND origin = ?2";
    REMOVE_OLD = format!("DELETE FROM gate WHERE {KEY} AND held_until < ?4");
    /// The engine bounds how many there are: few enough to look at all of them.
    OLD = format!("SELECT {} FROM gate WHERE held_until < ?1 LIMIT ?2", columns::<GateRecord>());
}

/// The host itself is an empty scope.
impl Parameter for GateScope {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Host => Value::Bytes(Cow::Borrowed(&[])),
            Self::Application(app) => app.value(),
        }
    }
}

impl Column for GateScope {
    fn read(value: Value<'_>) -> Result<Self> {
        let scope = Vec::<u8>::read(value)?;
        match &scope[..] {
            [] => Ok(Self::Host),
            app => AppId::from_slice(app).map(Self::Application).map_err(|_| unknown("scope of a gate", app)),
        }
    }
}

pub(crate) fn all(reading: &dyn Reading) -> Result<Vec<GateRecord>> {
    reading.all(&ALL, values![])
}

/// A clear gate is removed.
pub(crate) fn set(tx: &dyn Transaction, record: &GateRecord) -> Result<()> {
    if record.gate.is_clear() {
        return remove(tx, &record.key);
    }
    tx.execute(&SET, &parameters(record)).map(drop)
}

fn remove(tx: &dyn Transaction, key: &GateKey) -> Result<()> {
    tx.execute(&REMOVE, values![key.org, key.origin, key.scope]).map(drop)
}

pub(crate) fn release(tx: &dyn Transaction, gates: &[GateKey]) -> Result<Changed> {
    gates.iter().try_for_each(|key| remove(tx, key))?;
    Ok(Changed::done())
}

/// The holds of one application.
pub(crate) fn remove_of_application(tx: &dyn Transaction, org: OrgId, app: AppId) -> Result<usize> {
    let scope = GateScope::Application(app);
    let origins: Vec<Origin> = tx.all(&OF_APPLICATION, values![org, scope])?;
    for origin in &origins {
        tx.execute(&REMOVE, values![org, origin, scope])?;
    }
    Ok(origins.len())
}

/// The holds of a host, for all applications of the organization.
pub(crate) fn remove_of_host(tx: &dyn Transaction, org: OrgId, origin: &Origin) -> Result<()> {
    tx.execute(&REMOVE_HOST, values![org, origin]).map(drop)
}

pub(crate) fn old(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<ExpiredItem>> {
    let found: Vec<GateRecord> = reading.all(&OLD, values![before, limit])?;
    Ok(found.into_iter().map(|gate| ExpiredItem::Gate(gate.key, before)).collect())
}

pub(crate) fn remove_old(tx: &dyn Transaction, key: &GateKey, before: Timestamp) -> Result<usize> {
    tx.execute(&REMOVE_OLD, values![key.org, key.origin, key.scope, before])
}
