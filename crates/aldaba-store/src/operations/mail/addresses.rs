//! Who may get mails: the addresses of endpoints and applications, those that are confirmed, and those that want none.

use super::day::{self, Counted};
use super::reader::{mailbox_of, reader_of};
use super::{outage, queue};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Batch, Reading, Result, Transaction};
use crate::{MailRecipient, MailSubscription, NewMail};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use std::time::Duration;

/// An address is asked at most once in this time.
const ASK_INTERVAL: Duration = Duration::from_secs(24 * 3600);

statements! {
    OF_ENDPOINT = "SELECT coalesce(endpoint.owner_email, application.alert_email)
        FROM endpoint JOIN application ON application.id = endpoint.app
        WHERE endpoint.id = ?1 AND endpoint.deleted = 0 AND application.deleted = 0";
    OF_APPLICATION = "SELECT alert_email FROM application WHERE id = ?1 AND deleted = 0";
    ORG_OF_APPLICATION = "SELECT org FROM application WHERE id = ?1 AND deleted = 0";
    OWNER = "SELECT owner_email FROM endpoint WHERE id = ?1";
    STATE = "SELECT asked_at, confirmed_at FROM mail_address WHERE app = ?1 AND address = ?2";
    COUNT = "SELECT count(*) FROM mail_address WHERE app = ?1";
    COUNT_UNCONFIRMED = "SELECT count(*) FROM mail_address WHERE app = ?1 AND confirmed_at IS NULL";
    OLDEST_UNCONFIRMED = "SELECT address, given_at FROM mail_address
        WHERE app = ?1 AND confirmed_at IS NULL ORDER BY given_at, address LIMIT 1";
    REMOVE = "DELETE FROM mail_address WHERE app = ?1 AND address = ?2";
    REMOVE_OF_APPLICATION = "DELETE FROM mail_address WHERE app = ?1";
    ALL_OF_APPLICATION = "SELECT address FROM mail_address WHERE app = ?1";
    PUT = "INSERT INTO mail_address (app, address, asked_at, confirmed_at, given_at) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (app, address) DO UPDATE SET asked_at = excluded.asked_at, confirmed_at = excluded.confirmed_at";
    CONFIRM = "UPDATE mail_address SET confirmed_at = ?3 WHERE app = ?1 AND address = ?2 AND confirmed_at IS NULL";
    BRING_FORWARD = "UPDATE mail SET due_at = ?2 WHERE reader = ?1 AND app = ?3 AND due_at > ?2";
    UNSUBSCRIBE = "INSERT INTO mail_unsubscribed (subject, address, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    SUBSCRIBE = "DELETE FROM mail_unsubscribed WHERE subject = ?1 AND address = ?2";
    SUBSCRIBE_ALL = "DELETE FROM mail_unsubscribed WHERE subject = ?1";
    UNSUBSCRIBED = "SELECT 1 FROM mail_unsubscribed WHERE subject = ?1 AND address = ?2";
}

/// The present address of a recipient. The operator's is a setting, and empty here.
pub(super) fn of_recipient(reading: &dyn Reading, recipient: &MailRecipient) -> Result<Option<String>> {
    let found: Option<Option<String>> = match recipient {
        MailRecipient::Operator => Some(Some(String::new())),
        MailRecipient::Unconfirmed(_, address) => Some(Some(address.clone())),
        MailRecipient::Endpoint(_, endpoint) => reading.one(&OF_ENDPOINT, values![endpoint])?,
        MailRecipient::Application(app) => reading.one(&OF_APPLICATION, values![app])?,
    };
    Ok(found.flatten())
}

pub(super) fn owner(reading: &dyn Reading, endpoint: EndpointId) -> Result<Option<String>> {
    let found: Option<Option<String>> = reading.one(&OWNER, values![endpoint])?;
    Ok(found.flatten())
}

/// Somebody has given an address as that of an endpoint's owner. What a caller of the portal gives has to be confirmed, unless
/// the application has it already.
pub(super) fn given(
    batch: &mut Batch<'_>,
    app: AppId,
    address: &str,
    by_portal: bool,
    at: Timestamp,
) -> Result<()> {
    if !by_portal {
        return put(batch.tx, app, address, (None, Some(at)), at);
    }
    match is_confirmed(batch.tx, app, address)? {
        Some(true) => Ok(()),
        _ => ask(batch, app, address, at).map(drop),
    }
}

/// Whether an address may get the mails of an application. That of the application itself may: only an operator gives it.
/// `None`: it is not known.
pub(crate) fn is_confirmed(reading: &dyn Reading, app: AppId, address: &str) -> Result<Option<bool>> {
    let own: Option<Option<String>> = reading.one(&OF_APPLICATION, values![app])?;
    if own.flatten().is_some_and(|own| reader_of(&own) == reader_of(address)) {
        return Ok(Some(true));
    }
    Ok(state(reading, app, address)?.map(|(_, confirmed_at)| confirmed_at.is_some()))
}

type AddressState = (Option<Timestamp>, Option<Timestamp>);

fn state(reading: &dyn Reading, app: AppId, address: &str) -> Result<Option<AddressState>> {
    reading.one(&STATE, values![app, reader_of(address)])
}

/// Whether an address can be kept. One that is confirmed is never given up for another: what nobody has confirmed in the time
/// for that makes room.
pub(super) fn has_room(
    reading: &dyn Reading,
    app: AppId,
    address: &str,
    is_unconfirmed: bool,
    at: Timestamp,
) -> Result<bool> {
    if is_confirmed(reading, app, address)?.is_some() {
        return Ok(true);
    }
    let oldest: Option<(String, Timestamp)> = reading.one(&OLDEST_UNCONFIRMED, values![app])?;
    if is_unconfirmed {
        let waiting: u32 = reading.one(&COUNT_UNCONFIRMED, values![app])?.unwrap_or_default();
        let is_over = oldest.is_some_and(|(_, given)| at.since(given) > NewMail::CONFIRMATION_TIME);
        return Ok(waiting < NewMail::MAX_UNCONFIRMED_PER_APPLICATION || is_over);
    }
    let known: u32 = reading.one(&COUNT, values![app])?.unwrap_or_default();
    Ok(known < NewMail::MAX_ADDRESSES_PER_APPLICATION || oldest.is_some())
}

/// For an address that has room.
fn put(
    tx: &dyn Transaction,
    app: AppId,
    address: &str,
    (asked_at, confirmed_at): AddressState,
    at: Timestamp,
) -> Result<()> {
    let is_known = state(tx, app, address)?.is_some();
    if !is_known {
        let waiting: u32 = tx.one(&COUNT_UNCONFIRMED, values![app])?.unwrap_or_default();
        let known: u32 = tx.one(&COUNT, values![app])?.unwrap_or_default();
        let is_full = known >= NewMail::MAX_ADDRESSES_PER_APPLICATION
            || confirmed_at.is_none() && waiting >= NewMail::MAX_UNCONFIRMED_PER_APPLICATION;
        if is_full
            && let Some((oldest, _)) = tx.one::<(String, Timestamp)>(&OLDEST_UNCONFIRMED, values![app])?
        {
            tx.execute(&REMOVE, values![app, oldest])?;
        }
    }
    tx.execute(&PUT, values![app, reader_of(address), asked_at, confirmed_at, at]).map(drop)
}

/// Queues a request to confirm an address, unless it was asked lately. Returns whether it did.
pub(super) fn ask(batch: &mut Batch<'_>, app: AppId, address: &str, at: Timestamp) -> Result<bool> {
    let tx = batch.tx;
    let asked_at = match state(tx, app, address)? {
        Some((_, Some(_))) => return Ok(false),
        Some((asked_at, None)) => asked_at,
        None => None,
    };
    // A moment that is ahead was noted by a clock that was wrong.
    if asked_at.is_some_and(|asked| asked <= at && at.since(asked) < ASK_INTERVAL) {
        return Ok(false);
    }
    let Some(org) = tx.one::<OrgId>(&ORG_OF_APPLICATION, values![app])? else { return Ok(false) };
    if !has_room(tx, app, address, true, at)? {
        return Ok(false);
    }
    let mailbox = mailbox_of(address);
    let requests = [
        (Counted::Confirmations(app), NewMail::MAX_CONFIRMATIONS_PER_DAY),
        (Counted::ConfirmationsOf(app, &mailbox), NewMail::MAX_CONFIRMATIONS_PER_MAILBOX),
    ];
    for (counted, most) in &requests {
        if day::count(tx, counted, at)? >= *most {
            put(tx, app, address, (asked_at, None), at)?;
            return Ok(false);
        }
    }
    for (counted, _) in &requests {
        day::count_one(tx, counted, at)?;
    }
    put(tx, app, address, (Some(at), None), at)?;
    let mail = NewMail {
        org: Some(org),
        recipient: MailRecipient::Unconfirmed(app, address.to_owned()),
        kind: NewMail::CONFIRM.into(),
        body: "{}".into(),
        created_at: at,
        due_at: at,
        outage: None,
    };
    Ok(queue::keep(tx, batch.numbers, &[mail])? > 0)
}

/// 0: nobody has given it, or it is confirmed already.
pub(super) fn confirm(tx: &dyn Transaction, app: AppId, address: &str, at: Timestamp) -> Result<usize> {
    let confirmed = tx.execute(&CONFIRM, values![app, reader_of(address), at])?;
    if confirmed > 0 {
        tx.execute(&BRING_FORWARD, values![reader_of(address), at, app])?;
    }
    Ok(confirmed)
}

pub(super) fn unsubscribe(
    tx: &dyn Transaction,
    subscription: &MailSubscription,
    at: Timestamp,
) -> Result<usize> {
    tx.execute(&UNSUBSCRIBE, values![subscription.subject, reader_of(&subscription.address), at])
}

pub(super) fn subscribe(tx: &dyn Transaction, subscription: &MailSubscription) -> Result<usize> {
    tx.execute(&SUBSCRIBE, values![subscription.subject, reader_of(&subscription.address)])
}

pub(crate) fn is_subscribed(reading: &dyn Reading, subscription: &MailSubscription) -> Result<bool> {
    Ok(!reading.exists(&UNSUBSCRIBED, values![subscription.subject, reader_of(&subscription.address)])?)
}

/// With the row of an endpoint goes what was kept of its mails.
pub(crate) fn forget_endpoint(tx: &dyn Transaction, endpoint: EndpointId) -> Result<()> {
    outage::forget(tx, endpoint)?;
    tx.execute(&SUBSCRIBE_ALL, values![endpoint]).map(drop)
}

/// The same, with what is counted of its addresses. Returns how many addresses there were.
pub(crate) fn forget_addresses(tx: &dyn Transaction, org: OrgId, app: AppId) -> Result<usize> {
    let readers: Vec<String> = tx.all(&ALL_OF_APPLICATION, values![app])?;
    for reader in &readers {
        day::forget_counts(tx, org, app, reader)?;
    }
    forget_application(tx, app)?;
    Ok(readers.len())
}

pub(crate) fn forget_application(tx: &dyn Transaction, app: AppId) -> Result<()> {
    tx.execute(&SUBSCRIBE_ALL, values![app])?;
    tx.execute(&REMOVE_OF_APPLICATION, values![app]).map(drop)
}
