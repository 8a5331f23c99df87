//! Discards deliveries: dead ones leave the dead letter, pending ones are cancelled.

use crate::api::Api;
use crate::questions::{ApplicationQuestions, DeliveryQuestions, DeliverySelection, Error};
use crate::token::Caller;
use aldaba_delivery::AppId;
use aldaba_engine::{Cancel, Cancelled, ChangeError};
use aldaba_store::{
    AuditAction, DeliveryFilter, DeliveryPosition, DeliveryStatus, DeliveryView, Order, Phase, Seq,
};

/// Deliveries that one write discards.
pub(crate) const SLICE: usize = 250;
/// Slices in one request.
const MAX_SLICES: usize = 8;

/// What became of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discarding {
    Discarded,
    Cancelled,
    /// An attempt is being made, and decides.
    InFlight,
    /// It was delivered, or skipped.
    NothingToDo,
}

/// What a request has discarded, and where the next one goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiscardedSlices {
    pub(crate) discarded: usize,
    pub(crate) in_flight: usize,
    /// `None`: that was all.
    pub(crate) next: Option<DeliveryPosition>,
}

pub(crate) fn cancel(app: AppId, status: &DeliveryStatus) -> Option<Cancel> {
    Some(Cancel { app, endpoint: status.endpoint, pending: status.waiting()? })
}

pub(crate) fn slice(
    phase: Phase,
    filter: DeliveryFilter,
    from: Option<DeliveryPosition>,
) -> DeliverySelection {
    DeliverySelection { phase, filter, from, order: Order::Ascending, limit: SLICE }
}

/// `id`: the public id of the delivery, for the audit log.
pub(crate) async fn discard_one(
    api: &Api,
    caller: &Caller,
    scope: &ApplicationQuestions<'_>,
    (id, seq): (&str, Seq),
) -> Result<Discarding, DiscardError> {
    let app = scope.id;
    let entry = |action| api.engine.entry(caller.actor(), AuditAction::new(action, id).of_app(app));
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let DeliveryView { status, .. } = scope.delivery(seq).await?;
        let Some(waiting) = cancel(app, &status) else {
            if status.state.reason().is_none() {
                return Ok(Discarding::NothingToDo);
            }
            api.engine
                .discard(entry("delivery.discard"), app, vec![status.seq])
                .await
                .map_err(Error::from)?;
            return Ok(Discarding::Discarded);
        };
        match api.engine.cancel(entry("delivery.cancel"), vec![waiting]).await.map_err(Error::from)?[..] {
            [Cancelled::Done] => return Ok(Discarding::Cancelled),
            [Cancelled::InFlight] => return Ok(Discarding::InFlight),
            _ => retry.wait().await?,
        }
    }
}

/// Works in slices, so that other requests do not wait long for the writer; the next request continues. All slices have one row of the
/// audit log.
pub(crate) async fn discard_many(
    api: &Api,
    caller: &Caller,
    scope: ApplicationQuestions<'_>,
    (phase, filter): (Phase, DeliveryFilter),
    from: Option<DeliveryPosition>,
) -> Result<DiscardedSlices, Error> {
    let app = scope.id;
    let scope = DeliveryQuestions::Application(scope);
    let action = if phase == Phase::Dead { "delivery.discard" } else { "delivery.cancel" };
    let action = AuditAction { endpoint: filter.endpoint, ..AuditAction::new(action, "").of_app(app) };
    let entry = api.engine.entry(caller.actor(), action);
    let mut done = DiscardedSlices { next: from, ..DiscardedSlices::default() };
    for _ in 0..MAX_SLICES {
        let page = scope.deliveries(slice(phase, filter.clone(), done.next)).await?;
        let full = page.found.len() == SLICE;
        let last = page.found.last().map(|(position, _)| *position);
        let found: Vec<_> = page.found.into_iter().map(|(_, view)| view.status).collect();
        if phase == Phase::Dead {
            let seqs: Vec<_> = found.iter().map(|status| status.seq).collect();
            done.discarded +=
                if seqs.is_empty() { 0 } else { api.engine.discard(entry.clone(), app, seqs).await? };
        } else {
            let waiting = found.iter().filter_map(|status| cancel(app, status)).collect();
            let fates = api.engine.cancel(entry.clone(), waiting).await?;
            done.discarded += fates.iter().filter(|fate| **fate == Cancelled::Done).count();
            done.in_flight += fates.iter().filter(|fate| **fate == Cancelled::InFlight).count();
        }
        done.next = page.stopped.or(last.filter(|_| full));
        if done.next.is_none() {
            break;
        }
    }
    Ok(done)
}

/// Why nothing was discarded.
#[derive(Debug)]
pub(crate) enum DiscardError {
    Question(Error),
    /// Others keep changing the delivery.
    Change(ChangeError),
}

impl From<Error> for DiscardError {
    fn from(error: Error) -> Self {
        Self::Question(error)
    }
}

impl From<ChangeError> for DiscardError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}
