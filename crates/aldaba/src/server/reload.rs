//! Other settings for a running server (SIGHUP): what can be changed is changed, all of it or nothing, and what needs a
//! restart is named.

use super::forwarded::TrustedProxies;
use super::tls::{CertificateError, ListenerTls, Renewal};
use super::{StartError, mail};
use crate::api::PublicUrl;
use crate::config::{self, Config, Loaded, SETTINGS, Sources};
use crate::logging::LogFilter;
use crate::mail::MailSettings;
use crate::metrics::{Metrics, MetricsAccess};
use aldaba_engine::{AlertSettings, Engine, MailOptions};
use parking_lot::RwLock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a running server can change. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LiveSettings {
    pub(super) engine: Engine,
    pub(super) address: SocketAddr,
    pub(super) tls: Option<ListenerTls>,
    pub(super) proxies: TrustedProxies,
    pub(super) public_url: PublicUrl,
    pub(super) metrics: Arc<Metrics>,
    /// At `metrics_listen`.
    pub(super) metrics_access: Arc<RwLock<MetricsAccess>>,
    pub(super) shutdown: Arc<RwLock<Duration>>,
}

/// Reads the settings again from where they came from.
#[derive(Debug)]
pub(crate) struct Reloader {
    pub(crate) live: LiveSettings,
    pub(crate) log: LogFilter,
    pub(crate) sources: Sources,
    /// What the server runs with.
    pub(crate) running: Loaded,
}

/// What became of each changed setting.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reloaded {
    pub(crate) applied: Vec<String>,
    /// The files of the certificate hold another one.
    pub(crate) has_new_certificate: bool,
    /// With the reason, where it is not plain.
    pub(crate) need_restart: Vec<(String, &'static str)>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Mail(#[from] StartError),
}

const TLS_ON_OR_OFF: &str = "TLS is turned on and off at the start";
const MAIL_ON_OR_OFF: &str = "mails are turned on and off at the start";

impl Reloader {
    /// Applies what has changed. After an error everything is as it was.
    pub(crate) fn reload(&mut self) -> Result<Reloaded, ReloadError> {
        let Loaded { config: new, given, warnings, .. } = config::load(&self.sources)?;
        let merged = self.merged(&new);
        // What can fail comes first.
        let mail = self.mail_options(&merged)?;
        let renewal = self.renew_certificate(&merged)?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let changed: Vec<String> =
            self.running.given.changed(&given).into_iter().map(str::to_owned).collect();
        let has_new_certificate = matches!(renewal, Renewal::Renewed { .. });
        let mut reloaded = Reloaded { has_new_certificate, ..Reloaded::default() };
        for key in changed {
            match self.obstacle(&key, &new) {
                None => {
                    self.running.given.take(&key, &given);
                    reloaded.applied.push(key);
                }
                Some(why) => reloaded.need_restart.push((key, why)),
            }
        }
        self.note_endpoint_rule(&merged, &mut reloaded);
        self.apply(&merged, mail);
        renewal.log();
        self.running.config = merged;
        Ok(reloaded)
    }

    /// The configuration of the server after the reload: what cannot be changed is as it was.
    fn merged(&self, new: &Config) -> Config {
        let was = &self.running.config;
        let mut merged = was.clone();
        if was.tls().is_some() && new.tls().is_some() {
            merged.tls_certificate.clone_from(&new.tls_certificate);
            merged.tls_key.clone_from(&new.tls_key);
        }
        if was.mail.server.is_some() && new.mail.server.is_some() {
            merged.mail = MailSettings { delay: was.mail.delay, ..new.mail.clone() };
        }
        merged.trusted_proxies.clone_from(&new.trusted_proxies);
        merged.proxy_headers = new.proxy_headers;
        merged.public_url.clone_from(&new.public_url);
        merged.metrics_token.clone_from(&new.metrics_token);
        merged.log.clone_from(&new.log);
        merged.shutdown = new.shutdown;
        let disk = was.store.low_space_bytes;
        merged.engine.alert_rules =
            Arc::new(config::AlertRules::clone(&new.engine.alert_rules).with_low_space(disk));
        merged.engine.alert_interval = new.engine.alert_interval;
        merged
    }

    /// Why a changed setting is not applied. `None`: it is.
    fn obstacle(&self, key: &str, new: &Config) -> Option<&'static str> {
        let was = &self.running.config;
        match key {
            "tls_certificate" | "tls_key" if was.tls().is_none() || new.tls().is_none() => {
                Some(TLS_ON_OR_OFF)
            }
            "smtp_url" | "mail_from" | "operator_email" | "mail_language"
                if was.mail.server.is_none() || new.mail.server.is_none() =>
            {
                Some(MAIL_ON_OR_OFF)
            }
            _ if SETTINGS.iter().any(|setting| setting.key == key && setting.reloaded) => None,
            _ => Some("it is read at the start only"),
        }
    }

    fn mail_options(&self, merged: &Config) -> Result<Option<MailOptions>, StartError> {
        let was = &self.running.config;
        let is_same = merged.mail == was.mail && merged.public_url == was.public_url;
        if is_same { Ok(None) } else { mail::options(merged, self.live.address) }
    }

    /// Also takes other files under the same names.
    fn renew_certificate(&self, merged: &Config) -> Result<Renewal, CertificateError> {
        let (Some(tls), Some(files)) = (&self.live.tls, merged.tls()) else { return Ok(Renewal::Unchanged) };
        match tls.renew(&files, self.live.engine.clock().wall()) {
            Renewal::Refused(error) => Err(error),
            renewal => Ok(renewal),
        }
    }

    /// The store judges the rule about single endpoints, and has it from the start.
    fn note_endpoint_rule(&self, merged: &Config, reloaded: &mut Reloaded) {
        if merged.engine.alert_rules.endpoint_failures() != self.running.config.store.endpoint_failures {
            let why = "its rule `endpoint-failing` is read at the start only; the others are applied";
            reloaded.need_restart.push(("alert_rules".into(), why));
        }
    }

    fn apply(&self, config: &Config, mail: Option<MailOptions>) {
        let live = &self.live;
        self.log.set(&config.log);
        live.proxies.set(config.trusted_proxies.clone(), config.proxy_headers);
        live.public_url.set(config.public_url.clone());
        live.metrics.set_access(MetricsAccess::of(config, Some(live.address.ip())));
        *live.metrics_access.write() = MetricsAccess::of_own_listener(config);
        *live.shutdown.write() = config.shutdown;
        let (rules, interval) = (config.engine.alert_rules.clone(), config.engine.alert_interval);
        live.engine.set_alert_settings(&AlertSettings { rules, interval });
        if let Some(mail) = mail {
            live.engine.set_mail_options(mail);
        }
    }
}

impl Reloaded {
    /// A line for each changed setting. Returns all of it as one.
    pub(crate) fn log(&self) -> String {
        for setting in &self.applied {
            tracing::info!(setting, "another value was applied");
        }
        for (setting, why) in &self.need_restart {
            tracing::warn!(setting, why, "another value needs a restart of the server");
        }
        let named = |what: &str, names: Vec<&str>| match names.is_empty() {
            true => None,
            false => Some(format!("{what}: {}", names.join(", "))),
        };
        let applied = named("applied", self.applied.iter().map(String::as_str).collect());
        let restart = named("need a restart", self.need_restart.iter().map(|(name, _)| &**name).collect());
        let certificate = self.has_new_certificate.then(|| "the TLS certificate was replaced".to_owned());
        let said: Vec<_> = applied.into_iter().chain(certificate).chain(restart).collect();
        if said.is_empty() { "no setting has changed".into() } else { said.join("; ") }
    }
}
