//! `aldaba alerts`: what fires at a running server, and taking note of it.

use crate::cli::server_client::{ServerClient, ServerError};
use crate::cli::server_options::{self, ServerOptions};
use crate::config::Config;
use aldaba_client::{Alert, AlertFilter};
use aldaba_delivery::alert::AlertRule;
use aldaba_engine::management;
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::io::Write;

/// The maximum number of alerts that are shown of one organization.
const MAX_SHOWN: u16 = 250;

#[derive(Debug, Args)]
pub(crate) struct AlertOptions {
    #[command(flatten)]
    pub(crate) server_options: ServerOptions,
    #[command(subcommand)]
    command: Option<AlertCommand>,
}

#[derive(Debug, Subcommand)]
enum AlertCommand {
    /// Say that somebody has taken note of an alert; it goes on firing until it is resolved
    Acknowledge {
        /// Its id, as `aldaba alerts` shows it
        #[arg(value_name = "ALERT_ID")]
        alert: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

pub(crate) fn run(
    options: AlertOptions,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let servers = servers(options.server_options, config, variables)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match options.command {
            None => list(&servers).await,
            Some(AlertCommand::Acknowledge { alert }) => acknowledge(&servers, &alert).await,
        }
    })
}

/// The organization's alerts; and those of the whole server, where the data folder's secret speaks for the operator.
fn servers(
    options: ServerOptions,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<ServerClient>, Error> {
    if options.is_given(variables) {
        return Ok(vec![options.client(variables, config)?]);
    }
    let own = server_options::server_of_folder(config, options.org)?;
    Ok(vec![server_options::server_of_folder(config, management())?, own])
}

async fn list(servers: &[ServerClient]) -> Result<(), Error> {
    let mut all = Vec::new();
    for server in servers {
        let firing = AlertFilter { state: Some("firing".into()), ..AlertFilter::default() };
        let alerts = server.client().alerts();
        all.extend(server.call(alerts.list().filter(firing).limit(MAX_SHOWN).into_future()).await?.data);
    }
    let mut out = std::io::stdout();
    if all.is_empty() {
        return Ok(writeln!(out, "nothing fires")?);
    }
    for alert in &all {
        writeln!(out, "{}", shown(alert))?;
    }
    Ok(())
}

fn shown(alert: &Alert) -> String {
    let show = |value: f64| match AlertRule::from_name(&alert.rule) {
        Some(rule) => rule.unit().show(value),
        None => value.to_string(),
    };
    let of = alert.endpoint_id.as_deref().unwrap_or(&alert.scope);
    let noted =
        alert.acknowledged_by.as_ref().map(|by| format!(", acknowledged by {by}")).unwrap_or_default();
    format!(
        "{}  {}  {}  {} ({of}): {} {} {} since {}{noted}\n    {}",
        alert.id,
        alert.severity,
        alert.rule,
        alert.title,
        show(alert.value),
        alert.comparison,
        show(alert.threshold),
        alert.fired_at,
        alert.what_to_do,
    )
}

/// The last server's answer counts, if no one before it knows the alert.
async fn acknowledge(servers: &[ServerClient], alert: &str) -> Result<(), Error> {
    let mut answer = Ok(());
    for server in servers {
        answer = server.call(server.client().alerts().acknowledge(alert)).await.map(drop);
        if answer.is_ok() {
            eprintln!("{alert} is acknowledged");
            return Ok(());
        }
    }
    Ok(answer?)
}
