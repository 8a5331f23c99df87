//! `aldaba init`: makes the data folder without serving, for scripts that make tokens before the first start.

use crate::config::Config;
use crate::server::StartError;
use crate::shell::{full_path, quoted};
use crate::{keys, server};
use aldaba_engine::{DataFolder, Installation, SystemEntropy};
use aldaba_store::has_database;
use std::io::Write;
use std::time::Duration;

/// For the engine's first tasks. There is nothing to deliver yet.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates what the first start of a server would create. Existing files stay as they are.
pub(crate) async fn run(config: &Config, program: &str) -> Result<(), StartError> {
    let was_there = has_database(config.data())?;
    keys::check_jwt_secret(config)?;
    if !was_there {
        let installation = Installation::start(server::setup(config)?).await?;
        installation.engine.shutdown(STOP_TIMEOUT).await;
        installation.wire.shutdown();
    }
    let lost_secret = keys::lost_secret(config, was_there);
    keys::jwt_secret(config, &DataFolder::at(config.data()), &SystemEntropy::new())?;
    if let Some(warning) = lost_secret {
        eprintln!("aldaba: {warning}");
    }
    let done = if was_there { "was there already" } else { "is made" };
    let folder = full_path(config.data());
    writeln!(
        std::io::stdout(),
        "The installation in {folder} {done}. Start it with: {} serve --data {folder}",
        quoted(program)
    )?;
    Ok(())
}
