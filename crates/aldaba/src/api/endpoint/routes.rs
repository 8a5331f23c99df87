use super::body::{EndpointIn, EndpointPatch, EndpointUpdate, Offer, changes, merge, read, turns_off_again};
use super::health::{self, HealthOut};
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::{EndpointId, HealthStatus, OnExhausted, Timestamp};
use aldaba_engine::{ChangeError, CreateOutcome};
use aldaba_store::{Endpoint, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint", Access::Read, list)
            .named("v1.endpoint.list", "Lists the application's endpoints")
            .ordered()
            .lists::<EndpointOut<'_>>(),
        Route::post("/app/{app_id}/endpoint", Access::Manage, create)
            .keyed()
            .named("v1.endpoint.create", "Creates an endpoint")
            .takes::<EndpointIn>()
            .answers::<EndpointOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/app/{app_id}/endpoint/{endpoint_id}", Access::Read, show)
            .named("v1.endpoint.get", "Shows an endpoint")
            .answers::<EndpointOut<'_>>(StatusCode::OK),
        Route::put("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, put)
            .keyed()
            .named("v1.endpoint.update", "Replaces the configuration of an endpoint, or creates it")
            .takes::<EndpointUpdate>()
            .answers::<EndpointOut<'_>>(StatusCode::OK)
            .answers::<EndpointOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, patch)
            .named("v1.endpoint.patch", "Changes the given fields of an endpoint")
            .takes::<EndpointPatch>()
            .answers::<EndpointOut<'_>>(StatusCode::OK)
            .may_conflict(),
        Route::delete("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, delete)
            .named("v1.endpoint.delete", "Deletes an endpoint")
            .answers_nothing(),
    ]
}

/// SDKs of the first generation ask for `version` and read `filterTypes` and `rateLimit`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: EndpointId,
    uid: Option<&'a str>,
    url: &'a str,
    description: &'a str,
    disabled: bool,
    when_disabled: &'static str,
    version: u16,
    event_types: Option<&'a [String]>,
    filter_types: Option<&'a [String]>,
    channels: Option<&'a [String]>,
    #[schema(value_type = Option<Object>)]
    filter: Option<&'a RawValue>,
    throttle_rate: Option<u16>,
    rate_limit: Option<u16>,
    policy: &'a str,
    profile: Option<&'a str>,
    http2: bool,
    ordering: &'static str,
    on_exhausted: Option<&'static str>,
    /// A delivery of an ordered endpoint ended without success, and it waits for its owner.
    blocked: bool,
    #[schema(value_type = Object)]
    metadata: &'a RawValue,
    /// `failed` while its health is, else `active`.
    #[schema(pattern = "^(active|failed)$")]
    status: &'static str,
    /// Failures since the last success.
    failure_count: u32,
    health: HealthOut<'a>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

fn render(endpoint: &Endpoint) -> EndpointOut<'_> {
    let event_types = some_items(&endpoint.config.event_types);
    EndpointOut {
        id: endpoint.id,
        uid: endpoint.config.uid.as_deref(),
        url: &endpoint.config.url,
        description: &endpoint.config.description,
        disabled: reads_disabled(endpoint),
        when_disabled: endpoint.config.when_disabled.name(),
        version: endpoint.config.version,
        event_types,
        filter_types: event_types,
        channels: some_items(&endpoint.config.channels),
        filter: endpoint.config.filter.as_ref().map(|filter| json::raw(filter.as_str())),
        throttle_rate: endpoint.config.throttle_rate,
        rate_limit: endpoint.config.throttle_rate,
        policy: &endpoint.config.policy,
        profile: endpoint.config.profile.as_deref(),
        http2: endpoint.config.http2,
        ordering: endpoint.config.ordering.name(),
        on_exhausted: endpoint.config.ordering.on_exhausted().map(OnExhausted::name),
        blocked: endpoint.is_blocked(),
        metadata: json::raw(&endpoint.config.metadata),
        status: if endpoint.health.status == HealthStatus::Failed { "failed" } else { "active" },
        failure_count: endpoint.health.failure_count,
        health: health::render(endpoint),
        created_at: endpoint.created_at,
        updated_at: endpoint.updated_at,
    }
}

/// An endpoint as a part of another response.
pub(crate) fn rendered(endpoint: &Endpoint) -> Value {
    serde_json::to_value(render(endpoint)).unwrap_or_default()
}

/// Whether the operator or the receiver has disabled the endpoint: callers look here for both.
pub(crate) fn reads_disabled(endpoint: &Endpoint) -> bool {
    endpoint.config.disabled || endpoint.health.status.is_given_up()
}

/// An empty set is written as null: no filter.
pub(crate) fn some_items(items: &[String]) -> Option<&[String]> {
    (!items.is_empty()).then_some(items)
}

pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let once = pending.once(application.org, &[]);
    let offer = Offer { caller: &caller, asked_before: &[], is_change: false };
    let new = read(&api, &offer, &pending.read().await?.bytes)?;
    let uid = new.config.uid.clone();
    match api.directory(&caller).create_endpoint(application.by_id(), new, once).await {
        Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
            Ok(json::answer(StatusCode::CREATED, &render(&made)))
        }
        Err(error) => Err(api
            .refusal(&caller, error, Subject::Endpoint { app: application.id, endpoint: None }, uid)
            .await),
    }
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let (page, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let found = application.endpoints(page, order).await?;
    Ok(query.list(found, false, |endpoint| endpoint.id).render(render))
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    Ok(json::answer(StatusCode::OK, &render(&endpoint)))
}

/// Changes the given fields. Pending deliveries use the new configuration from the next attempt on.
pub(crate) async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let body = pending.read().await?;
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = application.endpoint(&key).await?;
        let (merged, given) = merge(&current, &body.bytes)?;
        let asked_before = &current.config.event_types;
        let offer = Offer { caller: &caller, asked_before, is_change: true };
        let new = read(&api, &offer, merged.as_bytes())?;
        let credentials = given.contains_key("url").then(|| new.credentials.clone());
        let resume = given.get("disabled") == Some(&Value::Bool(false));
        let uid = new.config.uid.clone();
        match api.directory(&caller).update_endpoint(&current, new, credentials, resume).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            Err(error) => return Err(api.refusal(&caller, error, Subject::from(&current), uid).await),
            Ok(changed) => return Ok(json::answer(StatusCode::OK, &render(&changed))),
        }
    }
}

/// Replaces the configuration of an endpoint, or creates it. Secret and headers stay.
pub(crate) async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let may_be_made = || ids::may_be_made("ep_", &key, Missing::Endpoint);
    if application.find_endpoint(&key).await?.is_none() {
        may_be_made()?;
    }
    let (once, body) = (pending.once(application.org, &[key.as_bytes()]), pending.read().await?);
    let given = changes(&body.bytes)?;
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = application.find_endpoint(&key).await?;
        let asked_before = current.as_ref().map_or(&[][..], |current| &current.config.event_types);
        let offer = Offer { caller: &caller, asked_before, is_change: true };
        let mut new = read(&api, &offer, &body.bytes)?;
        let Some(current) = current else {
            // Checked after each read: another request may just have deleted it.
            may_be_made()?;
            let uid = new.config.uid.get_or_insert_with(|| key.clone());
            let is_named_so = *uid == key;
            let (uid, subject) =
                (Some(uid.clone()), Subject::Endpoint { app: application.id, endpoint: None });
            match api.directory(&caller).create_endpoint(application.by_id(), new, once).await {
                // Another request has just created it: this one changes it.
                Err(ChangeError::UidTaken) if is_named_so => retry.wait().await?,
                Err(error) => return Err(api.refusal(&caller, error, subject, uid).await),
                Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
                    return Ok(json::answer(StatusCode::CREATED, &render(&made)));
                }
            }
            continue;
        };
        if turns_off_again(&current, &given) {
            new.config.disabled = current.config.disabled;
        }
        // The name in the path stays the endpoint's uid: otherwise the same request would create another one next
        // time.
        if !given.contains_key("uid") && current.config.uid.as_ref() == Some(&key) {
            new.config.uid = Some(key.clone());
        }
        // Credentials are never shown: a client that sends back the URL it has read does not mean to drop them.
        let same = new.config.url == current.config.url && new.credentials.is_none();
        let credentials = (!same).then(|| new.credentials.clone());
        let resume = given.get("disabled") == Some(&Value::Bool(false));
        let uid = new.config.uid.clone();
        match api.directory(&caller).update_endpoint(&current, new, credentials, resume).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            Err(error) => return Err(api.refusal(&caller, error, Subject::from(&current), uid).await),
            Ok(changed) => return Ok(json::answer(StatusCode::OK, &render(&changed))),
        }
    }
}

pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    api.directory(&caller).delete_endpoint(&endpoint).await?;
    Ok(StatusCode::NO_CONTENT)
}
