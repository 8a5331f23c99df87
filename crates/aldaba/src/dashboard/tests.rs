//! What holds for all pages: no text is in one language alone.

use crate::config::Config;
use crate::server::{api, setup};
use crate::{DEFAULT_ORGANIZATION, JwtSecret, issue_token};
use aldaba_engine::{Clock, Installation, SystemClock, SystemEntropy};
use axum::Router;
use axum::body::Body;
use http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::Service;

struct Pages {
    router: Router,
    token: String,
    session: String,
}

impl Pages {
    async fn send(&self, request: Request<Body>) -> Response<Body> {
        // A router is always ready.
        match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn make(&self, path: &str, body: Value) -> String {
        let request = Request::post(format!("/api/v1{path}"))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Body::from(body.to_string()));
        let body = self.send(request.unwrap()).await.into_body().collect().await.unwrap().to_bytes();
        let made: Value = serde_json::from_slice(&body).unwrap();
        made["id"].as_str().unwrap_or_else(|| panic!("{path}: {made}")).to_owned()
    }

    /// A page in the pseudo language.
    async fn page(&self, path: &str) -> String {
        let cookies = format!("{}; aldaba_view=pseudo.auto", self.session);
        let request = Request::get(path).header(COOKIE, cookies).body(Body::empty()).unwrap();
        let body = self.send(request).await.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }
}

async fn pages(folder: &std::path::Path) -> Pages {
    let mut config = Config { allow_networks: vec!["127.0.0.0/8".parse().unwrap()], ..Config::default() };
    config.store.folder = folder.join("data");
    config.jwt_secret = Some(JwtSecret::new("the secret of this test, long enough").unwrap());
    let Installation { engine, .. } = Installation::start(setup(&config).unwrap()).await.unwrap();
    let router = api(&engine, &SystemEntropy::new(), &config).await.unwrap();
    let org = DEFAULT_ORGANIZATION.parse().unwrap();
    let token = issue_token(config.jwt_secret.as_ref().unwrap(), org, SystemClock::new().now());
    let mut pages = Pages { router, token, session: String::new() };
    let login = Request::post("/dashboard/login")
        .header("sec-fetch-site", "same-origin")
        .body(Body::from(format!("credential={}", pages.token)));
    let answer = pages.send(login.unwrap()).await;
    let cookie = answer.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    pages.session = cookie;
    pages
}

/// What of a page is neither in brackets nor the words of others: those are in elements of their own.
fn untold(html: &str) -> Vec<String> {
    const OF_OTHERS: [&str; 6] = ["code", "pre", "bdi", "time", "kbd", "option"];
    let body = html.split_once("<body").map_or(html, |(_, body)| body);
    let (mut told, mut others, mut words) = (0_i32, 0_i32, Vec::new());
    for part in body.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if OF_OTHERS.contains(&name) {
            others += if tag.starts_with('/') { -1 } else { 1 };
        }
        for attribute in ["aria-label", "placeholder", "title"] {
            // What is copied stands in the name of its button.
            let is_copy = tag.contains("class=\"copy\"");
            if let Some((_, value)) = tag.split_once(&format!(" {attribute}=\"")).filter(|_| !is_copy) {
                check(value.split('"').next().unwrap_or_default(), &mut 0, &mut words);
            }
        }
        let mut text_words = Vec::new();
        check(text, &mut told, &mut text_words);
        if others == 0 && !matches!(name, "button" if tag.contains("lang=")) {
            words.extend(text_words);
        }
    }
    words
}

/// Notes words outside of brackets.
fn check(text: &str, depth: &mut i32, words: &mut Vec<String>) {
    let mut outside = String::new();
    for sign in text.chars() {
        match sign {
            '⟦' => *depth += 1,
            '⟧' => *depth -= 1,
            sign if *depth == 0 => outside.push(sign),
            _ => {}
        }
    }
    let long = outside.split(|sign: char| !sign.is_alphabetic()).filter(|word| word.len() > 2);
    // The name of the product, units, and what protocols say.
    let known = ["Aldaba", "HTTP", "UTC", "min", "MiB", "KiB", "quot", "amp"];
    words.extend(long.filter(|word| !known.contains(word)).map(str::to_owned));
}

#[tokio::test]
async fn no_page_has_a_text_that_is_in_one_language_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pages = pages(folder.path()).await;
    let app = pages.make("/app", json!({"name": "Corner shop"})).await;
    // Nothing listens there: attempts fail without an answer.
    let url = json!({"url": "http://127.0.0.1:1/hook", "name": "Accounting", "policy": "persistent"});
    let endpoint = pages.make(&format!("/app/{app}/endpoint"), url).await;
    let rejects = json!({"url": "http://127.0.0.1:1/", "policy": "job-status"});
    pages.make(&format!("/app/{app}/endpoint"), rejects).await;
    let message = json!({"eventType": "invoice.paid", "payload": {"a": 1}});
    let message = pages.make(&format!("/app/{app}/msg"), message).await;
    let here = format!("/dashboard/apps/{app}");
    for path in [
        "/dashboard".to_owned(),
        "/dashboard/apps".to_owned(),
        "/dashboard/apps?q=nothing".to_owned(),
        "/dashboard/apps/new".to_owned(),
        here.clone(),
        format!("{here}/endpoints/new"),
        format!("{here}/endpoints/{endpoint}"),
        format!("{here}/endpoints/{endpoint}/edit"),
        format!("{here}/messages/{message}"),
        "/dashboard/dead-letter".to_owned(),
        format!("/dashboard/dead-letter?app={app}"),
        "/dashboard/dead-letter?reason=nothing".to_owned(),
        "/dashboard/search?q=nothing".to_owned(),
        "/dashboard/login".to_owned(),
        "/dashboard/link?key=x".to_owned(),
        "/dashboard/apps/nothing".to_owned(),
        "/dashboard/nothing".to_owned(),
    ] {
        let html = pages.page(&path).await;
        assert!(html.contains('⟦'), "{path}: {html}");
        assert_eq!(untold(&html), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_text_outside_of_the_tables_would_be_found() {
    let html =
        "<body><h1>⟦Overview⟧</h1><p title=\"Loose\">A word <code>of others</code> ⟦told <b>too</b>⟧</p>";
    assert_eq!(untold(html), ["Loose", "word"]);
}
