//! The conversation with a mail server, over one connection that is used again.

use super::message::message;
use super::smtp_url::{SmtpEncryption, SmtpUrl, StartTls};
use crate::server::StartError;
use aldaba_engine::{MailFailure, MailTransport, OutgoingMail, SendingMail};
use lettre::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Noop, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// For the TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the greeting, encryption and authentication.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// For the answer to the sender.
const SENDER_TIMEOUT: Duration = Duration::from_secs(30);
/// For one mail, once its sender is accepted.
const MAIL_TIMEOUT: Duration = Duration::from_secs(60);
/// For the answer of a connection that is to be used again.
const REUSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Passes mails to one server.
pub struct SmtpTransport {
    server: SmtpUrl,
    from: Mailbox,
    tls: TlsParameters,
    hello: ClientId,
    connection: Mutex<Option<AsyncSmtpConnection>>,
}

impl SmtpTransport {
    /// `issuers`: certificates that are trusted besides the public ones, as PEM.
    pub fn new(server: SmtpUrl, from: Mailbox, issuers: &[u8]) -> Result<Self, StartError> {
        let failed = |error: Error| StartError::Mail(described(&error));
        let mut tls = TlsParameters::builder(server.host.clone());
        if !issuers.is_empty() {
            tls = tls.add_root_certificate(Certificate::from_pem(issuers).map_err(failed)?);
        }
        let tls = tls.build_rustls().map_err(failed)?;
        let hello = ClientId::Domain(from.email.domain().to_owned());
        Ok(Self { server, from, tls, hello, connection: Mutex::default() })
    }

    /// Connects, encrypts and authenticates.
    async fn connect(&self) -> Result<AsyncSmtpConnection, MailFailure> {
        let SmtpUrl { host, port, encryption, credentials } = &self.server;
        let tls = (*encryption == SmtpEncryption::Tls).then(|| self.tls.clone());
        let connecting = AsyncSmtpConnection::connect_tokio1(
            (host.as_str(), *port),
            Some(CONNECT_TIMEOUT),
            &self.hello,
            tls,
            None,
        );
        let mut connection = connecting.await.map_err(|error| self.unusable("cannot connect", &error))?;
        if let SmtpEncryption::StartTls(rule) = encryption {
            let offers = connection.can_starttls();
            match rule {
                StartTls::Required if !offers => {
                    return Err(self.failure(
                        "does not offer STARTTLS, which is required; smtps://, or ?starttls=opportunistic in smtp_url",
                    ));
                }
                StartTls::Required | StartTls::Opportunistic if offers => {
                    let upgraded = connection.starttls(self.tls.clone(), &self.hello).await;
                    upgraded.map_err(|error| self.unusable("STARTTLS", &error))?;
                }
                _ => {}
            }
        }
        if let Some((user, password)) = credentials {
            let credentials = Credentials::new(user.clone(), password.clone());
            let authenticated = connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await;
            authenticated.map_err(|error| self.unusable("AUTH", &error))?;
        }
        Ok(connection)
    }

    /// The connection that is there, if it still works, or another one.
    async fn connection(
        &self,
        kept: Option<AsyncSmtpConnection>,
    ) -> Result<AsyncSmtpConnection, MailFailure> {
        if let Some(mut kept) = kept
            && !kept.has_broken()
            && matches!(timeout(REUSE_TIMEOUT, kept.command(Noop)).await, Ok(Ok(_)))
        {
            return Ok(kept);
        }
        match timeout(HELLO_TIMEOUT, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(self.failure("does not answer in time")),
        }
    }

    async fn hand_over(&self, mail: &OutgoingMail) -> Result<(), MailFailure> {
        let (to, bytes) = message(mail, &self.from)?;
        let mut slot = self.connection.lock().await;
        let mut connection = self.connection(slot.take()).await?;
        self.begin(&mut connection, &to).await?;
        let result = match timeout(MAIL_TIMEOUT, self.converse(&mut connection, to, &bytes)).await {
            Ok(result) => result,
            Err(_) => {
                let why = format!("{} does not answer in time while it takes a mail", self.server);
                Err(MailFailure::Broken(why))
            }
        };
        match &result {
            Ok(()) => *slot = Some(connection),
            // It may go on with another mail.
            Err(MailFailure::Temporary(_) | MailFailure::Permanent(_)) => {
                if matches!(timeout(REUSE_TIMEOUT, connection.command(Rset)).await, Ok(Ok(_))) {
                    *slot = Some(connection);
                }
            }
            Err(MailFailure::Server(_) | MailFailure::Broken(_)) => {}
        }
        result
    }

    /// Names the sender. A failure concerns the server or the sender, not the mail.
    async fn begin(&self, connection: &mut AsyncSmtpConnection, to: &Address) -> Result<(), MailFailure> {
        let mut parameters = Vec::new();
        let is_ascii = |address: &Address| address.user().is_ascii() && address.domain().is_ascii();
        if !is_ascii(to) || !is_ascii(&self.from.email) {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                return Err(MailFailure::Permanent("the mail server takes no addresses beyond ASCII".into()));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let from = Mail::new(Some(self.from.email.clone()), parameters);
        match timeout(SENDER_TIMEOUT, connection.command(from)).await {
            Ok(answer) => answer.map(drop).map_err(|error| self.unusable("MAIL FROM", &error)),
            Err(_) => Err(self.failure("MAIL FROM: it does not answer in time")),
        }
    }

    /// The rest. Whatever fails here may be caused by this mail or its recipient: others are tried meanwhile.
    async fn converse(
        &self,
        connection: &mut AsyncSmtpConnection,
        to: Address,
        bytes: &[u8],
    ) -> Result<(), MailFailure> {
        let refused = |step: &str, error: &Error| self.refused(step, error);
        connection.command(Rcpt::new(to, Vec::new())).await.map_err(|error| refused("RCPT TO", &error))?;
        connection.command(Data).await.map_err(|error| refused("DATA", &error))?;
        connection.message(bytes).await.map_err(|error| refused("the end of the mail", &error))?;
        Ok(())
    }

    fn failure(&self, what: &str) -> MailFailure {
        MailFailure::Server(format!("{} {what}", self.server))
    }

    fn unusable(&self, step: &str, error: &Error) -> MailFailure {
        self.failure(&format!("{step}: {}", described(error)))
    }

    fn refused(&self, step: &str, error: &Error) -> MailFailure {
        let why = format!("{} {step}: {}", self.server, described(error));
        match () {
            () if error.is_permanent() => MailFailure::Permanent(why),
            () if error.is_transient() => MailFailure::Temporary(why),
            () => MailFailure::Broken(why),
        }
    }
}

impl MailTransport for SmtpTransport {
    fn send<'a>(&'a self, mail: &'a OutgoingMail) -> SendingMail<'a> {
        Box::pin(self.hand_over(mail))
    }
}

impl fmt::Debug for SmtpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpTransport({})", self.server)
    }
}

/// An error with all its causes.
fn described(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}
