//! What is next in the queue, with what is known of it now.

use super::day::{self, Counted};
use super::reader::mailbox_of;
use super::{addresses, queue, subject_of};
use crate::operations::column::{Columns, FromRow};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result};
use crate::{
    Mail, MailApplication, MailBatch, MailEndpoint, MailNumber, MailPermission, MailRecipient,
    MailSubscription, NewMail, NextMail,
};
use aldaba_delivery::{AppId, EndpointId, HealthStatus, OrgId, Timestamp};

const COLUMNS: &str = "seq, org, app, endpoint, address, kind, body, more, created_at, attempts";

statements! {
    IS_DUE_OF = "SELECT 1 FROM mail WHERE org = ?1 AND due_at <= ?2 LIMIT 1";
    NEXT_ORGANIZATION = "SELECT org FROM mail_count WHERE org > ?1
        AND EXISTS (SELECT 1 FROM mail WHERE mail.org = mail_count.org AND mail.due_at <= ?2) ORDER BY org LIMIT 1";
    FIRST_DUE = "SELECT address, reader, message_id FROM mail WHERE org = ?1 AND due_at <= ?2 ORDER BY due_at, seq LIMIT 1";
    NEXT_DUE = "SELECT due_at FROM mail WHERE due_at > ?1 ORDER BY due_at LIMIT 1";
    OF_MESSAGE = format!("SELECT {COLUMNS} FROM mail WHERE message_id = ?1 ORDER BY seq LIMIT ?2");
    CRITICAL_OF_READER = format!(
        "SELECT {COLUMNS} FROM mail WHERE org = ?1 AND reader = ?2 AND message_id IS NULL AND +due_at <= ?3 AND kind = ?4
            ORDER BY seq LIMIT ?5"
    );
    OTHERS_OF_READER = format!(
        "SELECT {COLUMNS} FROM mail WHERE org = ?1 AND reader = ?2 AND message_id IS NULL AND +due_at <= ?3 AND kind <> ?4
            ORDER BY seq LIMIT ?5"
    );
    ENDPOINT = "SELECT endpoint.id, endpoint.name, endpoint.url, endpoint.health_status, endpoint.disabled,
            endpoint.metadata
        FROM endpoint WHERE endpoint.id = ?1 AND endpoint.deleted = 0";
    APPLICATION = "SELECT name, metadata FROM application WHERE id = ?1 AND deleted = 0";
    PENDING = "SELECT seq FROM delivery WHERE state = 0 AND endpoint = ?1 LIMIT ?2";
}

struct StoredMail {
    number: MailNumber,
    org: OrgId,
    app: Option<AppId>,
    endpoint: Option<EndpointId>,
    address: String,
    kind: String,
    body: String,
    more: u32,
    created_at: Timestamp,
    attempts: u32,
}

impl FromRow for StoredMail {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (number, org) = columns.take()?;
        let (app, endpoint) = columns.take()?;
        let (address, kind, body) = columns.take()?;
        let (more, created_at, attempts) = columns.take()?;
        Ok(Self { number, org, app, endpoint, address, kind, body, more, created_at, attempts })
    }
}

/// The server's own mails come first. Then the organizations take turns: `last` is the one that had the last.
pub(crate) fn next(
    reading: &dyn Reading,
    now: Timestamp,
    join_until: Timestamp,
    last: Option<OrgId>,
) -> Result<NextMail> {
    let first = match next_organization(reading, now, last)? {
        Some(org) => first_due(reading, org, now)?.map(|first| (org, first)),
        None => None,
    };
    let Some((org, (address, reader, message_id))) = first else {
        return Ok(NextMail::At(reading.one(&NEXT_DUE, values![now])?));
    };
    let found: Vec<StoredMail> = match &message_id {
        Some(id) => reading.all(&OF_MESSAGE, values![id, MailBatch::MAX_MAILS])?,
        None => {
            let (critical, most) = (NewMail::CRITICAL, MailBatch::MAX_MAILS);
            let mut found: Vec<StoredMail> =
                reading.all(&CRITICAL_OF_READER, values![org, reader, join_until, critical, most])?;
            let left = most.saturating_sub(found.len());
            found.extend(
                reading
                    .all::<StoredMail>(&OTHERS_OF_READER, values![org, reader, join_until, critical, left])?,
            );
            found
        }
    };
    let mails = found.into_iter().map(|mail| described(reading, mail)).collect::<Result<_>>()?;
    let mailbox = mailbox_of(&address);
    Ok(NextMail::Due(Box::new(MailBatch {
        org: Some(org).filter(|org| *org != queue::no_organization()),
        address,
        message_id,
        mails,
        sent_today: day::count(reading, &Counted::ReaderOf(org, &reader), now)?,
        sent_today_by_all: day::count(reading, &Counted::Mailbox(&mailbox), now)?,
        last_sent_at: day::last(reading, &Counted::Mailbox(&mailbox), now)?,
        sent_today_of_organization: day::count(reading, &Counted::Organization(org), now)?,
    })))
}

fn next_organization(reading: &dyn Reading, now: Timestamp, last: Option<OrgId>) -> Result<Option<OrgId>> {
    let server = queue::no_organization();
    if reading.exists(&IS_DUE_OF, values![server, now])? {
        return Ok(Some(server));
    }
    let after = |org: OrgId| reading.one(&NEXT_ORGANIZATION, values![org, now]);
    match last {
        Some(last) => match after(last)? {
            None => after(server),
            found => Ok(found),
        },
        None => after(server),
    }
}

type FirstDue = (String, String, Option<String>);

fn first_due(reading: &dyn Reading, org: OrgId, now: Timestamp) -> Result<Option<FirstDue>> {
    reading.one(&FIRST_DUE, values![org, now])
}

fn described(reading: &dyn Reading, mail: StoredMail) -> Result<Mail> {
    let recipient = match (mail.app, mail.endpoint) {
        (None, _) => MailRecipient::Operator,
        (Some(app), Some(endpoint)) => MailRecipient::Endpoint(app, endpoint),
        (Some(app), None) if mail.kind == NewMail::CONFIRM => {
            MailRecipient::Unconfirmed(app, mail.address.clone())
        }
        (Some(app), None) => MailRecipient::Application(app),
    };
    let application: Option<(String, String)> = match mail.app {
        Some(app) => reading.one(&APPLICATION, values![app])?,
        None => None,
    };
    let application = application.map(|(name, metadata)| MailApplication { name, metadata });
    let endpoint = match mail.endpoint {
        Some(endpoint) => one_endpoint(reading, endpoint)?,
        None => None,
    };
    let permission = permission(reading, &mail, &recipient)?;
    let StoredMail { number, org, kind, body, more, created_at, attempts, .. } = mail;
    let org = Some(org).filter(|org| *org != queue::no_organization());
    Ok(Mail {
        number,
        org,
        recipient,
        kind,
        body,
        more,
        created_at,
        attempts,
        endpoint,
        application,
        permission,
    })
}

fn one_endpoint(reading: &dyn Reading, endpoint: EndpointId) -> Result<Option<MailEndpoint>> {
    let found: Option<(EndpointId, Option<String>, String, HealthStatus, bool, String)> =
        reading.one(&ENDPOINT, values![endpoint])?;
    let Some((id, name, url, status, disabled, metadata)) = found else { return Ok(None) };
    let mut pending = 0;
    reading.query(&PENDING, values![endpoint, MailEndpoint::MAX_COUNTED + 1], &mut |_| {
        pending += 1;
        Ok(())
    })?;
    Ok(Some(MailEndpoint { id, name, url, status, disabled, pending, metadata }))
}

fn permission(reading: &dyn Reading, mail: &StoredMail, recipient: &MailRecipient) -> Result<MailPermission> {
    let Some(app) = mail.app else { return Ok(MailPermission::Allowed) };
    if let MailRecipient::Unconfirmed(..) = recipient {
        // Once it is confirmed there is nothing to ask.
        let is_open = addresses::is_confirmed(reading, app, &mail.address)? == Some(false);
        return Ok(if is_open { MailPermission::Allowed } else { MailPermission::Unwanted });
    }
    let Some(address) = addresses::of_recipient(reading, recipient)? else {
        return Ok(MailPermission::Unwanted);
    };
    let subject = subject_of(app, mail.endpoint);
    let subscription = MailSubscription { subject, address };
    if !addresses::is_subscribed(reading, &subscription)? {
        return Ok(MailPermission::Unwanted);
    }
    let address = subscription.address;
    // A digest unsubscribes from all of an organization.
    let all = MailSubscription { subject: *mail.org.as_bytes(), address: address.clone() };
    if !addresses::is_subscribed(reading, &all)? {
        return Ok(MailPermission::Unwanted);
    }
    if address != mail.address {
        return Ok(MailPermission::Moved(address));
    }
    Ok(match addresses::is_confirmed(reading, app, &address)? {
        Some(true) => MailPermission::Allowed,
        _ => MailPermission::Unconfirmed(app),
    })
}
