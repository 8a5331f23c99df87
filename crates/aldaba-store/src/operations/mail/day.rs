//! What is counted for a UTC day: mails of an organization and of a reader, and requests to confirm.

use super::reader::{mailbox_of, reader_of};
use crate::Quota;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use aldaba_delivery::{AppId, OrgId, Timestamp};

/// Counts of former days that one commit removes.
const REMOVED_AT_ONCE: usize = 100;
/// Days whose counts are kept besides the present one: the clock may have been set back by a day, and a day begins without
/// the last mail of the one before.
const DAYS_KEPT: i64 = 1;

statements! {
    COUNT = "SELECT count FROM mail_day WHERE day = ?1 AND address = ?2";
    LAST = "SELECT last_at FROM mail_day WHERE day = ?1 AND address = ?2";
    COUNT_ONE = "INSERT INTO mail_day (day, address, count, last_at) VALUES (?1, ?2, 1, ?3)
        ON CONFLICT (day, address) DO UPDATE SET count = mail_day.count + 1, last_at = excluded.last_at";
    OLD = "SELECT day, address FROM mail_day WHERE day < ?1 ORDER BY day, address LIMIT ?2";
    DAY_AFTER = "SELECT day FROM mail_day WHERE day > ?1 ORDER BY day LIMIT 1";
    REMOVE = "DELETE FROM mail_day WHERE day = ?1 AND address = ?2";
}

/// What is counted. Readers and mailboxes have no spaces.
pub(super) enum Counted<'a> {
    /// Mails to a mailbox, of all organizations together.
    Mailbox(&'a str),
    /// Mails of an organization to a reader.
    ReaderOf(OrgId, &'a str),
    /// Mails of an organization.
    Organization(OrgId),
    /// Requests to confirm an address of an application.
    Confirmations(AppId),
    /// Requests to confirm addresses of one mailbox.
    ConfirmationsOf(AppId, &'a str),
}

impl Counted<'_> {
    fn key(&self) -> String {
        match self {
            Self::Mailbox(mailbox) => (*mailbox).to_owned(),
            Self::ReaderOf(org, reader) => format!("of {org} {reader}"),
            Self::Organization(org) => format!("all {org}"),
            Self::Confirmations(app) => format!("confirm {app}"),
            Self::ConfirmationsOf(app, mailbox) => format!("confirm {app} {mailbox}"),
        }
    }
}

/// Forgets how many mails an address got: it counts from nothing again.
pub(crate) fn forget_counts(tx: &dyn Transaction, org: OrgId, app: AppId, address: &str) -> Result<()> {
    let (reader, mailbox) = (reader_of(address), mailbox_of(address));
    for counted in
        [Counted::ReaderOf(org, &reader), Counted::Mailbox(&mailbox), Counted::ConfirmationsOf(app, &mailbox)]
    {
        // There are counts of few days.
        let mut before = i64::MIN;
        while let Some(day) = tx.one::<i64>(&DAY_AFTER, values![before])? {
            tx.execute(&REMOVE, values![day, counted.key()])?;
            before = day;
        }
    }
    Ok(())
}

pub(super) fn count(reading: &dyn Reading, counted: &Counted<'_>, at: Timestamp) -> Result<u32> {
    Ok(reading.one(&COUNT, values![Quota::day_of(at), counted.key()])?.unwrap_or_default())
}

/// When it was counted last, on this day or the one before.
pub(super) fn last(reading: &dyn Reading, counted: &Counted<'_>, at: Timestamp) -> Result<Option<Timestamp>> {
    let today = Quota::day_of(at);
    match reading.one(&LAST, values![today, counted.key()])? {
        None => reading.one(&LAST, values![today - DAYS_KEPT, counted.key()]),
        found => Ok(found),
    }
}

pub(super) fn count_one(tx: &dyn Transaction, counted: &Counted<'_>, at: Timestamp) -> Result<()> {
    let today = Quota::day_of(at);
    tx.execute(&COUNT_ONE, values![today, counted.key(), at])?;
    let old: Vec<(i64, String)> = tx.all(&OLD, values![today - DAYS_KEPT, REMOVED_AT_ONCE])?;
    for (day, key) in old {
        tx.execute(&REMOVE, values![day, key])?;
    }
    Ok(())
}
