//! `aldaba health`: whether a server works, for supervisors, containers and scripts. It needs no token.

use crate::cli::server_client::{ServerClient, ServerError};
use crate::cli::server_options;
use crate::config::Config;
use aldaba_client::{CheckState, Error as ClientError, ReadinessCheck, ReadyStatus};
use clap::Args;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// How long the command waits for an answer. The server gives itself two seconds for its checks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct HealthOptions {
    /// Only ask whether the server responds: for what restarts a process that hangs. A restart does not help a server
    /// that is not ready
    #[arg(long)]
    live: bool,
    /// A running server to ask (or ALDABA_URL) [default: the one of the data folder]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The data folder of a server on this machine, which has its address [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("the server at {url} is not ready: it refuses messages, or does not deliver")]
    NotReady { url: String },
    #[error("{0}")]
    System(#[from] std::io::Error),
}

pub(crate) fn run(
    options: HealthOptions,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let server = server_options::without_token(options.url, variables, config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { if options.live { live(&server).await } else { ready(&server).await } })
}

async fn live(server: &ServerClient) -> Result<(), Error> {
    server.call(in_time(server.client().live())).await?;
    Ok(writeln!(std::io::stdout(), "live")?)
}

async fn ready(server: &ServerClient) -> Result<(), Error> {
    let report = server.call(in_time(server.client().ready())).await?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", report.status.as_str())?;
    for check in report.checks.iter().filter(|check| check.state != CheckState::Fine) {
        writeln!(out, "{}", shown(check))?;
    }
    match report.status {
        ReadyStatus::Ready => Ok(()),
        _ => Err(Error::NotReady { url: server.url().to_string() }),
    }
}

async fn in_time<T>(request: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    let late = |_| Err(ClientError::Timeout { after: ANSWER_TIMEOUT });
    tokio::time::timeout(ANSWER_TIMEOUT, request).await.unwrap_or_else(late)
}

/// What is wrong, and what to do.
fn shown(check: &ReadinessCheck) -> String {
    let said = [check.detail.as_deref(), check.action.as_deref()];
    let said: Vec<_> = said.into_iter().flatten().collect();
    format!("{} {}: {}", check.name, check.state.as_str(), said.join(". "))
}
