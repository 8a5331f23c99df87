//! The server that a command calls, and the credential for it.

use crate::cli::installation::{self, NotInstalled};
use crate::cli::server_client::{ServerClient, ServerError, Trust};
use crate::config::{Config, TOKEN_VARIABLE, URL_VARIABLE, api_url};
use crate::shell::full_path;
use crate::{JwtSecret, keys, token};
use aldaba_delivery::OrgId;
use aldaba_engine::wire::read_roots;
use aldaba_engine::{Clock, DataFolder, FolderError, SystemClock, SystemEntropy, default_organization};
use aldaba_store::{FolderState, OpenError, Store};
use clap::Args;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::{Host, Url};

const DATA: &str = "ALDABA_DATA";
/// What routes get that need no token; the client sends one with every request.
const NO_TOKEN: &str = "none";

#[derive(Debug, Args)]
pub(crate) struct ServerOptions {
    /// A running server to ask (or ALDABA_URL)
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// An API token or key for it (or ALDABA_TOKEN)
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The data folder of a server on this machine: without --url its address is used, and without a token its secret
    /// makes one [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Issuers of the server's certificate that are trusted besides the public ones, as PEM (or ALDABA_CA_FILE)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<String>,
    /// The organization that is spoken for, where --token does not say
    #[arg(long, value_name = "ORG_ID", default_value = token::DEFAULT_ORGANIZATION)]
    pub(crate) org: OrgId,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { url: None, token: None, data: None, config: None, ca_file: None, org: default_organization() }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An option or a setting is wrong.
    #[error("{0}")]
    Usage(String),
    #[error("there is no token: give one with ALDABA_TOKEN or --token; `aldaba token create` prints one")]
    NoToken,
    #[error("cannot look into the data folder {folder}: {source}. Run the command as the user of the server")]
    Look { folder: String, source: io::Error },
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl ServerOptions {
    /// Whether the options name a server.
    pub(crate) fn is_given(&self, variables: &BTreeMap<String, String>) -> bool {
        let given = [self.url.is_some(), self.token.is_some()];
        given.contains(&true)
            || [URL_VARIABLE, TOKEN_VARIABLE].iter().any(|name| variable(variables, name).is_some())
    }

    /// The settings among the options.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        self.ca_file.iter().map(|file| ("ca_file", file.clone())).collect()
    }

    /// Whether a data folder was named, by an option, a variable or a file.
    pub(crate) fn names_folder(&self, variables: &BTreeMap<String, String>, config: &Config) -> bool {
        self.data.is_some()
            || variable(variables, DATA).is_some()
            || config.data() != Config::default().data()
    }

    /// The server that the options name; else that of the data folder.
    pub(crate) fn server(
        self,
        variables: &BTreeMap<String, String>,
        config: &Config,
    ) -> Result<ServerClient, Error> {
        if self.is_given(variables) {
            self.client(variables, config)
        } else {
            server_of_folder(config, self.org)
        }
    }

    /// The server that the options name.
    pub(crate) fn client(
        self,
        variables: &BTreeMap<String, String>,
        config: &Config,
    ) -> Result<ServerClient, Error> {
        let url = given_url(self.url, variables).map(|url| checked(&url)).transpose()?;
        let token = self.token.or_else(|| variable(variables, TOKEN_VARIABLE));
        let has_secret = || installation::check_secret(config).is_ok();
        match (url, token) {
            (Some(url), Some(token)) => client(url, &token, config, None),
            (None, Some(token)) => client(checked(&local_url(config))?, &token, config, None),
            // No other machine receives a token unless the user gives it one.
            (Some(url), None) if is_local(&url) && has_secret() => {
                client(url, &command_token(config, self.org)?, config, None)
            }
            (None, None) if has_secret() => server_of_folder(config, self.org),
            (_, None) => Err(Error::NoToken),
        }
    }
}

/// Where a command finds an organization's things: at a running server, or in the store.
pub(crate) enum Backend {
    Server(ServerClient),
    /// No other process has the store open.
    Store(Arc<dyn Store>, OrgId),
}

impl Backend {
    /// The server that the options name; else the data folder, or the server that locks it.
    pub(crate) fn open(
        server_options: ServerOptions,
        variables: &BTreeMap<String, String>,
        config: &Config,
    ) -> Result<Self, Error> {
        if server_options.is_given(variables) {
            return Ok(Self::Server(server_options.client(variables, config)?));
        }
        installation::check_database(config)?;
        match aldaba_store::open(&config.store) {
            Ok(store) => Ok(Self::Store(store, server_options.org)),
            Err(OpenError::Locked { .. }) => Ok(Self::Server(server_of_folder(config, server_options.org)?)),
            Err(error) => Err(error.into()),
        }
    }

    /// The next server must find the folder unlocked.
    pub(crate) async fn close(self) {
        if let Self::Store(store, _) = self {
            let _ = store.close().await;
        }
    }
}

/// The server of this URL, else that of the data folder, for routes that need no token.
pub(crate) fn without_token(
    url: Option<String>,
    variables: &BTreeMap<String, String>,
    config: &Config,
) -> Result<ServerClient, Error> {
    match given_url(url, variables) {
        Some(url) => client(checked(&url)?, NO_TOKEN, config, None),
        None => client(folder_url(config)?, NO_TOKEN, config, Some(full_path(config.data()))),
    }
}

/// The server that locks the data folder, by the folder's record.
pub(crate) fn server_of_folder(config: &Config, org: OrgId) -> Result<ServerClient, Error> {
    installation::check_database(config)?;
    client(folder_url(config)?, &command_token(config, org)?, config, Some(full_path(config.data())))
}

fn given_url(option: Option<String>, variables: &BTreeMap<String, String>) -> Option<String> {
    option.or_else(|| variable(variables, URL_VARIABLE))
}

fn checked(url: &str) -> Result<Url, Error> {
    api_url(url).map_err(|expected| Error::Usage(format!("--url {url}: {expected}")))
}

/// The address of the server that holds the data folder. Without one, what the folder has recorded, or the settings say, may be
/// the address of another folder's server; and that takes the tokens of a folder that was copied from its own.
fn folder_url(config: &Config) -> Result<Url, Error> {
    let folder = full_path(config.data());
    let is_held = match FolderState::of(config.data()) {
        Ok(state) => state.is_locked && DataFolder::at(config.data()).address().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(source) => return Err(Error::Look { folder, source }),
    };
    if !is_held {
        return Err(ServerError::NoServer { folder }.into());
    }
    checked(&local_url(config))
}

/// The last address of the data folder's server, or its default.
fn local_url(config: &Config) -> String {
    let address = DataFolder::at(config.data()).address().unwrap_or(config.listen);
    let scheme = if config.tls().is_some() { "https" } else { "http" };
    format!("{scheme}://{}", reachable(address))
}

fn client(url: Url, token: &str, config: &Config, folder: Option<String>) -> Result<ServerClient, Error> {
    let issuers = config.ca_file.as_deref().map(root_certificates).transpose()?;
    let trust = Trust { issuers, own: own_certificate(config) };
    Ok(ServerClient::new(url, token.trim(), &trust, folder)?)
}

/// Reads the certificate issuers that the operator trusts besides the public ones.
fn root_certificates(file: &Path) -> Result<Vec<u8>, Error> {
    let failed = |why: String| Error::Usage(format!("ca_file {}: {why}", file.display()));
    let pem = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    read_roots(&pem).map_err(|error| failed(error.to_string()))?;
    Ok(pem)
}

/// The certificate of the installation's own server. A file that cannot be used is no reason against others.
fn own_certificate(config: &Config) -> Option<Vec<u8>> {
    let pem = std::fs::read(config.tls()?.certificate).ok()?;
    read_roots(&pem).is_ok().then_some(pem)
}

/// A server that listens on every address also listens on the loopback address.
pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
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

/// Makes a token for a server on this machine, as `token create` does.
fn command_token(config: &Config, org: OrgId) -> Result<String, Error> {
    Ok(token::issue_command_token(&signing_secret(config)?, org, SystemClock::new().now()))
}

/// The secret that the data folder's server signs tokens with. Creates none.
pub(crate) fn signing_secret(config: &Config) -> Result<JwtSecret, Error> {
    installation::check_secret(config)?;
    Ok(keys::jwt_secret(config, &DataFolder::at(config.data()), &SystemEntropy::new())?)
}
