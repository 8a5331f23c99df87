//! What comes before a page: from where a request comes, who makes it, what they may, and what they have entered.

use super::answer::{self, secured};
use super::assets;
use super::fault::{Fault, fault_page};
use super::route::{self, Found};
use super::session::{self, CrossSite, Session};
use super::shell::View;
use super::visit::{Guest, Pairs, Visit};
use crate::api::{Api, rates};
use crate::server::RequestOrigin;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::Method;
use http::request::Parts;
use http_body_util::{BodyExt, Limited};
use std::time::Duration;

/// The most that a form may have.
const MAX_FORM_BYTES: usize = 256 * 1024;
/// How long a form may take to arrive.
const FORM_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn answer(State(api): State<Api>, request: Request) -> Response {
    if let Some(asset) = assets::find(request.uri().path()) {
        return secured(asset);
    }
    let view = View::of(request.headers());
    let (parts, body) = request.into_parts();
    let mut response = match respond(&api, view, &parts, body).await {
        Ok(response) => response,
        Err(fault) => fault_page(&api, view, &parts, &fault),
    };
    if is_https(&api, &parts) {
        answer::keep_cookies_to_https(&mut response);
    }
    secured(response)
}

/// Whether the browser came over HTTPS, to the server or to a proxy before it.
fn is_https(api: &Api, parts: &Parts) -> bool {
    api.public_url.is_https() || parts.extensions.get::<RequestOrigin>().is_some_and(|origin| origin.https)
}

async fn respond(api: &Api, view: View, parts: &Parts, body: Body) -> Result<Response, Fault> {
    let path = parts.uri.path();
    let (route, parameters) = match route::find(&parts.method, path) {
        Found::Route(route, parameters) => (route, parameters),
        Found::WrongMethod | Found::Nothing => return Err(Fault::NoSuchPage),
    };
    let is_post = parts.method == Method::POST;
    if is_post && session::cross_site(&parts.headers) == CrossSite::Refused {
        return Err(Fault::CrossSite);
    }
    if let Some(welcomes) = route.welcome() {
        let form = if is_post { form(body).await? } else { Pairs::default() };
        return welcomes(Guest { api: api.clone(), view, parts: parts.clone() }, form).await;
    }
    let opened = match Session::read(api, &parts.headers) {
        Ok(opened) => opened,
        // What was entered must not be lost.
        Err(ended) => {
            let form = if is_post { form(body).await? } else { Pairs::default() };
            return session::login_in_place(view, parts, ended, &form);
        }
    };
    let visit = Visit {
        api: api.clone(),
        caller: opened.caller.clone(),
        view,
        path: path.to_owned(),
        query: Pairs::read(parts.uri.query().unwrap_or_default().as_bytes()),
        parameters,
        headers: parts.headers.clone(),
    };
    visit.caller.may(route.access).map_err(|_| Fault::Forbidden)?;
    rates::admit(api, &visit.caller, &parts.method, None).await.map_err(|_| Fault::TooMany)?;
    visit.ask().check_own_application().await?;
    let form = if is_post { form(body).await? } else { Pairs::default() };
    let response = route.answer(visit, form).await?;
    Ok(match opened.renewed(api, parts) {
        Some(cookie) => answer::with_cookie(response, &cookie),
        None => response,
    })
}

async fn form(body: Body) -> Result<Pairs, Fault> {
    let reading = Limited::new(body, MAX_FORM_BYTES).collect();
    match tokio::time::timeout(FORM_TIMEOUT, reading).await {
        Ok(Ok(read)) => Ok(Pairs::read(&read.to_bytes())),
        Ok(Err(_)) | Err(_) => Err(Fault::FormTooLarge),
    }
}
