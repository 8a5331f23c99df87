//! What is next in the queue, with what is known of it now.

use super::{addresses, queue, subject_of};
use crate::operations::column::{Columns, FromRow};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result};
use crate::{
    Mail, MailApplication, MailBatch, MailEndpoint, MailNumber, MailPermission, MailRecipient,
    MailSubscription, NewMail, NextMail, Quota,
};
use aldaba_delivery::{AppId, EndpointId, HealthStatus, OrgId, Timestamp};

const COLUMNS: &str = "seq, org, app, endpoint, address, kind, body, more, created_at, attempts";

statements! {
    FIRST_DUE = "SELECT address, message_id FROM mail WHERE due_at <= ?1 ORDER BY due_at, seq LIMIT 1";
    NEXT_DUE = "SELECT due_at FROM mail WHERE due_at > ?1 ORDER BY due_at LIMIT 1";
    OF_MESSAGE = format!("SELECT {COLUMNS} FROM mail WHERE message_id = ?1 ORDER BY seq LIMIT ?2");
    OF_ADDRESS = format!(
        "SELECT {COLUMNS} FROM mail WHERE address = ?1 AND message_id IS NULL AND due_at <= ?2 ORDER BY seq LIMIT ?3"
    );
    SENT_TODAY = "SELECT count FROM mail_day WHERE day = ?1 AND address = ?2";
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

pub(crate) fn next(reading: &dyn Reading, now: Timestamp, join_until: Timestamp) -> Result<NextMail> {
    let Some((address, message_id)) = reading.one::<(String, Option<String>)>(&FIRST_DUE, values![now])?
    else {
        return Ok(NextMail::At(reading.one(&NEXT_DUE, values![now])?));
    };
    let found: Vec<StoredMail> = match &message_id {
        Some(id) => reading.all(&OF_MESSAGE, values![id, MailBatch::MAX_MAILS])?,
        None => reading.all(&OF_ADDRESS, values![address, join_until, MailBatch::MAX_MAILS])?,
    };
    let sent_today = reading.one(&SENT_TODAY, values![Quota::day_of(now), address])?.unwrap_or_default();
    let mails = found.into_iter().map(|mail| described(reading, mail)).collect::<Result<_>>()?;
    Ok(NextMail::Due(Box::new(MailBatch { address, message_id, mails, sent_today })))
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
    if address != mail.address {
        return Ok(MailPermission::Moved(address));
    }
    Ok(match addresses::is_confirmed(reading, app, &address)? {
        Some(true) => MailPermission::Allowed,
        _ => MailPermission::Unconfirmed(app),
    })
}
