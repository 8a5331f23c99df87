//! Which server a command speaks to, and as whom.

use super::Failure;
use crate::api_client::{ApiClient, ApiError, api_url};
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::{keys, token};
use aldaba_delivery::Policy;
use aldaba_engine::wire::read_roots;
use aldaba_engine::{Clock, SystemClock, SystemEntropy};
use clap::Args;
use http::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use url::{Host, Url};

const URL: &str = "ALDABA_URL";
const TOKEN: &str = "ALDABA_TOKEN";
/// Read by commands, not by the server.
pub(crate) const VARIABLES: [&str; 2] = [URL, TOKEN];

#[derive(Debug, Default, Args)]
pub(crate) struct Reach {
    /// A running server, whose policies to use, those of the organization too (or ALDABA_URL)
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// An API token for it (or ALDABA_TOKEN)
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The data folder of a server on this machine: without a token its secret makes one [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Reach {
    /// Whether a server was asked for at all.
    pub(super) fn is_given(&self, variables: &BTreeMap<String, String>) -> bool {
        let given = [self.url.is_some(), self.token.is_some()];
        given.contains(&true) || VARIABLES.iter().any(|name| variable(variables, name).is_some())
    }

    pub(super) fn client(
        self,
        variables: &BTreeMap<String, String>,
        config: &Config,
    ) -> Result<ApiClient, Failure> {
        let given = self.url.or_else(|| variable(variables, URL));
        let url = given.unwrap_or_else(|| format!("http://{}", reachable(config.listen)));
        let url = api_url(&url).map_err(|expected| Failure::Asked(format!("--url {url}: {expected}")))?;
        let token = match self.token.or_else(|| variable(variables, TOKEN)) {
            Some(token) => token,
            None => own_token(&url, config)?,
        };
        let roots = match &config.ca_file {
            None => Vec::new(),
            Some(file) => {
                let failed = |why: String| Failure::Asked(format!("ca_file {}: {why}", file.display()));
                let pem = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
                read_roots(&pem).map_err(|error| failed(error.to_string()))?
            }
        };
        Ok(ApiClient { url, token: token.trim().to_owned(), roots })
    }
}

/// A server that listens on every address is also on the one that only this machine has.
fn reachable(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, listen.port()).into() } else { listen }
}

/// An empty variable counts as unset.
fn variable(variables: &BTreeMap<String, String>, name: &str) -> Option<String> {
    variables.get(name).filter(|value| !value.is_empty()).cloned()
}

/// For a server on this machine a token is made as `token create` would make it. No other machine is ever
/// sent one that nobody has given to it.
fn own_token(url: &Url, config: &Config) -> Result<String, Failure> {
    let none = || {
        let what =
            "there is no token: give one with ALDABA_TOKEN or --token; `aldaba token create` prints one";
        Failure::Asked(what.into())
    };
    let local = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if !local || (config.jwt_secret.is_none() && !keys::has_jwt_secret(config.data())) {
        return Err(none());
    }
    let secret = match &config.jwt_secret {
        Some(secret) => secret.0.clone(),
        None => keys::jwt_secret(config, &DataFolder::open(config.data())?, &SystemEntropy::new())?,
    };
    let org = token::DEFAULT_ORGANIZATION.parse().map_err(|_| none())?;
    Ok(token::issue_token(secret.as_bytes(), org, SystemClock::new().now()))
}

/// All that endpoints of the organization can name, and which of them are its own.
pub(super) async fn policies(server: &ApiClient) -> Result<Vec<Policy>, ApiError> {
    let list = server.ask(Method::GET, "/policy", None).await?;
    let strange = || ApiError::Strange { url: server.url.to_string(), status: http::StatusCode::OK };
    let items = list.get("data").and_then(Value::as_array).ok_or_else(strange)?;
    let policy = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().map(|fields| fields.remove("builtIn"));
        Policy::from_json(&item).map_err(|_| strange())
    };
    items.iter().map(policy).collect()
}
