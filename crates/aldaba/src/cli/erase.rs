//! `aldaba erase`: removes everything that is stored of an application, for good.

use crate::cli::server_client::{ServerClient, ServerError};
use crate::cli::server_options::{self, ServerOptions};
use crate::config::Config;
use aldaba_client::{BackgroundTask, ErasureCount, Error as ClientError, TaskStatus};
use aldaba_delivery::AppId;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

/// How often the server is asked how far the erasure is.
const POLL_DELAY: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct EraseCommand {
    /// The application, by its id or uid; a deleted one by its id
    #[arg(value_name = "APP")]
    app: String,
    /// Erase without asking
    #[arg(long)]
    yes: bool,
    /// Only show how much would be erased
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) server_options: ServerOptions,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("nothing was erased: there is no terminal to ask on; --yes erases without asking")]
    NoTerminal,
    #[error("nothing was erased")]
    NotConfirmed,
    #[error("{0}")]
    System(#[from] std::io::Error),
}

pub(crate) fn run(
    command: EraseCommand,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let server = command.server_options.server(variables, config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Another application may get the uid while the user reads: what is counted is erased.
        let app = server.client().app(server.call(id_of(&server, &command.app)).await?);
        if command.dry_run || !command.yes {
            let count = server.call(app.count_erase()).await?;
            println!("{}", shown(&command.app, &count));
            if command.dry_run {
                return Ok(());
            }
            confirm(&command.app)?;
        }
        let task = server.call(app.erase()).await?;
        let task = finish(&server, task).await?;
        let number = |name: &str| task.data[name].as_u64().unwrap_or_default();
        println!(
            "{} is erased: {} messages, {} deliveries, {} attempts, {} endpoints",
            command.app,
            number("messages"),
            number("deliveries"),
            number("attempts"),
            number("endpoints")
        );
        Ok(())
    })
}

/// The id of an application. A deleted one is found by its id only, which stays its own.
async fn id_of(server: &ServerClient, app: &str) -> Result<String, ClientError> {
    match server.client().app(app).get().await {
        Ok(found) => Ok(found.id),
        Err(ClientError::Api { status: 404, .. }) if app.parse::<AppId>().is_ok() => Ok(app.to_owned()),
        Err(error) => Err(error),
    }
}

fn shown(app: &str, count: &ErasureCount) -> String {
    let more = if count.at_least { " or more" } else { "" };
    format!(
        "{app} has {} messages, {} deliveries and {} attempts{more}, and {} endpoints; {} rows of the audit log lose their values",
        count.messages, count.deliveries, count.attempts, count.endpoints, count.audit_rows
    )
}

/// The name is asked for: a `y` is typed too easily.
fn confirm(app: &str) -> Result<(), Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::NoTerminal);
    }
    print!("All of it is removed for good. To erase it, type {app}: ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == app { Ok(()) } else { Err(Error::NotConfirmed) }
}

/// Waits until the erasure is over. It goes on without this command, too.
async fn finish(server: &ServerClient, mut task: BackgroundTask) -> Result<BackgroundTask, Error> {
    eprintln!("the erasure is the background task {}", task.id);
    let is_terminal = std::io::stderr().is_terminal();
    while task.status == TaskStatus::Running {
        if is_terminal {
            let share = task.data.get("progress").and_then(Value::as_f64).unwrap_or_default();
            eprint!("\r{:3.0} %, {} messages", share * 100.0, task.data["messages"]);
        }
        tokio::time::sleep(POLL_DELAY).await;
        task = server.call(server.client().background_tasks().get(&task.id)).await?;
    }
    if is_terminal {
        eprint!("\r");
    }
    Ok(task)
}
