//! Logging in and out, and what a session is.

use super::browser::{Browser, encoded, text};
use crate::support::running::{JWT_SECRET, Running, token};
use aldaba::DEFAULT_ORGANIZATION;
use aldaba_engine::{SteppedClock, SystemClock};
use http::Method;
use http::header::{LOCATION, SET_COOKIE};
use std::process::Command;
use std::sync::Arc;

#[tokio::test]
async fn every_answer_has_the_content_policy_and_is_kept_nowhere() {
    let server = Running::start().await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    for path in
        ["/dashboard", "/dashboard/apps", "/dashboard/login", "/dashboard/nothing", "/dashboard/apps/x"]
    {
        let reply = browser.get(path).await;
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(reply.headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
        assert!(!text(&reply).contains("style=\""), "{path}");
    }
    let page = text(&browser.get("/dashboard").await);
    let style = page.split("stylesheet\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let asset = browser.get(style).await;
    assert_eq!(asset.headers["cache-control"], "public, max-age=31536000, immutable");
    assert_eq!(asset.headers["content-type"], "text/css; charset=utf-8");
}

#[tokio::test]
async fn a_key_or_a_token_logs_in_and_its_end_ends_the_session() {
    let server = Running::start().await;
    let key = server.client.post("/api-key", r#"{"name": "a person", "scope": "read"}"#).await.expect(201);
    let browser = Browser::with(&server, key["key"].as_str().unwrap()).await;
    let page = browser.get("/dashboard").await;
    assert_eq!(page.status, 200);
    assert!(text(&page).contains("<bdi>a person</bdi>"), "{}", text(&page));
    // What the key may not do is not offered.
    assert!(!text(&browser.get("/dashboard/apps").await).contains("/dashboard/apps/new"));
    server.client.delete(&format!("/api-key/{}", key["id"].as_str().unwrap())).await.expect(204);
    let page = browser.get("/dashboard").await;
    assert_eq!(page.status, 401);
    assert!(text(&page).contains("Your session has ended"), "{}", text(&page));
}

#[tokio::test]
async fn the_cookie_is_sealed_for_the_dashboard_alone_and_secure_over_https() {
    let server = Running::start().await;
    let given = token(DEFAULT_ORGANIZATION);
    let reply = Browser::new(&server).post("/dashboard/login", &[("credential", &given)]).await;
    let set = reply.headers[SET_COOKIE].to_str().unwrap();
    assert!(set.contains("Path=/dashboard; Max-Age=43200; HttpOnly; SameSite=Lax"), "{set}");
    assert!(!set.contains("Secure") && !set.contains(&given[..20]), "{set}");
    // The API does not read it.
    let cookie = set.split(';').next().unwrap();
    let api = server.client.anonymous();
    let refused = api.send(Method::GET, "/app", &[("cookie", cookie)], bytes::Bytes::new()).await;
    assert_eq!(refused.status, 401);
    let behind = Running::with(|config| config.public_url = Some("https://hooks.example.com".into())).await;
    let reply = Browser::new(&behind).post("/dashboard/login", &[("credential", &given)]).await;
    assert!(reply.headers[SET_COOKIE].to_str().unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn a_cookie_is_secure_where_a_trusted_proxy_says_that_the_browser_came_over_https() {
    let given = token(DEFAULT_ORGANIZATION);
    let headers = [
        ("sec-fetch-site", "same-origin"),
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-proto", "https"),
    ];
    for (network, is_secure) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let server = Running::with(|config| config.trusted_proxies = vec![network.parse().unwrap()]).await;
        let form = encoded(&[("credential", &given)]);
        let reply = Browser::new(&server).send(Method::POST, "/dashboard/login", &headers, form).await;
        let set = reply.headers[SET_COOKIE].to_str().unwrap();
        assert_eq!(set.ends_with("; Secure"), is_secure, "{network}: {set}");
    }
}

#[tokio::test]
async fn a_changed_cookie_is_no_session() {
    let server = Running::start().await;
    let mut browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let cookie = browser.cookie.clone().unwrap();
    for wrong in [format!("{cookie}A"), cookie[..cookie.len() - 4].to_owned(), "aldaba_session=AAAA".into()] {
        browser.cookie = Some(wrong);
        assert_eq!(browser.get("/dashboard").await.status, 401);
    }
}

#[tokio::test]
async fn wrong_credentials_say_why_and_are_limited() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    let send = server.client.post("/api-key", r#"{"name": "a shop", "scope": "send"}"#).await.expect(201);
    for (given, said) in [
        ("", "Enter a key or a token"),
        ("nonsense", "no key and no token of this server"),
        (JWT_SECRET, "the secret that signs tokens"),
        (send["key"].as_str().unwrap(), "may only send messages"),
        (&"x".repeat(3000), "too long"),
    ] {
        let reply = browser.post("/dashboard/login", &[("credential", given)]).await;
        assert_eq!(reply.status, 401, "{given}");
        assert!(text(&reply).contains(said), "{}", text(&reply));
        assert!(given.is_empty() || !text(&reply).contains(given), "it is not shown again");
    }
    for _ in 0..5 {
        browser.post("/dashboard/login", &[("credential", "nonsense")]).await;
    }
    let reply = browser.post("/dashboard/login", &[("credential", &token(DEFAULT_ORGANIZATION))]).await;
    assert_eq!(reply.status, 429);
    assert!(reply.headers.contains_key("retry-after") && text(&reply).contains("Too many attempts"));
}

/// In milliseconds.
const HOUR: i64 = 3_600_000;

#[tokio::test]
async fn a_session_ends_when_nobody_uses_it_for_twelve_hours() {
    let clock = Arc::new(SteppedClock::new(Arc::new(SystemClock::new()), 0));
    let folder = tempfile::tempdir().unwrap();
    let server = Running::on_clock(folder, clock.clone(), |_| {}).await;
    let mut browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    clock.set_offset(11 * HOUR);
    let reply = browser.get("/dashboard").await;
    assert_eq!(reply.status, 200);
    browser.keep(&reply);
    clock.set_offset(22 * HOUR);
    assert_eq!(browser.get("/dashboard").await.status, 200, "it was used meanwhile");
    clock.set_offset(35 * HOUR);
    assert_eq!(browser.get("/dashboard").await.status, 401);
}

#[tokio::test]
async fn what_was_entered_before_a_session_ended_is_sent_after_the_next_login() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    let entered = [("name", "A customer & <co>"), ("uid", "kept")];
    let login = browser.post("/dashboard/apps/new", &entered).await;
    assert_eq!(login.status, 401);
    let page = text(&login);
    assert!(page.contains("What you entered is kept"), "{page}");
    let hidden = |page: &str, name: &str| {
        let after = page.split(&format!("name=\"{name}\" value=\"")).nth(1).expect(name).to_owned();
        after
            .split('"')
            .next()
            .unwrap()
            .replace("&amp;", "&")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&#38;", "&")
            .replace("&#60;", "<")
            .replace("&#62;", ">")
    };
    let (path, kept) = (hidden(&page, "kept-path"), hidden(&page, "kept"));
    let given = token(DEFAULT_ORGANIZATION);
    let fields = [("credential", given.as_str()), ("kept-path", &path), ("kept", &kept)];
    let again = browser.post("/dashboard/login", &fields).await;
    assert_eq!(again.status, 200);
    let mut browser = browser.clone();
    browser.keep(&again);
    let page = text(&again);
    assert!(page.contains(&format!("action=\"{path}\"")), "{page}");
    let (name, uid) = (hidden(&page, "name"), hidden(&page, "uid"));
    assert_eq!((name.as_str(), uid.as_str()), ("A customer & <co>", "kept"));
    let made = browser.post(&path, &[("name", &name), ("uid", &uid)]).await;
    assert_eq!(made.status, 303, "{}", text(&made));
    let stored = server.client.get("/app/kept").await.expect(200);
    assert_eq!(stored["name"], "A customer & <co>");
}

#[tokio::test]
async fn logging_out_forgets_the_cookie_and_leaves_a_key_valid() {
    let server = Running::start().await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let reply = browser.post("/dashboard/logout", &[]).await;
    assert_eq!((reply.status.as_u16(), reply.headers[LOCATION].to_str().unwrap()), (303, "/dashboard/login"));
    assert!(reply.headers[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    server.client.get("/app").await.expect(200);
}

#[tokio::test]
async fn nobody_is_led_to_another_site() {
    let server = Running::start().await;
    let browser = Browser::new(&server);
    let given = token(DEFAULT_ORGANIZATION);
    for then in ["https://evil.example/", "//evil.example", "/dashboard/\\evil", "/elsewhere"] {
        let reply = browser.post("/dashboard/login", &[("credential", &given), ("then", then)]).await;
        assert_eq!(reply.headers[LOCATION], "/dashboard", "{then}");
        let reply = browser.post("/dashboard/view", &[("theme", "dark"), ("then", then)]).await;
        assert_eq!(reply.headers[LOCATION], "/dashboard", "{then}");
    }
}

#[tokio::test]
async fn a_link_logs_in_once_and_each_session_of_a_link_ends_alone() {
    let server = Running::start().await;
    let link = async || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aldaba"));
        command.args(["dashboard", "--data"]).arg(server.data()).env("ALDABA_JWT_SECRET", JWT_SECRET);
        let printed = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let url = String::from_utf8(printed.stdout).unwrap();
        url.trim().split_once("key=").expect("a link").1.to_owned()
    };
    let (first, second) = (link().await, link().await);
    // A GET changes nothing: programs follow links.
    for _ in 0..2 {
        let page = Browser::new(&server).get(&format!("/dashboard/link?key={first}")).await;
        assert_eq!(page.status, 200, "{}", text(&page));
    }
    // As a token of the API it is none.
    assert!(server.client.with_token(&first).get("/app").await.status.is_client_error());
    let mut sessions = Vec::new();
    for key in [&first, &second] {
        let mut browser = Browser::new(&server);
        let reply = browser.post("/dashboard/link", &[("key", key)]).await;
        assert_eq!(reply.status, 303, "{}", text(&reply));
        browser.keep(&reply);
        sessions.push(browser);
    }
    let again = Browser::new(&server).post("/dashboard/link", &[("key", &first)]).await;
    assert_eq!(again.status, 404);
    assert!(text(&again).contains("link"), "{}", text(&again));
    sessions[0].post("/dashboard/logout", &[]).await;
    assert_eq!(sessions[0].get("/dashboard").await.status, 401);
    assert_eq!(sessions[1].get("/dashboard").await.status, 200, "made in the same second");
}
