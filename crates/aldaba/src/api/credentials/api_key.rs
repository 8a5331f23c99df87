//! API keys: creating, listing, renaming and revoking. A key is shown once, in the response to its creation.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields, ReadField};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::{ApiKeyId, AppId, Timestamp};
use aldaba_engine::{ChangeError, NewKey, check_key_name};
use aldaba_store::{ApiKey, KeyScope, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api-key", Access::Govern, list)
            .named("v1.api-key.list", "Lists the API keys, without the keys themselves")
            .ordered()
            .lists::<ApiKeyOut>(),
        Route::post("/api-key", Access::Govern, create)
            .keyed()
            .named("v1.api-key.create", "Creates an API key, and shows it once")
            .takes::<ApiKeyIn>()
            .answers::<NewApiKeyOut>(StatusCode::CREATED)
            .or_error(StatusCode::NOT_FOUND)
            .may_conflict(),
        Route::get("/api-key/{key_id}", Access::Govern, show)
            .named("v1.api-key.get", "Shows an API key, without the key itself")
            .answers::<ApiKeyOut>(StatusCode::OK),
        Route::patch("/api-key/{key_id}", Access::Govern, patch)
            .named("v1.api-key.patch", "Renames an API key")
            .takes::<ApiKeyPatch>()
            .answers::<ApiKeyOut>(StatusCode::OK),
        Route::delete("/api-key/{key_id}", Access::Govern, revoke)
            .named("v1.api-key.revoke", "Revokes an API key at once")
            .answers_nothing(),
    ]
}

/// A key to be made.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ApiKeyIn {
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// `admin`: everything; `send`: messages, and nothing else; `read`: everything but changes and secrets.
    #[schema(pattern = "^(admin|send|read)$")]
    scope: String,
    /// The id or uid of the one application that it is for; absent: all.
    app_id: Option<String>,
    /// From then on it counts no longer; absent: never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<String>,
}

example!(ApiKeyIn, {"name": "The shop's backend", "scope": "send"});

/// What of a key can change.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ApiKeyPatch {
    #[schema(min_length = 1, max_length = 256)]
    name: String,
}

example!(ApiKeyPatch, {"name": "The shop's new backend"});

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApiKeyOut {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: ApiKeyId,
    name: String,
    /// What the key begins with, after `aldaba_`.
    prefix: String,
    scope: &'static str,
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    app_id: Option<AppId>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// To about an hour.
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
struct NewApiKeyOut {
    #[serde(flatten)]
    shown: ApiKeyOut,
    /// The key. Nobody can read it again.
    key: String,
}

fn render(key: &ApiKey) -> ApiKeyOut {
    ApiKeyOut {
        id: key.id,
        name: key.name.clone(),
        prefix: key.prefix.clone(),
        scope: key.scope.name(),
        app_id: key.app,
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
    }
}

const SCOPES: &str =
    "`admin` (everything), `send` (messages alone) or `read` (everything but changes and secrets)";
const FIELDS: &[&str] = &["name", "scope", "appId", "expiresAt"];
/// Fields that responses add.
const READ_ONLY_FIELDS: [&str; 4] = ["id", "prefix", "createdAt", "lastUsedAt"];

fn name(fields: &mut Fields) -> Option<String> {
    let name = fields.required_string("name");
    fields.checked("name", name, |name| check_key_name(name))
}

async fn create(State(api): State<Api>, caller: Caller, pending: Pending) -> Result<Response, Error> {
    let once = pending.once(caller.org(), &[]);
    let mut fields = pending.read().await?.text().fields()?;
    fields.refuse_others(FIELDS);
    let name = name(&mut fields);
    if !fields.has_value("scope") {
        fields.problem("scope", format!("this field is required: {SCOPES}"));
    }
    let scope = fields.string("scope");
    let scope = scope.and_then(|scope| {
        let known = KeyScope::from_name(&scope);
        if known.is_none() {
            fields.problem("scope", format!("expected {SCOPES}; it is `{scope}`"));
        }
        known
    });
    let (app, expires_at) = (fields.string("appId"), fields.moment("expiresAt"));
    if expires_at.is_some_and(|moment| moment <= api.engine.clock().now()) {
        fields.problem("expiresAt", "lies in the past: the key would never count");
    }
    fields.finish()?;
    let (Some(name), Some(scope)) = (name, scope) else { return Err(Error::server()) };
    let app = match app {
        None => None,
        Some(app) => Some(api.ask(&caller).application(&app).await?.id),
    };
    let new = NewKey { org: caller.org(), app, name, scope, expires_at };
    let (key, text) = api.directory(&caller).create_key(new, once).await?;
    Ok(json::answer(StatusCode::CREATED, &NewApiKeyOut { shown: render(&key), key: text }))
}

async fn list(State(api): State<Api>, query: PageQuery<ApiKeyId>, caller: Caller) -> Response {
    let found = query.cut(api.ask(&caller).api_keys(), query.order.unwrap_or(Order::Ascending), |key| key.id);
    query.list(found, false, |key| key.id).render(render)
}

async fn show(State(api): State<Api>, caller: Caller, Ids(key): Ids<String>) -> Result<Response, Error> {
    Ok(json::answer(StatusCode::OK, &render(&api.ask(&caller).api_key(&key)?)))
}

async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let key = api.ask(&caller).api_key(&key)?;
    let mut fields = pending.read().await?.text().fields()?;
    fields.forget(&READ_ONLY_FIELDS);
    fields.refuse_others(FIELDS);
    let name = name(&mut fields);
    for field in ["scope", "appId", "expiresAt"] {
        if fields.has(field) {
            fields.problem(field, "cannot change: make another key, and revoke this one");
        }
    }
    fields.finish()?;
    let name = name.ok_or_else(Error::server)?;
    match api.directory(&caller).rename_key(key.org, key.id, name.clone()).await {
        Err(ChangeError::NotFound) => Err(Missing::ApiKey.into()),
        changed => changed.map_err(Error::from),
    }?;
    Ok(json::answer(StatusCode::OK, &render(&ApiKey { name, ..key })))
}

async fn revoke(State(api): State<Api>, caller: Caller, Ids(key): Ids<String>) -> Result<StatusCode, Error> {
    let key = api.ask(&caller).api_key(&key)?;
    match api.directory(&caller).revoke_key(key.org, key.id).await {
        Err(ChangeError::NotFound) => Err(Missing::ApiKey.into()),
        changed => changed.map_err(Error::from),
    }?;
    Ok(StatusCode::NO_CONTENT)
}
