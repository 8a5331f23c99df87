//! API keys: creating, listing, renaming and revoking. A key is shown once, in the response to its creation.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment, Text};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::value::{Shows, WriteFields};
use aldaba_api::{ApiKey as Shown, ApiKeyPatch, ApiKeyView, CreatedApiKey, CreatedApiKeyView, NewApiKey};
use aldaba_delivery::ApiKeyId;
use aldaba_engine::{ChangeError, NewKey};
use aldaba_store::{ApiKey, KeyScope, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api-key", Access::Govern, list)
            .named("v1.api-key.list", "Lists the API keys, without the keys themselves")
            .ordered()
            .lists::<Shown>(),
        Route::post("/api-key", Access::Govern, create)
            .keyed()
            .named("v1.api-key.create", "Creates an API key, and shows it once")
            .takes::<NewApiKey>()
            .answers::<CreatedApiKey>(StatusCode::CREATED)
            .or_error(StatusCode::NOT_FOUND)
            .may_conflict(),
        Route::get("/api-key/{key_id}", Access::Govern, show)
            .named("v1.api-key.get", "Shows an API key, without the key itself")
            .answers::<Shown>(StatusCode::OK),
        Route::patch("/api-key/{key_id}", Access::Govern, patch)
            .named("v1.api-key.patch", "Renames an API key")
            .takes::<ApiKeyPatch>()
            .answers::<Shown>(StatusCode::OK),
        Route::delete("/api-key/{key_id}", Access::Govern, revoke)
            .named("v1.api-key.revoke", "Revokes an API key at once")
            .answers_nothing(),
    ]
}

fn render(key: &ApiKey) -> impl Shows<Shown> + WriteFields {
    ApiKeyView {
        id: Text(key.id),
        name: key.name.clone(),
        prefix: key.prefix.clone(),
        scope: key.scope.name(),
        app_id: key.app.map(Text),
        created_at: Moment(key.created_at),
        expires_at: key.expires_at.map(Moment),
        last_used_at: key.last_used_at.map(Moment),
    }
}

async fn create(State(api): State<Api>, caller: Caller, pending: Pending) -> Result<Response, Error> {
    let once = pending.once(caller.org(), &[]);
    let Parsed { value, mut fields } = pending.read().await?.text().parse::<NewApiKey>(false)?;
    let expires_at = json::given_moment(value.expires_at.as_ref());
    if expires_at.is_some_and(|moment| moment <= api.engine.clock().now()) {
        fields.problem("expiresAt", "lies in the past: the key would never count");
    }
    fields.finish_in_order(NewApiKey::KNOWN)?;
    let scope = KeyScope::from_name(value.scope.as_str()).ok_or_else(Error::server)?;
    let app = match value.app_id {
        None => None,
        Some(app) => Some(api.ask(&caller).application(&app).await?.id),
    };
    let new = NewKey { org: caller.org(), app, name: value.name, scope, expires_at };
    let (key, text) = api.directory(&caller).create_key(new, once).await?;
    Ok(json::answer(StatusCode::CREATED, &CreatedApiKeyView { shown: render(&key), key: text }))
}

async fn list(State(api): State<Api>, query: PageQuery<ApiKeyId>, caller: Caller) -> Response {
    let found = query.cut(api.ask(&caller).api_keys(), query.order.unwrap_or(Order::Ascending), |key| key.id);
    query.list(found, false, |key| key.id).render(render)
}

/// Fields of an answer that a change may send back, or that say why they cannot change.
const SHOWN_ALONE: [&str; 7] = ["id", "prefix", "createdAt", "lastUsedAt", "scope", "appId", "expiresAt"];

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
    for field in ["scope", "appId", "expiresAt"] {
        if fields.has(field) {
            fields.problem(field, "cannot change: make another key, and revoke this one");
        }
    }
    fields.forget(&SHOWN_ALONE);
    let ApiKeyPatch { name } = Parsed::of(fields, true).finish()?;
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
