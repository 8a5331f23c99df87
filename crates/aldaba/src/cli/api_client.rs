//! A client of a running server's API, for commands: one connection for each request.

use aldaba_engine::wire::{CertificateDer, ServerName, client_tls};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::fmt::Display;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use url::Url;

/// How long one request may take, from the name to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct ApiClient {
    pub(crate) url: Url,
    pub(crate) token: String,
    /// Issuers that are trusted besides the public ones, where the URL is `https`.
    pub(crate) roots: Vec<CertificateDer<'static>>,
    /// The data folder that the server was found by, if it was.
    pub(crate) folder: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("cannot reach a server at {url}: {why}. Is it running? `--url` names another one")]
    Unreachable { url: String, why: String },
    #[error(
        "the server of the data folder {folder} does not answer at {url} ({why}). Is it running? \
         `aldaba serve --data {folder}` starts it, and --url names another address"
    )]
    Silent { folder: String, url: String, why: String },
    #[error("the server at {url} does not take the token; `aldaba token create` prints one")]
    Token { url: String },
    #[error("{url} answers with {status}, and not as Aldaba would")]
    Strange { url: String, status: StatusCode },
    #[error("the server at {url} answers with {status}: {detail}")]
    Refused { url: String, status: StatusCode, detail: String },
}

impl ApiError {
    /// Whether the server works and says that what it was asked for cannot be.
    pub(crate) fn is_refusal(&self) -> bool {
        let Self::Refused { status, .. } = self else { return false };
        status.is_client_error()
            && *status != StatusCode::TOO_MANY_REQUESTS
            && *status != StatusCode::FORBIDDEN
    }
}

impl ApiClient {
    /// Asks for a path under `/api/v1`. An answer that is no success is an error.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let unreachable = |why: String| match (self.url.to_string(), self.folder.clone()) {
            (url, None) => ApiError::Unreachable { url, why },
            (url, Some(folder)) => ApiError::Silent { folder, url, why },
        };
        let exchange = tokio::time::timeout(PATIENCE, self.exchange(method, path, body));
        let (status, bytes) = exchange
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
            .map_err(unreachable)?;
        let url = self.url.to_string();
        let body: Option<Value> = serde_json::from_slice(&bytes).ok();
        match (status, body) {
            (StatusCode::UNAUTHORIZED, Some(_)) => Err(ApiError::Token { url }),
            (StatusCode::NO_CONTENT, _) => Ok(Value::Null),
            (status, Some(body)) if status.is_success() => Ok(body),
            (status, Some(body)) if body.get("detail").is_some() => {
                Err(ApiError::Refused { url, status, detail: detail(&body["detail"]) })
            }
            (status, _) => Err(ApiError::Strange { url, status }),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), String> {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or(80);
        let authority = self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/api/v1{path}", self.url.path().trim_end_matches('/')))
            .header(HOST, authority)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()))))
            .map_err(words)?;
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, port)).await.map_err(words)?;
        if self.url.scheme() == "http" {
            return send(stream, request).await;
        }
        let tls = client_tls(self.roots.clone()).map_err(words)?;
        let name = ServerName::try_from(name.to_owned()).map_err(words)?;
        send(tls.connect(name, stream).await.map_err(words)?, request).await
    }
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String> {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(words)?;
    let connection = tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.map_err(words)?.into_parts();
    let bytes = body.collect().await.map_err(words)?.to_bytes();
    connection.abort();
    Ok((head.status, bytes))
}

fn words(error: impl Display) -> String {
    error.to_string()
}

/// One text, or a list of problems, each with its place.
fn detail(detail: &Value) -> String {
    let problem = |problem: &Value| {
        let place = problem["loc"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let place = place.filter(|part| *part != "body").collect::<Vec<_>>().join(".");
        format!("{place}: {}", problem["msg"].as_str().unwrap_or_default())
    };
    match detail {
        Value::String(text) => text.clone(),
        Value::Array(problems) => problems.iter().map(problem).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn problems_are_read_with_their_places() {
        let problems = json!([{"loc": ["body", "limit", "attempts"], "msg": "too many", "type": "value"}]);
        assert_eq!(detail(&problems), "limit.attempts: too many");
        assert_eq!(detail(&json!("no")), "no");
    }
}
