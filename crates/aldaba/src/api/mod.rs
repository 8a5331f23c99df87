//! The REST API. Handlers translate: requests into questions and commands, results into responses.
//!
//! The router checks the token and the query string before a handler runs (`routing/route.rs`). A handler then checks
//! the path, the application, and the body last.

mod alert;
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
mod mail_links;
mod message;
mod operational;
mod replay;
mod request;
mod response;
mod routing;
mod source;
mod stats;

pub(crate) use aldaba_delivery::nearest::nearest;
pub(crate) use application::export::ExportPermits;
pub(crate) use credentials::portal::PublicUrl;
pub(crate) use endpoint::jwks::KeySets;
pub(crate) use health::StoreProbe;
pub(crate) use limits::memory_budget::MemoryBudget;
pub(crate) use limits::rates::{self, Rates};
pub(crate) use replay::DEFAULT_RATE as DEFAULT_REPLAY_RATE;
pub(crate) use request::json::shown_time;
pub(crate) use response::answer::PagePermits;
pub(crate) use response::code::Code;
pub(crate) use response::error::Error;
pub(crate) use routing::auth::Access;
pub(crate) use routing::request_log::Routers;

use crate::config::Limits;
use crate::dashboard::{self, Dashboard};
use crate::metrics::{self, Metrics};
use crate::questions::{DeliveryIds, Questions};
use crate::token::{Caller, Tokens};
use aldaba_engine::wire::Guard;
use aldaba_engine::{Directory, Engine};
use axum::Router;
use axum::extract::{MatchedPath, State};
use axum::routing::get;
use http::{HeaderMap, Method, Uri};
use routing::nearest_route::KnownRoutes;
use routing::request_span;
use routing::route::{self, Route};
use source::inbound_request;
use std::ops::Deref;
use std::sync::Arc;

/// The state that handlers share.
#[derive(Clone, Debug)]
pub(crate) struct Api(Arc<Parts>);

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) tokens: Tokens,
    /// Checks the URLs of endpoints.
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) delivery_ids: DeliveryIds,
    /// For the bodies of requests.
    pub(crate) request_memory: MemoryBudget,
    /// For large responses, until they are read.
    pub(crate) response_memory: MemoryBudget,
    pub(crate) page_permits: PagePermits,
    pub(crate) export_permits: ExportPermits,
    pub(crate) rates: Rates,
    pub(crate) key_sets: KeySets,
    pub(crate) store_probe: StoreProbe,
    /// For links into the portal.
    pub(crate) public_url: PublicUrl,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) dashboard: Dashboard,
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

    /// The questions of a caller.
    pub(crate) fn ask<'a>(&'a self, caller: &'a Caller) -> Questions<'a> {
        Questions::new(&self.engine, caller)
    }

    /// The directory, for changes by the caller.
    pub(crate) fn directory(&self, caller: &Caller) -> Directory {
        self.engine.directory().by(caller.actor())
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
        alert::routes(),
        health::routes(),
    ];
    resources.into_iter().flatten().collect()
}

pub(crate) fn router(api: &Api) -> Routers {
    let routes = routes();
    let known = Arc::new(KnownRoutes::of(&routes));
    let there = known.clone();
    let router = Router::new()
        .nest("/api/v1", route::router(api, routes))
        .route(inbound_request::PATH, inbound_request::route())
        .route(mail_links::UNSUBSCRIBE_PATH, mail_links::unsubscribe())
        .route(mail_links::SUBSCRIBE_PATH, mail_links::subscribe())
        .route(mail_links::CONFIRM_PATH, mail_links::confirm())
        .route(
            "/metrics",
            get(async |State(api): State<Api>, headers: HeaderMap| {
                metrics::answer(&api.metrics, &api.engine, &headers)
            }),
        )
        .merge(document::pages::router())
        .merge(dashboard::router())
        .fallback(async move |method: Method, uri: Uri| known.missing(&method, uri.path()))
        .method_not_allowed_fallback(async move |method: Method, path: Option<MatchedPath>| {
            let path = path.as_ref().map_or("", MatchedPath::as_str);
            Error::method_not_allowed(&method, &there.methods_of(path))
        });
    Routers::new(request_span::traced(router, api), api)
}
