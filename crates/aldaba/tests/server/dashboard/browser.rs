//! What a browser sends: cookies, forms, and from where they come.

use crate::support::client::{Client, Reply};
use crate::support::running::Running;
use bytes::Bytes;
use http::Method;
use http::header::SET_COOKIE;

/// A browser with a session, or without one.
#[derive(Clone, Debug)]
pub(super) struct Browser {
    client: Client,
    pub(super) cookie: Option<String>,
}

impl Browser {
    pub(super) fn new(server: &Running) -> Self {
        Self { client: server.client.anonymous(), cookie: None }
    }

    /// One that has logged in with a token.
    pub(super) async fn with(server: &Running, token: &str) -> Self {
        let mut browser = Self::new(server);
        let reply = browser.post("/dashboard/login", &[("credential", token)]).await;
        assert_eq!(reply.status, 303, "{}", text(&reply));
        browser.keep(&reply);
        browser
    }

    /// Keeps the cookie of a session that an answer sets.
    pub(super) fn keep(&mut self, reply: &Reply) {
        let set = reply.headers[SET_COOKIE].to_str().unwrap();
        self.cookie = Some(set.split(';').next().unwrap().to_owned());
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], String::new()).await
    }

    /// A form of a page of the server.
    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.send(Method::POST, path, &[("sec-fetch-site", "same-origin")], encoded(fields)).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Reply {
        let cookie = self.cookie.clone().unwrap_or_default();
        let mut all = headers.to_vec();
        if !cookie.is_empty() {
            all.push(("cookie", &cookie));
        }
        if !body.is_empty() {
            all.push(("content-type", "application/x-www-form-urlencoded"));
        }
        self.client.send(method, &format!("/{path}"), &all, Bytes::from(body)).await
    }
}

pub(super) fn encoded(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

pub(super) fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}
