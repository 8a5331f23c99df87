//! Tells whether an endpoint would receive a message, before it is sent.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::{Precheck, Prechecked, PrecheckedView};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/precheck/active", Access::Precheck, active)
            .named("v1.message.precheck", "Shows whether an endpoint would receive such a message")
            .takes::<Precheck>()
            .answers::<Prechecked>(StatusCode::OK),
    ]
}

async fn active(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let Precheck { event_type, channels } = pending.read().await?.text().parse(false)?.finish()?;
    let channels = channels.unwrap_or_default();
    let found = api.engine.has_subscriber(&application.by_id(), &event_type, &channels).await?;
    let active = found.ok_or(Missing::Application)?;
    Ok(json::answer(StatusCode::OK, &PrecheckedView { active }))
}
