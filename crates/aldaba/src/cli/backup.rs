//! `aldaba backup`: a consistent copy of the data folder, while its server runs or not.

use super::DataOptions;
use crate::backup::{self, BackupError, BackupOptions, KeyPlace, Made};
use crate::config::Config;
use crate::runtimes;
use crate::shell::full_path;
use aldaba_engine::{Clock, SystemClock};
use aldaba_store::{CopyError, CopyProgress};
use clap::Args;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Bytes that a server's log may grow while it is copied.
const LOG_GROWTH: &str = "4294967296";

#[derive(Debug, Args)]
pub(crate) struct BackupCommand {
    /// The folder of the backup, which is made
    target: PathBuf,
    #[command(flatten)]
    pub(crate) data_options: DataOptions,
    /// Bytes that the log of a running server may grow meanwhile; beyond them the backup ends with an error
    #[arg(long, value_name = "BYTES", default_value = LOG_GROWTH)]
    max_log_growth: u64,
    /// PostgreSQL has its own tool for this: pg_dump
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "{0}: `aldaba backup` copies the embedded database in a data folder. PostgreSQL makes consistent copies by itself: use \
         pg_dump, and keep the keys (ALDABA_JWT_SECRET, ALDABA_ENCRYPTION_KEY) with them"
    )]
    DatabaseUrl(&'static str),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// Refuses a database that has its own tool, before the settings do.
pub(crate) fn check_database_url(
    command: &BackupCommand,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    const VARIABLE: &str = "ALDABA_DATABASE_URL";
    if command.database_url.is_some() {
        return Err(Error::DatabaseUrl("--database-url"));
    }
    match variables.get(VARIABLE).filter(|value| !value.is_empty()) {
        Some(_) => Err(Error::DatabaseUrl(VARIABLE)),
        None => Ok(()),
    }
}

pub(crate) fn run(command: &BackupCommand, config: &Config) -> Result<(), Error> {
    // The server and its receivers come first.
    runtimes::yield_to_others();
    let stopped = stop_flag()?;
    let clock = SystemClock::new();
    let shows_progress = std::io::stderr().is_terminal();
    let mut shown = 0;
    let go_on = |progress: CopyProgress| {
        let percent = progress.copied * 100 / progress.of.max(1);
        if shows_progress && percent > shown {
            shown = percent;
            let _ = write!(std::io::stderr(), "\r{percent} % of {} MiB", progress.of >> 20);
        }
        !stopped.load(Ordering::Relaxed)
    };
    let options = BackupOptions { log_growth: command.max_log_growth };
    let made = backup::make(config, &command.target, options, || clock.wall(), go_on);
    if shows_progress && !matches!(made, Err(BackupError::NotInstalled(_))) {
        let _ = write!(std::io::stderr(), "\r                              \r");
    }
    let made = made?;
    write!(std::io::stdout(), "{}", report(&made, config))?;
    if made.manifest.keys.encryption == KeyPlace::Elsewhere {
        eprintln!(
            "warning: the encryption key was found neither in the data folder nor in the settings of this command. Without it nobody \
             can restore this backup: run the command with the server's settings, or make sure that you have the key"
        );
    }
    Ok(())
}

impl Error {
    /// Ended by a signal, as the user wanted.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self, Self::Backup(BackupError::Copy { source: CopyError::Stopped, .. }))
    }
}

fn report(made: &Made, config: &Config) -> String {
    let manifest = &made.manifest;
    let mut text = format!(
        "Made the backup {} of {}: {} bytes as of {}, {} deliveries waiting.\n",
        full_path(&made.target),
        full_path(config.data()),
        manifest.bytes(),
        manifest.made_at,
        manifest.waiting,
    );
    let places =
        [("encryption key", &manifest.keys.encryption), ("secret for tokens", &manifest.keys.tokens)];
    for (key, place) in places {
        text.push_str(&match place {
            KeyPlace::Inside { file } => format!("The {key} is inside, as {file}: protect the backup as the server.\n"),
            KeyPlace::Setting { setting } => {
                format!("The {key} is not inside: it comes from the setting `{setting}`. Keep that apart; a restore needs it.\n")
            }
            KeyPlace::Elsewhere => {
                format!("The {key} is not inside: it is not in the data folder, and no setting was given. Keep it apart; a restore needs it.\n")
            }
            KeyPlace::Nowhere => format!("There is no {key} yet.\n"),
        });
    }
    text
}

/// Raised by SIGINT and SIGTERM, so that a stopped backup can remove what it has written.
fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    let raised = stopped.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    drop(_entered);
    std::thread::Builder::new().name("aldaba-signals".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        raised.store(true, Ordering::Relaxed);
    })?;
    Ok(stopped)
}
