//! Mails leave by SMTP: the settings, the URL of the server, and the conversation with it.

mod message;
mod plain_stream;
mod smtp;
mod smtp_url;

pub use smtp::{SmtpTimeouts, SmtpTransport};
pub use smtp_url::{SmtpUrl, StartTls};

use crate::cli::reachable;
use crate::config::Config;
use crate::server::StartError;
use aldaba_delivery::Language;
use aldaba_engine::MailOptions;
use lettre::message::Mailbox;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The settings of mails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailSettings {
    /// `None`: no mail is sent.
    pub server: Option<SmtpUrl>,
    pub from: Option<Mailbox>,
    /// Who gets what concerns the whole server.
    pub operator: Option<String>,
    pub language: Language,
    /// How long a mail about an endpoint waits for others to the same address.
    pub delay: Duration,
    pub timeouts: SmtpTimeouts,
}

impl Default for MailSettings {
    fn default() -> Self {
        Self {
            server: None,
            from: None,
            operator: None,
            language: Language::English,
            delay: Duration::from_secs(30),
            timeouts: SmtpTimeouts::default(),
        }
    }
}

/// How a server sends mails. `address`: where it listens, for links. `None`: it sends none.
pub(crate) fn options(config: &Config, address: SocketAddr) -> Result<Option<MailOptions>, StartError> {
    let MailSettings { server: Some(server), from: Some(from), operator, language, delay, timeouts } =
        &config.mail
    else {
        return Ok(None);
    };
    let issuers = crate::server::ca_pem(config)?;
    let transport = SmtpTransport::new(server.clone(), from.clone(), &issuers, *timeouts)?;
    let scheme = if config.tls().is_some() { "https" } else { "http" };
    let local = || format!("{scheme}://{}", reachable(address));
    let public_url = config.public_url.clone().unwrap_or_else(local).trim_end_matches('/').to_owned();
    if config.public_url.is_none() {
        tracing::warn!(%public_url, "public_url is not set: links in mails lead to the address that this server listens on");
    }
    Ok(Some(MailOptions {
        transport: Arc::new(transport),
        operator: operator.clone(),
        language: *language,
        public_url,
        domain: message::ascii_domain(from.email.domain()),
        delay: *delay,
    }))
}
