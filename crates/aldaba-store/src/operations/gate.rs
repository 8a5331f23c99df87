//! Gates: hosts that an organization holds back from.

use super::column::{Columns, FromRow, unknown};
use super::transaction::{ReadingExt, statements, values};
use super::{Reading, Result, Transaction};
use crate::{Changed, GateRecord, Stale};
use aldaba_delivery::{AppId, Gate, GateKey, GateScope, Timestamp};

/// The order of the primary key comes first.
const COLUMNS: &str = "org, origin, scope, failures, held_until, hold, failed_at, probing, since, why";
const KEY: &str = "org = ?1 AND origin = ?2 AND scope = ?3";

statements! {
    ALL = format!("SELECT {COLUMNS} FROM gate ORDER BY org, origin, scope");
    SET = format!(
        "INSERT INTO gate ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (org, origin, scope) DO UPDATE SET failures = excluded.failures,
             held_until = excluded.held_until, hold = excluded.hold, failed_at = excluded.failed_at,
             probing = excluded.probing, since = excluded.since, why = excluded.why"
    );
    REMOVE = format!("DELETE FROM gate WHERE {KEY}");
    REMOVE_OLD = format!("DELETE FROM gate WHERE {KEY} AND held_until < ?4");
    /// The engine bounds how many there are: few enough to look at all of them.
    OLD = format!("SELECT {COLUMNS} FROM gate WHERE held_until < ?1 LIMIT ?2");
}

impl FromRow for GateRecord {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (org, origin, scope): (_, _, Vec<u8>) = columns.take()?;
        let scope = match &scope[..] {
            [] => GateScope::Host,
            app => {
                GateScope::Application(AppId::from_slice(app).map_err(|_| unknown("scope of a gate", app))?)
            }
        };
        let (failures, held_until, hold) = columns.take()?;
        let (failed_at, probing, since) = columns.take()?;
        let gate = Gate { failures, held_until, hold, failed_at, probing, since };
        Ok(Self { key: GateKey { org, origin, scope }, gate, why: columns.take()? })
    }
}

/// The host itself is an empty scope.
fn scope(key: &GateKey) -> &[u8] {
    match &key.scope {
        GateScope::Host => &[],
        GateScope::Application(app) => app.as_bytes(),
    }
}

pub(crate) fn all(reading: &dyn Reading) -> Result<Vec<GateRecord>> {
    reading.all(&ALL, values![])
}

/// A clear gate is removed.
pub(crate) fn set(tx: &dyn Transaction, GateRecord { key, gate, why }: &GateRecord) -> Result<()> {
    if gate.is_clear() {
        return remove(tx, key);
    }
    let Gate { failures, held_until, hold, failed_at, probing, since } = gate;
    let (GateKey { org, origin, .. }, scope) = (key, scope(key));
    let values = values![org, origin, scope, failures, held_until, hold, failed_at, probing, since, why];
    tx.execute(&SET, values).map(drop)
}

fn remove(tx: &dyn Transaction, key: &GateKey) -> Result<()> {
    tx.execute(&REMOVE, values![key.org, key.origin, scope(key)]).map(drop)
}

pub(crate) fn release(tx: &dyn Transaction, gates: &[GateKey]) -> Result<Changed> {
    gates.iter().try_for_each(|key| remove(tx, key))?;
    Ok(Changed::done())
}

pub(crate) fn old(reading: &dyn Reading, before: Timestamp, limit: usize) -> Result<Vec<Stale>> {
    let found: Vec<GateRecord> = reading.all(&OLD, values![before, limit])?;
    Ok(found.into_iter().map(|gate| Stale::Gate(gate.key, before)).collect())
}

pub(crate) fn remove_old(tx: &dyn Transaction, key: &GateKey, before: Timestamp) -> Result<usize> {
    tx.execute(&REMOVE_OLD, values![key.org, key.origin, scope(key), before])
}
