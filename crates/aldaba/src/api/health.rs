use super::auth::Access;
use super::routes::Route;
use super::{Api, json};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;
use utoipa::ToSchema;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/health", Access::Open, check)
            .named("v1.health.get", "Tells whether the server can do its work")
            .answers::<HealthReport>(StatusCode::OK)
            .answers::<HealthReport>(StatusCode::SERVICE_UNAVAILABLE),
        Route::get("/health/ping", Access::Open, ping).named("v1.health.ping", "Answers").answers_nothing(),
        Route::post("/admin/redrive-dlq", Access::Administer, ping)
            .named("v1.admin.redrive-dlq", "Does nothing: no work of the server is ever set aside in a queue")
            .answers_nothing(),
    ]
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document")]
struct HealthReport {
    database: PartHealth,
    queue: PartHealth,
    cache: PartHealth,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document")]
struct PartHealth {
    /// `ok` or `error`.
    status: String,
}

/// Whether the server can do its work. Queue and cache are in the database and in memory; they are
/// named because clients of this API look for them.
pub(super) async fn check(State(api): State<Api>) -> Response {
    match api.engine.store().check().await {
        Ok(()) => {
            let ok = json!({"status": "ok"});
            json::answer(StatusCode::OK, &json!({"database": ok, "queue": ok, "cache": ok}))
        }
        Err(error) => {
            tracing::warn!(%error, "the health check fails");
            let down = json!({"status": "error"});
            let body = json!({"database": down, "queue": down, "cache": {"status": "ok"}});
            json::answer(StatusCode::SERVICE_UNAVAILABLE, &body)
        }
    }
}

pub(super) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}
