//! Numbers of attempts. The store counts them when it records attempts, never when a client asks.

use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::response::code::Code;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::Timestamp;
use aldaba_store::{ApplicationAttemptsQuery, AttemptCounts, Hour};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

const MAX_RANGE: Duration = Duration::from_secs(28 * 24 * 3600);
/// How far a caller's clock may be ahead.
const CLOCK_LEEWAY: Duration = Duration::from_secs(5 * 60);
/// Counters that one answer adds up. There is one for every hour and event type.
const MAX_COUNTERS: usize = 100_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        ranged(Route::get("/app/{app_id}/endpoint/{endpoint_id}/stats", Access::Read, of_endpoint))
            .named("v1.endpoint.get-stats", "Counts the attempts at an endpoint by result and minute")
            .answers::<EndpointStatsOut>(StatusCode::OK),
        ranged(Route::get("/app/{app_id}/stats/attempts", Access::Read, of_application))
            .named(
                "v1.application.stats.attempts",
                "Counts the attempts of an application by event type, result and hour",
            )
            .query("event_types", Form::Names, "Only those of these event types")
            .answers::<ApplicationStatsOut>(StatusCode::OK),
    ]
}

fn ranged(route: Route) -> Route {
    route.query("since", Form::Moment, "From then on; 28 days before `until`, if not given").query(
        "until",
        Form::Moment,
        "Until then; now, if not given",
    )
}

/// `since` and `until`.
fn bounds(query: &Query, now: Timestamp) -> Result<(Timestamp, Timestamp), Error> {
    let until = query.moment("until").unwrap_or(now);
    let since = query.moment("since").unwrap_or_else(|| until.before(MAX_RANGE));
    let wrong = |detail| Err(Error::new(StatusCode::BAD_REQUEST, Code::InvalidRange, detail));
    if until > now + CLOCK_LEEWAY {
        return wrong("`until` lies in the future");
    }
    if since > until {
        return wrong("`since` is later than `until`");
    }
    if until.since(since) > MAX_RANGE + CLOCK_LEEWAY {
        return wrong("From `since` to `until` there may be 28 days at most");
    }
    Ok((since, until))
}

/// Attempts by status. One that is on its way is no attempt yet, so that there are none but successes and failures.
#[derive(Serialize, ToSchema)]
struct EndpointStatsOut {
    success: u64,
    pending: u64,
    sending: u64,
    fail: u64,
    canceled: u64,
}

async fn of_endpoint(
    State(api): State<Api>,
    query: Query,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let (since, until) = bounds(&query, api.engine.clock().now())?;
    let counts = app.endpoint_attempts(&endpoint, since, until).await?;
    let out = EndpointStatsOut {
        success: counts.successes,
        pending: 0,
        sending: 0,
        fail: counts.failures,
        canceled: 0,
    };
    Ok(json::answer(StatusCode::OK, &out))
}

/// Its names are not in the usual spelling; clients know them so.
#[derive(Serialize, ToSchema)]
struct ApplicationStatsOut {
    by_event_type: BTreeMap<String, EventTypeStatsOut>,
    total_success: u64,
    total_failure: u64,
    total_canceled: u64,
    /// The beginning of the first hour that is counted.
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    /// The end of the last one.
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    until: Timestamp,
}

#[derive(Serialize, ToSchema)]
struct EventTypeStatsOut {
    success: u64,
    failure: u64,
    canceled: u64,
}

impl From<AttemptCounts> for EventTypeStatsOut {
    fn from(counts: AttemptCounts) -> Self {
        Self { success: counts.successes, failure: counts.failures, canceled: 0 }
    }
}

async fn of_application(
    State(api): State<Api>,
    query: Query,
    caller: Caller,
    Ids(app): Ids<String>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let (since, until) = bounds(&query, api.engine.clock().now())?;
    let (first, last) =
        (Hour::of(since), Hour::of(Timestamp::from_millis(until.millis() - 1)).max(Hour::of(since)));
    let event_types = query.names("event_types").to_vec();
    let counters = ApplicationAttemptsQuery { app: app.id, first, last, event_types, most: MAX_COUNTERS };
    let Some(types) = app.attempts_by_event_type(counters).await? else {
        let detail = "There are too many event types in this range for one answer; ask for a shorter one";
        return Err(Error::new(StatusCode::BAD_REQUEST, Code::InvalidRange, detail));
    };
    let mut total = AttemptCounts::default();
    types.values().for_each(|counts| total += *counts);
    let out = ApplicationStatsOut {
        by_event_type: types.into_iter().map(|(name, counts)| (name, counts.into())).collect(),
        total_success: total.successes,
        total_failure: total.failures,
        total_canceled: 0,
        since: first.start(),
        until: last.next().start(),
    };
    Ok(json::answer(StatusCode::OK, &out))
}
