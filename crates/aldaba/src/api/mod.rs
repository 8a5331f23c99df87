//! The REST API. Handlers translate: what they decide is which words to use.
//!
//! The token is checked before a handler is reached (`routes`). The order of a handler's arguments is the order
//! of its own checks: query string, path; then, inside, the application, and the body last.

mod application;
mod attempt;
mod audit;
mod catalog;
mod credentials;
mod delivery;
mod dispatch;
mod document;
mod endpoint;
mod event_type;
mod health;
mod host;
mod limits;
mod message;
mod operational;
mod replay;
mod request;
mod response;
mod routing;
mod source;
mod stats;

pub(crate) use aldaba_delivery::nearest::nearest;
pub(crate) use credentials::portal::PublicUrl;
pub(crate) use delivery::id::DeliveryIds;
pub(crate) use endpoint::jwks::KeySets;
pub(crate) use limits::memory_budget::Rooms;
pub(crate) use limits::rates::Rates;
pub(crate) use response::answer::Turns;
pub(crate) use response::error::Error;
pub(crate) use routing::auth::Access;

use crate::config::Limits;
use crate::token::{Caller, Tokens};
use aldaba_delivery::AppId;
use aldaba_engine::wire::Guard;
use aldaba_engine::{Directory, Engine};
use aldaba_store::{Application, ApplicationRef, Endpoint, Message};
use axum::Router;
use axum::extract::MatchedPath;
use http::{Method, Uri};
use routing::nearest_route::KnownRoutes;
use routing::route::{self, Route};
use source::inbound_request;
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
    /// For large answers, until they are read.
    pub(crate) answers: Rooms,
    pub(crate) turns: Turns,
    pub(crate) rates: Rates,
    pub(crate) key_sets: KeySets,
    /// For links into the portal.
    pub(crate) public_url: PublicUrl,
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
    async fn application(&self, caller: &Caller, key: String) -> Result<Application, Error> {
        let found = self.engine.store().application(ApplicationRef { org: caller.org(), key }).await?;
        let reached = found.filter(|application| caller.speaks_for(application.org, application.id));
        reached.ok_or_else(|| Error::not_found("There is no such application; GET /api/v1/app lists them"))
    }

    /// How to find the application that a message is for. Whoever is for one application alone finds no other.
    async fn which(&self, caller: &Caller, key: String) -> Result<ApplicationRef, Error> {
        let which = ApplicationRef { org: caller.org(), key };
        let Some(only) = caller.app() else { return Ok(which) };
        if which.key == only.to_string() {
            return Ok(which);
        }
        // A name is looked up: what memory knows of it may be old.
        let application = self.application(caller, which.key).await?;
        Ok(ApplicationRef { org: application.org, key: application.id.to_string() })
    }

    /// The directory, in the caller's hands.
    fn directory(&self, caller: &Caller) -> Directory {
        self.engine.directory().by(caller.actor())
    }

    async fn endpoint(&self, app: AppId, key: String) -> Result<Endpoint, Error> {
        let found = self.engine.store().endpoint(app, key).await?;
        found.ok_or_else(|| Error::not_found("The application has no such endpoint; GET /api/v1/app/{app_id}/endpoint lists those that it has"))
    }

    async fn message(&self, app: AppId, key: String) -> Result<Message, Error> {
        let found = self.engine.store().message(app, key).await?;
        found.ok_or_else(|| {
            Error::not_found(
                "The application has no such message; GET /api/v1/app/{app_id}/msg lists those that are kept",
            )
        })
    }
}

/// Every operation of the API.
fn routes() -> Vec<Route> {
    let resources = [
        application::routes(),
        endpoint::routes(),
        replay::routes(),
        operational::routes(),
        source::routes(),
        message::routes(),
        dispatch::routes(),
        attempt::routes(),
        stats::routes(),
        delivery::routes(),
        host::routes(),
        event_type::routes(),
        catalog::routes(),
        credentials::routes(),
        audit::routes(),
        health::routes(),
    ];
    resources.into_iter().flatten().collect()
}

pub(crate) fn router(api: Api) -> Router {
    let routes = routes();
    let known = Arc::new(KnownRoutes::of(&routes));
    let there = known.clone();
    Router::new()
        .nest("/api/v1", route::router(&api, routes))
        .route(inbound_request::PATH, inbound_request::route())
        .merge(document::pages::router())
        .fallback(async move |method: Method, uri: Uri| known.missing(&method, uri.path()))
        .method_not_allowed_fallback(async move |method: Method, path: Option<MatchedPath>| {
            let path = path.as_ref().map_or("", MatchedPath::as_str);
            Error::method_not_allowed(&method, &there.methods_of(path))
        })
        .with_state(api)
}
