//! Which server a command speaks to, and as whom.

use crate::api_client::{ApiClient, api_url};
use crate::config::Config;
use crate::{keys, token};
use aldaba_delivery::OrgId;
use aldaba_engine::wire::read_roots;
use aldaba_engine::{Clock, DataFolder, FolderError, SystemClock, SystemEntropy};
use clap::Args;
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
    /// A running server to ask (or ALDABA_URL)
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// An API token or key for it (or ALDABA_TOKEN)
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The data folder of a server on this machine: without a token its secret makes one [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Asked(String),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Reach {
    /// Whether a server was asked for at all.
    pub(crate) fn is_given(&self, variables: &BTreeMap<String, String>) -> bool {
        let given = [self.url.is_some(), self.token.is_some()];
        given.contains(&true) || VARIABLES.iter().any(|name| variable(variables, name).is_some())
    }

    pub(crate) fn client(
        self,
        variables: &BTreeMap<String, String>,
        config: &Config,
        org: OrgId,
    ) -> Result<ApiClient, Failure> {
        let given = self.url.or_else(|| variable(variables, URL));
        let url = given.unwrap_or_else(|| format!("http://{}", reachable(config.listen)));
        let url = api_url(&url).map_err(|expected| Failure::Asked(format!("--url {url}: {expected}")))?;
        let token = match self.token.or_else(|| variable(variables, TOKEN)) {
            Some(token) => token,
            // No other machine is ever sent one that nobody has given to it.
            None if is_local(&url) => own_token(config, org)?,
            None => return Err(no_token()),
        };
        client(url, &token, config)
    }
}

/// The server that holds the data folder, as the folder knows it.
pub(crate) fn holder(config: &Config, org: OrgId) -> Result<ApiClient, Failure> {
    let address = DataFolder::open(config.data())?.address().unwrap_or(config.listen);
    let url = api_url(&format!("http://{}", reachable(address))).map_err(Failure::Asked)?;
    client(url, &own_token(config, org)?, config)
}

fn client(url: Url, token: &str, config: &Config) -> Result<ApiClient, Failure> {
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

/// A server that listens on every address is also on the one that only this machine has.
fn reachable(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, listen.port()).into() } else { listen }
}

/// An empty variable counts as unset.
fn variable(variables: &BTreeMap<String, String>, name: &str) -> Option<String> {
    variables.get(name).filter(|value| !value.is_empty()).cloned()
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn no_token() -> Failure {
    let what = "there is no token: give one with ALDABA_TOKEN or --token; `aldaba token create` prints one";
    Failure::Asked(what.into())
}

/// For a server on this machine a token is made as `token create` would make it.
fn own_token(config: &Config, org: OrgId) -> Result<String, Failure> {
    if config.jwt_secret.is_none() && !keys::has_jwt_secret(config.data()) {
        return Err(no_token());
    }
    let secret = match &config.jwt_secret {
        Some(secret) => secret.clone(),
        None => keys::jwt_secret(config, &DataFolder::open(config.data())?, &SystemEntropy::new())?,
    };
    Ok(token::issue_command_token(&secret, org, SystemClock::new().now()))
}
