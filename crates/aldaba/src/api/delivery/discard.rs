//! Deliveries that need not arrive any more: dead ones leave the dead letter, waiting ones are
//! cancelled.

use super::find;
use super::query::{Owner, WALK, Written, phase};
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, ReadField};
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error, endpoint};
use crate::token::Caller;
use aldaba_delivery::AppId;
use aldaba_engine::{Cancel, Cancelled};
use aldaba_store::{
    AuditAction, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryStatus, DeliveryView, Order, Phase,
};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/cancel-msgs", Access::Manage, messages)
            .named(
                "v1.endpoint.cancel-msgs",
                "Cancels what waits for an endpoint and was accepted before a moment",
            )
            .takes::<CancelIn>()
            .answers_nothing(),
        Route::post("/app/{app_id}/delivery/discard", Access::Manage, many)
            .named("v1.delivery.discard-many", "Discards dead deliveries, or cancels waiting ones")
            .takes::<DiscardIn>()
            .answers::<DiscardOut>(StatusCode::OK),
        Route::delete("/app/{app_id}/delivery/{delivery_id}", Access::Manage, one)
            .named("v1.delivery.discard", "Discards a dead delivery, or cancels a waiting one")
            .answers_nothing()
            .may_conflict(),
    ]
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct CancelIn {
    #[schema(value_type = String, format = DateTime)]
    created_before: String,
}

example!(CancelIn, {"createdBefore": "2025-01-31T12:00:00Z"});

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct DiscardIn {
    /// `dead` (default) or `pending`.
    state: Option<String>,
    endpoint: Option<String>,
    event_type: Option<String>,
    reason: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    before: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    after: Option<String>,
    iterator: Option<String>,
}

example!(DiscardIn, {"state": "dead", "eventType": "invoice.paid"});

/// How many are discarded in one write, and how many reads and writes one request may take.
const SLICE: usize = 250;
const SLICES: usize = 8;
/// The same for one that has no way to go on where it was.
const MOST_SLICES: usize = 400;
/// Of a request to discard many.
const FIELDS: &[&str] = &["state", "endpoint", "eventType", "reason", "before", "after", "iterator"];

fn cancel(app: AppId, status: &DeliveryStatus) -> Option<Cancel> {
    Some(Cancel { app, endpoint: status.endpoint, pending: status.waiting()? })
}

pub(crate) async fn one(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, id)): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let app = api.application(&caller, app).await?.id;
    let entry = |action| api.engine.entry(caller.actor(), AuditAction::new(action, &id).of_app(app));
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let DeliveryView { status, .. } = find(&api, app, &id).await?;
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

#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DiscardOut {
    discarded: usize,
    /// Waiting ones that were being sent, and were left alone.
    in_flight: usize,
    /// Where to go on.
    iterator: Option<String>,
    done: bool,
}

/// In slices, so that nobody waits long for the writer; what is left is for the next request.
pub(crate) async fn many(
    State(api): State<Api>,
    caller: Caller,
    Ids(app): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    let app = api.application(&caller, app).await?.id;
    let mut fields = body.read().await?.text().fields()?;
    fields.refuse_others(FIELDS);
    let state = fields.string("state");
    let iterator = fields.string("iterator");
    let written = Written {
        endpoint: fields.string("endpoint"),
        event_type: fields.string("eventType"),
        reason: fields.string("reason"),
        before: fields.string("before"),
        after: fields.string("after"),
    };
    fields.finish()?;
    let phase = match phase(state.as_deref(), &["body", "state"])? {
        Phase::Any | Phase::Dead => Phase::Dead,
        Phase::Pending => Phase::Pending,
        Phase::Settled | Phase::Delivered => {
            let message = "expected dead or pending: what was delivered cannot be discarded";
            return Err(Problem::value(&["body", "state"], message).into());
        }
    };
    let filter = written.read(&api, Owner::Application(app), "body").await?;
    let list = DeliveryList::Of(app, phase);
    let mut from = match iterator {
        None => None,
        Some(text) => {
            let wrong = |error: super::id::NoCursor| Problem::value(&["body", "iterator"], error.to_string());
            Some(api.delivery_ids.place(text.parse().map_err(wrong)?)).filter(|place| list.has(*place))
        }
    };
    let mut out = DiscardOut::default();
    // One row for all slices.
    let action = if phase == Phase::Dead { "delivery.discard" } else { "delivery.cancel" };
    let action = AuditAction { endpoint: filter.endpoint, ..AuditAction::new(action, "").of_app(app) };
    let entry = api.engine.entry(caller.actor(), action);
    for _ in 0..SLICES {
        let query = DeliveriesQuery {
            list,
            filter: filter.clone(),
            from,
            order: Order::Ascending,
            limit: SLICE,
            walk: WALK,
        };
        let page = api.engine.store().delivery_list(query).await?;
        let full = page.found.len() == SLICE;
        let last = page.found.last().map(|(place, _)| *place);
        let found: Vec<_> = page.found.into_iter().map(|(_, view)| view.status).collect();
        if phase == Phase::Dead {
            let seqs: Vec<_> = found.iter().map(|status| status.seq).collect();
            out.discarded +=
                if seqs.is_empty() { 0 } else { api.engine.discard(entry.clone(), app, seqs).await? };
        } else {
            let waiting = found.iter().filter_map(|status| cancel(app, status)).collect();
            let fates = api.engine.cancel(entry.clone(), waiting).await?;
            out.discarded += fates.iter().filter(|fate| **fate == Cancelled::Done).count();
            out.in_flight += fates.iter().filter(|fate| **fate == Cancelled::InFlight).count();
        }
        from = page.stopped.or(last.filter(|_| full));
        out.done = from.is_none();
        if out.done {
            break;
        }
    }
    out.iterator = from.map(|place| api.delivery_ids.cursor(place).to_string());
    Ok(json::answer(StatusCode::OK, &out))
}

/// Cancels what waits for an endpoint and was accepted before a moment.
pub(crate) async fn messages(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    body: Pending,
) -> Result<StatusCode, Error> {
    let endpoint = endpoint::find(&api, &caller, keys).await?;
    let mut fields = body.read().await?.text().fields()?;
    fields.refuse_others(&["createdBefore"]);
    let before = fields.moment("createdBefore");
    if before.is_none() && !fields.has_problem() {
        fields.problem("createdBefore", "this field is required: what was accepted before it is cancelled");
    }
    fields.finish()?;
    let filter = DeliveryFilter { endpoint: Some(endpoint.id), before, ..DeliveryFilter::default() };
    let (mut from, mut left) = (None, false);
    let action = AuditAction::new("delivery.cancel", "").of_app(endpoint.app).at_endpoint(endpoint.id);
    let entry = api.engine.entry(caller.actor(), action);
    for _ in 0..MOST_SLICES {
        let query = DeliveriesQuery {
            list: DeliveryList::Of(endpoint.app, Phase::Pending),
            filter: filter.clone(),
            from,
            order: Order::Ascending,
            limit: SLICE,
            walk: WALK,
        };
        let page = api.engine.store().delivery_list(query).await?;
        let last = page.found.last().map(|(place, _)| *place);
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
