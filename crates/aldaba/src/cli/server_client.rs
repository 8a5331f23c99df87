//! A client of a running server for commands: `aldaba-client`, with errors that name the server and what to do.

use aldaba_client::{Client, Error as ClientError, Problem, Retries};
use http::StatusCode;
use url::Url;

/// The user agent of commands.
const USER_AGENT: &str = concat!("aldaba/", env!("CARGO_PKG_VERSION"));

/// A client of one server. It sends each request once: a person is waiting, and can run the command again.
#[derive(Debug)]
pub(crate) struct ServerClient {
    client: Client,
    url: Url,
    /// The data folder that led to the server, if one did.
    folder: Option<String>,
}

/// Whom the client trusts besides the public certificate authorities, as PEM.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// Those of `ca_file`.
    pub(crate) issuers: Option<Vec<u8>>,
    /// The certificate of this installation's own server: it names the host that clients use, not the local address.
    pub(crate) own: Option<Vec<u8>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("cannot reach a server at {url}: {why}. Is it running? `--url` names another one")]
    Unreachable { url: String, why: String },
    #[error(
        "the server of the data folder {folder} does not answer at {url} ({why}). Is it running? \
         `aldaba serve --data {folder}` starts it, and --url names another address"
    )]
    NotRunning { folder: String, url: String, why: String },
    #[error(
        "no server runs on the data folder {folder}. `aldaba serve --data {folder}` starts one, and --url names another server"
    )]
    NoServer { folder: String },
    #[error("the server at {url} does not take the token; `aldaba token create` prints one")]
    Token { url: String },
    #[error("{url} answers with {status}, and not as Aldaba would")]
    NotAldaba { url: String, status: StatusCode },
    #[error("the server at {url} answers with {status}: {detail}")]
    Refused { url: String, status: StatusCode, detail: String },
    #[error("{0}")]
    Request(String),
}

impl ServerError {
    /// Whether the server works, and refused the request.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { status, .. } => {
                status.is_client_error()
                    && *status != StatusCode::TOO_MANY_REQUESTS
                    && *status != StatusCode::FORBIDDEN
            }
            Self::Request(_) => true,
            _ => false,
        }
    }
}

impl ServerClient {
    /// What is trusted must be valid.
    pub(crate) fn new(
        url: Url,
        token: &str,
        trust: &Trust,
        folder: Option<String>,
    ) -> Result<Self, ServerError> {
        let mut builder =
            Client::builder(url.as_str(), token).retries(Retries::none()).user_agent(USER_AGENT);
        if let Some(pem) = &trust.issuers {
            builder = builder.root_certificates(pem);
        }
        if let Some(pem) = &trust.own {
            builder = builder.server_certificate(pem);
        }
        // The URL and the certificates were checked before.
        let client = builder.build().map_err(|_| ServerError::Token { url: url.to_string() })?;
        Ok(Self { client, url, folder })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Awaits a request of [`client`](Self::client) and explains its error.
    pub(crate) async fn call<T>(
        &self,
        request: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ServerError> {
        request.await.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: ClientError) -> ServerError {
        let url = self.url.to_string();
        match error {
            ClientError::Api { status: 401, .. } => ServerError::Token { url },
            ClientError::Api { status, detail, problems, .. } => {
                let detail = if problems.is_empty() { detail } else { listed(&problems) };
                ServerError::Refused { url, status: status_code(status), detail }
            }
            ClientError::Answer { status, .. } => ServerError::NotAldaba { url, status: status_code(status) },
            ClientError::Request { detail } => ServerError::Request(detail),
            ClientError::Timeout { after } => {
                self.unreachable(format!("no answer within {} s", after.as_secs()))
            }
            ClientError::Unreachable { detail } => self.unreachable(detail),
            other => self.unreachable(other.to_string()),
        }
    }

    fn unreachable(&self, why: String) -> ServerError {
        let url = self.url.to_string();
        match self.folder.clone() {
            None => ServerError::Unreachable { url, why },
            Some(folder) => ServerError::NotRunning { folder, url, why },
        }
    }
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Every problem of a request, each with its field.
fn listed(problems: &[Problem]) -> String {
    let problem = |problem: &Problem| {
        let field: Vec<_> = problem.loc.iter().map(String::as_str).filter(|part| *part != "body").collect();
        format!("{}: {}", field.join("."), problem.msg)
    };
    problems.iter().map(problem).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn server(folder: Option<&str>) -> ServerClient {
        let url = Url::parse("http://127.0.0.1:8071").unwrap();
        ServerClient::new(url, "token", &Trust::default(), folder.map(str::to_owned)).unwrap()
    }

    fn refused(status: u16, problems: serde_json::Value) -> ClientError {
        ClientError::Api {
            status,
            code: "validation".into(),
            detail: "body.limit.attempts: too many".into(),
            problems: serde_json::from_value(problems).unwrap(),
            retry_after: None,
        }
    }

    #[test]
    fn problems_are_shown_with_the_fields_of_the_body() {
        let problems = json!([{"loc": ["body", "limit", "attempts"], "msg": "too many", "type": "value"}]);
        let error = server(None).explain(refused(422, problems));
        assert!(error.is_refusal());
        assert_eq!(
            error.to_string(),
            "the server at http://127.0.0.1:8071/ answers with 422 Unprocessable Entity: limit.attempts: too many"
        );
    }

    #[test]
    fn a_server_that_is_busy_or_forbids_has_not_refused() {
        for (status, is_refusal) in [(409, true), (404, true), (403, false), (429, false), (503, false)] {
            let error = server(None).explain(refused(status, json!([])));
            assert_eq!(error.is_refusal(), is_refusal, "{status}");
        }
        assert!(matches!(server(None).explain(refused(401, json!([]))), ServerError::Token { .. }));
    }

    #[test]
    fn a_server_that_does_not_answer_is_named_by_its_url_or_its_folder() {
        let late = || ClientError::Timeout { after: Duration::from_secs(30) };
        let by_url = server(None).explain(late()).to_string();
        assert!(
            by_url.starts_with("cannot reach a server at http://127.0.0.1:8071/: no answer within 30 s.")
        );
        let by_folder = server(Some("/srv/data")).explain(late()).to_string();
        assert!(by_folder.contains("`aldaba serve --data /srv/data` starts it"), "{by_folder}");
    }
}
