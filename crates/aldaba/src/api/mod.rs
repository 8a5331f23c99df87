//! The REST API. Handlers translate: what they decide is which words to use.
//!
//! The order of a handler's arguments is the order of its checks: query string, token, path; then,
//! inside, the application, and the body last.

mod application;
mod attempt;
mod auth;
mod body;
mod condition;
mod delivery;
mod delivery_id;
mod delivery_query;
mod destination;
mod discard;
mod endpoint;
mod error;
mod explain;
mod health;
mod host;
mod ids;
mod json;
mod message;
mod message_in;
mod mtls;
mod named;
mod ordering;
mod page;
mod policy;
mod profile;
mod query;
mod replay;
mod room;

pub(crate) use delivery_id::DeliveryIds;
pub(crate) use error::Error;
pub(crate) use room::Rooms;

use crate::config::Limits;
use crate::token::{Caller, Tokens};
use aldaba_delivery::AppId;
use aldaba_engine::Engine;
use aldaba_engine::wire::Guard;
use aldaba_store::{Application, Endpoint, Message, WhichApplication};
use axum::Router;
use axum::routing::{get, post};
use http::StatusCode;
use std::ops::Deref;
use std::sync::Arc;

/// What handlers work with.
#[derive(Clone, Debug)]
pub(crate) struct Api(Arc<Parts>);

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) tokens: Tokens,
    /// Vets the URLs of endpoints.
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    /// How deliveries are named.
    pub(crate) delivery_ids: DeliveryIds,
    /// For the bodies of requests.
    pub(crate) rooms: Rooms,
}

impl Deref for Api {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Api {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Another tenant's application is not there, as far as the caller can tell.
    async fn application(&self, caller: Caller, key: String) -> Result<Application, Error> {
        let (org, only) = match caller {
            Caller::Organization(org) => (org, None),
            Caller::Application { org, app } => (org, Some(app)),
        };
        let found = self.engine.store().application(WhichApplication { org, key }).await?;
        let reached = found.filter(|application| only.is_none_or(|only| only == application.id));
        reached.ok_or_else(|| Error::not_found("There is no such application"))
    }

    async fn endpoint(&self, app: AppId, key: String) -> Result<Endpoint, Error> {
        let found = self.engine.store().endpoint(app, key).await?;
        found.ok_or_else(|| Error::not_found("The application has no such endpoint"))
    }

    async fn message(&self, app: AppId, key: String) -> Result<Message, Error> {
        let found = self.engine.store().message(app, key).await?;
        found.ok_or_else(|| Error::not_found("The application has no such message"))
    }
}

pub(crate) fn router(api: Api) -> Router {
    let v1 = Router::new()
        .route("/app", get(application::list).post(application::create))
        .route("/app/{app}", get(application::show).delete(application::delete))
        .route("/app/{app}/endpoint", get(endpoint::list).post(endpoint::create))
        .route(
            "/app/{app}/endpoint/{endpoint}",
            get(endpoint::show).patch(endpoint::patch).delete(endpoint::delete),
        )
        .route("/app/{app}/endpoint/{endpoint}/secret", get(endpoint::secret))
        .route("/app/{app}/endpoint/{endpoint}/mtls", get(mtls::show).put(mtls::set).delete(mtls::unset))
        .route("/app/{app}/endpoint/{endpoint}/mtls-config", get(mtls::status))
        .route("/app/{app}/endpoint/{endpoint}/recover", post(replay::recover))
        .route("/app/{app}/endpoint/{endpoint}/replay-missing", post(replay::replay_missing))
        .route("/app/{app}/endpoint/{endpoint}/cancel-msgs", post(discard::messages))
        .route("/app/{app}/endpoint/{endpoint}/bulk-replay", post(replay::bulk_replay))
        .route("/background-task", get(replay::list))
        .route("/background-task/{task}", get(replay::show))
        .route("/background-task/{task}/cancel", post(replay::cancel))
        .route("/app/{app}/endpoint/{endpoint}/health", get(condition::changes))
        .route("/app/{app}/endpoint/{endpoint}/resume", post(condition::resume))
        .route("/app/{app}/msg", get(message::list).post(message::create))
        .route("/app/{app}/msg/{msg}", get(message::show))
        .route("/app/{app}/msg/{msg}/endpoint", get(destination::list))
        .route("/app/{app}/msg/{msg}/endpoint/{endpoint}/resend", post(replay::resend))
        .route("/app/{app}/attempt/endpoint/{endpoint}", get(attempt::of_endpoint))
        .route("/app/{app}/attempt/msg/{msg}", get(attempt::of_message))
        .route("/app/{app}/delivery", get(delivery::list))
        .route("/app/{app}/delivery/discard", post(discard::many))
        .route("/app/{app}/delivery/{delivery}", get(delivery::show).delete(discard::one))
        .route("/app/{app}/delivery/{delivery}/attempt", get(delivery::attempts))
        .route("/dead-letter", get(delivery::dead_letter))
        .route("/host", get(host::list))
        .route("/host/{origin}/release", post(host::release))
        .route("/policy", get(policy::list).post(policy::create))
        .route("/policy/{policy}", get(policy::show).put(policy::replace).delete(policy::delete))
        .route("/policy/{policy}/preview", get(policy::preview))
        .route("/profile", get(profile::list).post(profile::create))
        .route("/profile/{profile}", get(profile::show).put(profile::replace).delete(profile::delete))
        .route("/health", get(health::check))
        .route("/health/ping", get(health::ping));
    Router::new()
        .nest("/api/v1", v1)
        .route("/", get(root))
        .fallback(async || Error::not_found("There is no such route; the API is under /api/v1"))
        .method_not_allowed_fallback(async || {
            let detail = "The route exists, but not with this method";
            Error::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .with_state(api)
}

async fn root() -> &'static str {
    "Aldaba, a webhook delivery server. Its API is under /api/v1; /api/v1/health tells how it is.\n"
}
