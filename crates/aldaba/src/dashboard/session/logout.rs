//! Logging out. A token that a link was exchanged for ends with it; a key that somebody has entered does not.

use super::{SESSION_NAME, Session, end};
use crate::dashboard::answer::{see_other, with_cookie};
use crate::dashboard::fault::Fault;
use crate::dashboard::paths::Paths;
use crate::dashboard::route::PageRoute;
use crate::dashboard::visit::{Guest, Pairs};
use crate::token::CallerCredential;
use aldaba_store::ActorIdentity;
use axum::response::Response;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::open_post("/dashboard/logout", log_out)]
}

async fn log_out(guest: Guest, _: Pairs) -> Result<Response, Fault> {
    let api = &guest.api;
    if let Ok(session) = Session::read(api, &guest.parts.headers) {
        let caller = session.caller;
        let is_of_link = matches!(&caller.actor().identity,
            ActorIdentity::OrganizationToken { name: Some(name) } if name == SESSION_NAME);
        if let (true, CallerCredential::Token { mark, expires_at }) = (is_of_link, caller.shown()) {
            api.directory(&caller).revoke_token(caller.org(), mark, expires_at).await?;
        }
    }
    Ok(with_cookie(see_other(&Paths.login()), &end()))
}
