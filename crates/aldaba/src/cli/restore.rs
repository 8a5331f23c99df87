//! `aldaba restore`: makes a data folder of a backup, and lets its server send again.

use super::DataOptions;
use crate::backup::{self, Report, RestoreError};
use crate::cli::installation::{self, NotInstalled};
use crate::config::Config;
use crate::server::{OperatorRequest, REQUEST_TIMEOUT};
use crate::shell::{full_path, quoted};
use aldaba_engine::{Clock, PAUSE_SETTING, PauseRecord, SystemClock};
use aldaba_store::{Change, Changed, Done, OpenError, Opening};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;

#[derive(Debug, Args)]
pub(crate) struct RestoreCommand {
    /// The folder of the backup
    #[arg(required_unless_present = "resume")]
    backup: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data_options: DataOptions,
    /// Check the backup and say what a restore would come to, without making anything
    #[arg(long, conflicts_with = "resume")]
    check: bool,
    /// Send again, from now on: for a folder that was restored, with its server running or stopped
    #[arg(long, conflicts_with = "backup")]
    resume: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(
        "a server holds the data folder {folder}, but has not taken the request within {} s: is it stopping?",
        REQUEST_TIMEOUT.as_secs()
    )]
    NotTaken { folder: String },
    #[error("the store cannot do it: {0}")]
    Store(#[from] aldaba_store::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl Error {
    /// The backup is at fault.
    pub(crate) fn is_of_backup(&self) -> bool {
        matches!(self, Self::Restore(error) if error.is_of_backup())
    }
}

pub(crate) fn run(command: &RestoreCommand, config: &Config, program: &str) -> Result<(), Error> {
    let said = match &command.backup {
        Some(backup) => restore(backup, command.check, config, program)?,
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(resume(config))?
        }
    };
    Ok(write!(std::io::stdout(), "{said}")?)
}

fn restore(backup: &Path, only_check: bool, config: &Config, program: &str) -> Result<String, Error> {
    let now = SystemClock::new().wall();
    let checked = backup::check(backup, config, now)?;
    let report = Report { checked: &checked, now };
    if only_check {
        return Ok(format!("The backup {} is whole, and its keys are there.\n{report}", full_path(backup)));
    }
    backup::restore(backup, &checked, config.data(), now)?;
    let (folder, program) = (full_path(config.data()), quoted(program));
    Ok(format!(
        "Restored {folder} from {}.\n{report}\
         The folder is paused: a server on it accepts messages and sends nothing, however often it starts.\n\
         Start it with: {program} serve --data {folder}\n\
         To send what waits: {program} restore --resume --data {folder}\n",
        full_path(backup)
    ))
}

/// Ends the pause. It is on disk when this returns.
async fn resume(config: &Config) -> Result<String, Error> {
    installation::check_database(config)?;
    let opening = match Opening::begin(&config.store) {
        Ok(opening) => opening,
        Err(OpenError::Locked { .. }) => return resume_running_server(config.data()).await,
        Err(error) => return Err(error.into()),
    };
    let stored = opening.setting(PAUSE_SETTING)?;
    if stored.and_then(|bytes| PauseRecord::from_bytes(&bytes)).is_none() {
        return Ok("Sending is not paused: there is nothing to resume.\n".into());
    }
    let store = opening.finish()?;
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result: Result<Changed, _>| drop(answer.send(result)));
    let value = PauseRecord::RESUMED.to_vec();
    store.change(Change::PutSetting { name: PAUSE_SETTING, value }, None, done);
    answered.await.map_err(|_| aldaba_store::Error::Closed)??;
    store.close().await?;
    Ok("Resumed: a server that starts on this folder sends what waits.\n".into())
}

async fn resume_running_server(data: &Path) -> Result<String, Error> {
    let request = OperatorRequest::resume(data);
    if let Ok(asked) = tokio::time::timeout(REQUEST_TIMEOUT, request.ask()).await {
        asked?;
        return Ok("Sending is not paused any more: the server sends what waits.\n".into());
    }
    // The next start must not find it.
    request.forget();
    Err(Error::NotTaken { folder: full_path(data) })
}
