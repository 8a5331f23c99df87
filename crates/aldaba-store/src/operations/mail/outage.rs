//! Outages of endpoints that their owners were told of: each step is told once, and the end only where something was told.

use super::queue;
use crate::operations::codes::Code;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Batch, Result, Transaction};
use crate::{MailRecipient, NewMail, OutageMail};
use aldaba_delivery::{AppId, EndpointId, HealthStatus, OrgId, Timestamp};

statements! {
    LEVEL = "SELECT level FROM mail_outage WHERE endpoint = ?1";
    SET_LEVEL = "INSERT INTO mail_outage (endpoint, level) VALUES (?1, ?2)
        ON CONFLICT (endpoint) DO UPDATE SET level = excluded.level";
    END = "DELETE FROM mail_outage WHERE endpoint = ?1";
    HEALTH = "SELECT org, health_status, health_failure_count, disabled FROM endpoint WHERE id = ?1";
}

const WARNED: u32 = 1;
const GIVEN_UP: u32 = 2;
const FAILED: u32 = 3;

/// The level of a mail that says that an endpoint fails.
fn level_of(says: OutageMail) -> Option<u32> {
    match says {
        OutageMail::Warning => Some(WARNED),
        OutageMail::GivenUp => Some(GIVEN_UP),
        OutageMail::Failed => Some(FAILED),
        OutageMail::Over => None,
    }
}

/// Whether a mail says something that was not said yet. `has_reader`: somebody gets it.
pub(super) fn is_to_be_told(tx: &dyn Transaction, mail: &NewMail, has_reader: bool) -> Result<bool> {
    let (Some(says), MailRecipient::Endpoint(_, endpoint)) = (mail.outage, &mail.recipient) else {
        return Ok(has_reader);
    };
    let told: u32 = tx.one(&LEVEL, values![endpoint])?.unwrap_or_default();
    match level_of(says) {
        Some(level) => Ok(has_reader && told < level),
        None => {
            if told > 0 {
                tx.execute(&END, values![endpoint])?;
            }
            Ok(has_reader && told > 0)
        }
    }
}

/// A mail was queued. One that was left out for want of room has told nobody anything.
pub(super) fn told(tx: &dyn Transaction, mail: &NewMail) -> Result<()> {
    if let (Some(level), MailRecipient::Endpoint(_, endpoint)) =
        (mail.outage.and_then(level_of), &mail.recipient)
    {
        tx.execute(&SET_LEVEL, values![endpoint, level])?;
    }
    Ok(())
}

/// After a change by a person: an endpoint that is active without a failure is out of the outage.
pub(super) fn after_operator(
    batch: &mut Batch<'_>,
    (app, endpoint): (AppId, EndpointId),
    at: Timestamp,
) -> Result<()> {
    let tx = batch.tx;
    if !tx.exists(&LEVEL, values![endpoint])? {
        return Ok(());
    }
    let Some((org, status, failures, is_off)) =
        tx.one::<(OrgId, i64, u32, bool)>(&HEALTH, values![endpoint])?
    else {
        return Ok(());
    };
    if is_off || failures > 0 || HealthStatus::from_code(status)? != HealthStatus::Active {
        return Ok(());
    }
    let mail = NewMail {
        org: Some(org),
        recipient: MailRecipient::Endpoint(app, endpoint),
        kind: NewMail::RESUMED.into(),
        body: "{}".into(),
        created_at: at,
        due_at: at,
        outage: Some(OutageMail::Over),
    };
    queue::keep(tx, batch.numbers, &[mail]).map(drop)
}

pub(super) fn forget(tx: &dyn Transaction, endpoint: EndpointId) -> Result<()> {
    tx.execute(&END, values![endpoint]).map(drop)
}
