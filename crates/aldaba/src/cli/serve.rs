//! `aldaba serve`: starts the server and runs it until it is told to stop.

use super::{DataOptions, Error, sources};
use crate::cli::server_options::reachable;
use crate::config::{self, Config, Loaded, Sources};
use crate::logging::LogFilter;
use crate::runtimes::Threads;
use crate::server::{self, Reloader, Server};
use crate::service_manager::ServiceManager;
use crate::shell::{full_path, quoted};
use crate::{descriptors, logging, runtimes};
use clap::Args;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code after the store has failed, as in sysexits.h.
const EXIT_STORE_FAILED: i32 = 74;
/// The exit code after a second signal to stop.
const EXIT_SECOND_SIGNAL: i32 = 130;

/// The end of `serve --help`.
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
pub(crate) struct ServeOptions {
    /// Address or name, and port of the API, such as localhost:8071 [default: 127.0.0.1:8071]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    data_options: DataOptions,
    /// For PostgreSQL, which this version cannot use yet
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Start although the database has lost commits that were on disk; what is missing stays lost. For one start
    #[arg(long)]
    accept_older_data: bool,
    /// Send again after a restore, from this start on
    #[arg(long)]
    resume: bool,
}

pub(crate) fn run(
    options: ServeOptions,
    program: &str,
    variables: BTreeMap<String, String>,
) -> Result<(), Error> {
    let ServeOptions { listen, data_options, database_url, accept_older_data, resume } = options;
    let flags = [("listen", listen), ("database_url", database_url)];
    let flags = flags.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let sources = sources(flags, data_options, variables);
    let mut loaded = config::load(&sources)?;
    loaded.config.store.accept_older_data = accept_older_data;
    loaded.config.engine.resume = resume;
    let log = logging::start(&loaded.config);
    loaded.warnings.extend(descriptors::fit(descriptors::raise_limit(), &mut loaded.config)?);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let (engine, api, accept) = (runtimes::engine()?, runtimes::api()?, runtimes::accept()?);
    let threads = Threads { api: api.handle().clone(), accept: accept.handle().clone() };
    engine.block_on(serve_until_stopped(loaded, sources, log, program, threads))
}

async fn serve_until_stopped(
    loaded: Loaded,
    sources: Sources,
    log: LogFilter,
    program: &str,
    threads: Threads,
) -> Result<(), Error> {
    let mut signals = StopSignals::listen()?;
    // From the beginning: it would end the process.
    let hangups = signal(SignalKind::hangup())?;
    let manager = ServiceManager::of(&sources.variables);
    let address = loaded.config.listen;
    let listener = server::listen(address).map_err(|source| Error::Listen { address, source })?;
    let banner = Banner::new(program, &loaded.config, loaded.file.as_deref());
    let start = Box::pin(Server::start(listener, loaded.config.clone()));
    let server = tokio::select! {
        biased;
        server = manager.extending("opening the data folder", start) => server?.told_to(manager.clone()),
        // Nothing is in flight yet.
        () = signals.next() => return Ok(()),
    };
    let link = server.is_first_start().then(|| server.dashboard_link());
    announce(server.address(), &banner, link.as_deref());
    let reloader = Reloader { live: server.live(), log, sources, running: loaded };
    let reloading = tokio::spawn(reload_on(hangups, reloader, manager));
    let stop = async move {
        signals.next().await;
        // A hangup changes nothing from here on.
        reloading.abort();
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

/// Standard output may be closed, as under some supervisors: that must not keep the server from serving.
fn announce(address: SocketAddr, banner: &Banner, link: Option<&str>) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(banner.text(address, link).as_bytes()).and_then(|()| out.flush());
    tracing::info!(%address, data = banner.folder, "listening");
}

/// The text that a server prints once it listens.
struct Banner {
    scheme: &'static str,
    folder: String,
    public_url: Option<String>,
    token_command: String,
}

impl Banner {
    fn new(program: &str, config: &Config, file: Option<&Path>) -> Self {
        Self {
            scheme: if config.tls().is_some() { "https" } else { "http" },
            folder: full_path(config.data()),
            public_url: config.public_url.clone(),
            token_command: token_command(program, config, file),
        }
    }

    /// The command for a token comes last: a script that waits for it has read everything.
    /// `link`: a link that logs in to the dashboard once. It is on standard output alone, not in the log.
    fn text(&self, address: SocketAddr, link: Option<&str>) -> String {
        let Self { scheme, folder, token_command, .. } = self;
        let local = format!("{scheme}://{}", reachable(address));
        let url = self.public_url.as_deref().unwrap_or(&local).trim_end_matches('/');
        let dashboard = match link {
            Some(link) => format!("Dashboard, for 10 minutes and once: {link}"),
            None => format!("Dashboard: {url}/dashboard (`aldaba dashboard` prints a link that logs you in)"),
        };
        format!(
            "Aldaba listens on {scheme}://{address}\n\
             {dashboard}\n\
             API documentation: {url}/docs\n\
             Data folder: {folder}\n\
             For an API token: {token_command}\n"
        )
    }
}

/// The command that makes a token for this server, ready to be copied.
fn token_command(program: &str, config: &Config, file: Option<&Path>) -> String {
    let mut command = format!("{} token create", quoted(program));
    match (&config.jwt_secret, file) {
        (_, Some(file)) => command = format!("{command} --config {}", quoted(&file.display().to_string())),
        (Some(_), None) => return format!("{command}   (with the same ALDABA_JWT_SECRET)"),
        (None, None) => {}
    }
    format!("{command} --data {}", full_path(config.data()))
}

/// Reads the settings again at each hangup.
async fn reload_on(mut hangups: Signal, mut reloader: Reloader, manager: ServiceManager) {
    while hangups.recv().await.is_some() {
        manager.reloading();
        // Files are read, so not on a thread that delivers.
        let reload = move || {
            let reloaded = reloader.reload();
            (reloader, reloaded)
        };
        let Ok((same, reloaded)) = tokio::task::spawn_blocking(reload).await else {
            manager.ready("a bug: the settings could not be read again");
            return tracing::error!("a bug: settings can be changed by a restart only from here on");
        };
        reloader = same;
        match reloaded {
            Ok(reloaded) => manager.ready(&format!("settings were read again; {}", reloaded.log())),
            Err(error) => {
                tracing::error!("the settings were not changed: {error}");
                manager.ready(&format!("the settings were not changed: {error}"));
            }
        }
    }
}

/// The signals that stop a process.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
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
            Banner::new("aldaba", config, None).text(address.parse().unwrap(), None)
        };
        let said = text(&config, "0.0.0.0:8071");
        assert!(said.starts_with("Aldaba listens on http://0.0.0.0:8071\n"), "{said}");
        assert!(said.contains("Dashboard: http://127.0.0.1:8071/dashboard (`aldaba dashboard`"), "{said}");
        assert!(said.contains("\nAPI documentation: http://127.0.0.1:8071/docs\n"), "{said}");
        let folder = std::env::current_dir().unwrap().join("aldaba-data");
        assert!(said.contains(&format!("\nData folder: {}\n", folder.display())), "{said}");
        config.public_url = Some("https://hooks.example.com/".into());
        let said = text(&config, "127.0.0.1:1");
        let link = "https://hooks.example.com/dashboard/link?key=x";
        let first = Banner::new("aldaba", &config, None).text("127.0.0.1:1".parse().unwrap(), Some(link));
        assert!(first.contains(&format!("Dashboard, for 10 minutes and once: {link}\n")), "{first}");
        assert!(said.contains("API documentation: https://hooks.example.com/docs\n"), "{said}");
    }
}
