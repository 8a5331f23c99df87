//! What is to be written of an event, by one version of its application.

use super::{Direct, Intake, NewEvent, SendError};
use crate::intake::matching::{MAX_INLINE_MATCH_COST, match_cost, matching_endpoints};
use aldaba_delivery::{MessageId, OrgId, Timestamp};
use aldaba_store::{Accept, Content, IdempotencyKey, NewDelivery, NewMessage, Quota, Subscription, Tenant};
use std::sync::Arc;
use std::time::Duration;

/// How far ahead a message may be scheduled.
const MAX_DELIVER_AT_DELAY: Duration = Duration::from_secs(366 * 24 * 3600);

/// How many messages may be sent on a day (UTC). `None`: any number. The store counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By all applications of an organization together.
    pub organization: Option<u64>,
    pub application: Option<u64>,
}

impl Quotas {
    pub(super) fn of(self, org: OrgId) -> Option<Quota> {
        let Self { organization, application } = self;
        let any = organization.is_some() || application.is_some();
        any.then_some(Quota { org, organization, application })
    }
}

impl Intake {
    /// The message with its deliveries.
    pub(super) async fn matched(
        &self,
        tenant: &Arc<Tenant>,
        event: &NewEvent,
        content: &Arc<Content>,
        now: Timestamp,
        quotas: Quotas,
    ) -> Accept {
        let accept = self.unmatched(tenant, event, content, now);
        let due_at = accept.message.deliver_at.unwrap_or(now);
        let deliveries = self.match_one(tenant, event, due_at).await;
        Accept { deliveries, quota: quotas.of(tenant.application.org), ..accept }
    }

    /// The message without deliveries.
    pub(super) fn unmatched(
        &self,
        tenant: &Tenant,
        event: &NewEvent,
        content: &Arc<Content>,
        now: Timestamp,
    ) -> Accept {
        let direct = event.direct.as_ref();
        Accept {
            org: tenant.application.org,
            app: tenant.application.id,
            version: tenant.version,
            message: NewMessage {
                id: MessageId::new(now, self.entropy.bytes()),
                content: content.clone(),
                channels: event.channels.clone(),
                tags: event.tags.clone(),
                headers: event.headers.clone(),
                event_id_until: event.source.as_ref().map(|source| now + source.event_id_kept),
                created_at: now,
                deliver_at: event.deliver_at.filter(|at| *at > now),
                payload_until: event.payload_kept.map(|kept| now + kept),
                only_for: direct.map(|direct| direct.address.id).or(event.only_for),
                job: direct.and_then(|direct| direct.job.clone()),
            },
            deliveries: Vec::new(),
            idempotency: event
                .once
                .map(|digest| IdempotencyKey { digest, expires_at: now + self.idempotency_kept }),
            quota: None,
            direct: direct.map(|direct| direct.address.clone()),
            creates: None,
        }
    }

    /// The deliveries of an event. Expensive matching runs on the blocking pool.
    pub(super) async fn match_one(
        &self,
        tenant: &Arc<Tenant>,
        event: &NewEvent,
        due_at: Timestamp,
    ) -> Vec<NewDelivery> {
        if match_cost(tenant, event.payload.len()) <= MAX_INLINE_MATCH_COST || event.direct.is_some() {
            return deliveries(tenant, event, due_at);
        }
        let (tenant, event) = (tenant.clone(), event.clone());
        self.matching.run(move || deliveries(&tenant, &event, due_at)).await
    }
}

/// Refuses other events for an application of a source: their event ids could be mistaken for those of the source's sender.
/// An example for one endpoint has no event id.
pub(super) fn check_source(tenant: &Tenant, event: &NewEvent) -> Result<(), SendError> {
    match tenant.source {
        Some(source) if event.source.is_none() && event.only_for.is_none() => {
            Err(SendError::OfSource(source))
        }
        _ => Ok(()),
    }
}

fn deliveries(tenant: &Tenant, event: &NewEvent, due_at: Timestamp) -> Vec<NewDelivery> {
    if let Some(Direct { address, .. }) = &event.direct {
        return vec![NewDelivery { endpoint: address.id, due_at, ordered: false, skipped: None }];
    }
    let facts = event.facts();
    let is_for = |endpoint: &&Subscription| event.only_for.is_none_or(|only| only == endpoint.id);
    let delivery = |endpoint: &Subscription| NewDelivery {
        endpoint: endpoint.id,
        due_at,
        ordered: endpoint.ordered,
        skipped: endpoint.skips(),
    };
    matching_endpoints(tenant, &facts).filter(is_for).map(delivery).collect()
}

/// Refuses a delivery time that is too far ahead.
pub(super) fn check_delay(accept: &Accept) -> Result<(), SendError> {
    match accept.message.deliver_at {
        Some(deliver_at) if deliver_at > accept.message.created_at + MAX_DELIVER_AT_DELAY => {
            Err(SendError::TooFarAhead)
        }
        _ => Ok(()),
    }
}
