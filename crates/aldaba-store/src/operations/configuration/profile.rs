//! Wire profiles of organizations.

use super::named::named;
use crate::operations::stored::stored;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{Changed, OwnProfile};
use aldaba_delivery::{BUILTIN_PROFILES, OrgId};

named!("profile", "profile");

stored! { OwnProfile { org, name, body, created_at, updated_at } }

pub(crate) fn create(tx: &dyn Transaction, own: &OwnProfile) -> Result<Changed> {
    NAMED.create(tx, (own.org, &own.name, &own.body), (own.created_at, own.updated_at))
}

pub(crate) fn replace(tx: &dyn Transaction, own: &OwnProfile) -> Result<Changed> {
    NAMED.replace(tx, (own.org, &own.name, &own.body), own.updated_at)
}

pub(crate) fn delete(tx: &dyn Transaction, org: OrgId, name: &str) -> Result<Changed> {
    NAMED.delete(tx, org, name)
}

/// Whether endpoints of the organization can use it. `None` stands for the server's default.
pub(crate) fn is_known(reading: &dyn Reading, org: OrgId, name: Option<&str>) -> Result<bool> {
    match name.filter(|name| !BUILTIN_PROFILES.contains(name)) {
        None => Ok(true),
        Some(name) => reading.exists(&KNOWN, values![org, name]),
    }
}

pub(crate) fn all(reading: &dyn Reading) -> Result<Vec<OwnProfile>> {
    reading.all(&ALL, values![])
}

pub(crate) fn one(reading: &dyn Reading, org: OrgId, name: &str) -> Result<Option<OwnProfile>> {
    reading.one(&ONE, values![org, name])
}
