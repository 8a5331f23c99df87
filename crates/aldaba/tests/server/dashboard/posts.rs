//! Every POST of every page once more: as somebody who may only read, for another application, of another organization, from another
//! site. The list comes from the table of routes, so that a new one cannot be forgotten.

use super::browser::{Browser, encoded, text};
use crate::support::running::{Running, token};
use aldaba::DEFAULT_ORGANIZATION;
use aldaba::dashboard::routes;
use http::Method;
use serde_json::{Value, json};

const OTHER_ORGANIZATION: &str = "org_00000000000000000000000000A";

/// What a person could do harm to.
struct Harm {
    app: String,
    endpoint: String,
    message: String,
    delivery: String,
}

impl Harm {
    async fn new(server: &Running) -> Self {
        let app = server.application().await;
        let made = server.endpoint(&app, json!({"url": "http://127.0.0.1:1/"})).await;
        let message = server.message(&app, "a.b").await;
        let list = format!("/app/{app}/delivery");
        let listed = server.client.get_until(&list, |page| !page["data"].as_array().unwrap().is_empty());
        let delivery = listed.await["data"][0]["id"].as_str().unwrap().to_owned();
        Self { app, endpoint: made["id"].as_str().unwrap().into(), message, delivery }
    }

    fn path(&self, declared: &str) -> String {
        declared
            .replace("{app}", &self.app)
            .replace("{endpoint}", &self.endpoint)
            .replace("{message}", &self.message)
    }

    /// Fields that every form takes what it needs of.
    fn fields(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("app", &self.app),
            ("endpoint", &self.endpoint),
            ("delivery", &self.delivery),
            ("name", "changed"),
            ("uid", "changed"),
            ("url", "http://127.0.0.1:2/changed"),
            ("policy", "quick"),
            ("confirmed", "yes"),
            ("until", "1900000000000"),
        ]
    }

    /// Everything that a form could have changed.
    async fn stored(&self, server: &Running) -> Value {
        let Self { app, endpoint, .. } = self;
        let mut stored = Vec::new();
        for path in [
            "/app".to_owned(),
            format!("/app/{app}/endpoint"),
            format!("/app/{app}/endpoint/{endpoint}/health"),
            format!("/dead-letter?app={app}"),
            "/background-task".to_owned(),
            "/audit".to_owned(),
        ] {
            let mut found = server.client.get(&path).await.expect(200);
            strip(&mut found);
            stored.push(found);
        }
        stored.into()
    }
}

/// Without what deliveries change by themselves.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["health", "status", "failureCount", "lastError", "iterator", "prevIterator"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn posts() -> Vec<&'static str> {
    let posts: Vec<_> = routes().into_iter().filter(|route| route.method == "POST").collect();
    assert!(posts.len() > 10, "{posts:?}");
    posts.into_iter().filter(|route| route.access != "open").map(|route| route.path).collect()
}

async fn key(server: &Running, body: Value) -> String {
    server.client.post("/api-key", body.to_string()).await.expect(201)["key"].as_str().unwrap().into()
}

#[tokio::test]
async fn no_post_changes_anything_for_callers_without_the_right() {
    let server = Running::delivering().await;
    let harm = Harm::new(&server).await;
    let other = server.application().await;
    let readers = [
        ("a reader", key(&server, json!({"name": "reader", "scope": "read"})).await),
        (
            "a reader of the application",
            key(&server, json!({"name": "r", "scope": "read", "appId": harm.app})).await,
        ),
        ("another application", key(&server, json!({"name": "o", "scope": "admin", "appId": other})).await),
        ("another organization", token(OTHER_ORGANIZATION)),
    ];
    let before = harm.stored(&server).await;
    for (who, credential) in &readers {
        let browser = Browser::with(&server, credential).await;
        for declared in posts() {
            // It makes an application of one's own organization.
            if *who == "another organization" && declared == "/dashboard/apps/new" {
                continue;
            }
            let reply = browser.post(&harm.path(declared), &harm.fields()).await;
            assert!(
                [403, 404].contains(&reply.status.as_u16()),
                "{who}: {declared}: {} {}",
                reply.status,
                text(&reply)
            );
        }
    }
    assert_eq!(harm.stored(&server).await, before);
}

#[tokio::test]
async fn no_post_is_taken_from_another_site_or_without_a_session() {
    let server = Running::delivering().await;
    let harm = Harm::new(&server).await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let before = harm.stored(&server).await;
    let body = encoded(&harm.fields());
    let from_elsewhere: [&[(&str, &str)]; 5] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[],
    ];
    for route in routes().into_iter().filter(|route| route.method == "POST") {
        let path = harm.path(route.path);
        for headers in from_elsewhere {
            let reply = browser.send(Method::POST, &path, headers, body.clone()).await;
            assert_eq!(reply.status, 403, "{path} {headers:?}");
        }
    }
    for declared in posts() {
        let reply = Browser::new(&server).post(&harm.path(declared), &harm.fields()).await;
        assert_eq!(reply.status, 401, "{declared}");
    }
    assert_eq!(harm.stored(&server).await, before);
}

/// The matrix above means nothing if a form refuses everybody.
#[tokio::test]
async fn every_post_can_be_made_by_somebody_with_the_right() {
    let server = Running::delivering().await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    for declared in posts() {
        let harm = Harm::new(&server).await;
        let mut fields = harm.fields();
        let uid = format!("made-{}", harm.app);
        fields.retain(|(name, _)| *name != "uid");
        fields.push(("uid", &uid));
        let reply = browser.post(&harm.path(declared), &fields).await;
        // 409: nothing has died yet, an attempt is being made, or the form is older than what is stored.
        assert!([303, 409].contains(&reply.status.as_u16()), "{declared}: {} {}", reply.status, text(&reply));
    }
}
