mod readiness;

pub(crate) use readiness::StoreProbe;

use crate::api::Api;
use crate::api::request::json;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::questions::PublicQuestions;
use aldaba_api::value::Shows;
use aldaba_api::{
    BackgroundHealth, BackgroundHealthView, ClockHealth, ClockHealthView, DeliveringHealth,
    DeliveringHealthView, Health, HealthView, Liveness, LivenessView, PartHealthView, Readiness,
    RestartingTaskView, TokensHealth, TokensHealthView,
};
use aldaba_engine::ClockState;
use aldaba_store::RestartedTask;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/health", Access::Open, check)
            .named("v1.health.get", "Shows whether the server can do its work")
            .answers::<Health>(StatusCode::OK)
            .answers::<Health>(StatusCode::SERVICE_UNAVAILABLE)
            .any_query(),
        Route::get("/health/live", Access::Open, live)
            .named("v1.health.live", "Shows that the server responds; it depends on nothing else")
            .answers::<Liveness>(StatusCode::OK)
            .any_query(),
        Route::get("/health/ready", Access::Open, readiness::check)
            .named("v1.health.ready", "Shows whether messages are accepted and delivered, check by check")
            .answers::<Readiness>(StatusCode::OK)
            .answers::<Readiness>(StatusCode::SERVICE_UNAVAILABLE)
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
    let part = |status| PartHealthView { status };
    let body = HealthView {
        database: part(database),
        queue: part(database),
        cache: part("ok"),
        background: background(&api.engine.restarted_tasks()),
        clock: api.engine.clock_state().map(clock),
        tokens: tokens(&api),
        delivering: delivering(&api),
    };
    json::answer(status, &body)
}

/// Without names and organizations, because anybody may ask.
fn tokens(api: &Api) -> impl Shows<TokensHealth> + use<> {
    let (expiring, first) = api.tokens.expiring().count(api.engine.clock().now());
    let status = if expiring == 0 { "ok" } else { "expiring" };
    TokensHealthView { status, expiring, first_expires_at: first.map(json::shown_time) }
}

/// Does not change the status of the response: a restarted task is no reason to send requests elsewhere. The log says
/// why it panicked; anybody may ask here.
fn background(restarted: &[RestartedTask]) -> impl Shows<BackgroundHealth> + use<> {
    let status = if restarted.is_empty() { "ok" } else { "error" };
    let task = |task: &RestartedTask| RestartingTaskView { name: task.name, restarts: task.restarts };
    BackgroundHealthView { status, restarting: restarted.iter().map(task).collect::<Vec<_>>() }
}

/// An untrusted clock does not stop accepting and delivering, so it is no reason for a 503.
fn clock(state: ClockState) -> impl Shows<ClockHealth> {
    ClockHealthView {
        status: if state.trusted { "ok" } else { "not_trusted" },
        shown: json::shown_time(state.shown),
        expected: json::shown_time(state.expected),
        trusted_in_seconds: state.trusted_in.as_secs(),
    }
}

/// A pause is meant: it is no reason to send requests elsewhere.
fn delivering(api: &Api) -> impl Shows<DeliveringHealth> + use<> {
    let pause = api.engine.pause();
    let status = if pause.is_some() { "paused" } else { "ok" };
    DeliveringHealthView { status, backup_made_at: pause.map(|pause| json::shown_time(pause.backup_made_at)) }
}

pub(crate) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Touches nothing that could be slow.
async fn live() -> Response {
    json::answer(StatusCode::OK, &LivenessView { status: "ok" })
}
