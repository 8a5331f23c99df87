//! `aldaba support`: one archive for a bug report. Payloads and secrets are not inside: what is not listed here is not in it.

mod archive;
mod redact;

use crate::cli::{ServerClient, Trust, reachable, server_of_folder};
use crate::config::{Config, SettingShown, Source};
use crate::doctor::{self, Diagnosis};
use aldaba_delivery::Timestamp;
use aldaba_engine::default_organization;
use aldaba_store::{FolderState, Snapshot, known_schema, sqlite_version};
use archive::Archive;
use redact::Redaction;
use serde_json::{Value, json};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;
use url::Url;

/// How much of the end of a log is taken.
const LOG_BYTES: u64 = 4 << 20;
/// How long the rows of one table are counted.
const COUNT_TIME: Duration = Duration::from_secs(5);

const README: &str = "\
This archive was made by `aldaba support` for a bug report. Payloads, secrets and rows of the database are not inside.

  versions.json       the program, its database library, the system
  configuration.json  every setting, where it comes from, and its value unless that is a secret
  doctor.json         what `aldaba doctor` has found
  schema.sql          tables and indexes, without rows
  tables.json         how many rows each table has
  files.json          sizes of the files of the data folder
  health.json, ready.json, metrics.txt   what the running server said, if one ran
  log.txt             the end of the log, if one was given with --log

A log can name hosts and addresses: read it before you send it. Look through it all; what looks like a secret is (hidden).
";

/// What the archive is made of.
pub(crate) struct ArchiveParts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) settings: &'a [SettingShown],
    /// The log, or `-` for standard input.
    pub(crate) log: Option<&'a Path>,
    pub(crate) now: Timestamp,
}

/// Makes the archive in memory.
pub(crate) async fn collect(parts: ArchiveParts<'_>) -> io::Result<Vec<u8>> {
    let ArchiveParts { config, settings, log, now } = parts;
    let redaction = Redaction::of(config, settings);
    let mut archive = Archive::new(now);
    let mut add = |name: &str, text: &str| archive.add(name, redaction.of_our_own(text).as_bytes());
    add("README.txt", README);
    add("versions.json", &pretty(&versions()));
    add("configuration.json", &pretty(&json!(settings.iter().map(shown).collect::<Vec<_>>())));
    let diagnosis: Diagnosis = doctor::examine(config, false, now).await;
    add("doctor.json", &pretty(&json!(diagnosis)));
    if let Ok(state) = FolderState::of(config.data()) {
        let FolderState { is_locked, database_bytes, log_bytes, .. } = state;
        add(
            "files.json",
            &pretty(
                &json!({"serverRuns": is_locked, "databaseBytes": database_bytes, "logBytes": log_bytes}),
            ),
        );
        if is_locked {
            for (name, text) in from_server(config).await {
                add(name, &text);
            }
        }
    }
    if let Ok(snapshot) = Snapshot::begin(config.data()) {
        if let Ok(definitions) = snapshot.definitions() {
            let head = format!("-- schema {} of {}\n", snapshot.schema(), known_schema());
            add("schema.sql", &format!("{head}{};\n", definitions.join(";\n")));
        }
        if let Ok(rows) = snapshot.rows(COUNT_TIME) {
            let rows: serde_json::Map<_, _> =
                rows.into_iter().map(|(table, rows)| (table, json!(rows))).collect();
            add("tables.json", &pretty(&Value::Object(rows)));
        }
    }
    if let Some(log) = log {
        archive.add("log.txt", redaction.of_log(&String::from_utf8_lossy(&end_of(log)?)).as_bytes());
    }
    Ok(archive.finish())
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn shown(setting: &SettingShown) -> Value {
    let source = match &setting.source {
        Source::Flag => "flag".into(),
        Source::Variable(name) => format!("variable {name}"),
        Source::File(file) => format!("file {}", file.display()),
        Source::Default => "default".into(),
    };
    json!({"setting": setting.key, "value": setting.value, "source": source})
}

fn versions() -> Value {
    let system = |file: &str| std::fs::read_to_string(file).map(|text| text.trim().to_owned()).ok();
    let release = system("/etc/os-release").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(line.trim_matches('"').to_owned())
    });
    json!({
        "aldaba": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("ALDABA_COMMIT").unwrap_or("unknown"),
        "schema": known_schema(),
        "sqlite": sqlite_version(),
        "kernel": system("/proc/version"),
        "system": release,
        "architecture": std::env::consts::ARCH,
        "processors": std::thread::available_parallelism().map(usize::from).ok(),
    })
}

async fn from_server(config: &Config) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let Ok(server) = server_of_folder(config, default_organization()) else { return found };
    for (name, path) in [("health.json", "/api/v1/health"), ("ready.json", "/api/v1/health/ready")] {
        if let Ok(answer) = server.client().get_plain(path).await {
            found.push((name, String::from_utf8_lossy(&answer.body).into_owned()));
        }
    }
    if let Some(metrics) = metrics(&server, config).await {
        found.push(("metrics.txt", metrics));
    }
    found
}

/// From where the API listens, or from the listener of their own.
async fn metrics(server: &ServerClient, config: &Config) -> Option<String> {
    let own = || {
        let address = reachable(config.metrics_listen?);
        // The certificate names the host that clients use, not this address.
        let (scheme, certificate) = match config.tls() {
            Some(files) => ("https", std::fs::read(files.certificate).ok()),
            None => ("http", None),
        };
        let url = Url::parse(&format!("{scheme}://{address}")).ok()?;
        let token = config.metrics_token.as_ref().map_or("none", |token| token.0.as_str());
        ServerClient::new(url, token, &Trust { issuers: None, own: certificate }, None).ok()
    };
    for server in [Some(server), own().as_ref()].into_iter().flatten() {
        match server.client().get_plain("/metrics").await {
            Ok(answer) if answer.status == 200 => {
                return Some(String::from_utf8_lossy(&answer.body).into_owned());
            }
            _ => {}
        }
    }
    None
}

fn end_of(log: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if log == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)?;
        let surplus = bytes.len().saturating_sub(LOG_BYTES as usize);
        bytes.drain(..surplus);
        return Ok(bytes);
    }
    let mut file = std::fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
    file.take(LOG_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
