//! `aldaba clock`: what the server thinks of the machine's clock, and the operator's confirmation that it is right.
//!
//! A running server locks its data folder, so the confirmation is a file there, which the server takes. Without a
//! server the command opens the store.

use crate::cli::installation::{self, NotInstalled};
use crate::cli::server_client::ServerError;
use crate::cli::server_options;
use crate::config::Config;
use crate::server::{OperatorRequest, REQUEST_TIMEOUT};
use aldaba_client::ClockStatus;
use aldaba_delivery::Timestamp;
use aldaba_engine::{CLOCK_SETTING, Clock, ClockRecord, SystemClock, default_organization};
use aldaba_store::{Change, Changed, Done, OpenError, Opening, Store};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;

#[derive(Debug, Args)]
pub(crate) struct ClockOptions {
    /// The data folder of the server [default: ./aldaba-data]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<ClockCommand>,
}

#[derive(Debug, Subcommand)]
enum ClockCommand {
    /// Say that the machine's clock is right: things are removed and end by it again, from now on. Works on a running
    /// server and on a stopped one
    Trust,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    #[error(
        "a server holds the data folder {folder}, but has not taken the request within {} s: is it stopping?",
        REQUEST_TIMEOUT.as_secs()
    )]
    NotTaken { folder: String },
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the store cannot do it: {0}")]
    Store(#[from] aldaba_store::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

pub(crate) fn run(options: &ClockOptions, config: &Config) -> Result<(), Error> {
    let folder = config.data().display().to_string();
    installation::check_database(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let said = runtime.block_on(async {
        match (Opening::begin(&config.store), &options.command) {
            (Ok(opening), Some(ClockCommand::Trust)) => trust_in_store(&*opening.finish()?).await,
            (Ok(opening), None) => show_of_store(&opening),
            (Err(OpenError::Locked { .. }), Some(ClockCommand::Trust)) => {
                trust_on_running_server(config.data(), folder).await
            }
            (Err(OpenError::Locked { .. }), None) => show_of_running_server(config).await,
            (Err(error), _) => Err(error.into()),
        }
    })?;
    Ok(writeln!(std::io::stdout(), "{said}")?)
}

async fn trust_in_store(store: &dyn Store) -> Result<String, Error> {
    let now = SystemClock::new().now();
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result: Result<Changed, _>| drop(answer.send(result)));
    let value = ClockRecord::trusted(now).to_bytes();
    store.change(Change::PutSetting { name: CLOCK_SETTING, value }, None, done);
    answered.await.map_err(|_| aldaba_store::Error::Closed)??;
    store.close().await?;
    Ok(format!("trusted: the clock shows {}; a server that starts now goes by it", text(now)))
}

async fn trust_on_running_server(data: &Path, folder: String) -> Result<String, Error> {
    let request = OperatorRequest::trust_clock(data);
    if let Ok(asked) = tokio::time::timeout(REQUEST_TIMEOUT, request.ask()).await {
        asked?;
        return Ok("trusted: the server goes by its clock from now on".into());
    }
    // The next start must not find it, whatever its clock.
    request.forget();
    Err(Error::NotTaken { folder })
}

/// Reads without changes: a data folder that is dropped before it is opened stays as it was.
fn show_of_store(opening: &Opening) -> Result<String, Error> {
    let record = opening.setting(CLOCK_SETTING)?.and_then(|bytes| ClockRecord::from_bytes(&bytes));
    // For a store that no server of this version has opened.
    let newest = opening.newest_moment()?.map(ClockRecord::trusted);
    let now = SystemClock::new().now();
    let Some(record) = record.or(newest) else {
        return Ok(format!("the clock shows {}; there is nothing to compare it with", text(now)));
    };
    let expected = record.expected();
    let said = match record.would_trust(now) {
        true => "a server that starts now trusts it",
        false => "a server that starts now does not trust it: set it right, or run `aldaba clock trust`",
    };
    Ok(format!(
        "the clock shows {}, the server's last trusted moment is {}: {said}",
        text(now),
        text(expected)
    ))
}

async fn show_of_running_server(config: &Config) -> Result<String, Error> {
    let server = server_options::server_of_folder(config, default_organization())?;
    let health = server.call(server.client().health()).await?;
    let Some(clock) = health.clock.filter(|clock| clock.status == ClockStatus::NotTrusted) else {
        return Ok("the server trusts its clock".into());
    };
    let hours = clock.trusted_in_seconds.div_ceil(3600);
    Ok(format!(
        "the server does not trust its clock: it shows {}, and {} was expected. Nothing is removed and nothing ends by \
         time. Set it right; if it is right, run `aldaba clock trust`; it is trusted in {hours} h anyway",
        clock.shown, clock.expected,
    ))
}

fn text(moment: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(moment.millis()).unwrap_or(jiff::Timestamp::MAX).to_string()
}
