//! Builds the configuration from flags, variables, the file and the defaults.

use super::{CONFIG_VARIABLE, Config, OVERRIDES, PREFIX, SETTINGS, Setting, TOKEN_VARIABLE, URL_VARIABLE};
use crate::api::nearest;
use crate::mail::MailSettings;
use aldaba_delivery::policy::{OverrideError, Overrides};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Read by commands, not by the server.
const CLIENT_VARIABLES: [&str; 2] = [URL_VARIABLE, TOKEN_VARIABLE];

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
    /// Warnings for the operator that do not stop the start.
    pub warnings: Vec<String>,
    pub file: Option<PathBuf>,
    /// What was given for each setting, which a reload compares.
    pub given: Given,
}

/// The values of settings as they were given, by key. They may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Given(BTreeMap<String, String>);

impl Given {
    /// The keys whose values differ, in the order of the names.
    pub fn changed<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        let keys: BTreeSet<_> = self.0.keys().chain(other.0.keys()).map(String::as_str).collect();
        keys.into_iter().filter(|key| self.0.get(*key) != other.0.get(*key)).collect()
    }
}

impl Given {
    /// What the other has for this key.
    pub fn take(&mut self, key: &str, other: &Self) {
        match other.0.get(key) {
            Some(value) => drop(self.0.insert(key.to_owned(), value.clone())),
            None => drop(self.0.remove(key)),
        }
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why the server does not start: which setting, its value, and what is expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{place}: {why}{}", did_you_mean(*suggestion))]
    Value { place: String, why: String, suggestion: Option<&'static str> },
    #[error("{file}: there is no setting `{key}`; {}", instead(key))]
    UnknownKey { file: String, key: String },
    #[error("cannot read the configuration file {file}: {source}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("{file}, line {line}: {message}")]
    Malformed { file: String, line: usize, message: String },
    #[error(
        "lane_start = {start} is above lane_most = {most}: an endpoint cannot start with more than its most"
    )]
    Lanes { start: usize, most: usize },
    #[error("{given} is set, and {missing} is not: {what}")]
    Mail { given: &'static str, missing: &'static str, what: &'static str },
    #[error("{given} is set, and {missing} is not: TLS needs both. Set {missing} too, or leave both out")]
    Tls { given: &'static str, missing: &'static str },
    #[error(transparent)]
    Override(#[from] OverrideError),
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

/// The suggestion for an unknown key.
fn instead(key: &str) -> String {
    let keys: Vec<_> = keys().collect();
    match nearest(key, &keys.iter().map(String::as_str).collect::<Vec<_>>()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the settings are: {}", keys.join(", ")),
    }
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
    let mut given = BTreeMap::new();
    for setting in SETTINGS {
        let Some((place, value)) = strongest(setting, sources, path.as_deref(), &file) else { continue };
        let shown = if setting.secret { "(hidden)" } else { value.as_str() };
        setting.apply(&mut config, &value).ok_or_else(|| Error::Value {
            place: place.replace("{}", shown),
            why: setting.refusal(&value),
            suggestion: setting.suggestion(&value),
        })?;
        given.insert(setting.key.to_owned(), value.trim().to_owned());
    }
    config.overrides = Overrides::read(|name| {
        let variable = sources.variables.get(name).filter(|value| !value.is_empty());
        variable.or_else(|| file.get(&name.to_lowercase())).cloned()
    })?;
    for name in OVERRIDES.map(str::to_lowercase) {
        // Their variables cannot change while the server runs.
        given.extend(file.get(&name).map(|value| (name, value.trim().to_owned())));
    }
    config.engine.sweep_interval = config.overrides.sweep_interval;
    let aldaba_engine::Options { lane_start: start, lane_most: most, .. } = config.engine;
    if start > most {
        return Err(Error::Lanes { start, most });
    }
    check_mail(&config.mail)?;
    check_tls(&config)?;
    let warnings = warnings(&sources.variables);
    Ok(Loaded { config, warnings, file: path, given: Given(given) })
}

fn check_tls(config: &Config) -> Result<(), Error> {
    match (&config.tls_certificate, &config.tls_key) {
        (Some(_), None) => Err(Error::Tls { given: "tls_certificate", missing: "tls_key" }),
        (None, Some(_)) => Err(Error::Tls { given: "tls_key", missing: "tls_certificate" }),
        _ => Ok(()),
    }
}

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    /// The name of the variable.
    Variable(String),
    File(PathBuf),
    Default,
}

/// A setting as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingShown {
    pub key: String,
    /// `(hidden)` for a secret, or for somebody's address.
    pub value: String,
    pub source: Source,
}

/// Every setting with its source, without secrets.
pub fn shown(sources: &Sources) -> Result<Vec<SettingShown>, Error> {
    let named = sources.variables.get(CONFIG_VARIABLE).filter(|value| !value.is_empty());
    let path = sources.file.clone().or_else(|| named.map(PathBuf::from));
    let file = path.as_deref().map(read_file).transpose()?.unwrap_or_default();
    let given = |key: &str, variable: String| {
        let flag = sources.flags.iter().find(|(name, _)| *name == key);
        let set = sources.variables.get(&variable).filter(|value| !value.is_empty());
        match (flag, set, file.get(key), &path) {
            (Some((_, value)), ..) => Some((value.clone(), Source::Flag)),
            (_, Some(value), ..) => Some((value.clone(), Source::Variable(variable))),
            (_, _, Some(value), Some(path)) => Some((value.clone(), Source::File(path.clone()))),
            _ => None,
        }
    };
    let settings = SETTINGS.iter().map(|setting| {
        let (value, source) =
            given(setting.key, setting.variable()).unwrap_or((setting.default.into(), Source::Default));
        let is_address = setting.key.starts_with("mail_from") || setting.key.ends_with("_email");
        let hides = (setting.secret || is_address) && source != Source::Default;
        SettingShown { key: setting.key.into(), value: if hides { "(hidden)".into() } else { value }, source }
    });
    let overrides = OVERRIDES.iter().filter_map(|name| {
        let key = name.to_lowercase();
        let (value, source) = given(&key, (*name).into())?;
        Some(SettingShown { key, value, source })
    });
    Ok(settings.chain(overrides).collect())
}

/// Settings of mails that say something without each other only by mistake.
fn check_mail(mail: &MailSettings) -> Result<(), Error> {
    let error = |given, missing, what| Err(Error::Mail { given, missing, what });
    let no_server = "no mail can be sent. Set ALDABA_SMTP_URL to your mail server, or leave the other out";
    match mail {
        MailSettings { server: Some(_), from: None, .. } => error(
            "smtp_url",
            "mail_from",
            "set ALDABA_MAIL_FROM to the address that mails come from, such as hooks@example.com",
        ),
        MailSettings { server: None, from: Some(_), .. } => error("mail_from", "smtp_url", no_server),
        MailSettings { server: None, operator: Some(_), .. } => {
            error("operator_email", "smtp_url", no_server)
        }
        _ => Ok(()),
    }
}

/// The strongest source that has the setting: how to show its place, and the value.
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
    // An empty variable counts as unset: container files pass on unset variables so.
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

fn warnings(variables: &BTreeMap<String, String>) -> Vec<String> {
    let known = |name: &str| {
        name == CONFIG_VARIABLE
            || CLIENT_VARIABLES.contains(&name)
            || SETTINGS.iter().any(|s| s.variable() == name)
    };
    let unread = variables.keys().filter(|name| name.starts_with(PREFIX) && !known(name));
    unread.map(|name| format!("no setting reads the variable {name}{}", meant_variable(name))).collect()
}

/// The variable that an unknown one was probably meant to be.
fn meant_variable(name: &str) -> String {
    let settings: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
    let known = settings.iter().map(String::as_str).chain([CONFIG_VARIABLE]).chain(CLIENT_VARIABLES);
    // Without the common prefix, which would make all alike.
    let known: Vec<_> = known.map(|known| known.trim_start_matches(PREFIX)).collect();
    let near = nearest(name.trim_start_matches(PREFIX), &known);
    near.map(|near| format!("; did you mean {PREFIX}{near}?")).unwrap_or_default()
}
