//! Every setting of the server: one table, [`SETTINGS`], that the loading, the error messages and
//! `docs/configuration.md` all follow.

use aldaba_delivery::policy::{OverrideError, Overrides};
use aldaba_engine::Options as EngineOptions;
use aldaba_store::sqlite::Options as StoreOptions;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing_subscriber::EnvFilter;

const PREFIX: &str = "ALDABA_";
/// Names the file, so it cannot be in it.
const CONFIG_VARIABLE: &str = "ALDABA_CONFIG";
/// Read by name, without our prefix: documents that people already run by name them so.
pub const OVERRIDES: [&str; 4] = [
    "RETRY_STOP_DATE_AFTER_MINUTES",
    "WEBHOOK_TIMEOUT_MS",
    "WEBHOOK_MAX_ATTEMPTS",
    "WEBHOOK_RETRY_INTERVAL_MS",
];

/// How a server is to run.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// `None`: the one in the data folder, made at the first start.
    pub jwt_secret: Option<Secret<String>>,
    /// `None`: derived from the JWT secret where that is set, else the one in the data folder.
    pub encryption_key: Option<Secret<[u8; 32]>>,
    pub allow_networks: Vec<IpNet>,
    pub log: String,
    pub log_format: LogFormat,
    pub limits: Limits,
    /// How long requests in flight may take to end once the server is told to stop.
    pub shutdown: Duration,
    pub engine: EngineOptions,
    /// Its folder is the data folder.
    pub store: StoreOptions,
    pub overrides: Overrides,
}

/// What a client may ask of the server at most.
#[derive(Clone, Debug)]
pub struct Limits {
    pub connections: usize,
    /// For a request's head to arrive, counted from the end of the former one: an idle connection
    /// is closed after it too.
    pub header: Duration,
    /// For the next piece of a request's body to arrive, and of an answer to leave.
    pub progress: Duration,
    pub payload: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
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
            jwt_secret: None,
            encryption_key: None,
            allow_networks: Vec::new(),
            log: "info".into(),
            log_format: LogFormat::Text,
            limits: Limits {
                connections: 4096,
                header: Duration::from_secs(10),
                progress: Duration::from_secs(10),
                payload: 1 << 20,
            },
            shutdown: Duration::from_secs(30),
            engine: EngineOptions::default(),
            store: StoreOptions::new("./aldaba-data"),
            overrides: Overrides::default(),
        }
    }
}

impl Config {
    pub fn data(&self) -> &Path {
        &self.store.folder
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// As in the file; `ALDABA_` and the same in capitals is the variable.
    pub key: &'static str,
    /// Empty: unset.
    pub default: &'static str,
    /// What it does, and what happens at the limit.
    pub about: &'static str,
    pub kind: Kind,
    /// Its value is not shown in messages.
    pub secret: bool,
}

#[derive(Debug)]
pub enum Kind {
    Number { least: u64, most: u64, set: fn(&mut Config, u64) },
    Text { expected: &'static str, set: fn(&mut Config, &str) -> Option<()> },
}

impl Setting {
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key.to_uppercase())
    }

    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Number { least, most, .. } => format!("a whole number from {least} to {most}"),
            Kind::Text { expected, .. } => expected.to_owned(),
        }
    }

    fn apply(&self, config: &mut Config, value: &str) -> Option<()> {
        match self.kind {
            Kind::Number { least, most, set } => {
                let number = value.trim().parse().ok().filter(|n| (least..=most).contains(n))?;
                set(config, number);
                Some(())
            }
            Kind::Text { set, .. } => set(config, value.trim()),
        }
    }
}

const fn text(
    key: &'static str,
    default: &'static str,
    expected: &'static str,
    about: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
) -> Setting {
    Setting { key, default, about, kind: Kind::Text { expected, set }, secret: false }
}

const fn secret(
    key: &'static str,
    expected: &'static str,
    about: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
) -> Setting {
    Setting { key, default: "", about, kind: Kind::Text { expected, set }, secret: true }
}

const fn number(
    key: &'static str,
    default: &'static str,
    (least, most): (u64, u64),
    about: &'static str,
    set: fn(&mut Config, u64),
) -> Setting {
    Setting { key, default, about, kind: Kind::Number { least, most, set }, secret: false }
}

pub const SETTINGS: &[Setting] = &[
    text(
        "listen",
        "127.0.0.1:8071",
        "an address and a port, such as 127.0.0.1:8071 or [::]:8071",
        "Where the API is served. Port 0 takes a free one; the address is printed at the start.",
        |c, v| v.parse().ok().map(|address| c.listen = address),
    ),
    text(
        "data",
        "./aldaba-data",
        "a folder",
        "The data folder: database, lock and secrets. Made with mode 0700 when it is missing. A second \
         server on the same folder is refused at its start.",
        |c, v| (!v.is_empty()).then(|| c.store.folder = v.into()),
    ),
    secret(
        "database_url",
        "nothing: PostgreSQL comes with a later version; leave it out to use the embedded database",
        "For PostgreSQL, which this version cannot use yet: setting it stops the start.",
        |_, _| None,
    ),
    secret(
        "jwt_secret",
        "a text of at least 1 character; 32 or more are safe",
        "Signs and checks API tokens (HS256). Unset: `jwt.secret` in the data folder, made at the first \
         start. Changing it makes every token invalid.",
        |c, v| (!v.is_empty()).then(|| c.jwt_secret = Some(Secret(v.to_owned()))),
    ),
    secret(
        "encryption_key",
        "32 bytes, as 64 hexadecimal digits or as standard base64",
        "Encrypts endpoint secrets at rest. Unset: derived (HKDF-SHA256) from `jwt_secret` where that is \
         set, else `encryption.key` in the data folder, made at the first start. A server with another key \
         than the one its database was made with refuses to start.",
        |c, v| encryption_key(v).map(|key| c.encryption_key = Some(Secret(key))),
    ),
    text(
        "allow_networks",
        "",
        "networks separated by commas, such as 127.0.0.0/8,10.1.0.0/16,::1/128",
        "Private networks that deliveries may go to. Unset: none, so that a customer's URL cannot reach \
         into your network.",
        |c, v| networks(v).map(|networks| c.allow_networks = networks),
    ),
    text(
        "wire_profile",
        "standard",
        "standard or svix",
        "The headers of deliveries to endpoints that name no profile: `webhook-*` or `svix-*`.",
        |c, v| v.parse().ok().map(|profile| c.engine.profile = profile),
    ),
    text(
        "log",
        "info",
        "a level (error, warn, info, debug, trace) or a filter such as info,aldaba_engine=debug",
        "What is logged, on standard error. Logs hold no secret, token, payload or URL query.",
        |c, v| (!v.is_empty() && EnvFilter::try_new(v).is_ok()).then(|| c.log = v.to_owned()),
    ),
    text(
        "log_format",
        "text",
        "text or json",
        "One line of text or one JSON object for each event.",
        |c, v| {
            let format = match v {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return None,
            };
            c.log_format = format;
            Some(())
        },
    ),
    number(
        "max_connections",
        "4096",
        (1, 65_536),
        "Open API connections. More wait, not accepted yet, until one closes.",
        |c, n| c.limits.connections = size(n),
    ),
    number(
        "header_seconds",
        "10",
        (1, 3600),
        "How long the head of a request may take, counted from the end of the former one. Then the \
         connection is closed, an idle one too.",
        |c, n| c.limits.header = Duration::from_secs(n),
    ),
    number(
        "progress_seconds",
        "10",
        (1, 3600),
        "How long a request's body (408) or the reading of an answer (connection closed) may stand still.",
        |c, n| c.limits.progress = Duration::from_secs(n),
    ),
    number(
        "payload_bytes",
        "1048576",
        (1024, 16 << 20),
        "The largest payload; a request may be 64 KiB larger. Beyond: 413, nothing is stored.",
        |c, n| c.limits.payload = size(n),
    ),
    number(
        "shutdown_seconds",
        "30",
        (0, 3600),
        "How long requests in flight may take to end when the server is told to stop. Deliveries still in \
         flight then are sent again after the next start.",
        |c, n| c.shutdown = Duration::from_secs(n),
    ),
    number(
        "in_flight",
        "4096",
        (2, 1 << 20),
        "Deliveries on the wire at once, in all. More wait for their turn.",
        |c, n| c.engine.in_flight = size(n),
    ),
    number(
        "lane_start",
        "8",
        (1, 4096),
        "Deliveries on the wire at once to one endpoint, at the beginning.",
        |c, n| c.engine.lane_start = size(n),
    ),
    number(
        "lane_most",
        "64",
        (1, 4096),
        "The same, while its answers come quickly. More wait for their turn.",
        |c, n| c.engine.lane_most = size(n),
    ),
    number(
        "lane_buffer",
        "256",
        (1, 65_536),
        "Waiting deliveries of one endpoint that are kept in memory. The rest wait on disk.",
        |c, n| c.engine.lane_buffer = size(n),
    ),
    number(
        "lane_idle_seconds",
        "60",
        (1, 86_400),
        "How long an endpoint with nothing to do stays in memory.",
        |c, n| c.engine.lane_idle = Duration::from_secs(n),
    ),
    number(
        "content_bytes",
        "67108864",
        (1 << 20, 1 << 40),
        "Payload bytes kept in memory for waiting deliveries. Beyond, they are read again at their turn.",
        |c, n| c.engine.content_bytes = size(n),
    ),
    number(
        "tenants",
        "10000",
        (1, 1 << 24),
        "Applications whose configuration is kept in memory. Beyond, they are read again.",
        |c, n| c.engine.tenants = size(n),
    ),
    number(
        "idempotency_hours",
        "24",
        (24, 720),
        "How long an idempotency key is remembered. A later repeat counts as a new request.",
        |c, n| c.engine.idempotency_kept = Duration::from_secs(n * 3600),
    ),
    number(
        "endpoints_per_application",
        "10000",
        (1, 1_000_000),
        "Beyond: 409, nothing is stored.",
        |c, n| c.store.endpoints_per_application = size(n),
    ),
    number(
        "queue_operations",
        "65536",
        (512, 1 << 24),
        "Writes that may wait for the disk. Beyond: 503 with `Retry-After`, nothing is stored.",
        |c, n| c.store.queue_operations = size(n),
    ),
    number(
        "queue_bytes",
        "67108864",
        (17 << 20, 1 << 40),
        "Bytes of writes that may wait for the disk. Beyond: 503 with `Retry-After`, nothing is stored.",
        |c, n| c.store.queue_bytes = size(n),
    ),
    number("readers", "4", (1, 256), "Threads that read from the database.", |c, n| {
        c.store.readers = size(n);
    }),
    number(
        "queue_reads",
        "4096",
        (16, 1 << 20),
        "Reads that may wait for a thread. Beyond: 503 with `Retry-After`.",
        |c, n| c.store.queue_reads = size(n),
    ),
    number("read_milliseconds", "1000", (100, 60_000), "How long one read may take. Beyond: 503.", |c, n| {
        c.store.read_limit = Duration::from_millis(n);
    }),
];

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn encryption_key(text: &str) -> Option<[u8; 32]> {
    from_hex(text).or_else(|| BASE64_STANDARD.decode(text).ok()?.try_into().ok())
}

/// The 32 bytes that 64 hexadecimal digits stand for.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |d: u8| char::from(d).to_digit(16);
        *byte = u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()?;
    }
    Some(bytes)
}

fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}

/// Where settings come from, strongest first: flags, variables, the file, the defaults.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// By the key of the setting.
    pub flags: Vec<(&'static str, String)>,
    pub file: Option<PathBuf>,
    pub variables: BTreeMap<String, String>,
}

#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// What the operator should know, though it does not stop the start.
    pub warnings: Vec<String>,
    pub file: Option<PathBuf>,
}

/// Why the server does not start: which setting, its value, and what is expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: expected {expected}")]
    Value { place: String, expected: String },
    #[error("{file}: there is no setting `{key}`; the settings are: {}", keys().collect::<Vec<_>>().join(", "))]
    UnknownKey { file: String, key: String },
    #[error("cannot read the configuration file {file}: {source}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("{file}, line {line}: {message}")]
    Malformed { file: String, line: usize, message: String },
    #[error(
        "lane_start = {start} is above lane_most = {most}: an endpoint cannot start with more than its most"
    )]
    Lanes { start: usize, most: usize },
    #[error(transparent)]
    Override(#[from] OverrideError),
}

fn keys() -> impl Iterator<Item = String> {
    let settings = SETTINGS.iter().map(|setting| setting.key.to_owned());
    settings.chain(OVERRIDES.iter().map(|name| name.to_lowercase()))
}

pub fn load(sources: &Sources) -> Result<Loaded, Error> {
    let named = sources.variables.get(CONFIG_VARIABLE).filter(|value| !value.is_empty());
    let path = sources.file.clone().or_else(|| named.map(PathBuf::from));
    let file = path.as_deref().map(read_file).transpose()?.unwrap_or_default();
    let mut config = Config::default();
    for setting in SETTINGS {
        let Some((place, value)) = strongest(setting, sources, path.as_deref(), &file) else { continue };
        let shown = if setting.secret { "(hidden)" } else { value.as_str() };
        setting.apply(&mut config, &value).ok_or_else(|| Error::Value {
            place: place.replace("{}", shown),
            expected: setting.expected(),
        })?;
    }
    config.overrides = Overrides::read(|name| {
        let variable = sources.variables.get(name).filter(|value| !value.is_empty());
        variable.or_else(|| file.get(&name.to_lowercase())).cloned()
    })?;
    config.engine.sweep_interval = config.overrides.sweep_interval;
    let EngineOptions { lane_start: start, lane_most: most, .. } = config.engine;
    if start > most {
        return Err(Error::Lanes { start, most });
    }
    let warnings = warnings(&config, &sources.variables);
    Ok(Loaded { config, warnings, file: path })
}

/// The strongest source that has the setting: how to show where it stands, and the value.
fn strongest(
    setting: &Setting,
    sources: &Sources,
    path: Option<&Path>,
    file: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    if let Some((key, value)) = sources.flags.iter().find(|(key, _)| *key == setting.key) {
        return Some((format!("--{} {{}}", key.replace('_', "-")), value.clone()));
    }
    let variable = setting.variable();
    // An empty variable counts as unset: that is how container files pass on what nobody set.
    if let Some(value) = sources.variables.get(&variable).filter(|value| !value.is_empty()) {
        return Some((format!("{variable}={{}}"), value.clone()));
    }
    let value = file.get(setting.key)?;
    Some((format!("{}: {} = {{}}", path?.display(), setting.key), value.clone()))
}

/// The file's settings as text, whatever their TOML type.
fn read_file(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Unreadable { file: name.clone(), source })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        // Not the error's own text: it quotes the line, and that may hold a secret.
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count();
        Error::Malformed { file: name.clone(), line, message: error.message().to_owned() }
    })?;
    let mut settings = BTreeMap::new();
    for (key, value) in table {
        if !keys().any(|known| known == key) {
            return Err(Error::UnknownKey { file: name, key });
        }
        settings.insert(key, as_text(&value));
    }
    Ok(settings)
}

fn as_text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(as_text).collect::<Vec<_>>().join(","),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        toml::Value::Datetime(moment) => moment.to_string(),
        toml::Value::Table(_) => "{ a table }".into(),
    }
}

fn warnings(config: &Config, variables: &BTreeMap<String, String>) -> Vec<String> {
    let known = |name: &str| name == CONFIG_VARIABLE || SETTINGS.iter().any(|s| s.variable() == name);
    let unread = variables.keys().filter(|name| name.starts_with(PREFIX) && !known(name));
    let mut warnings: Vec<_> = unread.map(|name| format!("no setting reads the variable {name}")).collect();
    if config.jwt_secret.as_ref().is_some_and(|secret| secret.0.len() < 32) {
        warnings.push("jwt_secret is shorter than 32 characters: tokens may be forged by guessing it".into());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn with_variables(pairs: &[(&str, &str)]) -> Result<Loaded, Error> {
        load(&Sources { variables: variables(pairs), ..Sources::default() })
    }

    fn with_file(text: &str, pairs: &[(&str, &str)]) -> Result<Loaded, Error> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("aldaba.toml");
        std::fs::write(&file, text).unwrap();
        load(&Sources { file: Some(file), variables: variables(pairs), ..Sources::default() })
    }

    #[test]
    fn the_defaults_of_the_table_are_the_defaults_of_the_program() {
        let mut config = Config::default();
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            setting.apply(&mut config, setting.default).unwrap_or_else(|| panic!("{}", setting.key));
        }
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn the_documentation_has_a_row_for_every_setting() {
        let page = include_str!("../../../docs/configuration.md");
        for setting in SETTINGS {
            let row = documentation_row(setting);
            assert!(page.contains(&row), "docs/configuration.md lacks or differs from:\n{row}");
        }
        for name in OVERRIDES {
            assert!(page.contains(name), "docs/configuration.md lacks {name}");
        }
    }

    fn documentation_row(setting: &Setting) -> String {
        let default =
            if setting.default.is_empty() { "unset".into() } else { format!("`{}`", setting.default) };
        let variable = setting.variable();
        format!(
            "| `{}` | `{variable}` | {default} | {} | {} |",
            setting.key,
            setting.expected(),
            setting.about
        )
    }

    #[test]
    fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
        let listen = |loaded: Loaded| loaded.config.listen.port();
        assert_eq!(listen(with_variables(&[]).unwrap()), 8071);
        assert_eq!(listen(with_file("listen = '127.0.0.1:1'", &[]).unwrap()), 1);
        let variable = [("ALDABA_LISTEN", "127.0.0.1:2")];
        assert_eq!(listen(with_file("listen = '127.0.0.1:1'", &variable).unwrap()), 2);
        let flags = vec![("listen", "127.0.0.1:3".to_owned())];
        let sources = Sources { flags, variables: variables(&variable), file: None };
        assert_eq!(listen(load(&sources).unwrap()), 3);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let loaded = with_variables(&[("ALDABA_LISTEN", ""), ("ALDABA_JWT_SECRET", "")]).unwrap();
        assert_eq!(loaded.config.listen.port(), 8071);
        assert!(loaded.config.jwt_secret.is_none());
    }

    #[test]
    fn toml_numbers_and_lists_are_read() {
        let loaded = with_file("in_flight = 77\nallow_networks = ['10.0.0.0/8', '::1/128']", &[]).unwrap();
        assert_eq!(loaded.config.engine.in_flight, 77);
        assert_eq!(loaded.config.allow_networks.len(), 2);
    }

    #[test]
    fn a_wrong_value_stops_the_start_and_names_setting_value_and_expectation() {
        for (name, value) in [
            ("ALDABA_LISTEN", "8071"),
            ("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8,home"),
            ("ALDABA_WIRE_PROFILE", "acme"),
            ("ALDABA_LOG", "a=b=c"),
            ("ALDABA_LOG_FORMAT", "xml"),
            ("ALDABA_IN_FLIGHT", "many"),
            ("ALDABA_IN_FLIGHT", "0"),
            ("ALDABA_MAX_CONNECTIONS", "-1"),
            ("ALDABA_SHUTDOWN_SECONDS", "1.5"),
            ("ALDABA_IDEMPOTENCY_HOURS", "1"),
            ("WEBHOOK_MAX_ATTEMPTS", "0"),
        ] {
            let message = with_variables(&[(name, value)]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}={value}: expected ")), "{message}");
        }
        let message = with_file("in_flight = 'many'", &[]).unwrap_err().to_string();
        assert!(
            message.ends_with("in_flight = many: expected a whole number from 2 to 1048576"),
            "{message}"
        );
    }

    #[test]
    fn a_wrong_secret_is_refused_without_being_shown() {
        for (name, value) in [
            ("ALDABA_ENCRYPTION_KEY", "too-short"),
            ("ALDABA_ENCRYPTION_KEY", "c2hvcnQ="),
            ("ALDABA_DATABASE_URL", "postgres://u:too-short@db/a"),
        ] {
            let message = with_variables(&[(name, value)]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}=(hidden): expected ")), "{message}");
        }
        let message = with_file("jwt_secret = 'too-short\n", &[]).unwrap_err().to_string();
        assert!(!message.contains("too-short"), "{message}");
        let loaded = with_variables(&[("ALDABA_JWT_SECRET", "too-short")]).unwrap();
        assert!(!format!("{loaded:?}").contains("too-short"));
        assert_eq!(loaded.warnings.len(), 1);
    }

    #[test]
    fn postgresql_is_refused_by_name_for_now() {
        let message = with_variables(&[("ALDABA_DATABASE_URL", "postgres://db")]).unwrap_err().to_string();
        assert!(message.contains("PostgreSQL comes with a later version"), "{message}");
    }

    #[test]
    fn an_unknown_key_or_a_broken_file_stops_the_start() {
        let message = with_file("lissten = '127.0.0.1:1'", &[]).unwrap_err().to_string();
        assert!(
            message.contains("there is no setting `lissten`; the settings are: listen, data"),
            "{message}"
        );
        let message = with_file("in_flight = 3\nlisten = \n", &[]).unwrap_err().to_string();
        assert!(message.contains("aldaba.toml, line 2: "), "{message}");
        let missing = Sources { file: Some("no/such/file.toml".into()), ..Sources::default() };
        assert!(load(&missing).unwrap_err().to_string().contains("no/such/file.toml"));
    }

    #[test]
    fn a_variable_that_no_setting_reads_is_a_warning() {
        let loaded = with_variables(&[("ALDABA_LISTENS", "x"), ("HOME", "/")]).unwrap();
        assert_eq!(loaded.warnings, ["no setting reads the variable ALDABA_LISTENS"]);
    }

    #[test]
    fn the_documents_own_variables_are_read_from_the_environment_or_the_file() {
        let loaded =
            with_file("webhook_max_attempts = 5", &[("RETRY_STOP_DATE_AFTER_MINUTES", "3")]).unwrap();
        assert_eq!(loaded.config.overrides.job_attempts, 5);
        assert_eq!(loaded.config.overrides.stop_after, Duration::from_secs(180));
    }

    #[test]
    fn an_encryption_key_is_read_as_hexadecimal_or_base64() {
        let hex = "0f".repeat(32);
        let base64 = BASE64_STANDARD.encode([15; 32]);
        assert_eq!(encryption_key(&hex), Some([15; 32]));
        assert_eq!(encryption_key(&base64), Some([15; 32]));
    }
}
