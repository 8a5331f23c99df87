//! Numbers of attempts. The store counts them when it records attempts, never when a client asks.

use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment};
use crate::api::request::query::Query;
use crate::api::response::code::Code;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{
    AttemptStats, AttemptStatsView, EndpointStats, EndpointStatsView, EventTypeStats, EventTypeStatsView,
};
use aldaba_delivery::Timestamp;
use aldaba_store::{ApplicationAttemptsQuery, AttemptCounts, Hour};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::collections::BTreeMap;
use std::time::Duration;

const MAX_RANGE: Duration = Duration::from_secs(28 * 24 * 3600);
/// How far a caller's clock may be ahead.
const CLOCK_LEEWAY: Duration = Duration::from_secs(5 * 60);
/// Counters that one answer adds up. There is one for every hour and event type.
const MAX_COUNTERS: usize = 100_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        ranged(Route::get("/app/{app_id}/endpoint/{endpoint_id}/stats", Access::Read, of_endpoint))
            .named("v1.endpoint.get-stats", "Counts the attempts at an endpoint by result and minute")
            .answers::<EndpointStats>(StatusCode::OK),
        ranged(Route::get("/app/{app_id}/stats/attempts", Access::Read, of_application))
            .named(
                "v1.application.stats.attempts",
                "Counts the attempts of an application by event type, result and hour",
            )
            .query("event_types", Form::Names, "Only those of these event types")
            .answers::<AttemptStats>(StatusCode::OK),
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
    let out = EndpointStatsView {
        success: counts.successes,
        pending: 0_u64,
        sending: 0_u64,
        fail: counts.failures,
        canceled: 0_u64,
    };
    Ok(json::answer(StatusCode::OK, &out))
}

/// The attempts of an event type.
fn render(counts: AttemptCounts) -> impl Shows<EventTypeStats> {
    EventTypeStatsView { success: counts.successes, failure: counts.failures, canceled: 0_u64 }
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
    let out = AttemptStatsView {
        by_event_type: types
            .into_iter()
            .map(|(name, counts)| (name, render(counts)))
            .collect::<BTreeMap<_, _>>(),
        total_success: total.successes,
        total_failure: total.failures,
        total_canceled: 0_u64,
        since: Moment(first.start()),
        until: Moment(last.next().start()),
    };
    Ok(json::answer(StatusCode::OK, &out))
}
