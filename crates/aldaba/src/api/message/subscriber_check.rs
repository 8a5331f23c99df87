//! Tells whether an endpoint would receive a message, before it is sent.

use super::body::MAX_CHANNELS;
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Fields};
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/precheck/active", Access::Precheck, active)
            .named("v1.message.precheck", "Shows whether an endpoint would receive such a message")
            .takes::<MessagePrecheckIn>()
            .answers::<MessagePrecheckOut>(StatusCode::OK),
    ]
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct MessagePrecheckIn {
    #[schema(min_length = 1, max_length = 256, pattern = "^[a-zA-Z0-9\\-_.]+$")]
    event_type: String,
    #[schema(min_items = 1, max_items = 10)]
    channels: Option<Vec<String>>,
}

example!(MessagePrecheckIn, {"eventType": "invoice.paid", "channels": ["billing"]});

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
    let application = api.ask(&caller).application(&key).await?;
    let mut fields = Fields::parse(&pending.read().await?.bytes)?;
    let event_type = fields.required_string("eventType");
    let event_type = fields.checked("eventType", event_type, |name| ids::name(name));
    let channels = fields.set("channels", MAX_CHANNELS, ids::channel);
    fields.finish()?;
    let event_type = event_type.unwrap_or_default();
    let found = api.engine.has_subscriber(&application.by_id(), &event_type, &channels).await?;
    let active = found.ok_or(Missing::Application)?;
    Ok(json::answer(StatusCode::OK, &MessagePrecheckOut { active }))
}
