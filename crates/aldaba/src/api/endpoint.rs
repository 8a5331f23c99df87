use super::auth::Access;
use super::body::Pending;
use super::condition::{self, HealthOut};
use super::ids::{self, Ids};
use super::json::{self, Fields};
use super::page::PageQuery;
use super::routes::Route;
use super::{Api, Error, error::Problem, ordering};
use crate::token::Caller;
use aldaba_delivery::{EndpointId, HealthStatus, OnExhausted, OrgId, Timestamp, WhenDisabled};
use aldaba_engine::wire::Credentials;
use aldaba_engine::{ChangeError, Made, NewEndpoint, Policies};
use aldaba_signature::SigningKey;
use aldaba_store::{Application, Endpoint, EndpointConfig, Order, WhichApplication};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint", Access::Read, list)
            .named("v1.endpoint.list", "Lists the application's endpoints")
            .ordered()
            .lists::<EndpointOut<'_>>(),
        Route::post("/app/{app_id}/endpoint", Access::Manage, create)
            .named("v1.endpoint.create", "Makes an endpoint")
            .takes::<EndpointIn>()
            .answers::<EndpointOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/app/{app_id}/endpoint/{endpoint_id}", Access::Read, show)
            .named("v1.endpoint.get", "Shows an endpoint")
            .answers::<EndpointOut<'_>>(StatusCode::OK),
        Route::patch("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, patch)
            .named("v1.endpoint.patch", "Changes the given fields of an endpoint")
            .takes::<EndpointPatch>()
            .answers::<EndpointOut<'_>>(StatusCode::OK)
            .may_conflict(),
        Route::delete("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, delete)
            .named("v1.endpoint.delete", "Removes an endpoint")
            .answers_nothing(),
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/secret", Access::ReadSecrets, secret)
            .named("v1.endpoint.get-secret", "Shows the endpoint's signing secret, or its public key")
            .answers::<SecretOut>(StatusCode::OK),
    ]
}

const LONGEST_URL: usize = 8192;
const LONGEST_DESCRIPTION: usize = 4096;
const MOST_EVENT_TYPES: usize = 1000;
const MOST_CHANNELS: usize = 10;

/// An endpoint: a URL that wants messages.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct EndpointIn {
    /// Absolute, http or https; user and password in it become basic authentication.
    #[schema(format = "uri", max_length = 8192)]
    url: String,
    /// Your own name for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^(?!ep_)[a-zA-Z0-9\\-_.]+$")]
    uid: Option<String>,
    #[schema(max_length = 4096)]
    description: Option<String>,
    #[schema(minimum = 1)]
    version: Option<u16>,
    disabled: Option<bool>,
    /// What becomes of messages while it is disabled: `skip` (default) or `hold`.
    when_disabled: Option<String>,
    /// Only messages of these types; null: of all.
    #[schema(min_items = 1, max_items = 1000)]
    event_types: Option<Vec<String>>,
    /// Only messages with one of these channels; null: all.
    #[schema(min_items = 1, max_items = 10)]
    channels: Option<Vec<String>>,
    /// Requests a second at most.
    #[schema(minimum = 1)]
    throttle_rate: Option<u16>,
    /// Of retries; `standard`, if not given.
    policy: Option<String>,
    /// Wire profile; the server's default, if not given.
    profile: Option<String>,
    /// Offer HTTP/2 to the receiver (https only).
    http2: Option<bool>,
    /// `none` (default) or `fifo`.
    ordering: Option<String>,
    /// Of an ordered endpoint: `skip` or `block`.
    on_exhausted: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    /// `whsec_…` or `whsk_…`; one is made, if not given.
    secret: Option<String>,
}

/// Fields of an endpoint that change; null clears one.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct EndpointPatch {
    /// Absolute, http or https; user and password in it become basic authentication.
    #[schema(format = "uri", max_length = 8192)]
    url: Option<String>,
    /// Your own name for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^(?!ep_)[a-zA-Z0-9\\-_.]+$")]
    uid: Option<String>,
    #[schema(max_length = 4096)]
    description: Option<String>,
    #[schema(minimum = 1)]
    version: Option<u16>,
    disabled: Option<bool>,
    /// What becomes of messages while it is disabled: `skip` (default) or `hold`.
    when_disabled: Option<String>,
    /// Only messages of these types; null: of all.
    #[schema(min_items = 1, max_items = 1000)]
    event_types: Option<Vec<String>>,
    /// Only messages with one of these channels; null: all.
    #[schema(min_items = 1, max_items = 10)]
    channels: Option<Vec<String>>,
    /// Requests a second at most.
    #[schema(minimum = 1)]
    throttle_rate: Option<u16>,
    /// Of retries; `standard`, if not given.
    policy: Option<String>,
    /// Wire profile; the server's default, if not given.
    profile: Option<String>,
    /// Offer HTTP/2 to the receiver (https only).
    http2: Option<bool>,
    /// `none` (default) or `fifo`.
    ordering: Option<String>,
    /// Of an ordered endpoint: `skip` or `block`.
    on_exhausted: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, ToSchema)]
struct SecretOut {
    /// `whsec_…`, or for an asymmetric one its public key `whpk_…`.
    key: String,
}

/// SDKs of the first generation ask for `version` and read `filterTypes` and `rateLimit`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointOut<'a> {
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
        throttle_rate: endpoint.config.throttle_rate,
        rate_limit: endpoint.config.throttle_rate,
        policy: &endpoint.config.policy,
        profile: endpoint.config.profile.as_deref(),
        http2: endpoint.config.http2,
        ordering: endpoint.config.ordering.name(),
        on_exhausted: endpoint.config.ordering.on_exhausted().map(OnExhausted::name),
        blocked: endpoint.is_blocked(),
        metadata: json::raw(&endpoint.config.metadata),
        health: condition::render(endpoint),
        created_at: endpoint.created_at,
        updated_at: endpoint.updated_at,
    }
}

/// An endpoint as part of another answer.
pub(super) fn rendered(endpoint: &Endpoint) -> Value {
    serde_json::to_value(render(endpoint)).unwrap_or_default()
}

/// Turned off by its operator, or by what its receiver did: callers look here for both.
pub(super) fn reads_disabled(endpoint: &Endpoint) -> bool {
    endpoint.config.disabled || matches!(endpoint.health.status, HealthStatus::Failed | HealthStatus::Gone)
}

/// An empty set is written as null: no filter.
pub(super) fn some_items(items: &[String]) -> Option<&[String]> {
    (!items.is_empty()).then_some(items)
}

fn read(api: &Api, org: OrgId, body: &[u8]) -> Result<NewEndpoint, Error> {
    let mut fields = Fields::parse(body)?;
    let url = fields.required_string("url");
    let url = fields.checked("url", url, |url| match url.len() {
        ..=LONGEST_URL => Ok(()),
        length => Err(format!("may be {LONGEST_URL} bytes long at most; it is {length}")),
    });
    let target = url.and_then(|url| match api.guard.parse_url(&url) {
        Ok(target) => Some(target),
        Err(refused) => {
            fields.problem("url", refused.to_string());
            None
        }
    });
    let description = fields.string_or("description", "");
    let description = fields.checked("description", Some(description), |text| match text {
        text if text.len() > LONGEST_DESCRIPTION => {
            Err(format!("may be {LONGEST_DESCRIPTION} bytes long at most"))
        }
        text if text.chars().any(|c| c <= '\u{8}') => Err("must hold no control characters".into()),
        _ => Ok(()),
    });
    let uid = fields.string("uid");
    let uid = fields.checked("uid", uid, |uid| ids::uid(uid, "ep_"));
    let version = fields.count("version").unwrap_or(1);
    let disabled = fields.boolean_or("disabled", false);
    let when_disabled = when_disabled(&mut fields);
    let (throttle_rate, rate_limit) = (fields.count("throttleRate"), fields.count("rateLimit"));
    if fields.has("eventTypes") && fields.has("filterTypes") {
        fields.problem("eventTypes", "is given twice: `filterTypes` is another name for it");
    }
    let event_types = fields.set("eventTypes", MOST_EVENT_TYPES, ids::name);
    let filter_types = fields.set("filterTypes", MOST_EVENT_TYPES, ids::name);
    let channels = fields.set("channels", MOST_CHANNELS, ids::channel);
    let metadata = fields.metadata();
    let key = signing_key(&mut fields);
    let policy = policy(api, org, &mut fields);
    let profile = profile(api, org, &mut fields);
    let http2 = fields.boolean_or("http2", false);
    if http2 && target.as_ref().is_some_and(|target| target.url.scheme() != "https") {
        fields.problem("http2", "needs an https:// URL: the choice of HTTP/2 is made in the TLS handshake");
    }
    let ordering = ordering::read(&mut fields);
    fields.not_yet(&["headers"]);
    fields.finish()?;
    let target = target.ok_or_else(Error::server)?;
    let config = EndpointConfig {
        uid,
        url: target.url.into(),
        description: description.unwrap_or_default(),
        version,
        disabled,
        when_disabled,
        event_types: if event_types.is_empty() { filter_types } else { event_types },
        channels,
        throttle_rate: throttle_rate.or(rate_limit),
        policy,
        profile,
        http2,
        ordering,
        metadata,
    };
    let credentials = target.credentials.map(|Credentials { user, password }| (user, password));
    Ok(NewEndpoint { config, credentials, key })
}

fn when_disabled(fields: &mut Fields) -> WhenDisabled {
    match fields.string("whenDisabled").as_deref() {
        None | Some("skip") => WhenDisabled::Skip,
        Some("hold") => WhenDisabled::Hold,
        Some(other) => {
            fields.problem("whenDisabled", format!("must be `skip` or `hold`, not `{other}`"));
            WhenDisabled::Skip
        }
    }
}

fn signing_key(fields: &mut Fields) -> Option<SigningKey> {
    let text = fields.string("secret")?;
    SigningKey::parse(&text).map_err(|error| fields.problem("secret", error.to_string())).ok()
}

fn policy(api: &Api, org: OrgId, fields: &mut Fields) -> String {
    let policies = api.engine.policies();
    let given = fields.string("policy");
    let known = fields.checked("policy", given, |name| match policies.get(org, name) {
        Some(_) => Ok(()),
        None => {
            let known = policies.of_organization(org);
            let names: Vec<_> = known.iter().map(|policy| policy.name.as_str()).collect();
            Err(format!("`{name}` is no policy; there are: {}", names.join(", ")))
        }
    });
    known.unwrap_or_else(|| Policies::DEFAULT.to_owned())
}

fn profile(api: &Api, org: OrgId, fields: &mut Fields) -> Option<String> {
    let profiles = api.engine.profiles();
    let given = fields.string("profile");
    fields.checked("profile", given, |name| match profiles.get(org, name) {
        Some(_) => Ok(()),
        None => {
            let known = profiles.of_organization(org);
            let names: Vec<_> = known.iter().map(|profile| profile.name()).collect();
            Err(format!("`{name}` is no wire profile; there are: {}", names.join(", ")))
        }
    })
}

pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.application(caller, key).await?;
    let once = pending.once;
    let new = read(&api, application.org, &pending.read().await?.bytes)?;
    let Application { org, id, .. } = application;
    let which = WhichApplication { org, key: id.to_string() };
    let (Made::New(made) | Made::Before(made)) =
        api.engine.directory().create_endpoint(which, new, once).await?;
    Ok(json::answer(StatusCode::CREATED, &render(&made)))
}

pub(super) async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.application(caller, key).await?;
    let (page, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let found = api.engine.store().endpoints(application.id, page, order).await?;
    Ok(query.list(found, false, |endpoint| endpoint.id).render(render))
}

pub(super) async fn find(
    api: &Api,
    caller: Caller,
    (app, endpoint): (String, String),
) -> Result<Endpoint, Error> {
    let application = api.application(caller, app).await?;
    api.endpoint(application.id, endpoint).await
}

pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, caller, keys).await?;
    Ok(json::answer(StatusCode::OK, &render(&endpoint)))
}

/// How often a change is tried again because another one came first.
const TRIES: usize = 5;

/// Changes the fields that are given. What waits goes out under the new configuration from the next
/// attempt on.
pub(super) async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.application(caller, app).await?;
    let body = pending.read().await?;
    for _ in 0..TRIES {
        let current = api.endpoint(application.id, key.clone()).await?;
        let (merged, given) = merge(&current, &body.bytes)?;
        let new = read(&api, application.org, merged.to_string().as_bytes())?;
        let credentials = given.contains_key("url").then(|| new.credentials.clone());
        let resume = given.get("disabled") == Some(&Value::Bool(false));
        match api.engine.directory().update_endpoint(&current, new, credentials, resume).await {
            Err(ChangeError::Unsettled) => {}
            changed => return Ok(json::answer(StatusCode::OK, &render(&changed?))),
        }
    }
    Err(ChangeError::Unsettled.into())
}

/// The endpoint as one would make it, with the given fields in the place of its own; and those.
fn merge(current: &Endpoint, body: &[u8]) -> Result<(Value, Map<String, Value>), Error> {
    let mut given: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| Error::from(Problem::decode(&["body"], error.to_string())))?;
    if given.contains_key("secret") {
        let message = "cannot be changed here yet; leave it out";
        return Err(Problem::value(&["body", "secret"], message).into());
    }
    if given.get("disabled") == Some(&Value::Bool(true)) && reads_disabled(current) {
        // It reads so already. Whoever sends back what they have read turns nothing off.
        given.remove("disabled");
    }
    let metadata: &RawValue = json::raw(&current.config.metadata);
    let mut merged = json!({
        "uid": current.config.uid,
        "url": current.config.url,
        "description": current.config.description,
        "version": current.config.version,
        "disabled": current.config.disabled,
        "whenDisabled": current.config.when_disabled.name(),
        "eventTypes": some_items(&current.config.event_types),
        "channels": some_items(&current.config.channels),
        "throttleRate": current.config.throttle_rate,
        "policy": current.config.policy,
        "profile": current.config.profile,
        "http2": current.config.http2,
        "ordering": current.config.ordering.name(),
        "onExhausted": current.config.ordering.on_exhausted().map(OnExhausted::name),
        "metadata": metadata,
    });
    // It belongs to the ordering, and goes with it.
    if given.contains_key("ordering") && given["ordering"] != "fifo" {
        merged["onExhausted"] = Value::Null;
    }
    // Older names for the same things.
    let same = [("filterTypes", "eventTypes"), ("rateLimit", "throttleRate")];
    for (name, value) in &given {
        if let Some((_, twin)) = same.iter().find(|(older, _)| older == name) {
            merged.as_object_mut().and_then(|fields| fields.remove(*twin));
        }
        merged[name] = value.clone();
    }
    Ok((merged, given))
}

pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let endpoint = find(&api, caller, keys).await?;
    api.engine.directory().delete_endpoint(endpoint.app, endpoint.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn secret(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, caller, keys).await?;
    let key = api.engine.directory().shown_secret(&endpoint)?;
    Ok(json::answer(StatusCode::OK, &SecretOut { key }))
}
