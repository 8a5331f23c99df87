//! Policies of organizations.

use super::named::named;
use crate::operations::column::{Columns, FromRow, unknown};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{Changed, OwnPolicy};
use aldaba_delivery::policy::BUILTIN_NAMES;
use aldaba_delivery::{OrgId, Policy};

named!("policy", "policy");

impl FromRow for OwnPolicy {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (org, name, body): (_, String, String) = columns.take()?;
        let unreadable = |why: String| unknown("policy", format!("{name}: {why}"));
        let json = serde_json::from_str(&body).map_err(|error| unreadable(error.to_string()))?;
        let policy = Policy::from_json(&json).map_err(|errors| {
            unreadable(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        let (created_at, updated_at) = columns.take()?;
        Ok(Self { org, policy, created_at, updated_at })
    }
}

pub(crate) fn create(tx: &dyn Transaction, own: &OwnPolicy) -> Result<Changed> {
    let body = own.policy.to_json().to_string();
    NAMED.create(tx, (own.org, &own.policy.name, &body), (own.created_at, own.updated_at))
}

pub(crate) fn replace(tx: &dyn Transaction, own: &OwnPolicy) -> Result<Changed> {
    let body = own.policy.to_json().to_string();
    NAMED.replace(tx, (own.org, &own.policy.name, &body), own.updated_at)
}

pub(crate) fn delete(tx: &dyn Transaction, org: OrgId, name: &str) -> Result<Changed> {
    NAMED.delete(tx, org, name)
}

/// Whether endpoints of the organization can use it.
pub(crate) fn is_known(reading: &dyn Reading, org: OrgId, name: &str) -> Result<bool> {
    Ok(BUILTIN_NAMES.contains(&name) || reading.exists(&KNOWN, values![org, name])?)
}

pub(crate) fn all(reading: &dyn Reading) -> Result<Vec<OwnPolicy>> {
    reading.all(&ALL, values![])
}

pub(crate) fn one(reading: &dyn Reading, org: OrgId, name: &str) -> Result<Option<OwnPolicy>> {
    reading.one(&ONE, values![org, name])
}
