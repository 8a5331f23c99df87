//! `aldaba doctor`: what is wrong with a data folder and its running server, and what to do.

use super::DataOptions;
use crate::config::Config;
use crate::doctor::{self, Severity};
use aldaba_engine::{Clock, SystemClock};
use clap::Args;
use std::io::Write;

#[derive(Debug, Args)]
pub(crate) struct DoctorCommand {
    #[command(flatten)]
    pub(crate) data_options: DataOptions,
    /// Compare the indexes of the database with its tables, too; a large database takes minutes
    #[arg(long)]
    thorough: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("something is wrong; see above")]
    Problems,
    #[error("{0}")]
    System(#[from] std::io::Error),
}

pub(crate) async fn run(command: &DoctorCommand, config: &Config) -> Result<(), Error> {
    let diagnosis = doctor::examine(config, command.thorough, SystemClock::new().wall()).await;
    let text = match command.json {
        true => format!("{}\n", serde_json::to_string_pretty(&diagnosis).map_err(std::io::Error::from)?),
        false => diagnosis.to_string(),
    };
    write!(std::io::stdout(), "{text}")?;
    match diagnosis.status {
        Severity::Problem => Err(Error::Problems),
        Severity::Ok | Severity::Warning => Ok(()),
    }
}
