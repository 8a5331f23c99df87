use crate::running::{OwnRuntime, Running};
use crate::{Aldaba, StartError};
use aldaba_delivery::Policy;
use aldaba_delivery::alert::AlertRules;
use aldaba_delivery::policy::{BUILTIN_NAMES, Overrides};
use aldaba_engine::wire::{EgressProxy, PoolLimits, WireOptions, read_roots};
use aldaba_engine::{
    ChangeError, Engine, Installation, Options, REQUESTS_PER_ORIGIN, Setup, SystemClock, SystemEntropy,
    default_organization,
};
use aldaba_store::{Actor, StoreOptions};
use ipnet::IpNet;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Every request uses a socket, and a program may have only a thousand open files.
const IN_FLIGHT: usize = 256;
const MIN_IN_FLIGHT: usize = 2;
const MAX_IN_FLIGHT: usize = 1 << 20;
const MAX_REQUESTS_PER_ORIGIN: usize = 1 << 20;
/// Idle connections that are kept open.
const IDLE: usize = 128;
/// Delivering mostly waits for receivers, so few threads suffice.
const THREADS: usize = 2;
const MAX_THREADS: usize = 1024;
/// Maximum payload in bytes.
const DEFAULT_MAX_PAYLOAD: usize = 1 << 20;
/// Readers of the database, one thread each.
const READERS: usize = 2;

/// The minimum retention: with none, a message could be removed before anybody has seen it, and a key would not prevent
/// duplicates.
const MIN_RETENTION: Duration = Duration::from_secs(1);

/// The period of retention, as in the server. Without a pause the store would be searched continuously.
const SWEEPS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(30 * 24 * 3600);

/// This machine and private networks, where tests and companies run receivers. Link-local addresses are excluded:
/// metadata services of clouds use them.
const PRIVATE_NETWORKS: [&str; 6] =
    ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/// The options of an engine. None is read from the environment.
#[must_use]
pub struct Builder {
    folder: Option<PathBuf>,
    encryption_key: Option<[u8; 32]>,
    networks: Vec<String>,
    proxy: Option<String>,
    roots: Vec<u8>,
    overrides: Overrides,
    policies: Vec<Policy>,
    profile: Option<String>,
    longest_payload: usize,
    in_flight: usize,
    requests_per_origin: usize,
    threads: usize,
    kept: Option<Duration>,
    dead_kept: Option<Option<Duration>>,
    idempotency_kept: Option<Duration>,
    low_space: Option<u64>,
    older_data: bool,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            folder: None,
            encryption_key: None,
            networks: Vec::new(),
            proxy: None,
            roots: Vec::new(),
            overrides: Overrides::default(),
            policies: Vec::new(),
            profile: None,
            longest_payload: DEFAULT_MAX_PAYLOAD,
            in_flight: IN_FLIGHT,
            requests_per_origin: REQUESTS_PER_ORIGIN,
            threads: THREADS,
            kept: None,
            dead_kept: None,
            idempotency_kept: None,
            low_space: None,
            older_data: false,
        }
    }

    /// Sets the data folder, with an SQLite database; it is created if it is missing. One engine or server can use it at
    /// a time. It must be on a local disk.
    pub fn sqlite(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the key that encrypts the secrets of endpoints. Without one, the folder has a key in `encryption.key`,
    /// created at the first start. A folder keeps its first kind of key.
    pub fn encryption_key(mut self, key: [u8; 32]) -> Self {
        self.encryption_key = Some(key);
        self
    }

    /// Allows deliveries to a private, local or reserved network, such as `10.1.0.0/16` or `127.0.0.1/32`. By default
    /// none of these is reached, whatever names and redirects lead there.
    pub fn allow(mut self, network: impl Into<String>) -> Self {
        self.networks.push(network.into());
        self
    }

    /// Allows deliveries to this machine and to private networks (`10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`,
    /// `fc00::/7`). Metadata services of clouds stay forbidden. Use it only if those who choose the URLs may access these
    /// networks.
    pub fn allow_private_networks(mut self, allow: bool) -> Self {
        self.networks.retain(|network| !PRIVATE_NETWORKS.contains(&network.as_str()));
        if allow {
            self.networks.extend(PRIVATE_NETWORKS.map(str::to_owned));
        }
        self
    }

    /// Sets a proxy for all deliveries: `http://[user:password@]host:port` or `socks5://…`.
    pub fn egress_proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Trusts further certificate authorities, as PEM.
    pub fn trusted_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.roots.extend_from_slice(pem.as_ref());
        self.roots.push(b'\n');
        self
    }

    /// Adds a retry policy that endpoints can name, besides the built-in ones. It replaces a policy with the same name in
    /// the folder; pending deliveries follow it from their next attempt.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policies.push(policy);
        self
    }

    /// Changes values of the built-in policies.
    pub fn overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Sets the wire profile (headers and signature) of endpoints without one. Default: `standard`.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Sets the maximum length of a payload in bytes; a longer one is rejected. Default: 1 MiB.
    pub fn longest_payload(mut self, bytes: usize) -> Self {
        self.longest_payload = bytes;
        self
    }

    /// Sets the maximum number of requests in flight; others wait. Each uses a socket, so the process must be allowed as
    /// many open files in addition. Default: 256.
    pub fn in_flight(mut self, most: usize) -> Self {
        self.in_flight = most;
        self
    }

    /// Sets the maximum number of requests in flight to one origin (scheme, host and port); others wait. One application
    /// may use half of it. Default: 128.
    pub fn requests_per_origin(mut self, most: usize) -> Self {
        self.requests_per_origin = most;
        self
    }

    /// Sets the number of threads that deliver. SQLite has one more that writes and two that read. Default: 2.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets how long delivered messages are kept with their history, at least a second. Default: 90 days.
    pub fn keep_delivered(mut self, span: Duration) -> Self {
        self.kept = Some(span);
        self
    }

    /// Sets the same for the dead letter. `None`: until they are removed manually. Default: a year.
    pub fn keep_dead(mut self, span: Option<Duration>) -> Self {
        self.dead_kept = Some(span);
        self
    }

    /// Sets how long idempotency keys are remembered, at least a second. Default: 24 hours.
    pub fn remember_keys(mut self, span: Duration) -> Self {
        self.idempotency_kept = Some(span);
        self
    }

    /// Sets the free disk space in bytes below which nothing is accepted ([`Error::Full`](crate::Error::Full)).
    /// Deliveries continue. Default: 256 MiB.
    pub fn low_space(mut self, bytes: u64) -> Self {
        self.low_space = Some(bytes);
        self
    }

    /// Starts although the database has lost commits that were on disk, or is missing while its key is present: after a
    /// loss of files, or with an older copy. Missing data stays lost. Use it for one start only.
    pub fn accept_older_data(mut self, accept: bool) -> Self {
        self.older_data = accept;
        self
    }

    /// Locks the folder, starts the engine's threads, and delivers pending messages. Dropping the future cancels the start in
    /// the background; the folder is released a moment later.
    pub async fn start(self) -> Result<Aldaba, StartError> {
        let longest_payload = self.longest_payload;
        let (threads, policies) = (self.threads, self.policies.clone());
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(StartError::option("threads", format!("must be 1 to {MAX_THREADS}")));
        }
        if let Some(policy) = policies.iter().find(|policy| BUILTIN_NAMES.contains(&policy.name.as_str())) {
            let why = format!(
                "`{}` is built in: give yours another name, or change it by `overrides`",
                policy.name
            );
            return Err(StartError::option("policy", why));
        }
        let blueprint = self.blueprint()?;
        let runtime = OwnRuntime::start(threads).map_err(StartError::Threads)?;
        let handle = runtime.handle();
        let installing = handle.spawn(async move {
            let installation = Installation::start(blueprint.setup()).await?;
            Ok::<_, StartError>(installation)
        });
        let installation = match installing.await {
            Ok(installation) => installation?,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let running = Running::new(runtime, installation.engine.clone(), installation.wire.clone());
        let engine = installation.engine.clone();
        let aldaba = Aldaba::new(installation, running, handle, longest_payload);
        let put = async move { Ok(put_policies(&engine, policies).await) };
        // No shutdown has happened yet.
        aldaba.run(put).await.unwrap_or(Ok(()))?;
        Ok(aldaba)
    }

    /// Checks all options before anything is opened.
    fn blueprint(self) -> Result<Blueprint, StartError> {
        // An empty path is not a folder, although files could be created with it.
        let folder = self.folder.filter(|path| !path.as_os_str().is_empty()).ok_or(StartError::NoFolder)?;
        for (option, span) in [
            ("keep_delivered", self.kept),
            ("keep_dead", self.dead_kept.flatten()),
            ("remember_keys", self.idempotency_kept),
        ] {
            if span.is_some_and(|span| span < MIN_RETENTION) {
                return Err(StartError::option(option, format!("must be at least {MIN_RETENTION:?}")));
            }
        }
        if !SWEEPS.contains(&self.overrides.sweep_interval) {
            return Err(StartError::option("overrides", "sweep_interval must be 1 ms to 30 days"));
        }
        if !(MIN_IN_FLIGHT..=MAX_IN_FLIGHT).contains(&self.in_flight) {
            let why = format!("must be {MIN_IN_FLIGHT} to {MAX_IN_FLIGHT}");
            return Err(StartError::option("in_flight", why));
        }
        if !(1..=MAX_REQUESTS_PER_ORIGIN).contains(&self.requests_per_origin) {
            let why = format!("must be 1 to {MAX_REQUESTS_PER_ORIGIN}");
            return Err(StartError::option("requests_per_origin", why));
        }
        let network = |text: &String| {
            let why = || format!("`{text}` is no network: expected one such as 10.1.0.0/16 or 127.0.0.1/32");
            text.trim().parse::<IpNet>().map_err(|_| StartError::option("allow", why()))
        };
        let proxy = self.proxy.as_deref().map(str::parse::<EgressProxy>).transpose();
        let roots = match self.roots.is_empty() {
            true => Ok(Vec::new()),
            false => read_roots(&self.roots),
        };
        let wire = WireOptions {
            allow_networks: self.networks.iter().map(network).collect::<Result<_, _>>()?,
            name_servers: None,
            extra_roots: roots
                .map_err(|error| StartError::option("trusted_certificates", error.to_string()))?,
            egress_proxy: proxy.map_err(|error| StartError::option("egress_proxy", error.to_string()))?,
            pool: PoolLimits {
                idle_per_origin: self.requests_per_origin,
                idle_overall: IDLE,
                ..PoolLimits::default()
            },
        };
        let mut engine = Options {
            in_flight: self.in_flight,
            requests_per_origin: self.requests_per_origin,
            sweep_interval: self.overrides.sweep_interval,
            ..Options::default()
        };
        if let Some(profile) = self.profile {
            engine.profile = profile;
        }
        if let Some(span) = self.kept {
            engine.retention.defaults.delivered = Some(span);
        }
        if let Some(span) = self.dead_kept {
            engine.retention.defaults.dead = span;
        }
        if let Some(span) = self.idempotency_kept {
            engine.idempotency_kept = span;
        }
        let mut store = StoreOptions { readers: READERS, ..StoreOptions::new(folder) };
        store.accept_older_data = self.older_data;
        if let Some(bytes) = self.low_space {
            store.low_space_bytes = bytes;
            let rules = AlertRules::clone(&engine.alert_rules);
            engine.alert_rules = Arc::new(rules.with_low_space(bytes));
        }
        Ok(Blueprint { store, encryption_key: self.encryption_key, wire, overrides: self.overrides, engine })
    }
}

/// The checked options.
struct Blueprint {
    store: StoreOptions,
    encryption_key: Option<[u8; 32]>,
    wire: WireOptions,
    overrides: Overrides,
    engine: Options,
}

impl Blueprint {
    fn setup(self) -> Setup {
        Setup {
            store: self.store,
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy::new()),
            encryption_key: self.encryption_key,
            wire: self.wire,
            overrides: self.overrides,
            engine: self.engine,
        }
    }
}

/// Creates or replaces the policies.
async fn put_policies(engine: &Engine, policies: Vec<Policy>) -> Result<(), StartError> {
    let org = default_organization();
    let directory = engine.directory().by(&Arc::new(Actor::program(org)));
    for policy in policies {
        let name = policy.name.clone();
        let put = match engine.policies().get(org, &name) {
            Some(there) if there == policy => Ok(()),
            Some(_) => directory.replace_policy(org, policy).await,
            None => directory.create_policy(org, policy).await,
        };
        let failed = |error: ChangeError| StartError::option("policy", format!("`{name}`: {error}"));
        put.map_err(failed)?;
    }
    Ok(())
}

/// Does not show the key.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("folder", &self.folder).finish_non_exhaustive()
    }
}
