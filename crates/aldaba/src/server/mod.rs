//! The server: a data folder, an engine and an API on a socket that the caller brings.

mod accept;
mod body_drain;
mod connection;
mod connection_slots;
mod connection_table;
mod cors;
mod forwarded;
mod http2;
mod operator_request;
mod reload;
mod request;
mod scheduling_delay;
mod tls;
mod write_timeout;

pub use crate::runtimes::Threads;
pub use accept::listen;
pub(crate) use forwarded::RequestOrigin;
pub(crate) use operator_request::{OperatorRequest, REQUEST_TIMEOUT};
pub(crate) use reload::{LiveSettings, Reloader};
pub use tls::{CertificateError, CertificateFiles};
pub(crate) use tls::{CertificateState, ListenerTls};

use crate::api::{
    Api, ExportPermits, KeySets, MemoryBudget, PagePermits, Parts as ApiParts, PublicUrl, Rates, StoreProbe,
    router,
};
use crate::backup::MANIFEST;
use crate::cli::dashboard_link;
use crate::config::{Config, TraceConfig};
use crate::dashboard::Dashboard;
use crate::keys;
use crate::mail;
use crate::metrics::{Metrics, MetricsAccess, MetricsListener};
use crate::questions::{DeliveryIds, ProcessQuestions};
use crate::service_manager::{Liveness, ServiceManager};
use crate::token::{JwtSecret, Tokens};
use accept::{Connections, Listener};
use aldaba_engine::wire::{CertificateDer, Guard, Wire, WireOptions, first_expiry, read_roots};
use aldaba_engine::{
    CertificateExpiries, CertificateKind, Clock, Collector, CollectorError, DataFolder, Engine, Entropy,
    FolderError, Installation, Options as EngineOptions, Setup, SetupError, SystemClock, SystemEntropy,
    TraceOptions,
};
use aldaba_store::has_database;
use forwarded::TrustedProxies;
use parking_lot::RwLock;
use scheduling_delay::SchedulingDelay;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A server that has started and listens, but does not respond before [`run`](Self::run).
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    secret: JwtSecret,
    wire: Wire,
    engine: Engine,
    api: Api,
    metrics_listener: Option<TcpListener>,
    live: LiveSettings,
    service_manager: ServiceManager,
    config: Config,
    /// The data folder was empty before.
    is_first_start: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("ca_file: cannot use {}: {why}", file.display())]
    CaFile { file: PathBuf, why: String },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("otlp_url: {0}")]
    Collector(#[from] CollectorError),
    #[error(
        "{} is a backup, and a server would change it: make a data folder of it with `aldaba restore {} --data DIR`",
        folder.display(), folder.display()
    )]
    IsBackup { folder: PathBuf },
    #[error("smtp_url: cannot prepare encryption for the mail server: {0}")]
    Mail(String),
    #[error(transparent)]
    Engine(#[from] aldaba_engine::StartError),
    #[error("metrics_listen: cannot listen on {address}: {source}. Choose another address or port")]
    MetricsListen { address: SocketAddr, source: std::io::Error },
    #[error("the listening socket does not say its address: {0}")]
    Listener(#[from] std::io::Error),
}

/// Why a server ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The store cannot be trusted any more; only a fresh start can read the disk.
    #[error(
        "the store has failed, and nothing more can be written safely: {0}. Check the disk, then start again"
    )]
    Store(String),
    #[error("a bug: delivering has ended. What was accepted is on disk; a restart delivers it")]
    Engine,
    #[error("cannot accept connections: {0}")]
    Listener(#[from] std::io::Error),
}

impl Server {
    pub async fn start(listener: TcpListener, config: Config) -> Result<Self, StartError> {
        Self::start_with_clock(listener, config, Arc::new(SystemClock::new())).await
    }

    /// Starts on another clock than the machine's, for tests.
    #[doc(hidden)]
    pub async fn start_with_clock(
        listener: TcpListener,
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let address = listener.local_addr()?;
        let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::new());
        // A secret that cannot be used is refused before the data folder is touched.
        keys::check_jwt_secret(&config)?;
        let failed = |address| move |source| StartError::MetricsListen { address, source };
        let metrics_listener =
            config.metrics_listen.map(|address| listen(address).map_err(failed(address))).transpose()?;
        if config.data().join(MANIFEST).exists() {
            return Err(StartError::IsBackup { folder: config.data().to_owned() });
        }
        let had_database = has_database(config.data()).unwrap_or(false);
        let lost_secret = keys::lost_secret(&config, had_database);
        let mut setup = Setup { clock, entropy: entropy.clone(), ..setup(&config)? };
        let certificates = setup.engine.certificates.clone();
        let tls = config.tls().map(|files| ListenerTls::load(files, certificates)).transpose()?;
        let now = setup.clock.wall();
        if let Some(tls) = &tls {
            tls.warn_if_expired(now);
        }
        let access = MetricsAccess::of(&config, Some(address.ip()));
        let metrics = Arc::new(Metrics { tls: tls.clone(), ..Metrics::new(access, now) });
        setup.engine.mail = mail::options(&config, address)?;
        // Boxed: a start is made once, and its future holds all parts of the engine.
        let Installation { engine, wire } = Box::pin(Installation::start(setup)).await?;
        OperatorRequest::trust_clock(config.data()).forget();
        OperatorRequest::resume(config.data()).forget();
        let folder = DataFolder::at(config.data());
        let secret = keys::jwt_secret(&config, &folder, &*entropy)?;
        if let Some(warning) = lost_secret {
            tracing::warn!("{warning}");
        }
        let delivery_ids =
            DeliveryIds::of(&engine, &*entropy).await.map_err(aldaba_engine::StartError::from)?;
        folder.set_address(address);
        let tokens = Tokens::new(&secret, engine.credentials().clone());
        let (guard, limits) = (wire.guard(), config.limits.clone());
        let public_url = PublicUrl::new(config.public_url.clone(), address);
        let live = LiveSettings {
            engine: engine.clone(),
            address,
            tls,
            proxies: TrustedProxies::new(config.trusted_proxies.clone(), config.proxy_headers),
            public_url: public_url.clone(),
            metrics: metrics.clone(),
            metrics_access: Arc::new(RwLock::new(MetricsAccess::of_own_listener(&config))),
            shutdown: Arc::new(RwLock::new(config.shutdown)),
        };
        let api = Api::new(ApiParts {
            engine: engine.clone(),
            tokens,
            guard,
            delivery_ids,
            request_memory: MemoryBudget::for_requests(&limits),
            response_memory: MemoryBudget::for_responses(&limits),
            page_permits: PagePermits::default(),
            export_permits: ExportPermits::default(),
            limits,
            rates: Rates::new(&config.limits.rates),
            key_sets: KeySets::new(),
            store_probe: StoreProbe::new(),
            public_url,
            metrics,
            dashboard: Dashboard::new(entropy.clone()),
        });
        let service_manager = ServiceManager::default();
        let is_first_start = !had_database;
        Ok(Self {
            listener,
            address,
            secret,
            wire,
            engine,
            api,
            metrics_listener,
            live,
            service_manager,
            config,
            is_first_start,
        })
    }

    /// A link that logs a person in to the dashboard, once.
    pub(crate) fn dashboard_link(&self) -> String {
        let org = aldaba_engine::default_organization();
        dashboard_link(&self.secret, org, &self.config, self.address, &SystemEntropy::new())
    }

    /// Whether the data folder was made by this start.
    pub(crate) fn is_first_start(&self) -> bool {
        self.is_first_start
    }

    /// The service manager is told of the server from now on.
    pub(crate) fn told_to(self, service_manager: ServiceManager) -> Self {
        Self { service_manager, ..self }
    }

    /// What can be changed while the server runs.
    pub(crate) fn live(&self) -> LiveSettings {
        self.live.clone()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the metrics are served, if they have a listener of their own.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_listener.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Its engine. Public for tests, which watch it or run tasks beside its own.
    #[doc(hidden)]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Serves connections on these threads until `stop` resolves, then lets the requests in progress end, within the
    /// limit of the configuration.
    pub async fn run(self, threads: Threads, stop: impl Future<Output = ()>) -> Result<(), Failed> {
        let (limits, store_probe) = (&self.config.limits, self.api.store_probe.clone());
        let router = router(&self.api);
        let scheduling_delay =
            SchedulingDelay::new(self.engine.clock().clone(), self.config.store.queue_wait);
        let background = self.engine.background().clone();
        let LiveSettings { tls, proxies, metrics, metrics_access, shutdown, .. } = self.live;
        let _serving_metrics = self.metrics_listener.map(|listener| {
            let (metrics, engine) = (metrics.clone(), self.engine.clone());
            let server = MetricsListener { metrics, engine, access: metrics_access };
            AbortOnDrop(tokio::spawn(server.run(listener, background.clone())).abort_handle())
        });
        let _watching = tls.clone().map(|tls| watch_certificate(tls, self.engine.clone()));
        let listener = Listener { socket: self.listener, tls, proxies };
        let connections =
            Connections::serve(listener, router, limits, scheduling_delay, &threads, background, metrics)?;
        let _requests = serve_operator_requests(self.config.data(), &self.engine);
        let manager = self.service_manager;
        manager.ready(&format!("listening on {}", self.address));
        let liveness = Liveness { engine: self.engine.clone(), store_probe, threads };
        tokio::select! {
            biased;
            failure = ProcessQuestions(&self.engine).store_failure() => return Err(Failed::Store(failure)),
            () = self.engine.failed() => return Err(Failed::Engine),
            () = stop => {}
            () = Box::pin(manager.watch(liveness)) => {}
        }
        tracing::info!("stopping: no new requests, those in flight may end");
        manager.stopping("requests in flight may end");
        // At once: a client that is slow to end its request must not let deliveries start, which would then have less
        // time to end.
        self.engine.stop_sending();
        self.api.dashboard.stop();
        let clock = self.engine.clock().clone();
        let (begun, limit) = (clock.monotonic(), *shutdown.read());
        let ends = async {
            // At most half of the time: the deliveries in flight need some of it too.
            connections.stop(limit / 2).await;
            let spent = clock.monotonic().saturating_sub(begun);
            self.engine.shutdown(limit.saturating_sub(spent)).await
        };
        let left = Box::pin(manager.extending("stopping: requests in flight may end", ends)).await;
        self.wire.shutdown();
        if left > 0 {
            tracing::warn!(left, "deliveries were still in flight; they are sent again after the next start");
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// The engine's setup for a server, on the machine's clock.
pub(crate) fn setup(config: &Config) -> Result<Setup, StartError> {
    let roots = roots(config)?;
    let certificates = CertificateExpiries::default();
    certificates.put(CertificateKind::CaFile, first_expiry(roots.iter().map(|root| &**root)));
    Ok(Setup {
        store: config.store.clone(),
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy::new()),
        encryption_key: keys::encryption_key(config),
        wire: WireOptions {
            allow_networks: config.allow_networks.clone(),
            extra_roots: roots.clone(),
            egress_proxy: config.egress_proxy.clone(),
            pool: config.pool,
            ..WireOptions::default()
        },
        overrides: config.overrides,
        engine: EngineOptions {
            traces: traces(&config.traces, roots)?,
            certificates,
            ..config.engine.clone()
        },
    })
}

fn traces(config: &TraceConfig, roots: Vec<CertificateDer<'static>>) -> Result<TraceOptions, StartError> {
    let TraceConfig { collector, headers, sample, service, pass_on } = config;
    let collector = collector.clone().map(|url| Collector::new(url, service, &headers.0, roots));
    Ok(TraceOptions { collector: collector.transpose()?, sample: *sample, pass_on: *pass_on })
}

/// Does what the operator asks for by commands on this machine.
fn serve_operator_requests(data: &Path, engine: &Engine) -> [AbortOnDrop; 2] {
    [
        serve_requests(OperatorRequest::trust_clock(data), engine, |engine| async move {
            engine.trust_clock().await
        }),
        serve_requests(OperatorRequest::resume(data), engine, |engine| async move {
            engine.resume().await.map(drop)
        }),
    ]
}

fn serve_requests<F>(
    requests: OperatorRequest,
    engine: &Engine,
    act: impl Fn(Engine) -> F + Copy + Send + Sync + 'static,
) -> AbortOnDrop
where
    F: Future<Output = Result<(), aldaba_store::Error>> + Send + 'static,
{
    let (engine, background) = (engine.clone(), engine.background().clone());
    let task = requests.task;
    let serve = move || {
        let engine = engine.clone();
        requests.clone().serve(move || act(engine.clone()))
    };
    let serving = async move { background.supervised(task, serve).await };
    AbortOnDrop(tokio::spawn(serving).abort_handle())
}

/// Takes the listener's certificate anew when its files change.
fn watch_certificate(tls: ListenerTls, engine: Engine) -> AbortOnDrop {
    let watching = async move {
        let (background, clock) = (engine.background(), engine.clock());
        background.supervised(ListenerTls::TASK, || tls.watch(&**clock)).await;
    };
    AbortOnDrop(tokio::spawn(watching).abort_handle())
}

/// Aborts a task on drop.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The API of an engine without a socket, for programs that bring both. Tokens are signed with the configured secret;
/// without one only API keys are accepted.
pub async fn api(
    engine: &Engine,
    entropy: &dyn Entropy,
    config: &Config,
) -> Result<axum::Router, aldaba_store::Error> {
    let delivery_ids = DeliveryIds::of(engine, entropy).await?;
    let secret = config.jwt_secret.clone().unwrap_or_else(|| JwtSecret::random(entropy));
    let limits = config.limits.clone();
    let request_memory = MemoryBudget::for_requests(&limits);
    let response_memory = MemoryBudget::for_responses(&limits);
    let tokens = Tokens::new(&secret, engine.credentials().clone());
    let guard = Guard::new(config.allow_networks.clone());
    let public_url = PublicUrl::new(config.public_url.clone(), config.listen);
    let engine = engine.clone();
    let (rates, key_sets) = (Rates::new(&config.limits.rates), KeySets::new());
    let metrics = Arc::new(Metrics::new(MetricsAccess::of(config, None), engine.clock().wall()));
    let parts = ApiParts {
        engine,
        tokens,
        guard,
        limits,
        delivery_ids,
        request_memory,
        response_memory,
        page_permits: PagePermits::default(),
        export_permits: ExportPermits::default(),
        rates,
        key_sets,
        store_probe: StoreProbe::new(),
        public_url,
        metrics,
        dashboard: Dashboard::new(Arc::new(SystemEntropy::new())),
    };
    Ok(router(&Api::new(parts)).for_all())
}

/// The certificate issuers that the operator trusts besides the public ones.
fn roots(config: &Config) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let Some(file) = &config.ca_file else { return Ok(Vec::new()) };
    let failed = |why: String| StartError::CaFile { file: file.clone(), why };
    read_roots(&ca_pem(config)?).map_err(|error| failed(error.to_string()))
}

/// The same as they are in the file; empty: there are none.
pub(crate) fn ca_pem(config: &Config) -> Result<Vec<u8>, StartError> {
    let Some(file) = &config.ca_file else { return Ok(Vec::new()) };
    std::fs::read(file).map_err(|error| StartError::CaFile { file: file.clone(), why: error.to_string() })
}
