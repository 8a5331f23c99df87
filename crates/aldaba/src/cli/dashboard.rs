//! `aldaba dashboard`: prints a link that logs a person in to the dashboard, once. A user who can read the data folder may have one.

use super::server_options::{self, reachable, signing_secret};
use crate::config::Config;
use crate::dashboard::link_path;
use crate::token::{DEFAULT_ORGANIZATION, JwtSecret, LINK_LIFETIME, issue_dashboard_link};
use aldaba_delivery::OrgId;
use aldaba_engine::{Clock, DataFolder, Entropy, SystemClock, SystemEntropy};
use clap::Args;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DashboardOptions {
    /// The data folder of the server [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The organization that the dashboard is about
    #[arg(long, value_name = "ORG_ID", default_value = DEFAULT_ORGANIZATION)]
    org: OrgId,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// The link goes to standard output, alone.
pub(crate) fn run(options: &DashboardOptions, config: &Config) -> Result<(), Error> {
    let secret = signing_secret(config)?;
    let address = DataFolder::at(config.data()).address().unwrap_or(config.listen);
    let link = link(&secret, options.org, config, address, &SystemEntropy::new());
    writeln!(std::io::stdout(), "{link}")?;
    eprintln!("{}", about());
    Ok(())
}

pub(crate) fn about() -> String {
    format!(
        "It logs in once, within {} minutes, with access to everything in the organization.",
        LINK_LIFETIME.as_secs() / 60
    )
}

/// A link for a browser.
pub(crate) fn link(
    secret: &JwtSecret,
    org: OrgId,
    config: &Config,
    address: SocketAddr,
    entropy: &dyn Entropy,
) -> String {
    let scheme = if config.tls().is_some() { "https" } else { "http" };
    let local = format!("{scheme}://{}", reachable(address));
    let url = config.public_url.as_deref().unwrap_or(&local).trim_end_matches('/');
    let key = issue_dashboard_link(secret, org, SystemClock::new().now(), entropy);
    format!("{url}{}", link_path(&key))
}
