//! `aldaba demo`: the whole server, a receiver that responds well, slowly and badly in turn, and a stream of events
//! through the API, with a live display of the results.
//!
//! [`scenario`] has the endpoints and events · [`event_sender`] sends · [`receiver`] receives · [`store_poller`]
//! reads the store · [`counters`] combines the three · [`screen`] and [`terminal`] display them.

mod counters;
mod display;
mod event_sender;
mod folder;
mod receiver;
mod recent_events;
mod scenario;
mod screen;
mod store_poller;
mod terminal;

use crate::config::{Config, address, unresolved};
use crate::runtimes::Threads;
use crate::server::{Failed, Server, StartError};
use crate::shell::{full_path, quoted};
use crate::{DEFAULT_ORGANIZATION, issue_token, keys};
use aldaba_client::Client;
use aldaba_engine::{Clock, DataFolder, Engine, Entropy, SystemClock, SystemEntropy};
use aldaba_signature::SigningKey;
use counters::FinalCounts;
use display::{LiveDisplay, StopSignals};
use event_sender::EventSenders;
use folder::Folder;
use receiver::{DemoContext, Receiver};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store_poller::{StorePoller, StoreReader};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The last notable events on the screen.
const SHOWN_EVENTS: usize = 8;
/// The wait at the end for deliveries that are due soon.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// With more open deliveries the whole wait is used, without reading due times.
const MAX_DUE_TIMES_READ: usize = 2000;
/// An endpoint that stays silent must not keep the demo from ending.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// The response timeout of `job-status`. Its default, ten seconds, is long to watch.
const JOB_TIMEOUT: Duration = Duration::from_secs(2);
const LOG_FILE: &str = "demo.log";

/// The options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Events a second
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rate: u64,
    /// End after so many seconds [default: when Ctrl-C is pressed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Address or name, and port of the API; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = listen)]
    listen: SocketAddr,
    /// A new or empty folder for the data, which is kept [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, such as 127.0.0.1:8071 or localhost:8071";
    address(text).ok_or_else(|| unresolved(text).unwrap_or_else(|| expected.into()))
}

/// Why the demo did not run, or did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Folder(#[from] folder::FolderError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the demo could not make its application and endpoints: {0}")]
    SetUp(String),
    #[error(transparent)]
    Server(#[from] Failed),
    #[error("the store could not be read at the end: {0}")]
    Store(#[from] aldaba_store::Error),
    #[error("{0} deliveries are lost. This is a bug: please report it")]
    Lost(u64),
    #[error("{0}")]
    System(#[from] io::Error),
}

pub(crate) fn run(
    options: &Options,
    program: &str,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let folder = match &options.data {
        Some(path) => Folder::given(path)?,
        None => Folder::temporary(Path::new(variables.get("TMPDIR").map_or("/tmp", String::as_str)))?,
    };
    log_to(&folder.path().join(LOG_FILE))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let played = runtime.block_on(play(options, &folder, program, variables));
    // Before the folder is removed: running tasks may have files in it open.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    played
}

/// Logs errors only, to a file: the log must not disturb the display, and every failed attempt is a warning.
fn log_to(path: &Path) -> io::Result<()> {
    let log = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::ERROR)
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(File::create(path)?));
    // An error here means that a log is running already, which is as good.
    let _ = log.try_init();
    Ok(())
}

/// Without variables and files: those are for a real server, and may name its data.
fn config(options: &Options, folder: &Path) -> Config {
    let mut config = Config { listen: options.listen, shutdown: SHUTDOWN_TIMEOUT, ..Config::default() };
    config.store.folder = folder.to_owned();
    config.overrides.job_timeout = JOB_TIMEOUT;
    config.allow_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config
}

async fn play(
    options: &Options,
    folder: &Folder,
    program: &str,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let stop_signals = StopSignals::listen()?;
    let context = DemoContext {
        counters: Arc::default(),
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy::new()),
    };
    let signing: [SigningKey; scenario::ENDPOINT_COUNT] =
        std::array::from_fn(|_| SigningKey::generate_hmac(context.entropy.bytes()));
    let receiver = Receiver::start(&context, &signing)?;
    let mut running =
        Box::pin(RunningServer::start(config(options, folder.path()), &*context.clock, &*context.entropy))
            .await?;
    let endpoints = event_sender::set_up(&running.access, &receiver.addresses, &signing).await;
    let endpoints = endpoints.map_err(|error| Error::SetUp(error.to_string()))?;
    let token_command = format!("{} token create --data {}", quoted(program), full_path(folder.path()));
    let mut display =
        LiveDisplay::new(stop_signals, context.clone(), options.rate, running.access.address, variables);
    display.say(&greeting(&running.access, folder, &token_command, display.legend()));
    display.hint = format!("token:  {token_command}");

    let store_reader = StoreReader { engine: running.engine.clone(), endpoints };
    let watch = StorePoller::new(store_reader.clone(), context.clone(), receiver.addresses);
    let (stop_watch, stopped) = oneshot::channel();
    let watch = tokio::spawn(watch.run(stopped));
    let senders = EventSenders::start(&running.access, &context, options.rate);
    let senders = senders.map_err(|error| Error::SetUp(error.to_string()))?;
    let time = options.seconds.map(Duration::from_secs);
    display.until(time, &mut running.ended).await?;
    let ran = context.clock.monotonic();
    senders.stop().await;
    wait_for_due_attempts(&mut display, &context, &store_reader, &mut running.ended).await?;
    let waited = context.clock.monotonic().saturating_sub(ran);
    drop(stop_watch);
    let _ = watch.await;
    let (final_counts, first_due) = compare(&context, &store_reader).await?;
    display.finish(&final_counts.summary(ran, waited, first_due), &next_steps(folder, program));
    running.stop().await?;
    if final_counts.lost > 0 { Err(Error::Lost(final_counts.lost)) } else { Ok(()) }
}

/// Waits a little for deliveries that are due soon.
async fn wait_for_due_attempts(
    display: &mut LiveDisplay,
    context: &DemoContext,
    store_reader: &StoreReader,
    ended: &mut JoinHandle<Result<(), Failed>>,
) -> Result<(), Error> {
    let deadline = context.clock.monotonic() + DRAIN_TIMEOUT;
    loop {
        let left = deadline.saturating_sub(context.clock.monotonic());
        let open = context.counters.lock().open_messages();
        let due_soon = match open.len() {
            0 => false,
            1..=MAX_DUE_TIMES_READ => {
                let (_, first_due) = store_reader.fates(open).await?;
                first_due.is_none_or(|due| due < context.clock.now() + left)
            }
            _ => true,
        };
        if left.is_zero() || !due_soon || display.waits(left, ended).await?.is_break() {
            return Ok(());
        }
    }
}

/// Compares the counters with the store. Also returns when the first pending delivery is due.
async fn compare(
    context: &DemoContext,
    store_reader: &StoreReader,
) -> Result<(FinalCounts, Option<Duration>), Error> {
    let open = context.counters.lock().open_messages();
    let (fates, first_due) = store_reader.fates(open).await?;
    let final_counts = context.counters.lock().close(&fates);
    let now = context.clock.now();
    Ok((final_counts, first_due.map(|due| due.since(now))))
}

/// The address of the API, and a token for it.
#[derive(Clone, Debug)]
struct ApiAccess {
    address: SocketAddr,
    token: String,
}

impl ApiAccess {
    fn client(&self) -> Result<Client, aldaba_client::Error> {
        Client::new(&format!("http://{}", self.address), &self.token)
    }
}

/// The server in this process.
struct RunningServer {
    access: ApiAccess,
    engine: Engine,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), Failed>>,
}

impl RunningServer {
    async fn start(config: Config, clock: &dyn Clock, entropy: &dyn Entropy) -> Result<Self, Error> {
        let address = config.listen;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| Error::Listen { address, source })?;
        let folder = DataFolder::open(config.data()).map_err(StartError::Folder)?;
        let secret = keys::jwt_secret(&config, &folder, entropy).map_err(StartError::Folder)?;
        let organization = DEFAULT_ORGANIZATION.parse().expect("an organization");
        let token = issue_token(&secret, organization, clock.now());
        let server = Server::start(listener, config).await?;
        let access = ApiAccess { address: server.address(), token };
        let engine = server.engine().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(server.run(Threads::one(), async move { drop(stopped.await) }));
        Ok(Self { access, engine, stop, ended })
    }

    async fn stop(self) -> Result<(), Error> {
        let _ = self.stop.send(());
        flatten(self.ended.await)
    }
}

/// The result of the server; its panic continues here.
fn flatten(ended: Result<Result<(), Failed>, tokio::task::JoinError>) -> Result<(), Error> {
    match ended {
        Ok(ended) => Ok(ended?),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn greeting(access: &ApiAccess, folder: &Folder, token_command: &str, legend: &[&str]) -> String {
    let ApiAccess { address, token } = access;
    let data = full_path(folder.path());
    let fate = if folder.stays() { "kept" } else { "removed at the end" };
    let app = scenario::APPLICATION;
    format!(
        "The whole server, {} endpoints that misbehave by turns, and a stream of events.\n\
         \n\
         {}\n\
         \n\
         API    http://{address}/api/v1\n\
         data   {data} ({fate}; the log is {LOG_FILE} in it)\n\
         token  {token_command}\n\
         \n\
         TOKEN={token}\n\
         curl --oauth2-bearer $TOKEN http://{address}/api/v1/app/{app}/endpoint\n\
         curl --oauth2-bearer $TOKEN http://{address}/api/v1/app/{app}/msg \\\n  \
         --json '{{\"eventType\": \"order.created\", \"payload\": {{\"mine\": true}}}}'\n\
         \n",
        scenario::ENDPOINT_COUNT,
        legend.join("\n")
    )
}

fn next_steps(folder: &Folder, program: &str) -> String {
    let program = quoted(program);
    let data = if folder.stays() { format!(" --data {}", full_path(folder.path())) } else { String::new() };
    format!(
        "\nTo go on with a server of your own, and a token for it:\n  \
         {program} serve{data}\n  \
         {program} token create{data}\n"
    )
}
