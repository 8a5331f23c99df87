//! What is counted for a UTC day: mails of an organization and of a reader, and requests to confirm.

use super::reader::reader_of;
use crate::Quota;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use aldaba_delivery::{AppId, OrgId, Timestamp};

/// Counts of former days that one commit removes.
const REMOVED_AT_ONCE: usize = 100;
/// Days whose counts are kept besides the present one: the clock may have been set back by a day.
const DAYS_KEPT: i64 = 1;

statements! {
    COUNT = "SELECT count FROM mail_day WHERE day = ?1 AND address = ?2";
    COUNT_ONE = "INSERT INTO mail_day (day, address, count) VALUES (?1, ?2, 1)
        ON CONFLICT (day, address) DO UPDATE SET count = mail_day.count + 1";
    OLD = "SELECT day, address FROM mail_day WHERE day < ?1 ORDER BY day, address LIMIT ?2";
    /// There are counts of two days.
    FORGET = "DELETE FROM mail_day WHERE address = ?1";
    REMOVE = "DELETE FROM mail_day WHERE day = ?1 AND address = ?2";
}

/// What is counted. Readers have no spaces.
pub(super) enum Counted<'a> {
    /// Mails to a reader, of all organizations together.
    Reader(&'a str),
    /// Mails of an organization to a reader.
    ReaderOf(OrgId, &'a str),
    /// Mails of an organization.
    Organization(OrgId),
    /// Requests to confirm an address of an application.
    Confirmations(AppId),
}

impl Counted<'_> {
    fn key(&self) -> String {
        match self {
            Self::Reader(reader) => (*reader).to_owned(),
            Self::ReaderOf(org, reader) => format!("of {org} {reader}"),
            Self::Organization(org) => format!("all {org}"),
            Self::Confirmations(app) => format!("confirm {app}"),
        }
    }
}

/// Forgets how many mails an address got: it counts from nothing again.
pub(crate) fn forget_counts(tx: &dyn Transaction, org: OrgId, address: &str) -> Result<()> {
    let reader = reader_of(address);
    for counted in [Counted::Reader(&reader), Counted::ReaderOf(org, &reader)] {
        tx.execute(&FORGET, values![counted.key()])?;
    }
    Ok(())
}

pub(super) fn count(reading: &dyn Reading, counted: &Counted<'_>, at: Timestamp) -> Result<u32> {
    Ok(reading.one(&COUNT, values![Quota::day_of(at), counted.key()])?.unwrap_or_default())
}

pub(super) fn count_one(tx: &dyn Transaction, counted: &Counted<'_>, at: Timestamp) -> Result<()> {
    let today = Quota::day_of(at);
    tx.execute(&COUNT_ONE, values![today, counted.key()])?;
    let old: Vec<(i64, String)> = tx.all(&OLD, values![today - DAYS_KEPT, REMOVED_AT_ONCE])?;
    for (day, key) in old {
        tx.execute(&REMOVE, values![day, key])?;
    }
    Ok(())
}
