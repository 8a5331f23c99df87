//! The pages that links in mails lead to. A GET shows a button and changes nothing: programs that look at mails follow links.

use super::{Api, Error};
use crate::api::request::ids::Ids;
use aldaba_delivery::Language;
use aldaba_engine::{MailLink, MailLinkError, MailLinkKind, MailScope, MailTexts, escaped, texts};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, StatusCode};

pub(crate) const UNSUBSCRIBE_PATH: &str = "/mail/unsubscribe/{token}";
pub(crate) const SUBSCRIBE_PATH: &str = "/mail/subscribe/{token}";
pub(crate) const CONFIRM_PATH: &str = "/mail/confirm/{token}";

/// No scripts, and forms to this server only.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;padding:0 1em;\
                     color:#1c1c1c;background:#fff}button{font:inherit;padding:.5em 1.2em}";

/// A POST of a mail program (`List-Unsubscribe=One-Click`) and of the page's button are the same.
pub(crate) fn unsubscribe() -> MethodRouter<Api> {
    get(async |State(api): State<Api>, Ids(token): Ids<String>| show_unsubscribe(&api, &token).await)
        .post(async |State(api): State<Api>, Ids(token): Ids<String>| set(&api, &token, false).await)
}

pub(crate) fn subscribe() -> MethodRouter<Api> {
    get(async |State(api): State<Api>, Ids(token): Ids<String>| show_unsubscribe(&api, &token).await)
        .post(async |State(api): State<Api>, Ids(token): Ids<String>| set(&api, &token, true).await)
}

pub(crate) fn confirm() -> MethodRouter<Api> {
    get(async |State(api): State<Api>, Ids(token): Ids<String>| show_confirm(&api, &token))
        .post(async |State(api): State<Api>, Ids(token): Ids<String>| set_confirmed(&api, &token).await)
}

async fn show_unsubscribe(api: &Api, token: &str) -> Response {
    let link = match api.engine.mail_link(token, MailLinkKind::Unsubscribe) {
        Ok(link) => link,
        Err(error) => return invalid(error),
    };
    match api.engine.gets_mails(&link).await {
        Ok(true) => {
            let texts = texts(link.language);
            let question = match link.scope {
                MailScope::Organization(_) => texts.unsubscribe_all_question(&link.address),
                _ => texts.unsubscribe_question(&link.address),
            };
            let form =
                Form { action: format!("/mail/unsubscribe/{token}"), label: texts.unsubscribe_button() };
            page(StatusCode::OK, link.language, &texts.unsubscribe_title(), &question, Some(&form))
        }
        Ok(false) => unsubscribed(&link, token),
        Err(error) => Error::from(error).into_response(),
    }
}

async fn set(api: &Api, token: &str, wanted: bool) -> Response {
    let link = match api.engine.mail_link(token, MailLinkKind::Unsubscribe) {
        Ok(link) => link,
        Err(error) => return invalid(error),
    };
    match api.engine.subscribe_to_mails(&link, wanted).await {
        Ok(()) if wanted => {
            let texts = texts(link.language);
            let said = match link.scope {
                MailScope::Organization(_) => texts.subscribed_to_all(&link.address),
                _ => texts.subscribed(&link.address),
            };
            page(StatusCode::OK, link.language, &texts.unsubscribe_title(), &said, None)
        }
        Ok(()) => unsubscribed(&link, token),
        Err(error) => Error::from(error).into_response(),
    }
}

/// With a button that undoes it.
fn unsubscribed(link: &MailLink, token: &str) -> Response {
    let texts = texts(link.language);
    let form = Form { action: format!("/mail/subscribe/{token}"), label: texts.subscribe_button() };
    let said = match link.scope {
        MailScope::Organization(_) => texts.unsubscribed_from_all(&link.address),
        _ => texts.unsubscribed(&link.address),
    };
    page(StatusCode::OK, link.language, &texts.unsubscribe_title(), &said, Some(&form))
}

fn show_confirm(api: &Api, token: &str) -> Response {
    match api.engine.mail_link(token, MailLinkKind::Confirm) {
        Ok(link) => {
            let texts = texts(link.language);
            let form = Form { action: format!("/mail/confirm/{token}"), label: texts.confirm_button() };
            let question = texts.confirm_question(&link.address);
            page(StatusCode::OK, link.language, &texts.confirm_title(), &question, Some(&form))
        }
        Err(error) => invalid(error),
    }
}

async fn set_confirmed(api: &Api, token: &str) -> Response {
    let link = match api.engine.mail_link(token, MailLinkKind::Confirm) {
        Ok(link) => link,
        Err(error) => return invalid(error),
    };
    match api.engine.confirm_mail_address(&link).await {
        Ok(true) => {
            let texts = texts(link.language);
            let said = texts.confirmed(&link.address);
            page(StatusCode::OK, link.language, &texts.confirm_title(), &said, None)
        }
        Ok(false) => invalid(MailLinkError::Expired),
        Err(error) => Error::from(error).into_response(),
    }
}

/// A link that cannot be used names no language.
fn invalid(error: MailLinkError) -> Response {
    let (status, text): (_, fn(&dyn MailTexts) -> String) = match error {
        MailLinkError::Unknown => (StatusCode::NOT_FOUND, |texts| texts.unknown_link()),
        MailLinkError::Expired => (StatusCode::GONE, |texts| texts.expired_link()),
    };
    let said = Language::ALL.map(|language| text(texts(language))).join(" / ");
    page(status, Language::English, "Aldaba", &said, None)
}

/// A button.
struct Form {
    action: String,
    label: String,
}

fn page(status: StatusCode, language: Language, title: &str, said: &str, form: Option<&Form>) -> Response {
    let (title, said) = (escaped(title), escaped(said));
    let form = form.map(|Form { action, label }| {
        format!(
            "<form method=\"post\" action=\"{}\"><button>{}</button></form>\n",
            escaped(action),
            escaped(label)
        )
    });
    let html = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{said}</p>\n{}</body>\n</html>\n",
        language.code(),
        form.unwrap_or_default()
    );
    let headers: [(HeaderName, &str); 5] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (status, headers, html).into_response()
}
