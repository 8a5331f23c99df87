//! The page to log in with a key or a token. What was entered before a session ended is kept on it, and sent after it.

use super::{MAX_TOKEN_BYTES, NoSession, begin, limits_address};
use crate::api::Access;
use crate::dashboard::answer::{html, see_other, with_cookie};
use crate::dashboard::fault::Fault;
use crate::dashboard::paths::{Paths, is_own};
use crate::dashboard::route::PageRoute;
use crate::dashboard::shell::{Shell, View};
use crate::dashboard::texts::SessionTexts;
use crate::dashboard::visit::{Guest, Pairs};
use crate::token::TokenError;
use askama::Template;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use std::time::Duration;

const PATH: &str = "/dashboard/login";

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::open_get(PATH, show), PageRoute::open_post(PATH, log_in)]
}

/// Why nobody was logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginFault {
    Empty,
    Unknown,
    Expired,
    Ended,
    IsTheSecret,
    /// It was signed by us, and says not whom it is for.
    Incomplete,
    /// It may do nothing that a page shows.
    MayOnlySend,
    TooLong,
    TooMany {
        wait: Duration,
    },
    /// A link that logs in.
    LinkInvalid,
    LinkUsed,
    /// The session has ended.
    SessionEnded,
}

impl From<TokenError> for LoginFault {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid => Self::Unknown,
            TokenError::Expired => Self::Expired,
            TokenError::Ended => Self::Ended,
            TokenError::IsTheSecret => Self::IsTheSecret,
            TokenError::NoOrganization | TokenError::NoApplication => Self::Incomplete,
        }
    }
}

impl LoginFault {
    fn status(self) -> StatusCode {
        match self {
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::LinkInvalid | Self::LinkUsed => StatusCode::NOT_FOUND,
            _ => StatusCode::UNAUTHORIZED,
        }
    }
}

#[derive(Template)]
#[template(path = "session/login.html")]
pub(super) struct LoginPage {
    shell: Shell,
    t: &'static dyn SessionTexts,
    fault: Option<LoginFault>,
    /// Where to go then.
    then: String,
    /// What was entered, and where it was sent to.
    kept: Option<Kept>,
}

struct Kept {
    path: String,
    fields: Vec<(String, String)>,
}

impl LoginPage {
    pub(super) fn of(view: View) -> Self {
        let t = <dyn SessionTexts>::of(view.tongue);
        let shell = Shell::of_guest(view, t.login_title());
        Self { shell, t, fault: None, then: String::new(), kept: None }
    }

    pub(super) fn with(self, fault: LoginFault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    pub(super) fn answer(self) -> Result<Response, Fault> {
        let status = self.fault.map_or(StatusCode::OK, LoginFault::status);
        let mut response = html(status, self.render()?);
        if let Some(LoginFault::TooMany { wait }) = self.fault {
            let wait = HeaderValue::from(wait.as_secs().max(1));
            response.headers_mut().insert(http::header::RETRY_AFTER, wait);
        }
        Ok(response)
    }
}

/// After a new login, what was entered is sent with one more click: what it does may be more than its sender remembers.
#[derive(Template)]
#[template(path = "session/kept.html")]
struct KeptPage {
    shell: Shell,
    t: &'static dyn SessionTexts,
    kept: Kept,
}

async fn show(guest: Guest, _: Pairs) -> Result<Response, Fault> {
    let query = guest.query();
    let then = own(query.get("then"));
    LoginPage { then, ..LoginPage::of(guest.view) }.answer()
}

/// The page to log in, in the place of another one.
pub(crate) fn login_in_place(
    view: View,
    parts: &Parts,
    ended: NoSession,
    form: &Pairs,
) -> Result<Response, Fault> {
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let is_post = parts.method == http::Method::POST;
    let kept = is_post.then(|| Kept { path: own(Some(path)), fields: fields(form) });
    let then = if is_post { String::new() } else { own(Some(path)) };
    let page = LoginPage { then, kept, ..LoginPage::of(view) };
    match ended {
        NoSession::Ended => page.with(LoginFault::SessionEnded).answer(),
        NoSession::Missing => Ok(html(StatusCode::UNAUTHORIZED, page.render()?)),
    }
}

async fn log_in(guest: Guest, form: Pairs) -> Result<Response, Fault> {
    let (api, then) = (&guest.api, own(form.get("then")));
    let kept_path = own(form.get("kept-path"));
    let kept = (!kept_path.is_empty()).then(|| Kept {
        path: kept_path,
        fields: fields(&Pairs::read(form.get("kept").unwrap_or_default().as_bytes())),
    });
    let address = limits_address(&guest.parts);
    let credential = form.get("credential").unwrap_or_default().trim();
    let checked = match api.dashboard.logins.admit(address, api.engine.clock().monotonic()) {
        Err(wait) => Err(LoginFault::TooMany { wait }),
        Ok(()) if credential.is_empty() => Err(LoginFault::Empty),
        Ok(()) if credential.len() > MAX_TOKEN_BYTES => Err(LoginFault::TooLong),
        Ok(()) => match api.tokens.check(credential.as_bytes(), api.engine.clock().now()) {
            Err(error) => Err(error.into()),
            Ok(caller) if caller.may(Access::Read).is_err() => Err(LoginFault::MayOnlySend),
            Ok(_) => Ok(()),
        },
    };
    if let Err(fault) = checked {
        return LoginPage { then, kept, ..LoginPage::of(guest.view) }.with(fault).answer();
    }
    api.dashboard.logins.forget(address);
    let response = match kept {
        Some(kept) => {
            let t = <dyn SessionTexts>::of(guest.view.tongue);
            let page = KeptPage { shell: Shell::of_guest(guest.view, t.kept_title()), t, kept };
            html(StatusCode::OK, page.render()?)
        }
        None if then.is_empty() => see_other(&Paths.overview()),
        None => see_other(&then),
    };
    Ok(with_cookie(response, &begin(api, credential.as_bytes())))
}

/// A path that leads nowhere else; empty: it is none.
fn own(path: Option<&str>) -> String {
    path.filter(|path| is_own(path)).unwrap_or_default().to_owned()
}

fn fields(form: &Pairs) -> Vec<(String, String)> {
    form.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Kept {
    /// All fields in one, for the page to log in.
    fn encoded(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.fields).finish()
    }
}
