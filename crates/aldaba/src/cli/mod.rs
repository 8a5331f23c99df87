//! The command line: one module for each command.

mod alerts;
mod clock;
mod dashboard;
mod demo;
mod init;
mod installation;
mod mail;
mod policy;
mod serve;
mod server_client;
mod server_options;
mod token;

pub(crate) use dashboard::link as dashboard_link;
pub(crate) use server_options::reachable;

use crate::config::{self, Loaded, Sources};
use crate::descriptors::TooFewFiles;
use crate::runtimes;
use crate::server::StartError;
use aldaba_engine::SetupError;
use alerts::AlertOptions;
use clap::{Args, Parser, Subcommand};
use clock::ClockOptions;
use dashboard::DashboardOptions;
use mail::MailCommand;
use policy::PolicyCommand;
use serve::ServeOptions;
use server_options::ServerOptions;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use token::TokenCommand;

/// The exit code of a wrong command line or setting; clap uses the same.
const EXIT_USAGE: u8 = 2;
/// The exit code of an invalid file, as in sysexits.h. docs/configuration.md lists all codes.
const EXIT_DATA: u8 = 65;
/// The exit code when a server cannot be reached or does not accept the token, as in sysexits.h.
const EXIT_SERVER: u8 = 69;

/// A webhook delivery server: accepts events, keeps them on disk, and knocks until somebody answers.
#[derive(Debug, Parser)]
#[command(name = "aldaba", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Serve(ServeOptions),
    /// Make the data folder, with its database and secrets, without starting the server: for scripts that make tokens
    /// before the first start
    Init {
        #[command(flatten)]
        data: DataOptions,
    },
    /// See it work: a server with a sample application, a receiver that misbehaves, and a stream of events
    Demo(demo::Options),
    /// Retry policies: what they are, and what each would do
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Mails: whether they leave
    Mail {
        #[command(subcommand)]
        command: MailCommand,
    },
    /// API tokens and keys
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Print a link that logs you in to the dashboard, once
    Dashboard(DashboardOptions),
    /// Show whether the server trusts the machine's clock
    Clock(ClockOptions),
    /// Show what alerts of a running server, and take note of an alert
    Alerts(AlertOptions),
}

#[derive(Debug, Args)]
struct DataOptions {
    /// Folder of the database and the secrets, made when it is missing [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Files(#[from] TooFewFiles),
    #[error("cannot listen on {address}: {source}. Another address or port: --listen, or ALDABA_LISTEN")]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Demo(#[from] demo::Error),
    #[error(transparent)]
    Policy(#[from] policy::Error),
    #[error(transparent)]
    Token(#[from] token::Error),
    #[error(transparent)]
    Mail(#[from] mail::Error),
    #[error(transparent)]
    Clock(#[from] clock::Error),
    #[error(transparent)]
    Alerts(#[from] alerts::Error),
    #[error(transparent)]
    Dashboard(#[from] dashboard::Error),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// Runs a command. `program` is the name it was called by.
pub fn run(cli: Cli, program: &str, variables: BTreeMap<String, String>) -> ExitCode {
    match execute(cli.command, program, variables) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aldaba: {error}");
            error.exit_code()
        }
    }
}

fn execute(command: Command, program: &str, variables: BTreeMap<String, String>) -> Result<(), Error> {
    match command {
        Command::Serve(options) => serve::run(options, program, variables),
        Command::Init { data } => {
            let Loaded { config, .. } = load(Vec::new(), data, variables)?;
            Ok(runtimes::engine()?.block_on(init::run(&config, program))?)
        }
        Command::Demo(options) => Ok(demo::run(&options, program, &variables)?),
        Command::Policy { command } => {
            let data = DataOptions::of_server(command.server_options());
            let Loaded { config, .. } = load(Vec::new(), data, variables.clone())?;
            Ok(policy::run(command, &config, &variables)?)
        }
        Command::Mail { command } => {
            let Loaded { config, .. } = load(Vec::new(), command.data_options(), variables)?;
            Ok(runtimes::engine()?.block_on(mail::run(command, &config))?)
        }
        Command::Token { command } => {
            let data = DataOptions::of_server(command.server_options());
            let Loaded { config, .. } = load(Vec::new(), data, variables.clone())?;
            Ok(token::run(command, &config, &variables)?)
        }
        Command::Dashboard(options) => {
            let data = DataOptions { data: options.data.clone(), config: options.config.clone() };
            let Loaded { config, .. } = load(Vec::new(), data, variables)?;
            Ok(dashboard::run(&options, &config)?)
        }
        Command::Clock(options) => {
            let data = DataOptions { data: options.data.clone(), config: options.config.clone() };
            let Loaded { config, .. } = load(Vec::new(), data, variables)?;
            Ok(clock::run(&options, &config)?)
        }
        Command::Alerts(options) => {
            let data = DataOptions::of_server(&options.server_options);
            let Loaded { config, .. } = load(Vec::new(), data, variables.clone())?;
            Ok(alerts::run(options, &config, &variables)?)
        }
    }
}

impl DataOptions {
    fn of_server(options: &ServerOptions) -> Self {
        Self { data: options.data.clone(), config: options.config.clone() }
    }
}

impl Error {
    /// A mistake has the same exit code in every command.
    fn exit_code(&self) -> ExitCode {
        use server_options::Error as Options;
        use {
            alerts::Error as Alerts, clock::Error as Clock, dashboard::Error as Dashboard,
            mail::Error as Mail, policy::Error as Policy, token::Error as Token,
        };
        match self {
            Self::Config(_)
            | Self::Start(StartError::CaFile { .. } | StartError::Setup(SetupError::Policy(_)))
            | Self::Mail(
                Mail::NoServer | Mail::NoAddress | Mail::Address(_) | Mail::Start(StartError::CaFile { .. }),
            )
            | Self::Policy(Policy::Policy(_) | Policy::Options(Options::Usage(_)))
            | Self::Token(Token::Usage(_) | Token::Options(Options::Usage(_)))
            | Self::Alerts(Alerts::Options(Options::Usage(_)))
            | Self::Dashboard(Dashboard::Options(Options::Usage(_)))
            | Self::Clock(Clock::Options(Options::Usage(_))) => ExitCode::from(EXIT_USAGE),
            Self::Policy(Policy::Data { .. }) => ExitCode::from(EXIT_DATA),
            Self::Mail(Mail::Failure(_)) => ExitCode::from(EXIT_SERVER),
            Self::Policy(Policy::Server(error))
            | Self::Token(Token::Server(error))
            | Self::Alerts(Alerts::Server(error))
            | Self::Clock(Clock::Server(error))
                if !error.is_refusal() =>
            {
                ExitCode::from(EXIT_SERVER)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

/// Loads the configuration that a command runs with.
fn load(
    mut flags: Vec<(&'static str, String)>,
    data: DataOptions,
    variables: BTreeMap<String, String>,
) -> Result<Loaded, config::Error> {
    flags.extend(data.data.map(|folder| ("data", folder)));
    config::load(&Sources { flags, file: data.config, variables })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
