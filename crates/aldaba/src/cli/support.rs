//! `aldaba support`: one archive for a bug report.

use super::DataOptions;
use crate::config::{Config, SettingShown};
use crate::shell::full_path;
use crate::support::{self, ArchiveParts};
use aldaba_engine::{Clock, SystemClock};
use clap::Args;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SupportCommand {
    #[command(flatten)]
    pub(crate) data_options: DataOptions,
    /// The archive, which is made [default: `aldaba-support-TIME.tar`]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A file with the server's log, or - for standard input, as in `journalctl --unit aldaba | aldaba support --log -`
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read the log: {0}")]
    Log(io::Error),
    #[error("cannot write {}: {source}. Name another file with --output", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("{0}")]
    System(#[from] io::Error),
}

pub(crate) async fn run(
    command: &SupportCommand,
    config: &Config,
    settings: &[SettingShown],
) -> Result<(), Error> {
    let now = SystemClock::new().wall();
    let parts = ArchiveParts { config, settings, log: command.log.as_deref(), now };
    let archive = support::collect(parts).await.map_err(Error::Log)?;
    let seconds = now.millis() / 1000;
    let file = command.output.clone().unwrap_or_else(|| format!("aldaba-support-{seconds}.tar").into());
    let failed = |source| Error::Write { file: file.clone(), source };
    // Its owner alone may read it, and nothing is overwritten.
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    let mut open = open.map_err(failed)?;
    if let Err(source) = open.write_all(&archive).and_then(|()| open.sync_all()) {
        // A part of an archive looks like one.
        let _ = std::fs::remove_file(&file);
        return Err(failed(source));
    }
    writeln!(
        io::stdout(),
        "Wrote {}. Payloads and secrets are not inside. A log can name hosts and addresses: read it before you send it.",
        full_path(&file)
    )?;
    Ok(())
}
