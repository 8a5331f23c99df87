//! The command line: one module for each command.

mod alerts;
mod backup;
mod clock;
mod dashboard;
mod demo;
mod doctor;
mod erase;
mod export;
mod health;
mod init;
mod installation;
mod mail;
mod policy;
mod restore;
mod serve;
mod server_client;
mod server_options;
mod support;
mod token;

pub(crate) use dashboard::link as dashboard_link;
pub(crate) use installation::{NotInstalled, check_database};
pub(crate) use server_client::{ServerClient, Trust};
pub(crate) use server_options::{reachable, server_of_folder};

use crate::config::{self, Loaded, Sources};
use crate::descriptors::TooFewFiles;
use crate::runtimes;
use crate::server::StartError;
use aldaba_engine::SetupError;
use alerts::AlertOptions;
use backup::BackupCommand;
use clap::{Args, Parser, Subcommand};
use clock::ClockOptions;
use dashboard::DashboardOptions;
use doctor::DoctorCommand;
use erase::EraseCommand;
use export::ExportCommand;
use health::HealthOptions;
use mail::MailCommand;
use policy::PolicyCommand;
use restore::RestoreCommand;
use serve::ServeOptions;
use server_options::ServerOptions;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use support::SupportCommand;
use token::TokenCommand;

/// The exit code of a wrong command line or setting; clap uses the same.
const EXIT_USAGE: u8 = 2;
/// The exit code of an invalid file, as in sysexits.h. docs/configuration.md lists all codes.
const EXIT_DATA: u8 = 65;
/// The exit code when a server cannot be reached or does not accept the token, as in sysexits.h.
const EXIT_SERVER: u8 = 69;

/// The exit code of a command that a signal has stopped.
const EXIT_STOPPED: u8 = 130;

/// What `--version` says; `-V` leaves the commit out.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("ALDABA_COMMIT"), ")");

/// A webhook delivery server: accepts events, keeps them on disk, and knocks until somebody answers.
#[derive(Debug, Parser)]
#[command(name = "aldaba", version, long_version = LONG_VERSION)]
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
    /// Make a backup of a data folder, while its server runs or not
    Backup(BackupCommand),
    /// Make a data folder of a backup, paused; then let its server send again
    Restore(RestoreCommand),
    /// Look at a data folder and its running server: what is wrong, and what to do
    Doctor(DoctorCommand),
    /// Write one archive for a bug report, without secrets and payloads
    Support(SupportCommand),
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
    /// Write an application with its messages and attempts to a file, as lines of JSON
    Export(ExportCommand),
    /// Remove everything that is stored of an application, for good
    Erase(EraseCommand),
    /// Show whether a running server accepts and delivers messages: exit code 0, 1 with what is wrong, or 69 where none runs
    Health(HealthOptions),
}

#[derive(Clone, Debug, Args)]
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
    Backup(#[from] backup::Error),
    #[error(transparent)]
    Restore(#[from] restore::Error),
    #[error(transparent)]
    Doctor(#[from] doctor::Error),
    #[error(transparent)]
    Support(#[from] support::Error),
    #[error(transparent)]
    Alerts(#[from] alerts::Error),
    #[error(transparent)]
    Export(#[from] export::Error),
    #[error(transparent)]
    Erase(#[from] erase::Error),
    #[error(transparent)]
    Health(#[from] health::Error),
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
        Command::Backup(command) => {
            backup::check_database_url(&command, &variables)?;
            let Loaded { config, .. } = load(Vec::new(), command.data_options.clone(), variables)?;
            Ok(backup::run(&command, &config)?)
        }
        Command::Restore(command) => {
            let Loaded { config, .. } = load(Vec::new(), command.data_options.clone(), variables)?;
            Ok(restore::run(&command, &config, program)?)
        }
        Command::Doctor(command) => {
            let Loaded { config, .. } = load(Vec::new(), command.data_options.clone(), variables)?;
            Ok(runtimes::engine()?.block_on(doctor::run(&command, &config))?)
        }
        Command::Support(command) => {
            let sources = sources(Vec::new(), command.data_options.clone(), variables);
            let (Loaded { config, .. }, shown) = (config::load(&sources)?, config::shown(&sources)?);
            Ok(runtimes::engine()?.block_on(support::run(&command, &config, &shown))?)
        }
        Command::Demo(options) => Ok(demo::run(&options, program, &variables)?),
        Command::Policy { command } => {
            let options = command.server_options();
            let data = DataOptions::of_server(options);
            let Loaded { config, .. } = load(options.flags(), data, variables.clone())?;
            Ok(policy::run(command, &config, &variables)?)
        }
        Command::Mail { command } => {
            let Loaded { config, .. } = load(Vec::new(), command.data_options(), variables)?;
            Ok(runtimes::engine()?.block_on(mail::run(command, &config))?)
        }
        Command::Token { command } => {
            let options = command.server_options();
            let data = DataOptions::of_server(options);
            let Loaded { config, .. } = load(options.flags(), data, variables.clone())?;
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
            let Loaded { config, .. } = load(options.server_options.flags(), data, variables.clone())?;
            Ok(alerts::run(options, &config, &variables)?)
        }
        Command::Export(command) => {
            let data = DataOptions::of_server(&command.server_options);
            let Loaded { config, .. } = load(Vec::new(), data, variables.clone())?;
            Ok(export::run(command, &config, &variables)?)
        }
        Command::Erase(command) => {
            let data = DataOptions::of_server(&command.server_options);
            let Loaded { config, .. } = load(Vec::new(), data, variables.clone())?;
            Ok(erase::run(command, &config, &variables)?)
        }
        Command::Health(options) => {
            let data = DataOptions { data: options.data.clone(), config: options.config.clone() };
            let Loaded { config, .. } = load(Vec::new(), data, variables.clone())?;
            Ok(health::run(options, &config, &variables)?)
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
            alerts::Error as Alerts, backup::Error as Backup, clock::Error as Clock,
            dashboard::Error as Dashboard, erase::Error as Erase, export::Error as Export,
            health::Error as Health, mail::Error as Mail, policy::Error as Policy, token::Error as Token,
        };
        match self {
            Self::Config(_)
            | Self::Start(
                StartError::CaFile { .. }
                | StartError::Certificate(_)
                | StartError::Setup(SetupError::Policy(_)),
            )
            | Self::Mail(
                Mail::NoServer | Mail::NoAddress | Mail::Address(_) | Mail::Start(StartError::CaFile { .. }),
            )
            | Self::Policy(Policy::Policy(_) | Policy::Options(Options::Usage(_)))
            | Self::Token(Token::Usage(_) | Token::Options(Options::Usage(_)))
            | Self::Alerts(Alerts::Options(Options::Usage(_)))
            | Self::Export(Export::Exists { .. } | Export::Options(Options::Usage(_)))
            | Self::Erase(Erase::NoTerminal | Erase::Options(Options::Usage(_)))
            | Self::Clock(Clock::Options(Options::Usage(_)))
            | Self::Health(Health::Options(Options::Usage(_)))
            | Self::Dashboard(Dashboard::Options(Options::Usage(_)))
            | Self::Backup(Backup::DatabaseUrl(_)) => ExitCode::from(EXIT_USAGE),
            Self::Backup(error) if error.is_stop() => ExitCode::from(EXIT_STOPPED),
            Self::Restore(error) if error.is_of_backup() => ExitCode::from(EXIT_DATA),
            Self::Policy(Policy::Data { .. }) => ExitCode::from(EXIT_DATA),
            Self::Mail(Mail::Failure(_)) | Self::Export(Export::CutOff(..)) => ExitCode::from(EXIT_SERVER),
            Self::Policy(Policy::Server(error) | Policy::Options(Options::Server(error)))
            | Self::Token(Token::Server(error) | Token::Options(Options::Server(error)))
            | Self::Alerts(Alerts::Server(error) | Alerts::Options(Options::Server(error)))
            | Self::Export(Export::Server(error) | Export::Options(Options::Server(error)))
            | Self::Erase(Erase::Server(error) | Erase::Options(Options::Server(error)))
            | Self::Clock(Clock::Server(error) | Clock::Options(Options::Server(error)))
            | Self::Health(Health::Server(error) | Health::Options(Options::Server(error)))
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
    flags: Vec<(&'static str, String)>,
    data: DataOptions,
    variables: BTreeMap<String, String>,
) -> Result<Loaded, config::Error> {
    config::load(&sources(flags, data, variables))
}

/// Where the configuration comes from.
fn sources(
    mut flags: Vec<(&'static str, String)>,
    data: DataOptions,
    variables: BTreeMap<String, String>,
) -> Sources {
    flags.extend(data.data.map(|folder| ("data", folder)));
    Sources { flags, file: data.config, variables }
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
