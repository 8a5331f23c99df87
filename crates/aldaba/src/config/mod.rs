//! All settings of the server in one table, [`SETTINGS`]. The loading, the error messages and `docs/configuration.md`
//! follow it.

mod load;
mod settings;
#[cfg(test)]
mod tests;
mod values;

pub use load::{Error, Given, Loaded, SettingShown, Source, Sources, load, shown};
pub use settings::{Kind, SETTINGS, Setting};
pub(crate) use values::{address, api_url, unresolved};

use crate::JwtSecret;
use crate::mail::MailSettings;
use crate::server::CertificateFiles;
pub use aldaba_api::read::UnknownFields;
pub(crate) use aldaba_delivery::alert::AlertRules;
use aldaba_delivery::policy::Overrides;
use aldaba_engine::wire::{EgressProxy, PoolLimits};
use aldaba_engine::{CollectorUrl, Options as EngineOptions, SampleRate};
use aldaba_store::StoreOptions;
use ipnet::IpNet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "ALDABA_";
/// Names the file, so the file cannot have it.
const CONFIG_VARIABLE: &str = "ALDABA_CONFIG";
/// Names the server that commands call; the server itself does not read it.
pub(crate) const URL_VARIABLE: &str = "ALDABA_URL";
/// The token for that server.
pub(crate) const TOKEN_VARIABLE: &str = "ALDABA_TOKEN";
/// Variables without our prefix: documents that people already run use these names.
pub const OVERRIDES: [&str; 6] = [
    "RETRY_STOP_DATE_AFTER_MINUTES",
    "WEBHOOK_TIMEOUT_MS",
    "WEBHOOK_MAX_ATTEMPTS",
    "WEBHOOK_BASE_DELAY_MS",
    "WEBHOOK_MAX_DELAY_MS",
    "WEBHOOK_RETRY_INTERVAL_MS",
];

/// How long a sender to the API or to a source waits for the store. Many senders give up after ten seconds.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(8);

/// How a server runs.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// Where the metrics have a listener of their own. `None`: they are served where the API listens.
    pub metrics_listen: Option<SocketAddr>,
    /// Who may read the metrics where the API listens.
    pub metrics_token: Option<Secret<String>>,
    /// `None`: the one in the data folder, made at the first start.
    pub jwt_secret: Option<JwtSecret>,
    /// `None`: derived from the JWT secret where that is set, else the one in the data folder.
    pub encryption_key: Option<Secret<[u8; 32]>>,
    /// `None`: as requests name it.
    pub public_url: Option<String>,
    pub mail: MailSettings,
    /// The certificate of the listener, with the issuers', and its private key, as PEM. `None`: no TLS.
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// The networks of proxies whose headers about their clients are believed.
    pub trusted_proxies: Vec<IpNet>,
    pub proxy_headers: ProxyHeaders,
    pub allow_networks: Vec<IpNet>,
    pub egress_proxy: Option<EgressProxy>,
    /// Certificates that are trusted besides the public ones, as PEM.
    pub ca_file: Option<PathBuf>,
    pub log: String,
    pub log_format: LogFormat,
    pub traces: TraceConfig,
    pub limits: Limits,
    /// How long requests in flight may take to end once the server is told to stop.
    pub shutdown: Duration,
    pub engine: EngineOptions,
    /// Connections to receivers that are kept open between deliveries.
    pub pool: PoolLimits,
    /// Its folder is the data folder.
    pub store: StoreOptions,
    pub overrides: Overrides,
}

/// Limits on clients.
#[derive(Clone, Debug)]
pub struct Limits {
    pub connections: usize,
    /// Of one address, or of one /64 block of IPv6; 0: any number.
    pub connections_per_address: usize,
    /// Accepted connections that wait for a slot, or are being refused.
    pub pending_connections: usize,
    /// For a request's head to arrive, counted from the end of the previous request: it closes idle connections too.
    pub header: Duration,
    /// For the next piece of a request's body to arrive, and of a response to leave.
    pub progress: Duration,
    pub payload: usize,
    /// Of all request bodies that are in memory at once.
    pub body_bytes: usize,
    /// Of all large responses that have not been read yet.
    pub answer_bytes: usize,
    pub rates: RequestRates,
    /// How routes treat fields of a body and parameters of a query that they do not know.
    pub unknown_fields: UnknownFields,
    /// How long an endpoint with due deliveries may wait for its turn before the check of readiness warns.
    pub queue_age: Duration,
}

/// The part of an error that names the setting `unknown_fields`.
pub(crate) const UNKNOWN_FIELDS_HINT: &str = " (the setting `unknown_fields = \"ignore\"` lets it pass)";

/// Requests a second; 0: any number.
#[derive(Clone, Debug)]
pub struct RequestRates {
    pub organization: u32,
    pub application: u32,
    /// To one source.
    pub source: u32,
    /// The unused time that may be made up for at once.
    pub burst: Duration,
}

/// Which messages are traced, and where the traces go.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// `None`: no traces.
    pub collector: Option<CollectorUrl>,
    /// As `name=value` pairs.
    pub headers: Secret<String>,
    pub sample: SampleRate,
    /// The server's name in traces.
    pub service: String,
    /// Whether receivers get a `traceparent`.
    pub pass_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// In which headers trusted proxies say who their client is. The others are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeaders {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(pub T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8071)),
            metrics_listen: None,
            metrics_token: None,
            jwt_secret: None,
            encryption_key: None,
            public_url: None,
            mail: MailSettings::default(),
            tls_certificate: None,
            tls_key: None,
            trusted_proxies: Vec::new(),
            proxy_headers: ProxyHeaders::XForwarded,
            allow_networks: Vec::new(),
            egress_proxy: None,
            ca_file: None,
            log: "info".into(),
            log_format: LogFormat::Text,
            traces: TraceConfig {
                collector: None,
                headers: Secret(String::new()),
                sample: SampleRate::new(0.01).unwrap_or_default(),
                service: "aldaba".into(),
                pass_on: false,
            },
            limits: Limits {
                connections: 4096,
                connections_per_address: 1024,
                pending_connections: 128,
                header: Duration::from_secs(10),
                progress: Duration::from_secs(10),
                payload: 1 << 20,
                body_bytes: 64 << 20,
                answer_bytes: 128 << 20,
                rates: RequestRates {
                    organization: 0,
                    application: 0,
                    source: 1000,
                    burst: Duration::from_secs(1),
                },
                unknown_fields: UnknownFields::Refuse,
                queue_age: Duration::from_secs(60),
            },
            shutdown: Duration::from_secs(30),
            engine: EngineOptions { commit_timeout: Some(COMMIT_TIMEOUT), ..EngineOptions::default() },
            pool: PoolLimits::default(),
            store: StoreOptions::new("./aldaba-data"),
            overrides: Overrides::default(),
        }
    }
}

impl Config {
    /// The files for TLS on the listeners; `None`: they speak HTTP.
    pub fn tls(&self) -> Option<CertificateFiles> {
        let (certificate, key) = (self.tls_certificate.clone()?, self.tls_key.clone()?);
        Some(CertificateFiles { certificate, key })
    }

    pub fn data(&self) -> &Path {
        &self.store.folder
    }
}
