//! Tokens for an application's portal, and their revocation.

use crate::api::application::target::Inline;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields};
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::server::RequestOrigin;
use crate::token::{Caller, Capabilities, Capability, NewPortalToken};
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::{ExpireTokens, MAX_ACCESS_SECONDS, NewPortalAccess, PortalAccess, PortalAccessView};
use aldaba_store::Application;
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use parking_lot::RwLock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/auth/app-portal-access/{app_id}", Access::Admit, app_portal_access)
            .named(
                "v1.authentication.app-portal-access",
                "Issues a token and a link for an application's portal",
            )
            .takes::<NewPortalAccess>()
            .answers::<PortalAccess>(StatusCode::OK)
            .may_conflict(),
        Route::post("/auth/dashboard-access/{app_id}", Access::Admit, dashboard_access)
            .named("v1.authentication.dashboard-access", "The same without options, for older clients")
            .answers::<PortalAccess>(StatusCode::OK),
        Route::post("/auth/app/{app_id}/expire-all", Access::Admit, expire_all)
            .named("v1.authentication.expire-all", "Revokes the portal tokens of an application")
            .may_take::<ExpireTokens>()
            .answers_nothing(),
    ]
}

/// The token to issue.
struct TokenRequest {
    capabilities: Option<Capabilities>,
    feature_flags: Vec<String>,
    lifetime: Duration,
    session: Option<String>,
}

impl TokenRequest {
    /// What a body asks for. What is wrong is noted with the rest.
    fn of(body: NewPortalAccess, fields: &mut Fields) -> Self {
        let named =
            |names: Vec<String>| names.iter().filter_map(|name| Capability::from_name(name)).collect();
        let mut capabilities: Option<Capabilities> = body.capabilities.map(named);
        if capabilities.is_some_and(|some| !some.has(Capability::ViewBase)) && fields.is_fine("capabilities")
        {
            fields.problem("capabilities", "must hold `ViewBase`: without it nothing can be seen");
        }
        if body.read_only == Some(true) {
            if capabilities.is_some() {
                fields.problem(
                    "readOnly",
                    "says the same as `capabilities` with `ViewBase` alone: give one of the two",
                );
            }
            capabilities = Some([Capability::ViewBase].into_iter().collect());
        }
        let lifetime = Duration::from_secs(body.expiry.unwrap_or(MAX_ACCESS_SECONDS));
        let feature_flags = body.feature_flags.unwrap_or_default();
        Self { capabilities, feature_flags, lifetime, session: body.session_id }
    }
}

/// The URL of this server, as far as it is known. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct PublicUrl {
    /// From the setting.
    told: Arc<RwLock<Option<String>>>,
    address: SocketAddr,
}

impl PublicUrl {
    pub(crate) fn new(told: Option<String>, address: SocketAddr) -> Self {
        Self { told: Arc::new(RwLock::new(told)), address }
    }

    pub(crate) fn set(&self, told: Option<String>) {
        *self.told.write() = told;
    }

    /// Whether the operator says that browsers reach the server over HTTPS.
    pub(crate) fn is_https(&self) -> bool {
        self.told.read().as_ref().is_some_and(|told| told.starts_with("https://"))
    }

    /// The operator's URL; else what a trusted proxy says, or the scheme and the host of the request; else the listening
    /// address.
    fn of(&self, parts: &Parts) -> String {
        if let Some(told) = &*self.told.read() {
            return told.trim_end_matches('/').to_owned();
        }
        let origin = parts.extensions.get::<RequestOrigin>();
        let scheme = if origin.is_some_and(|origin| origin.https) { "https" } else { "http" };
        let forwarded = origin.and_then(|origin| origin.host.clone());
        // HTTP/2 has the host in the URL; in HTTP/1.1, where both have one, the URL counts.
        let in_url = || parts.uri.authority().cloned();
        let named = || parts.headers.get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let host = forwarded.or_else(in_url).or_else(named);
        match host.filter(|authority| !authority.as_str().contains('@')) {
            Some(authority) => format!("{scheme}://{authority}"),
            None => format!("{scheme}://{}", self.address),
        }
    }
}

/// The server's URL as the caller knows it.
pub(crate) struct Base(pub(crate) String);

impl FromRequestParts<Api> for Base {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        Ok(Self(api.public_url.of(parts)))
    }
}

async fn app_portal_access(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let body = pending.read().await?;
    if body.bytes.trim_ascii().is_empty() {
        // A body that got lost on the way may have had `readOnly`.
        let message = "the body is empty; send `{}` for access to everything in the application for 7 days, or say less";
        return Err(Problem::decode(&["body"], message).into());
    }
    let fields = body.text().fields()?;
    let inline = fields.peek("application");
    let Parsed { value, mut fields } = Parsed::<NewPortalAccess>::of(fields, false);
    let request = TokenRequest::of(value, &mut fields);
    let inline = inline.map(|inline| Inline::read(body.part(&inline), &mut fields));
    fields.finish_in_order(NewPortalAccess::KNOWN)?;
    let application = Inline::find(&api, &caller, &key, inline).await?.or_make(&api, &caller).await?;
    admit(&api, &caller, &base, &application, request).await
}

async fn dashboard_access(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let lifetime = Duration::from_secs(MAX_ACCESS_SECONDS);
    let request = TokenRequest { capabilities: None, feature_flags: Vec::new(), lifetime, session: None };
    admit(&api, &caller, &base, &application, request).await
}

async fn admit(
    api: &Api,
    caller: &Caller,
    base: &str,
    application: &Application,
    request: TokenRequest,
) -> Result<Response, Error> {
    let TokenRequest { capabilities, feature_flags, lifetime, session } = request;
    let (org, app) = (application.org, application.id);
    let issued_at = api.directory(caller).grant_portal_access(app, session.as_deref()).await?;
    let now = api.engine.clock().now();
    let new = NewPortalToken { org, app, issued_at, now, lifetime, capabilities, feature_flags, session };
    let token = api.tokens.issue_portal(&new);
    // After the `#`, where no server and no log sees it.
    let url = format!("{base}/portal#key={token}");
    Ok(json::answer(StatusCode::OK, &PortalAccessView { url, token }))
}

async fn expire_all(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let ExpireTokens { expiry, session_ids } = pending.read().await?.text().parse_or_none()?.finish()?;
    let directory = api.directory(&caller);
    directory
        .end_portal_tokens(
            application.id,
            session_ids.unwrap_or_default(),
            Duration::from_secs(expiry.unwrap_or(0)),
        )
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
