//! Tells whether a rate limit delays an endpoint's deliveries.

use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::Timestamp;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/rate-limit-status", Access::Read, show)
            .named("v1.endpoint.get-throttling-status", "Shows whether a rate limit delays deliveries")
            .answers::<EndpointThrottleRateStatusOut>(StatusCode::OK),
    ]
}

#[derive(Serialize, ToSchema)]
enum EndpointRateLimitStatus {
    Ok,
    RateLimited,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EndpointThrottleRateStatusOut {
    status: EndpointRateLimitStatus,
    /// Since when there has always been something that is due and has to wait for a rate.
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    throttled_since: Option<Timestamp>,
    /// Of the endpoint: requests a second.
    throttle_rate: Option<u16>,
    /// Of its application: to all endpoints together.
    application_throttle_rate: Option<u16>,
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let throttled_since = api.engine.throttled_since(endpoint.id).await;
    let out = EndpointThrottleRateStatusOut {
        status: match throttled_since {
            Some(_) => EndpointRateLimitStatus::RateLimited,
            None => EndpointRateLimitStatus::Ok,
        },
        throttled_since,
        throttle_rate: endpoint.config.throttle_rate,
        application_throttle_rate: app.throttle_rate,
    };
    Ok(json::answer(StatusCode::OK, &out))
}
