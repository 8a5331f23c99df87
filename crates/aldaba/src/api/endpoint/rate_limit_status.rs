//! Tells whether a rate limit delays an endpoint's deliveries.

use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{Throttling, ThrottlingStatus, ThrottlingView};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/rate-limit-status", Access::Read, show)
            .named("v1.endpoint.get-throttling-status", "Shows whether a rate limit delays deliveries")
            .answers::<Throttling>(StatusCode::OK),
    ]
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let throttled_since = api.engine.throttled_since(endpoint.id).await;
    let out = ThrottlingView {
        status: match throttled_since {
            Some(_) => ThrottlingStatus::RateLimited,
            None => ThrottlingStatus::Fine,
        },
        throttled_since: throttled_since.map(Moment),
        throttle_rate: endpoint.config.throttle_rate,
        application_throttle_rate: app.throttle_rate,
    };
    Ok(json::answer(StatusCode::OK, &out))
}
