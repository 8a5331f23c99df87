//! Links that log a person in once: the first start prints one, and `aldaba dashboard` others. A user who can read the data folder can
//! make them.

use super::{begin, limits_address};
use crate::api::Api;
use crate::dashboard::answer::{html, see_other, with_cookie};
use crate::dashboard::fault::Fault;
use crate::dashboard::paths::{Paths, with_query};
use crate::dashboard::route::PageRoute;
use crate::dashboard::session::login::{LoginFault, LoginPage};
use crate::dashboard::shell::Shell;
use crate::dashboard::texts::SessionTexts;
use crate::dashboard::visit::{Guest, Pairs};
use crate::token::DashboardLink;
use aldaba_delivery::Timestamp;
use aldaba_store::{Actor, ActorIdentity};
use askama::Template;
use axum::response::Response;
use http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

const PATH: &str = "/dashboard/link";
/// The name of the token that a link is exchanged for, as the audit log has it.
pub(crate) const SESSION_NAME: &str = "dashboard";
/// How long that token is valid, however much the session is used.
const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::open_get(PATH, show), PageRoute::open_post(PATH, enter)]
}

/// The path of a link, below the server's URL.
pub(crate) fn link_path(token: &str) -> String {
    with_query(PATH, &[("key", token)])
}

/// The links that were used, until they would have expired. A restart finds them among the revoked tokens.
#[derive(Debug, Default)]
pub(crate) struct LinkUses(Mutex<HashMap<[u8; 32], Timestamp>>);

impl LinkUses {
    /// Whether this is the first use.
    fn take(&self, link: &DashboardLink, now: Timestamp) -> bool {
        let mut uses = self.0.lock();
        uses.retain(|_, until| *until > now);
        uses.insert(link.mark, link.expires_at).is_none()
    }

    fn give_back(&self, link: &DashboardLink) {
        self.0.lock().remove(&link.mark);
    }
}

#[derive(Template)]
#[template(path = "session/link.html")]
struct LinkPage<'a> {
    shell: Shell,
    t: &'static dyn SessionTexts,
    key: &'a str,
}

/// A GET logs nobody in: programs follow links.
async fn show(guest: Guest, _: Pairs) -> Result<Response, Fault> {
    let query = guest.query();
    let key = query.get("key").unwrap_or_default();
    if let Err(fault) = opened(&guest.api, key) {
        return refused(&guest, fault);
    }
    let t = <dyn SessionTexts>::of(guest.view.tongue);
    let page = LinkPage { shell: Shell::of_guest(guest.view, t.link_title()), t, key };
    Ok(html(StatusCode::OK, page.render()?))
}

async fn enter(guest: Guest, form: Pairs) -> Result<Response, Fault> {
    let api = &guest.api;
    let address = limits_address(&guest.parts);
    if let Err(wait) = api.dashboard.logins.admit(address, api.engine.clock().monotonic()) {
        return refused(&guest, LoginFault::TooMany { wait });
    }
    let now = api.engine.clock().now();
    let link = match opened(api, form.get("key").unwrap_or_default()) {
        Ok(link) => link,
        Err(fault) => return refused(&guest, fault),
    };
    if !api.dashboard.link_uses.take(&link, now) {
        return refused(&guest, LoginFault::LinkUsed);
    }
    // On disk: a restart must not make the link new.
    let actor = Actor { org: link.org, identity: ActorIdentity::CommandLine };
    let directory = api.engine.directory().by(&actor.into());
    if let Err(error) = directory.revoke_token(link.org, link.mark, Some(link.expires_at)).await {
        api.dashboard.link_uses.give_back(&link);
        return Err(error.into());
    }
    api.dashboard.logins.forget(address);
    let lifetime = (now, SESSION_LIFETIME);
    let token = api.tokens.issue_session(link.org, SESSION_NAME, lifetime, &*api.dashboard.entropy);
    Ok(with_cookie(see_other(&Paths.overview()), &begin(api, token.as_bytes())))
}

fn opened(api: &Api, key: &str) -> Result<DashboardLink, LoginFault> {
    let link = api.tokens.dashboard_link(key.as_bytes(), api.engine.clock().now());
    link.map_err(|_| LoginFault::LinkInvalid)
}

fn refused(guest: &Guest, fault: LoginFault) -> Result<Response, Fault> {
    LoginPage::of(guest.view).with(fault).answer()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_used_once() {
        let uses = LinkUses::default();
        let (now, later) = (Timestamp::from_millis(1000), Timestamp::from_millis(2000));
        let link = DashboardLink {
            org: crate::DEFAULT_ORGANIZATION.parse().unwrap(),
            mark: [1; 32],
            expires_at: later,
        };
        assert!(uses.take(&link, now));
        assert!(!uses.take(&link, now));
        uses.give_back(&link);
        assert!(uses.take(&link, now));
        let other = DashboardLink { mark: [2; 32], expires_at: later + Duration::from_secs(9), ..link };
        assert!(uses.take(&other, later));
        assert_eq!(uses.0.lock().len(), 1, "what has expired need not be remembered");
    }
}
