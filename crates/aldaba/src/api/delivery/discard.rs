//! Discards deliveries: dead ones leave the dead letter, pending ones are cancelled.

use crate::actions::{self, DiscardedSlices, Discarding, SLICE, cancel, slice};
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Text};
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::{DeliveryQuestions, InvalidCursor};
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::{CancelMessages, DeliveryState, Discard, Discarded, DiscardedView};
use aldaba_delivery::Reason;
use aldaba_engine::Cancelled;
use aldaba_store::{AuditAction, DeliveryFilter, Phase};
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

/// Slices in one request that cannot be continued.
const MAX_CANCEL_SLICES: usize = 400;

pub(crate) async fn one(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, id)): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let scope = api.ask(&caller).application(&app).await?;
    let seq = api.delivery_ids.read(&id)?;
    match actions::discard_one(&api, &caller, &scope, (&id, seq)).await? {
        Discarding::Discarded | Discarding::Cancelled => Ok(StatusCode::NO_CONTENT),
        Discarding::NothingToDo => {
            let detail = format!("The delivery {id} was delivered, or skipped: there is nothing to discard");
            Err(Error::conflict(detail))
        }
        Discarding::InFlight => {
            let detail = "An attempt is being made at this moment; try again when it has ended";
            Err(Error::later(StatusCode::CONFLICT, Code::InFlight, detail, 1))
        }
    }
}

pub(crate) async fn many(
    State(api): State<Api>,
    caller: Caller,
    Ids(app): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    let scope = api.ask(&caller).application(&app).await?;
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
    let from = match iterator {
        None => None,
        Some(text) => {
            let wrong = |error: InvalidCursor| Problem::value(&["body", "iterator"], error.to_string());
            let position = api.delivery_ids.position(text.parse().map_err(wrong)?);
            Some(position).filter(|position| scope.has(phase, *position))
        }
    };
    let DeliveryQuestions::Application(scope) = scope else { return Err(Error::server()) };
    let done = actions::discard_many(&api, &caller, scope, (phase, filter), from).await?;
    let DiscardedSlices { discarded, in_flight, next: from } = done;
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
