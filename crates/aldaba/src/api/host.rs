//! Hosts that are held back because they look down.

use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::response::error::Problem;
use crate::api::response::page;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{AppId, GateScope, Origin, Timestamp};
use aldaba_engine::{GateBacklog, HeldHost};
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use url::Url;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/host", Access::Read, list)
            .named("v1.host.list", "Lists the hosts that are held back for the caller's organization or application")
            .lists::<HostOut<'_>>(),
        Route::post("/host/{origin}/release", Access::Manage, release)
            .named("v1.host.release", "Lets the caller's requests to a host go at once; other organizations have gates of their own there")
            .answers::<ReleasedOut<'_>>(StatusCode::OK)
            .or_error(StatusCode::UNPROCESSABLE_ENTITY),
    ]
}

#[derive(Serialize, ToSchema)]
struct ReleasedOut<'a> {
    origin: &'a str,
    released: Vec<ScopeOut>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HostOut<'a> {
    origin: &'a str,
    #[serde(flatten)]
    scope: ScopeOut,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    why: &'a str,
    failures: u32,
    /// The hold is over, and one request is on its way to find out more.
    probing: bool,
    lanes: usize,
    deliveries: usize,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScopeOut {
    /// `application`: the hold binds that application. `host`: all applications of the organization, and no other
    /// organization.
    scope: &'static str,
    application_id: Option<String>,
}

fn scope(scope: GateScope) -> ScopeOut {
    match scope {
        GateScope::Host => ScopeOut { scope: "host", application_id: None },
        GateScope::Application(app) => {
            ScopeOut { scope: "application", application_id: Some(app.to_string()) }
        }
    }
}

fn render(host: &HeldHost) -> HostOut<'_> {
    let GateBacklog { lanes, deliveries } = host.backlog;
    HostOut {
        origin: host.key.origin.as_str(),
        scope: scope(host.key.scope),
        since: host.gate.since,
        until: host.gate.held_until,
        why: &host.why,
        failures: host.gate.failures,
        probing: host.gate.probing,
        lanes,
        deliveries,
    }
}

/// What the list may be asked for.
pub(crate) struct HostQuery {
    limit: usize,
    after: Option<String>,
}

impl FromRequestParts<Api> for HostQuery {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        let query = Query::of(parts);
        let after = query.get("iterator").filter(|text| !text.is_empty()).map(Into::into);
        Ok(Self { limit: page::limit(&query)?, after })
    }
}

/// The place of a gate in the list.
fn place(host: &HeldHost) -> String {
    let ScopeOut { scope, application_id } = scope(host.key.scope);
    format!("{}|{}", host.key.origin.as_str(), application_id.as_deref().unwrap_or(scope))
}

/// Everything that is held back and concerns the caller, by origin.
pub(crate) async fn list(
    State(api): State<Api>,
    query: HostQuery,
    caller: Caller,
) -> Result<Response, Error> {
    let held = api.engine.held_hosts(caller.org(), caller.app()).await;
    let mut hosts = concerning(&api, &caller, held).await?;
    hosts.sort_by_cached_key(place);
    hosts.retain(|host| query.after.as_ref().is_none_or(|after| place(host) > *after));
    let done = hosts.len() <= query.limit;
    hosts.truncate(query.limit);
    let iterator = hosts.last().map(place);
    let data: Vec<_> = hosts.iter().map(render).collect();
    Ok(json::answer(StatusCode::OK, &json!({"data": data, "iterator": iterator, "done": done})))
}

/// Opens all gates of the caller's at an origin. Those of other organizations there stay as they are.
pub(crate) async fn release(
    State(api): State<Api>,
    caller: Caller,
    Ids(origin): Ids<String>,
) -> Result<Response, Error> {
    let nothing = || {
        Error::not_found(
            "Nothing that concerns you is held back at this origin; GET /api/v1/host lists what is held back",
        )
    };
    let wanted = parse(&origin).ok_or_else(|| {
        let message = "expected scheme, host and port, percent-encoded, such as https%3A%2F%2Fexample.com; \
                       GET /api/v1/host lists what is held back";
        Problem::value(&["path", "origin"], message)
    })?;
    let mut hosts = api.engine.held_hosts(caller.org(), caller.app()).await;
    hosts.retain(|host| host.key.origin == wanted);
    let hosts = concerning(&api, &caller, hosts).await?;
    if hosts.is_empty() {
        return Err(nothing());
    }
    let hosts = for_the_caller_to_open(&caller, hosts)?;
    let gates = hosts.iter().map(|host| host.key.clone()).collect();
    api.directory(&caller).release_gates(gates).await?;
    let released = hosts.iter().map(|host| scope(host.key.scope)).collect();
    Ok(json::answer(StatusCode::OK, &ReleasedOut { origin: wanted.as_str(), released }))
}

/// A gate of the host itself holds back all applications of its organization. What is let go with it may be another's, so
/// that it is not for one of them to open.
fn for_the_caller_to_open(caller: &Caller, mut hosts: Vec<HeldHost>) -> Result<Vec<HeldHost>, Error> {
    if caller.app().is_some() {
        hosts.retain(|host| host.key.scope != GateScope::Host);
        if hosts.is_empty() {
            return Err(Error::forbidden(
                "The whole host is held back, for other applications too: this needs an organization's token; the one \
                 sent is an application's",
            ));
        }
    }
    Ok(hosts)
}

fn parse(text: &str) -> Option<Origin> {
    let url = Url::parse(text).ok()?;
    Some(Origin::new(url.scheme(), url.host_str()?, url.port_or_known_default()?))
}

/// How the URLs of endpoints at an origin begin: a parsed URL names no port that goes without saying, and
/// always has a path.
fn url_start(origin: &Origin) -> String {
    Url::parse(origin.as_str()).map_or_else(|_| format!("{}/", origin.as_str()), Into::into)
}

/// All that hold back the caller's organization concern it. An application is concerned by its own, and by those of hosts
/// where it has endpoints.
async fn concerning(api: &Api, caller: &Caller, mut hosts: Vec<HeldHost>) -> Result<Vec<HeldHost>, Error> {
    let (store, org) = (api.engine.store(), caller.org());
    if let Some(only) = caller.app() {
        hosts.retain(|host| app_of(host).is_none_or(|app| app == only));
        let whole: Vec<_> = hosts.iter().filter(|host| app_of(host).is_none()).map(url_of).collect();
        let reached = store.has_endpoints_at(org, Some(only), whole.clone()).await?;
        let reached: BTreeMap<String, bool> = whole.into_iter().zip(reached).collect();
        hosts.retain(|host| app_of(host).is_some() || reached.get(&url_of(host)) == Some(&true));
    }
    // Those of deleted applications concern nobody.
    let mut apps: Vec<_> = hosts.iter().filter_map(app_of).collect();
    apps.sort_unstable();
    apps.dedup();
    let there = store.are_of(org, apps.clone()).await?;
    let there: BTreeMap<AppId, bool> = apps.into_iter().zip(there).collect();
    hosts.retain(|host| app_of(host).is_none_or(|app| there.get(&app) == Some(&true)));
    Ok(hosts)
}

fn app_of(host: &HeldHost) -> Option<AppId> {
    match host.key.scope {
        GateScope::Host => None,
        GateScope::Application(app) => Some(app),
    }
}

fn url_of(host: &HeldHost) -> String {
    url_start(&host.key.origin)
}
