//! README.md, the guides of `docs/` and the recipes of `docs/recipes/` as pages. The build makes them (`build/`);
//! the binary has them as they are served.

use crate::api::response::error::Error;
use aldaba_engine::escaped;
use axum::response::{IntoResponse, Response};
use http::HeaderName;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

pub(crate) struct Guide {
    /// As in `/docs/guides/{name}`; those of recipes begin with `recipes/`.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    html: &'static str,
}

/// By title.
pub(crate) const ALL: &[Guide] = include!(concat!(env!("OUT_DIR"), "/guides.rs"));

const STYLE_NAME: &str = "guides.css";
const STYLE: &str = include_str!("guides.css");
/// A guide is text: no scripts, and nothing from other hosts.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// All guides by their titles.
pub(crate) fn list() -> Response {
    let item = |guide: &Guide| {
        format!("<li><a href=\"/docs/guides/{}\">{}</a></li>\n", guide.name, escaped(guide.title))
    };
    let items: String = ALL.iter().map(item).collect();
    page("Guides", &format!("<h1>Guides</h1>\n<ul>\n{items}</ul>"))
}

pub(crate) fn show(name: &str) -> Response {
    if name == STYLE_NAME {
        return answer("text/css; charset=utf-8", STYLE.to_owned());
    }
    match ALL.iter().find(|guide| guide.name == name) {
        Some(guide) => page(guide.title, guide.html),
        None => {
            Error::not_found(format!("There is no guide `{name}`; /docs/guides lists all")).into_response()
        }
    }
}

fn page(title: &str, body: &str) -> Response {
    let title = escaped(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} – Aldaba</title>\n\
         <link rel=\"stylesheet\" href=\"/docs/guides/{STYLE_NAME}\">\n</head>\n<body>\n\
         <nav><a href=\"/docs/index.html\">API</a><a href=\"/docs/guides\">Guides</a></nav>\n\
         <main>\n{body}\n</main>\n</body>\n</html>\n"
    );
    answer("text/html; charset=utf-8", html)
}

fn answer(content_type: &'static str, body: String) -> Response {
    let headers: [(HeaderName, &str); 4] = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "max-age=3600"),
    ];
    (headers, body).into_response()
}
