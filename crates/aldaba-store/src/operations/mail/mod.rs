//! Mails: the queue (`queue.rs`), what is read of it (`reading.rs`), the outages that owners were told of (`outage.rs`),
//! who may get mails (`addresses.rs`), and what is counted for a day (`day.rs`).

mod addresses;
mod day;
mod outage;
mod queue;
mod reader;
mod reading;

pub(crate) use addresses::{
    forget_addresses, forget_application, forget_endpoint, is_confirmed, is_subscribed,
};
pub(crate) use day::forget_counts;
pub(crate) use queue::{keep, remove_of_application};
pub(crate) use reading::next;

use super::{Batch, Result, Transaction};
use crate::{Change, MailChange, MailChanged};
use aldaba_delivery::{AppId, EndpointId};

pub(crate) fn change(batch: &mut Batch<'_>, change: &MailChange) -> Result<MailChanged> {
    let tx = batch.tx;
    let other = |rows: usize| Ok(MailChanged { mails: rows, left_out: 0 });
    match change {
        MailChange::Queue(mails) => {
            let mails = keep(tx, batch.numbers, mails)?;
            Ok(MailChanged { mails, left_out: 0 })
        }
        MailChange::Compose { mails, message_id } => other(queue::compose(tx, mails, message_id)?),
        MailChange::Sent { mails, address, at } => queue::sent(tx, mails, address, *at),
        MailChange::Retry { mails, due_at } => other(queue::set_due(tx, mails, *due_at, 1)?),
        MailChange::Postpone { mails, due_at } => other(queue::set_due(tx, mails, *due_at, 0)?),
        MailChange::Forget { mails } => queue::remove(tx, mails),
        MailChange::Readdress { mail, address } => other(queue::readdress(tx, *mail, address)?),
        MailChange::Unsubscribe { subscription, at } => other(addresses::unsubscribe(tx, subscription, *at)?),
        MailChange::Subscribe { subscription } => other(addresses::subscribe(tx, subscription)?),
        MailChange::AskConfirmation { app, address, at } => {
            other(addresses::ask(batch, *app, address, *at)?.into())
        }
        MailChange::Confirm { app, address, at } => other(addresses::confirm(tx, *app, address, *at)?),
    }
}

/// What the owner of an endpoint was before a change of the configuration.
pub(crate) fn owner_before(tx: &dyn Transaction, change: &Change) -> Result<Option<String>> {
    match change {
        Change::UpdateEndpoint { endpoint, .. } => addresses::owner(tx, endpoint.id),
        _ => Ok(None),
    }
}

/// Whether an address that a change gives can be kept.
pub(crate) fn has_room(
    tx: &dyn Transaction,
    change: &Change,
    owner_before: Option<&str>,
    by_portal: bool,
) -> Result<bool> {
    match change {
        Change::CreateEndpoint { endpoint, .. } | Change::UpdateEndpoint { endpoint, .. } => {
            match endpoint.config.owner_email.as_deref() {
                Some(owner) if Some(owner) != owner_before => {
                    addresses::has_room(tx, endpoint.app, owner, by_portal, endpoint.updated_at)
                }
                _ => Ok(true),
            }
        }
        _ => Ok(true),
    }
}

/// What follows from a change of the configuration: who gave an address may decide whether it has to be confirmed, and an outage
/// that its owner was told of may have been ended by a person.
pub(crate) fn after_change(
    batch: &mut Batch<'_>,
    change: &Change,
    owner_before: Option<&str>,
    by_portal: bool,
) -> Result<()> {
    match change {
        Change::CreateEndpoint { endpoint, .. } | Change::UpdateEndpoint { endpoint, .. } => {
            let owner = endpoint.config.owner_email.as_deref();
            if let Some(address) = owner.filter(|_| owner != owner_before) {
                addresses::given(batch, endpoint.app, address, by_portal, endpoint.updated_at)?;
            }
            if matches!(change, Change::UpdateEndpoint { .. }) {
                outage::after_operator(batch, (endpoint.app, endpoint.id), endpoint.updated_at)?;
            }
            Ok(())
        }
        Change::ResumeEndpoint { app, endpoint, at, .. } => {
            outage::after_operator(batch, (*app, *endpoint), *at)
        }
        _ => Ok(()),
    }
}

/// The key of an endpoint or an application among those who want no mails.
fn subject_of(app: AppId, endpoint: Option<EndpointId>) -> [u8; 20] {
    endpoint.map_or(*app.as_bytes(), |endpoint| *endpoint.as_bytes())
}

#[cfg(any(test, feature = "conformance"))]
pub(super) fn all_statements() -> Vec<&'static super::Statement> {
    [
        addresses::statements(),
        day::statements(),
        outage::statements(),
        queue::statements(),
        reading::statements(),
    ]
    .concat()
}
