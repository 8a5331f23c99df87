//! Hosts whose requests are held because they look down.

use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment};
use crate::api::request::query::Query;
use crate::api::response::error::Problem;
use crate::api::response::page::{self, Listed};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{Host, HostScopeView, HostView, Released, ReleasedView};
use aldaba_delivery::{GateScope, Origin};
use aldaba_engine::{GateBacklog, HeldHost};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use url::Url;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/host", Access::Read, list)
            .named(
                "v1.host.list",
                "Lists the hosts whose requests are held for the caller's organization or application",
            )
            .lists::<Host>(),
        Route::post("/host/{origin}/release", Access::Manage, release)
            .named(
                "v1.host.release",
                "Releases the caller's requests to a host; other organizations have their own gates",
            )
            .answers::<Released>(StatusCode::OK)
            .or_error(StatusCode::UNPROCESSABLE_ENTITY),
    ]
}

fn scope(scope: GateScope) -> HostScopeView<&'static str, Option<String>> {
    match scope {
        GateScope::Host => HostScopeView { scope: "host", application_id: None },
        GateScope::Application(app) => {
            HostScopeView { scope: "application", application_id: Some(app.to_string()) }
        }
    }
}

fn render(host: &HeldHost) -> impl Shows<Host> {
    let GateBacklog { lanes, deliveries } = host.backlog;
    HostView {
        origin: host.key.origin.as_str(),
        scope: scope(host.key.scope),
        since: host.gate.since.map(Moment),
        until: host.gate.held_until.map(Moment),
        why: &host.why,
        failures: host.gate.failures,
        probing: host.gate.probing,
        lanes,
        deliveries,
    }
}

/// The position of a gate in the list.
fn cursor(host: &HeldHost) -> String {
    let HostScopeView { scope, application_id } = scope(host.key.scope);
    format!("{}|{}", host.key.origin.as_str(), application_id.as_deref().unwrap_or(scope))
}

/// Everything that is held back and concerns the caller, by origin.
pub(crate) async fn list(State(api): State<Api>, query: Query, caller: Caller) -> Result<Response, Error> {
    let after = query.text("iterator").filter(|text| !text.is_empty());
    let limit = page::limit(&query);
    let mut hosts = api.ask(&caller).held_hosts().await?;
    hosts.sort_by_cached_key(cursor);
    hosts.retain(|host| after.is_none_or(|after| *cursor(host) > *after));
    let done = hosts.len() <= limit;
    hosts.truncate(limit);
    let iterator = hosts.last().map(cursor);
    Ok(Listed::forward(hosts, iterator, done).render(render))
}

/// Opens all gates of the caller at an origin. Those of other organizations stay as they are.
pub(crate) async fn release(
    State(api): State<Api>,
    caller: Caller,
    Ids(origin): Ids<String>,
) -> Result<Response, Error> {
    let wanted = parse(&origin).ok_or_else(|| {
        let message = "expected scheme, host and port, percent-encoded, such as https%3A%2F%2Fexample.com; \
                       GET /api/v1/host lists what is held back";
        Problem::value(&["path", "origin"], message)
    })?;
    let hosts = api.ask(&caller).releasable_hosts(&wanted).await?;
    let gates = hosts.iter().map(|host| host.key.clone()).collect();
    api.directory(&caller).release_gates(gates).await?;
    let released: Vec<_> = hosts.iter().map(|host| scope(host.key.scope)).collect();
    Ok(json::answer(StatusCode::OK, &ReleasedView { origin: wanted.as_str(), released }))
}

fn parse(text: &str) -> Option<Origin> {
    let url = Url::parse(text).ok()?;
    Some(Origin::new(url.scheme(), url.host_str()?, url.port_or_known_default()?))
}
