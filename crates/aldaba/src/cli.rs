//! The command line.

use crate::clock_command::{self, ClockOptions};
use crate::config::{self, Loaded, Sources};
use crate::descriptors::TooFewFiles;
use crate::installed::full_path;
use crate::policy_command::{self, PolicyCommand};
use crate::runtimes::Threads;
use crate::server::{self, Server, StartError};
use crate::token_command::{self, TokenCommand};
use crate::{demo, descriptors, init_command, logging, reach, runtimes};
use aldaba_engine::SetupError;
use clap::{Args, Parser, Subcommand};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A wrong command line or setting; clap ends with the same.
const EXIT_USAGE: u8 = 2;
/// These are as in sysexits.h. docs/configuration.md lists all.
const EXIT_DATA: u8 = 65;
const EXIT_SERVER: u8 = 69;
const EXIT_STORE_FAILED: i32 = 74;
const EXIT_SECOND_SIGNAL: i32 = 130;

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
    Serve(Serve),
    /// Make the data folder, with its database and secrets, without starting the server: for scripts that make tokens
    /// before the first start
    Init {
        #[command(flatten)]
        place: Place,
    },
    /// See it work: a server with a sample application, a receiver that misbehaves, and a stream of events
    Demo(demo::Options),
    /// Retry policies: what they are, and what each would do
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// API tokens and keys
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Show whether the server trusts the machine's clock
    Clock(ClockOptions),
}

/// What `serve --help` ends with.
const SETTINGS_HELP: &str = "\
Settings:
  Every setting is a variable ALDABA_… or a key of the --config file, such as
  ALDABA_LISTEN, ALDABA_DATA, ALDABA_JWT_SECRET, ALDABA_PUBLIC_URL and ALDABA_LOG.
  Options come before variables, variables before the file. docs/configuration.md
  lists all; a running server shows the same page at /docs/guides/configuration.

  Private addresses are refused as targets. To deliver to receivers on this
  machine: ALDABA_ALLOW_NETWORKS=127.0.0.0/8 aldaba serve";

#[derive(Debug, Args)]
#[command(after_help = SETTINGS_HELP)]
struct Serve {
    /// Address or name, and port of the API, such as localhost:8071 [default: 127.0.0.1:8071]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    place: Place,
    /// For PostgreSQL, which this version cannot use yet
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Start although the database has lost commits that were on disk; what is missing stays lost. For one start
    #[arg(long)]
    accept_older_data: bool,
}

#[derive(Debug, Args)]
struct Place {
    /// Folder of the database and the secrets, made when it is missing [default: ./aldaba-data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
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
    Policy(#[from] policy_command::Failure),
    #[error(transparent)]
    Token(#[from] token_command::Failure),
    #[error(transparent)]
    Clock(#[from] clock_command::Failure),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// Runs a command. `program` is the name it was called by.
pub fn run(cli: Cli, program: &str, variables: BTreeMap<String, String>) -> ExitCode {
    let done = match cli.command {
        Command::Serve(command) => serve(command, program, variables),
        Command::Init { place } => init(place, program, variables),
        Command::Demo(options) => demo::run(&options, program, &variables).map_err(Failure::from),
        Command::Policy { command } => policies(command, &variables),
        Command::Token { command } => tokens(command, &variables),
        Command::Clock(options) => clock(&options, variables),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("aldaba: {failure}");
            failure.exit_code()
        }
    }
}

impl Failure {
    /// One code for one kind of mistake, whichever command it was made with.
    fn exit_code(&self) -> ExitCode {
        use crate::reach::Failure as Reach;
        use {
            clock_command::Failure as Clock, policy_command::Failure as Policy,
            token_command::Failure as Token,
        };
        match self {
            Self::Config(_)
            | Self::Start(StartError::CaFile { .. } | StartError::Setup(SetupError::Policy(_)))
            | Self::Policy(Policy::Policy(_) | Policy::Reach(Reach::Usage(_)))
            | Self::Token(Token::Usage(_) | Token::Reach(Reach::Usage(_)))
            | Self::Clock(Clock::Reach(Reach::Usage(_))) => ExitCode::from(EXIT_USAGE),
            Self::Policy(Policy::Data { .. }) => ExitCode::from(EXIT_DATA),
            Self::Policy(Policy::Server(error))
            | Self::Token(Token::Server(error))
            | Self::Clock(Clock::Server(error))
                if !error.is_refusal() =>
            {
                ExitCode::from(EXIT_SERVER)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

fn init(place: Place, program: &str, variables: BTreeMap<String, String>) -> Result<(), Failure> {
    let Loaded { config, .. } = load(Vec::new(), place, variables)?;
    runtimes::engine()?.block_on(init_command::run(&config, program)).map_err(Failure::from)
}

fn tokens(command: TokenCommand, variables: &BTreeMap<String, String>) -> Result<(), Failure> {
    let reach = command.reach();
    let place = Place { data: reach.data.clone(), config: reach.config.clone() };
    let Loaded { config, .. } = load(Vec::new(), place, variables.clone())?;
    token_command::run(command, &config, variables).map_err(Failure::from)
}

fn clock(options: &ClockOptions, variables: BTreeMap<String, String>) -> Result<(), Failure> {
    let place = Place { data: options.data.clone(), config: options.config.clone() };
    let Loaded { config, .. } = load(Vec::new(), place, variables)?;
    clock_command::run(options, &config).map_err(Failure::from)
}

fn policies(command: PolicyCommand, variables: &BTreeMap<String, String>) -> Result<(), Failure> {
    let reach = command.reach();
    let place = Place { data: reach.data.clone(), config: reach.config.clone() };
    let Loaded { config, .. } = load(Vec::new(), place, variables.clone())?;
    policy_command::run(command, &config, variables).map_err(Failure::from)
}

fn serve(command: Serve, program: &str, variables: BTreeMap<String, String>) -> Result<(), Failure> {
    let Serve { listen, place, database_url, accept_older_data } = command;
    let flags = [("listen", listen), ("database_url", database_url)];
    let flags = flags.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let mut loaded = load(flags, place, variables)?;
    loaded.config.store.accept_older_data = accept_older_data;
    logging::start(&loaded.config);
    loaded.warnings.extend(descriptors::fit(descriptors::raise_limit(), &mut loaded.config)?);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let (engine, api, door) = (runtimes::engine()?, runtimes::api()?, runtimes::door()?);
    let threads = Threads { api: api.handle().clone(), door: door.handle().clone() };
    engine.block_on(serve_until_stopped(loaded, program, threads))
}

async fn serve_until_stopped(loaded: Loaded, program: &str, threads: Threads) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let Loaded { config, file, .. } = loaded;
    let address = config.listen;
    let listener = server::listen(address).map_err(|source| Failure::Listen { address, source })?;
    let banner = Banner::new(program, &config, file.as_deref());
    let server = tokio::select! {
        biased;
        server = Server::start(listener, config) => server?,
        // Nothing is in flight yet.
        () = signals.next() => return Ok(()),
    };
    announce(server.address(), &banner);
    let stop = async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            tracing::warn!("told to stop a second time: ending at once");
            std::process::exit(EXIT_SECOND_SIGNAL);
        });
    };
    if let Err(failure) = server.run(threads, stop).await {
        tracing::error!("{failure}");
        // At once: closing would wait for a disk that has failed.
        std::process::exit(EXIT_STORE_FAILED);
    }
    Ok(())
}

fn load(
    mut flags: Vec<(&'static str, String)>,
    place: Place,
    variables: BTreeMap<String, String>,
) -> Result<Loaded, config::Error> {
    flags.extend(place.data.map(|data| ("data", data)));
    config::load(&Sources { flags, file: place.config, variables })
}

/// Standard output may be closed, as under some supervisors: that must not keep the server from
/// serving.
fn announce(address: std::net::SocketAddr, banner: &Banner) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(banner.text(address).as_bytes()).and_then(|()| out.flush());
    tracing::info!(%address, data = banner.folder, "listening");
}

/// What a server says once it listens.
struct Banner {
    folder: String,
    public_url: Option<String>,
    token_command: String,
}

impl Banner {
    fn new(program: &str, config: &config::Config, file: Option<&Path>) -> Self {
        Self {
            folder: full_path(config.data()),
            public_url: config.public_url.clone(),
            token_command: token_command(program, config, file),
        }
    }

    /// The command for a token is last: who waits for it has read all.
    fn text(&self, address: std::net::SocketAddr) -> String {
        let local = format!("http://{}", reach::reachable(address));
        let url = self.public_url.as_deref().unwrap_or(&local).trim_end_matches('/');
        let Self { folder, token_command, .. } = self;
        format!(
            "Aldaba listens on http://{address}\n\
             In a browser: {url}/ (it leads to /docs; the dashboard will be there in a later version)\n\
             API documentation: {url}/docs\n\
             Data folder: {folder}\n\
             For an API token: {token_command}\n"
        )
    }
}

/// The command that makes a token for this server, ready to be copied.
fn token_command(program: &str, config: &config::Config, file: Option<&Path>) -> String {
    let mut command = format!("{} token create", quoted(program));
    match (&config.jwt_secret, file) {
        (_, Some(file)) => command = format!("{command} --config {}", quoted(&file.display().to_string())),
        (Some(_), None) => return format!("{command}   (with the same ALDABA_JWT_SECRET)"),
        (None, None) => {}
    }
    format!("{command} --data {}", full_path(config.data()))
}

pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The two ways in which a process is asked to stop, and one in which some are asked to read their settings again.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits until the process is asked to stop. A hangup would end it without a drain; nothing can be reloaded yet.
    async fn next(&mut self) {
        loop {
            tokio::select! {
                biased;
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::warn!("SIGHUP is ignored: settings are read at the start only; SIGTERM stops the server");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_token_command_can_be_copied_into_a_shell() {
        let mut config = Config::default();
        config.store.folder = "/srv/./aldaba-data".into();
        let command = |config: &Config, file| token_command("./aldaba", config, file);
        assert_eq!(command(&config, None), "./aldaba token create --data /srv/aldaba-data");
        config.store.folder = "/srv/it's here".into();
        assert_eq!(command(&config, None), "./aldaba token create --data '/srv/it'\\''s here'");
        let file = Path::new("a.toml");
        assert!(command(&config, Some(file)).contains("--config a.toml --data "));
        config.jwt_secret = Some(crate::JwtSecret::new("hidden".repeat(6)).unwrap());
        assert_eq!(command(&config, None), "./aldaba token create   (with the same ALDABA_JWT_SECRET)");
    }

    #[test]
    fn the_banner_names_the_pages_and_the_whole_path_of_the_data_folder() {
        let mut config = Config::default();
        let text = |config: &Config, address: &str| {
            Banner::new("aldaba", config, None).text(address.parse().unwrap())
        };
        let said = text(&config, "0.0.0.0:8071");
        assert!(said.starts_with("Aldaba listens on http://0.0.0.0:8071\n"), "{said}");
        assert!(said.contains("In a browser: http://127.0.0.1:8071/ "), "{said}");
        assert!(said.contains("\nAPI documentation: http://127.0.0.1:8071/docs\n"), "{said}");
        let folder = std::env::current_dir().unwrap().join("aldaba-data");
        assert!(said.contains(&format!("\nData folder: {}\n", folder.display())), "{said}");
        config.public_url = Some("https://hooks.example.com/".into());
        let said = text(&config, "127.0.0.1:1");
        assert!(said.contains("API documentation: https://hooks.example.com/docs\n"), "{said}");
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
