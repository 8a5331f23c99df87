//! Erases an application, and shows how far an erasure is.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment, Text};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{BackgroundTask, BackgroundTaskView, Erase, ErasureCount, ErasureCountView};
use aldaba_store::{ErasedCounts, Erasure, ErasureState};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;

/// The kind of the background task.
pub(crate) const TASK: &str = "application.erase";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/erase", Access::Administer, erase)
            .keyed()
            .named("v1.application.erase", "Removes everything that is stored of an application, for good")
            .may_take::<Erase>()
            .answers::<BackgroundTask>(StatusCode::ACCEPTED)
            .answers::<ErasureCount>(StatusCode::OK),
    ]
}

async fn erase(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let once = pending.once(caller.org(), &[b"erase", key.as_bytes()]);
    let body = pending.read().await?.text().parse_or_none::<Erase>()?.finish()?;
    if let Some(repeated) = api.ask(&caller).erasure_of_request(once.as_ref()).await? {
        return Ok(json::answer(StatusCode::ACCEPTED, &render(&repeated)));
    }
    let erasable = api.ask(&caller).erasable(&key).await?;
    if body.dry_run == Some(true) {
        let counted = api.engine.count_erasure(erasable.app).await?;
        let ErasedCounts { messages, deliveries, attempts, endpoints, audit: audit_rows, .. } =
            counted.counts;
        let at_least = counted.at_least;
        let answer = ErasureCountView { messages, deliveries, attempts, endpoints, audit_rows, at_least };
        return Ok(json::answer(StatusCode::OK, &answer));
    }
    let erasure = api.directory(&caller).erase_application(caller.org(), &erasable, once).await?;
    Ok(json::answer(StatusCode::ACCEPTED, &render(&erasure)))
}

pub(crate) fn render(erasure: &Erasure) -> impl Shows<BackgroundTask> + use<> {
    let ErasedCounts { messages, deliveries, attempts, endpoints, others, audit } = erasure.removed;
    let data = json!({
        "appId": erasure.app.to_string(),
        "messages": messages,
        "deliveries": deliveries,
        "attempts": attempts,
        "endpoints": endpoints,
        "others": others,
        "auditRows": audit,
        "progress": progress(erasure),
        "createdAt": json::moment(erasure.created_at),
    });
    let status = match erasure.state {
        ErasureState::Running => "running",
        ErasureState::Finished => "finished",
    };
    BackgroundTaskView {
        id: Text(erasure.id),
        status,
        task: TASK,
        updated_at: Moment(erasure.updated_at),
        data,
    }
}

/// The part of the messages' time that is removed, from 0 to 1.
fn progress(erasure: &Erasure) -> f64 {
    match (erasure.state, erasure.first, erasure.reached) {
        (ErasureState::Finished, ..) => 1.0,
        (ErasureState::Running, Some(first), Some(reached)) => {
            let since = |moment| erasure_time(first, moment);
            let whole = since(erasure.created_at).max(0.001);
            (since(reached.created_at()) / whole).clamp(0.0, 0.999)
        }
        (ErasureState::Running, ..) => 0.0,
    }
}

fn erasure_time(first: aldaba_delivery::MessageId, until: aldaba_delivery::Timestamp) -> f64 {
    until.since(first.created_at()).as_secs_f64()
}
