//! Whether anybody would get a message, before it is sent.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::variant::Described;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::Precheck;
use aldaba_store::ApplicationRef;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/precheck/active", Access::Precheck, active)
            .named("v1.message.precheck", "Tells whether an endpoint would get such a message")
            .takes::<Described<Precheck>>()
            .answers::<MessagePrecheckOut>(StatusCode::OK),
    ]
}

#[derive(Serialize, ToSchema)]
struct MessagePrecheckOut {
    /// An endpoint that is not turned off wants such messages, or has a filter that may.
    active: bool,
}

async fn active(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.application(&caller, key).await?;
    let Precheck { event_type, channels } = pending.read().await?.text().parse(false)?.finish()?;
    let which = ApplicationRef { org: application.org, key: application.id.to_string() };
    let found = api.engine.has_subscriber(&which, &event_type, &channels.unwrap_or_default()).await?;
    let active =
        found.ok_or_else(|| Error::not_found("There is no such application; GET /api/v1/app lists them"))?;
    Ok(json::answer(StatusCode::OK, &MessagePrecheckOut { active }))
}
