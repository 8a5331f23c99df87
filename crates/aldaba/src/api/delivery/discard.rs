//! Discards deliveries: dead ones leave the dead letter, pending ones are cancelled.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Text};
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::{DeliveryQuestions, DeliverySelection, InvalidCursor};
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::{CancelMessages, DeliveryState, Discard, Discarded, DiscardedView};
use aldaba_delivery::{AppId, Reason};
use aldaba_engine::{Cancel, Cancelled};
use aldaba_store::{
    AuditAction, DeliveryFilter, DeliveryPosition, DeliveryStatus, DeliveryView, Order, Phase,
};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/cancel-msgs", Access::Manage, messages)
            .named(
                "v1.endpoint.cancel-msgs",
                "Cancels the pending deliveries of an endpoint that were accepted before a moment",
            )
            .takes::<CancelMessages>()
            .answers_nothing(),
        Route::post("/app/{app_id}/delivery/discard", Access::Manage, many)
            .named("v1.delivery.discard-many", "Discards dead deliveries, or cancels pending ones")
            .takes::<Discard>()
            .answers::<Discarded>(StatusCode::OK),
        Route::delete("/app/{app_id}/delivery/{delivery_id}", Access::Manage, one)
            .named("v1.delivery.discard", "Discards a dead delivery, or cancels a pending one")
            .answers_nothing()
            .may_conflict(),
    ]
}

/// Deliveries that one write discards.
const SLICE: usize = 250;
/// Slices in one request.
const MAX_SLICES: usize = 8;
/// Slices in one request that cannot be continued.
const MAX_CANCEL_SLICES: usize = 400;

fn cancel(app: AppId, status: &DeliveryStatus) -> Option<Cancel> {
    Some(Cancel { app, endpoint: status.endpoint, pending: status.waiting()? })
}

fn slice(phase: Phase, filter: DeliveryFilter, from: Option<DeliveryPosition>) -> DeliverySelection {
    DeliverySelection { phase, filter, from, order: Order::Ascending, limit: SLICE }
}

pub(crate) async fn one(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, id)): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let scope = api.ask(&caller).application(&app).await?;
    let (app, seq) = (scope.id, api.delivery_ids.read(&id)?);
    let entry = |action| api.engine.entry(caller.actor(), AuditAction::new(action, &id).of_app(app));
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let DeliveryView { status, .. } = scope.delivery(seq).await?;
        let Some(waiting) = cancel(app, &status) else {
            if status.state.reason().is_none() {
                let detail =
                    format!("The delivery {id} was delivered, or skipped: there is nothing to discard");
                return Err(Error::conflict(detail));
            }
            api.engine.discard(entry("delivery.discard"), app, vec![status.seq]).await?;
            return Ok(StatusCode::NO_CONTENT);
        };
        match api.engine.cancel(entry("delivery.cancel"), vec![waiting]).await?[..] {
            [Cancelled::Done] => return Ok(StatusCode::NO_CONTENT),
            [Cancelled::InFlight] => {
                let detail = "An attempt is being made at this moment; try again when it has ended";
                return Err(Error::later(StatusCode::CONFLICT, Code::InFlight, detail, 1));
            }
            _ => retry.wait().await?,
        }
    }
}

/// Works in slices, so that other requests do not wait long for the writer; the next request continues.
pub(crate) async fn many(
    State(api): State<Api>,
    caller: Caller,
    Ids(app): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    let scope = api.ask(&caller).application(&app).await?;
    let app = scope.id;
    let scope = DeliveryQuestions::Application(scope);
    let Parsed { value, mut fields } = body.read().await?.text().parse::<Discard>(false)?;
    let Discard { state, endpoint, event_type, reason, before, after, iterator } = value;
    let reason = fields.checked("reason", reason, |name| {
        let names = || Reason::ALL.map(Reason::name).join(", ");
        Reason::named(name).map(|_| ()).ok_or_else(|| format!("expected one of {}; it is {name}", names()))
    });
    let (before, after) = (json::given_moment(before.as_ref()), json::given_moment(after.as_ref()));
    let phase = if state == Some(DeliveryState::Pending) { Phase::Pending } else { Phase::Dead };
    fields.finish_in_order(Discard::KNOWN)?;
    let endpoint = match endpoint {
        Some(key) => Some(scope.endpoint_id(&key).await?),
        None => None,
    };
    let reason = reason.as_deref().and_then(Reason::named);
    let filter = DeliveryFilter { endpoint, event_type, reason, before, after };
    let mut from = match iterator {
        None => None,
        Some(text) => {
            let wrong = |error: InvalidCursor| Problem::value(&["body", "iterator"], error.to_string());
            let position = api.delivery_ids.position(text.parse().map_err(wrong)?);
            Some(position).filter(|position| scope.has(phase, *position))
        }
    };
    let (mut discarded, mut in_flight) = (0, 0);
    // One row of the audit log for all slices.
    let action = if phase == Phase::Dead { "delivery.discard" } else { "delivery.cancel" };
    let action = AuditAction { endpoint: filter.endpoint, ..AuditAction::new(action, "").of_app(app) };
    let entry = api.engine.entry(caller.actor(), action);
    for _ in 0..MAX_SLICES {
        let page = scope.deliveries(slice(phase, filter.clone(), from)).await?;
        let full = page.found.len() == SLICE;
        let last = page.found.last().map(|(position, _)| *position);
        let found: Vec<_> = page.found.into_iter().map(|(_, view)| view.status).collect();
        if phase == Phase::Dead {
            let seqs: Vec<_> = found.iter().map(|status| status.seq).collect();
            discarded +=
                if seqs.is_empty() { 0 } else { api.engine.discard(entry.clone(), app, seqs).await? };
        } else {
            let waiting = found.iter().filter_map(|status| cancel(app, status)).collect();
            let fates = api.engine.cancel(entry.clone(), waiting).await?;
            discarded += fates.iter().filter(|fate| **fate == Cancelled::Done).count();
            in_flight += fates.iter().filter(|fate| **fate == Cancelled::InFlight).count();
        }
        from = page.stopped.or(last.filter(|_| full));
        if from.is_none() {
            break;
        }
    }
    let iterator = from.map(|position| Text(api.delivery_ids.cursor(position)));
    let done = iterator.is_none();
    Ok(json::answer(StatusCode::OK, &DiscardedView { discarded, in_flight, iterator, done }))
}

/// Cancels the pending deliveries of an endpoint that were accepted before a moment.
pub(crate) async fn messages(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
    body: Pending,
) -> Result<StatusCode, Error> {
    let scope = api.ask(&caller).application(&app).await?;
    let endpoint = scope.endpoint(&endpoint).await?;
    let scope = DeliveryQuestions::Application(scope);
    let CancelMessages { created_before } = body.read().await?.text().parse(false)?.finish()?;
    let before = json::given_moment(Some(&created_before));
    let filter = DeliveryFilter { endpoint: Some(endpoint.id), before, ..DeliveryFilter::default() };
    let (mut from, mut left) = (None, false);
    let action = AuditAction::new("delivery.cancel", "").of_app(endpoint.app).at_endpoint(endpoint.id);
    let entry = api.engine.entry(caller.actor(), action);
    for _ in 0..MAX_CANCEL_SLICES {
        let page = scope.deliveries(slice(Phase::Pending, filter.clone(), from)).await?;
        let last = page.found.last().map(|(position, _)| *position);
        let full = page.found.len() == SLICE;
        let waiting = page.found.iter().filter_map(|(_, view)| cancel(endpoint.app, &view.status)).collect();
        let fates = api.engine.cancel(entry.clone(), waiting).await?;
        left |= fates.iter().any(|fate| *fate != Cancelled::Done);
        from = page.stopped.or(last.filter(|_| full));
        if from.is_none() && left {
            let detail = "Some were being sent at this moment, and may be tried again. Ask again for them";
            return Err(Error::later(StatusCode::SERVICE_UNAVAILABLE, Code::InFlight, detail, 1));
        }
        if from.is_none() {
            return Ok(StatusCode::NO_CONTENT);
        }
    }
    let detail = "Many were cancelled, and more wait. Ask again for the rest";
    Err(Error::later(StatusCode::SERVICE_UNAVAILABLE, Code::More, detail, 1))
}
