//! The caller's own credential, and its end.

use crate::api::request::json::{self, Moment, Text};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::{Caller, CallerCredential, Rights};
use aldaba_api::{Whoami, WhoamiView};
use aldaba_store::{ActorIdentity, KeyScope};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/auth/whoami", Access::Known, whoami)
            .named(
                "v1.authentication.whoami",
                "Shows the organization or application that the token or key is for, and its scope",
            )
            .answers::<Whoami>(StatusCode::OK),
        Route::post("/auth/logout", Access::Known, logout)
            .named("v1.authentication.logout", "Revokes the token or key of the request")
            .answers_nothing(),
    ]
}

async fn whoami(caller: Caller) -> Response {
    let (scope, capabilities) = match caller.rights() {
        Rights::Scope(scope) => (Some(KeyScope::name(scope)), None),
        Rights::Portal(capabilities) => (None, Some(capabilities.names())),
    };
    let (permission_source, key_id, expires_at) = match caller.shown() {
        CallerCredential::Key { id, expires_at } => ("RegionalAuthToken", Some(id), expires_at),
        CallerCredential::Token { expires_at, .. } => ("SvixJwt", None, expires_at),
    };
    let (key_name, session_id) = match &caller.actor().identity {
        ActorIdentity::Key { name, .. } => (Some(name.as_str()), None),
        ActorIdentity::PortalToken { session, .. } => (None, session.as_deref()),
        ActorIdentity::OrganizationToken { .. } | ActorIdentity::CommandLine | ActorIdentity::Program => {
            (None, None)
        }
    };
    let out = WhoamiView {
        env_id: Text(caller.org()),
        app_id: caller.app().map(Text),
        permission_source,
        session_id,
        scope,
        key_id: key_id.map(Text),
        key_name,
        capabilities,
        feature_flags: caller.feature_flags(),
        expires_at: expires_at.map(Moment),
    };
    json::answer(StatusCode::OK, &out)
}

async fn logout(State(api): State<Api>, caller: Caller) -> Result<StatusCode, Error> {
    let directory = api.directory(&caller);
    match caller.shown() {
        CallerCredential::Key { id, .. } => directory.revoke_key(caller.org(), id).await?,
        CallerCredential::Token { mark, expires_at } => {
            directory.revoke_token(caller.org(), mark, expires_at).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}
