//! Tokens for an application's portal, and their ends.

use crate::api::application::ApplicationIn;
use crate::api::application::target::Inline;
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Fields};
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::{Caller, Capabilities, Capability, NewPortalToken};
use aldaba_store::Application;
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;
use utoipa::ToSchema;

const SHORTEST_SECONDS: u64 = 3600;
const LONGEST_SECONDS: u64 = 7 * 24 * 3600;
const LONGEST_DELAY_SECONDS: u64 = 3 * 24 * 3600;
const MOST_FLAGS: usize = 25;
const MOST_SESSIONS: usize = 1000;
const LONGEST_SESSION_ID: usize = 64;
const ACCESS_FIELDS: &[&str] =
    &["application", "capabilities", "expiry", "featureFlags", "readOnly", "sessionId"];
const EXPIRE_FIELDS: &[&str] = &["expiry", "sessionIds"];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/auth/app-portal-access/{app_id}", Access::Admit, app_portal_access)
            .named("v1.authentication.app-portal-access", "Lets somebody into an application's portal")
            .takes::<AppPortalAccessIn>()
            .answers::<AppPortalAccessOut>(StatusCode::OK)
            .may_conflict(),
        Route::post("/auth/dashboard-access/{app_id}", Access::Admit, dashboard_access)
            .named(
                "v1.authentication.dashboard-access",
                "The same with nothing to choose; older clients use it",
            )
            .answers::<AppPortalAccessOut>(StatusCode::OK),
        Route::post("/auth/app/{app_id}/expire-all", Access::Admit, expire_all)
            .named("v1.authentication.expire-all", "Ends the portal tokens that an application has")
            .may_take::<ApplicationTokenExpireIn>()
            .answers_nothing(),
    ]
}

/// What somebody may do in the portal, and for how long.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct AppPortalAccessIn {
    /// The application, to be made if the one of the path is not there. Its `uid` is the one of the path.
    application: Option<ApplicationIn>,
    /// All of them if absent; `ViewBase` is always among them.
    #[schema(value_type = Option<Vec<String>>)]
    capabilities: Option<Vec<String>>,
    /// Seconds.
    #[schema(minimum = 3600, maximum = 604_800, default = 604_800)]
    expiry: Option<u64>,
    /// The event types that show up besides those without a flag.
    #[schema(max_items = 25)]
    feature_flags: Option<Vec<String>>,
    /// The same as `capabilities` with `ViewBase` alone.
    read_only: Option<bool>,
    /// A name by which the token can be ended together with others.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-zA-Z0-9@_-]+$")]
    session_id: Option<String>,
}

example!(AppPortalAccessIn, {"expiry": 3600, "sessionId": "user_42", "readOnly": true});

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ApplicationTokenExpireIn {
    /// How many seconds they still count; 0 if absent.
    #[schema(minimum = 0, maximum = 259_200)]
    expiry: Option<u64>,
    /// Only tokens of these sessions.
    #[schema(max_items = 1000)]
    session_ids: Option<Vec<String>>,
}

example!(ApplicationTokenExpireIn, {"sessionIds": ["user_42"]});

#[derive(Serialize, ToSchema)]
struct AppPortalAccessOut {
    /// Leads into the portal. Whoever has it is let in.
    url: String,
    token: String,
}

fn session_id(text: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@_-".contains(&byte);
    if (1..=LONGEST_SESSION_ID).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(());
    }
    Err(format!("must be 1 to {LONGEST_SESSION_ID} letters, digits, `@`, `_` or `-`"))
}

/// What a token is to be.
struct Asked {
    capabilities: Option<Capabilities>,
    feature_flags: Vec<String>,
    lifetime: Duration,
    session: Option<String>,
}

impl Asked {
    fn read(fields: &mut Fields) -> Self {
        fields.drop_empty_list("featureFlags");
        let feature_flags = fields.set("featureFlags", MOST_FLAGS, ids::name);
        let seconds = fields.number("expiry", SHORTEST_SECONDS, LONGEST_SECONDS).unwrap_or(LONGEST_SECONDS);
        let session = fields.string("sessionId");
        let session = fields.checked("sessionId", session, |session| session_id(session));
        let names =
            fields.set("capabilities", Capability::ALL.len(), |name| match Capability::from_name(name) {
                Some(_) => Ok(()),
                None => Err(format!("is none of {}", Capabilities::all().names().join(", "))),
            });
        let mut capabilities: Option<Capabilities> = (!names.is_empty())
            .then(|| names.iter().filter_map(|name| Capability::from_name(name)).collect());
        if capabilities.is_some_and(|some| !some.has(Capability::ViewBase)) {
            fields.problem("capabilities", "must hold `ViewBase`: without it nothing can be seen");
        }
        if fields.boolean("readOnly") == Some(true) {
            if capabilities.is_some() {
                fields.problem(
                    "readOnly",
                    "says the same as `capabilities` with `ViewBase` alone: give one of the two",
                );
            }
            capabilities = Some([Capability::ViewBase].into_iter().collect());
        }
        Self { capabilities, feature_flags, lifetime: Duration::from_secs(seconds), session }
    }
}

/// Where this server is reached, as far as it knows.
#[derive(Clone, Debug)]
pub(crate) struct PublicUrl {
    /// By its operator.
    pub(crate) told: Option<String>,
    pub(crate) address: SocketAddr,
}

impl PublicUrl {
    /// What the operator says, else where the request has found it, else where it listens.
    fn of(&self, parts: &Parts) -> String {
        if let Some(told) = &self.told {
            return told.trim_end_matches('/').to_owned();
        }
        let named = parts.headers.get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let named = named.filter(|authority| !authority.as_str().contains('@'));
        match named.as_ref().or(parts.uri.authority()) {
            Some(authority) => format!("http://{authority}"),
            None => format!("http://{}", self.address),
        }
    }
}

/// The server's address as the caller knows it.
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
        // A body that got lost on the way may have said `readOnly`.
        let message = "the body is empty; send `{}` for access to everything in the application for 7 days, or say less";
        return Err(Problem::decode(&["body"], message).into());
    }
    let mut fields = body.text().fields()?;
    fields.refuse_others(ACCESS_FIELDS);
    let inline = fields.raw("application");
    let asked = Asked::read(&mut fields);
    fields.finish()?;
    let inline = inline.as_ref().map(|inline| body.part(inline));
    let application = Inline::find(&api, &caller, &key, inline).await?.or_make(&api, &caller).await?;
    admit(&api, &caller, &base, &application, asked).await
}

async fn dashboard_access(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.application(&caller, key).await?;
    let lifetime = Duration::from_secs(LONGEST_SECONDS);
    let asked = Asked { capabilities: None, feature_flags: Vec::new(), lifetime, session: None };
    admit(&api, &caller, &base, &application, asked).await
}

async fn admit(
    api: &Api,
    caller: &Caller,
    base: &str,
    application: &Application,
    asked: Asked,
) -> Result<Response, Error> {
    let Asked { capabilities, feature_flags, lifetime, session } = asked;
    let (org, app) = (application.org, application.id);
    let issued_at = api.directory(caller).grant_portal_access(app, session.as_deref()).await?;
    let now = api.engine.clock().now();
    let new = NewPortalToken { org, app, issued_at, now, lifetime, capabilities, feature_flags, session };
    let token = api.tokens.issue_portal(&new);
    // Behind the `#`, where no server and no log sees it.
    let url = format!("{base}/portal#key={token}");
    Ok(json::answer(StatusCode::OK, &AppPortalAccessOut { url, token }))
}

async fn expire_all(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let application = api.application(&caller, key).await?;
    let mut fields = pending.read().await?.text().fields_or_none()?;
    fields.refuse_others(EXPIRE_FIELDS);
    fields.drop_empty_list("sessionIds");
    let delay = fields.number("expiry", 0, LONGEST_DELAY_SECONDS).unwrap_or(0);
    let sessions = fields.set("sessionIds", MOST_SESSIONS, session_id);
    fields.finish()?;
    let directory = api.directory(&caller);
    directory.end_portal_tokens(application.id, sessions, Duration::from_secs(delay)).await?;
    Ok(StatusCode::NO_CONTENT)
}
