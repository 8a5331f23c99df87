mod readiness;

pub(crate) use readiness::StoreProbe;

use crate::api::Api;
use crate::api::request::json;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::questions::PublicQuestions;
use aldaba_engine::ClockState;
use aldaba_store::RestartedTask;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use readiness::ReadinessReport;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/health", Access::Open, check)
            .named("v1.health.get", "Shows whether the server can do its work")
            .answers::<HealthReport>(StatusCode::OK)
            .answers::<HealthReport>(StatusCode::SERVICE_UNAVAILABLE)
            .any_query(),
        Route::get("/health/live", Access::Open, live)
            .named("v1.health.live", "Shows that the server responds; it depends on nothing else")
            .answers::<LivenessReport>(StatusCode::OK)
            .any_query(),
        Route::get("/health/ready", Access::Open, readiness::check)
            .named("v1.health.ready", "Shows whether messages are accepted and delivered, check by check")
            .answers::<ReadinessReport>(StatusCode::OK)
            .answers::<ReadinessReport>(StatusCode::SERVICE_UNAVAILABLE)
            .any_query(),
        Route::get("/health/ping", Access::Open, ping)
            .named("v1.health.ping", "Responds")
            .answers_nothing()
            .any_query(),
        Route::post("/admin/redrive-dlq", Access::Administer, ping)
            .named("v1.admin.redrive-dlq", "Does nothing: the server has no queue of failed internal work")
            .answers_nothing(),
    ]
}

#[derive(Serialize, ToSchema)]
struct LivenessReport {
    /// Always `ok`.
    status: &'static str,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document")]
struct HealthReport {
    database: PartHealth,
    queue: PartHealth,
    cache: PartHealth,
    background: BackgroundHealth,
    /// What the server thinks of the machine's clock.
    clock: Option<ClockHealth>,
    tokens: TokensHealth,
    delivering: DeliveringHealth,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document")]
struct DeliveringHealth {
    /// `ok`, or `paused`: the data was restored from a backup, and nothing is sent until the operator resumes.
    status: String,
    /// When that backup was made.
    #[schema(format = DateTime)]
    backup_made_at: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document")]
struct TokensHealth {
    /// `ok`, or `expiring` while there are any.
    status: String,
    /// How many API keys and organization tokens were used within the last day and expire within 30 days. Those issued for
    /// 30 days or less do not count. The log has their names.
    expiring: u64,
    /// When the first of them expires.
    #[schema(format = DateTime)]
    first_expires_at: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document")]
struct ClockHealth {
    /// `ok` or `not_trusted`: the clock is more than a day ahead or an hour behind, so that nothing is removed and nothing ends by time.
    status: String,
    /// What it shows.
    shown: String,
    /// What it was expected to show, as far as is known.
    expected: String,
    /// How long it must still run steadily to be trusted. 0: it is trusted.
    trusted_in_seconds: u64,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document")]
struct PartHealth {
    /// `ok` or `error`.
    status: String,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document")]
struct BackgroundHealth {
    /// `ok`, or `error` while tasks are listed.
    status: String,
    /// Tasks that panicked, were restarted, and have not run well for long enough since then.
    restarting: Vec<RestartingTask>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document")]
struct RestartingTask {
    name: String,
    /// How often it was restarted since it last ran well.
    restarts: u64,
}

/// Whether the server can do its work. Queue and cache are in the database and in memory; clients of this API look
/// for their names.
pub(crate) async fn check(State(api): State<Api>) -> Response {
    let (status, database) = match PublicQuestions(&api.engine).check_store().await {
        Ok(()) => (StatusCode::OK, "ok"),
        Err(error) => {
            tracing::warn!(%error, "the health check fails");
            (StatusCode::SERVICE_UNAVAILABLE, "error")
        }
    };
    let body = json!({
        "database": {"status": database},
        "queue": {"status": database},
        "cache": {"status": "ok"},
        "background": background(&api.engine.restarted_tasks()),
        "clock": clock(&api),
        "tokens": tokens(&api),
        "delivering": delivering(&api),
    });
    json::answer(status, &body)
}

/// Without names and organizations, because anybody may ask.
fn tokens(api: &Api) -> Value {
    let (expiring, first) = api.tokens.expiring().count(api.engine.clock().now());
    let status = if expiring == 0 { "ok" } else { "expiring" };
    json!({"status": status, "expiring": expiring, "firstExpiresAt": first.map(json::shown_time)})
}

/// Does not change the status of the response: a restarted task is no reason to send requests elsewhere. The log says
/// why it panicked; anybody may ask here.
fn background(restarted: &[RestartedTask]) -> Value {
    let status = if restarted.is_empty() { "ok" } else { "error" };
    let task = |task: &RestartedTask| json!({"name": task.name, "restarts": task.restarts});
    json!({"status": status, "restarting": restarted.iter().map(task).collect::<Vec<_>>()})
}

/// An untrusted clock does not stop accepting and delivering, so it is no reason for a 503.
fn clock(api: &Api) -> Option<Value> {
    let ClockState { trusted, shown, expected, trusted_in } = api.engine.clock_state()?;
    let body = json!({
        "status": if trusted { "ok" } else { "not_trusted" },
        "shown": json::shown_time(shown),
        "expected": json::shown_time(expected),
        "trustedInSeconds": trusted_in.as_secs(),
    });
    Some(body)
}

/// A pause is meant: it is no reason to send requests elsewhere.
fn delivering(api: &Api) -> Value {
    let pause = api.engine.pause();
    let status = if pause.is_some() { "paused" } else { "ok" };
    json!({"status": status, "backupMadeAt": pause.map(|pause| json::shown_time(pause.backup_made_at))})
}

pub(crate) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Touches nothing that could be slow.
async fn live() -> Response {
    json::answer(StatusCode::OK, &LivenessReport { status: "ok" })
}
