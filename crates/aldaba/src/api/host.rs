//! Hosts that are held back because they look down.

use super::auth::Access;
use super::ids::Ids;
use super::query::Query;
use super::routes::Route;
use super::{Api, Error, json, page};
use crate::token::Caller;
use aldaba_delivery::{AppId, GateScope, Origin, Timestamp};
use aldaba_engine::{Behind, HeldHost};
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use url::Url;
use utoipa::ToSchema;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/host", Access::Read, list)
            .named("v1.host.list", "Lists the hosts that are held back and concern the caller")
            .lists::<HostOut<'_>>(),
        Route::post("/host/{origin}/release", Access::Manage, release)
            .named("v1.host.release", "Lets requests to a host go at once")
            .answers::<ReleasedOut<'_>>(StatusCode::OK),
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

fn render<'a>(host: &'a HeldHost, caller: &Caller) -> HostOut<'a> {
    let Behind { lanes, deliveries } = host.behind(|org, app| caller.speaks_for(org, app));
    HostOut {
        origin: host.origin.as_str(),
        scope: scope(host.scope),
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
pub(super) struct HostQuery {
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
    let ScopeOut { scope, application_id } = scope(host.scope);
    format!("{}|{}", host.origin.as_str(), application_id.as_deref().unwrap_or(scope))
}

/// Everything that is held back and concerns the caller, by origin.
pub(super) async fn list(
    State(api): State<Api>,
    query: HostQuery,
    caller: Caller,
) -> Result<Response, Error> {
    let mut hosts = concerning(&api, &caller, api.engine.held_hosts().await).await?;
    hosts.sort_by_cached_key(place);
    hosts.retain(|host| query.after.as_ref().is_none_or(|after| place(host) > *after));
    let done = hosts.len() <= query.limit;
    hosts.truncate(query.limit);
    let iterator = hosts.last().map(place);
    let data: Vec<_> = hosts.iter().map(|host| render(host, &caller)).collect();
    Ok(json::answer(StatusCode::OK, &json!({"data": data, "iterator": iterator, "done": done})))
}

/// Opens all gates at an origin that concern the caller, as far as they hold back nobody else.
pub(super) async fn release(
    State(api): State<Api>,
    caller: Caller,
    Ids(origin): Ids<String>,
) -> Result<Response, Error> {
    let nothing = || Error::not_found("Nothing that concerns you is held back at this origin");
    let wanted = parse(&origin).ok_or_else(nothing)?;
    let mut hosts = api.engine.held_hosts().await;
    hosts.retain(|host| host.origin == wanted);
    let hosts = concerning(&api, &caller, hosts).await?;
    if hosts.is_empty() {
        return Err(nothing());
    }
    let hosts = for_the_caller_to_open(&api, &caller, hosts).await?;
    let gates = hosts.iter().map(|host| (host.origin.clone(), host.scope)).collect();
    api.directory(&caller).release_gates(gates).await?;
    let released = hosts.iter().map(|host| scope(host.scope)).collect();
    Ok(json::answer(StatusCode::OK, &ReleasedOut { origin: wanted.as_str(), released }))
}

/// A gate of the host itself holds back whoever sends there. What is let go with it may be another's, so that it
/// is not for an application to open, nor for one of several organizations.
async fn for_the_caller_to_open(
    api: &Api,
    caller: &Caller,
    mut hosts: Vec<HeldHost>,
) -> Result<Vec<HeldHost>, Error> {
    let Some(whole) = hosts.iter().position(|host| host.scope == GateScope::Host) else {
        return Ok(hosts);
    };
    let refused = match caller.app() {
        Some(_) => {
            "The whole host is held back, for other applications too: this needs an organization's token; the one \
             sent is an application's"
        }
        None => {
            let start = url_of(&hosts[whole]);
            if !api.engine.store().others_have_endpoints_at(caller.org(), start).await? {
                return Ok(hosts);
            }
            "The whole host is held back, for other organizations too: none of them opens it for the others. At the end of \
             the hold (`until`) one request goes there, and opens it if it succeeds"
        }
    };
    hosts.remove(whole);
    if hosts.is_empty() { Err(Error::forbidden(refused)) } else { Ok(hosts) }
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

/// A gate of an application concerns whoever it belongs to, one of the host itself whoever sends there.
async fn concerning(api: &Api, caller: &Caller, mut hosts: Vec<HeldHost>) -> Result<Vec<HeldHost>, Error> {
    let (org, only) = (caller.org(), caller.app());
    let whole: Vec<_> = hosts.iter().filter(|host| host.scope == GateScope::Host).map(url_of).collect();
    let reached = api.engine.store().has_endpoints_at(org, only, whole.clone()).await?;
    let reached: BTreeMap<String, bool> = whole.into_iter().zip(reached).collect();
    let mut apps: Vec<_> = hosts.iter().filter_map(|host| app_of(host.scope)).collect();
    apps.retain(|app| only.is_none_or(|only| only == *app));
    apps.sort_unstable();
    apps.dedup();
    let ours = api.engine.store().are_of(org, apps.clone()).await?;
    let ours: BTreeMap<AppId, bool> = apps.into_iter().zip(ours).collect();
    hosts.retain(|host| match host.scope {
        GateScope::Host => reached.get(&url_of(host)) == Some(&true),
        GateScope::Application(app) => ours.get(&app) == Some(&true),
    });
    Ok(hosts)
}

fn app_of(scope: GateScope) -> Option<AppId> {
    match scope {
        GateScope::Host => None,
        GateScope::Application(app) => Some(app),
    }
}

fn url_of(host: &HeldHost) -> String {
    url_start(&host.origin)
}
