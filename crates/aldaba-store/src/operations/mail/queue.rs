//! The queue. Of each organization and for each of its readers only so many mails wait.

use super::day::{self, Counted};
use super::reader::{mailbox_of, reader_of};
use super::{addresses, outage};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Numbers, Reading, Result, Transaction};
use crate::{MailChanged, MailNumber, MailRecipient, NewMail};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};

statements! {
    COUNTS = "SELECT waiting, left_out FROM mail_count WHERE org = ?1";
    SET_COUNTS = "INSERT INTO mail_count (org, waiting, left_out) VALUES (?1, ?2, ?3)
        ON CONFLICT (org) DO UPDATE SET waiting = excluded.waiting, left_out = excluded.left_out";
    REMOVE_COUNTS = "DELETE FROM mail_count WHERE org = ?1";
    WAITING_FOR = "SELECT count(*) FROM mail WHERE org = ?1 AND reader = ?2";
    WAITING_OF_ALL = "SELECT count(*) FROM mail WHERE reader = ?1";
    COUNT_WITH_LAST = "UPDATE mail SET more = more + 1
        WHERE seq = (SELECT max(seq) FROM mail WHERE org = ?1 AND reader = ?2)";
    INSERT = "INSERT INTO mail (seq, org, app, endpoint, address, kind, body, more, created_at, due_at, attempts, reader)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, 0, ?10)";
    COMPOSE = "UPDATE mail SET message_id = ?2 WHERE seq = ?1 AND message_id IS NULL";
    SET_DUE = "UPDATE mail SET due_at = ?2, attempts = attempts + ?3 WHERE seq = ?1";
    READDRESS = "UPDATE mail SET address = ?2, reader = ?3 WHERE seq = ?1 AND message_id IS NULL";
    ORG = "SELECT org FROM mail WHERE seq = ?1";
    OF_APPLICATION = "SELECT seq FROM mail WHERE app = ?1 ORDER BY seq LIMIT ?2";
    REMOVE = "DELETE FROM mail WHERE seq = ?1";
}

/// The queue of the server itself.
pub(super) fn no_organization() -> OrgId {
    OrgId::from_bytes([0; 20])
}

/// How many mails of an organization wait, and how many were left out.
fn counts(reading: &dyn Reading, org: OrgId) -> Result<(u32, u32)> {
    Ok(reading.one(&COUNTS, values![org])?.unwrap_or_default())
}

fn set_counts(tx: &dyn Transaction, org: OrgId, waiting: u32, left_out: u32) -> Result<()> {
    match (waiting, left_out) {
        (0, 0) => tx.execute(&REMOVE_COUNTS, values![org])?,
        _ => tx.execute(&SET_COUNTS, values![org, waiting, left_out])?,
    };
    Ok(())
}

/// Queues those that have a recipient with an address. Returns how many.
pub(crate) fn keep(tx: &dyn Transaction, numbers: &mut Numbers, mails: &[NewMail]) -> Result<usize> {
    let mut kept = 0;
    for mail in mails {
        let address = addresses::of_recipient(tx, &mail.recipient)?;
        if !outage::is_to_be_told(tx, mail, address.is_some())? {
            continue;
        }
        if let Some(address) = address
            && put(tx, numbers, mail, &address)?
        {
            outage::told(tx, mail)?;
            kept += 1;
        }
    }
    Ok(kept)
}

/// `false`: there is no room.
fn put(tx: &dyn Transaction, numbers: &mut Numbers, mail: &NewMail, address: &str) -> Result<bool> {
    let NewMail { recipient, kind, body, created_at, due_at, .. } = mail;
    let org = mail.org.unwrap_or_else(no_organization);
    let (waiting, left_out) = counts(tx, org)?;
    let reader = reader_of(address);
    if waiting >= NewMail::MAX_PENDING || is_full_for(tx, org, &reader)? {
        let is_counted = tx.execute(&COUNT_WITH_LAST, values![org, reader])? > 0;
        if !is_counted {
            set_counts(tx, org, waiting, left_out.saturating_add(1))?;
        }
        return Ok(false);
    }
    let (app, endpoint): (Option<AppId>, Option<EndpointId>) = match recipient {
        MailRecipient::Operator => (None, None),
        MailRecipient::Endpoint(app, endpoint) => (Some(*app), Some(*endpoint)),
        MailRecipient::Application(app) | MailRecipient::Unconfirmed(app, _) => (Some(*app), None),
    };
    let number = numbers.draw(tx, 1)?;
    tx.execute(
        &INSERT,
        values![number, org, app, endpoint, address, kind, body, created_at, due_at, reader],
    )?;
    set_counts(tx, org, waiting + 1, left_out)?;
    Ok(true)
}

/// An organization has room of its own for each reader. All of them together have more, but not without end.
fn is_full_for(reading: &dyn Reading, org: OrgId, reader: &str) -> Result<bool> {
    if org == no_organization() {
        return Ok(false);
    }
    let own: u32 = reading.one(&WAITING_FOR, values![org, reader])?.unwrap_or_default();
    if own >= NewMail::MAX_PENDING_PER_ADDRESS {
        return Ok(true);
    }
    let all: u32 = reading.one(&WAITING_OF_ALL, values![reader])?.unwrap_or_default();
    Ok(all >= NewMail::MAX_PENDING_PER_ADDRESS_OF_ALL)
}

pub(super) fn compose(tx: &dyn Transaction, mails: &[MailNumber], message_id: &str) -> Result<usize> {
    each(mails, |mail| tx.execute(&COMPOSE, values![mail, message_id]))
}

pub(super) fn set_due(
    tx: &dyn Transaction,
    mails: &[MailNumber],
    due_at: Timestamp,
    attempts: u32,
) -> Result<usize> {
    each(mails, |mail| tx.execute(&SET_DUE, values![mail, due_at, attempts]))
}

pub(super) fn readdress(tx: &dyn Transaction, mail: MailNumber, address: &str) -> Result<usize> {
    tx.execute(&READDRESS, values![mail, address, reader_of(address)])
}

fn each(mails: &[MailNumber], change: impl Fn(&MailNumber) -> Result<usize>) -> Result<usize> {
    mails.iter().map(change).sum()
}

/// A message was taken that was composed of these.
pub(super) fn sent(
    tx: &dyn Transaction,
    mails: &[MailNumber],
    address: &str,
    at: Timestamp,
) -> Result<MailChanged> {
    let org = mails.iter().find_map(|mail| tx.one::<OrgId>(&ORG, values![mail]).transpose());
    if let Some(org) = org.transpose()? {
        let (reader, mailbox) = (reader_of(address), mailbox_of(address));
        let all = [Counted::Mailbox(&mailbox), Counted::ReaderOf(org, &reader), Counted::Organization(org)];
        for counted in &all {
            day::count_one(tx, counted, at)?;
        }
    }
    remove(tx, mails)
}

/// Removes some of the mails about an application, and returns how many.
pub(crate) fn remove_of_application(tx: &dyn Transaction, app: AppId, limit: usize) -> Result<usize> {
    let found: Vec<MailNumber> = tx.all(&OF_APPLICATION, values![app, limit])?;
    remove(tx, &found)?;
    Ok(found.len())
}

/// Removes mails, and reports what was left out once there is room again.
pub(super) fn remove(tx: &dyn Transaction, mails: &[MailNumber]) -> Result<MailChanged> {
    let mut changed = MailChanged::default();
    for mail in mails {
        let Some(org) = tx.one::<OrgId>(&ORG, values![mail])? else { continue };
        changed.mails += tx.execute(&REMOVE, values![mail])?;
        let (waiting, left_out) = counts(tx, org)?;
        changed.left_out = changed.left_out.saturating_add(left_out);
        set_counts(tx, org, waiting.saturating_sub(1), 0)?;
    }
    Ok(changed)
}
