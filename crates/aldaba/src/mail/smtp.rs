//! The conversation with a mail server, over one connection that is used again.

use super::message::{ascii_domain, message};
use super::plain_stream::PlainStream;
use super::smtp_url::{SmtpEncryption, SmtpUrl, StartTls};
use crate::server::StartError;
use aldaba_engine::{MailFailure, MailTransport, OutgoingMail, SendingMail};
use lettre::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Ehlo, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use std::fmt;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// For the TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the answer of a connection that is to be used for another mail.
const RESET_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a mail server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmtpTimeouts {
    /// For the greeting, encryption and authentication, and for the answer to the sender.
    pub hello: Duration,
    /// For the answers to the recipient and to the announcement of the mail.
    pub recipient: Duration,
    /// For the mail itself. A client that gives up early sends it twice, so this is long.
    pub end: Duration,
}

impl Default for SmtpTimeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { hello: seconds(30), recipient: seconds(60), end: seconds(5 * 60) }
    }
}

/// Passes mails to one server.
pub struct SmtpTransport {
    server: SmtpUrl,
    from: Mailbox,
    tls: TlsParameters,
    hello: ClientId,
    timeouts: SmtpTimeouts,
    connection: Mutex<Option<SmtpConnection>>,
}

struct SmtpConnection {
    smtp: AsyncSmtpConnection,
    /// The server takes several commands at once.
    pipelines: bool,
}

impl SmtpTransport {
    /// `issuers`: certificates that are trusted besides the public ones, as PEM.
    pub fn new(
        server: SmtpUrl,
        from: Mailbox,
        issuers: &[u8],
        timeouts: SmtpTimeouts,
    ) -> Result<Self, StartError> {
        let failed = |error: Error| StartError::Mail(described(&error));
        let mut tls = TlsParameters::builder(server.host.clone());
        if !issuers.is_empty() {
            tls = tls.add_root_certificate(Certificate::from_pem(issuers).map_err(failed)?);
        }
        let tls = tls.build_rustls().map_err(failed)?;
        let hello = ClientId::Domain(ascii_domain(from.email.domain()));
        Ok(Self { server, from, tls, hello, timeouts, connection: Mutex::default() })
    }

    /// Connects, encrypts and authenticates.
    async fn connect(&self) -> Result<SmtpConnection, MailFailure> {
        let mut smtp = match self.server.encryption {
            SmtpEncryption::Tls => self.connect_encrypted().await?,
            SmtpEncryption::StartTls(rule) => self.connect_plain(rule).await?,
        };
        let hello = smtp.command(Ehlo::new(self.hello.clone())).await;
        let hello = hello.map_err(|error| self.unusable("EHLO", &error))?;
        let pipelines = hello.message().any(|line| line.trim().eq_ignore_ascii_case("PIPELINING"));
        if let Some((user, password)) = &self.server.credentials {
            let credentials = Credentials::new(user.clone(), password.clone());
            let authenticated = smtp.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await;
            authenticated.map_err(|error| self.unusable("AUTH", &error))?;
        }
        Ok(SmtpConnection { smtp, pipelines })
    }

    async fn connect_encrypted(&self) -> Result<AsyncSmtpConnection, MailFailure> {
        let server = (self.server.host.as_str(), self.server.port);
        let connecting = AsyncSmtpConnection::connect_tokio1(
            server,
            Some(CONNECT_TIMEOUT),
            &self.hello,
            Some(self.tls.clone()),
            None,
        );
        connecting.await.map_err(|error| self.unusable("cannot connect", &error))
    }

    /// Without encryption, which follows where the rule asks for it.
    async fn connect_plain(&self, rule: StartTls) -> Result<AsyncSmtpConnection, MailFailure> {
        let server = (self.server.host.as_str(), self.server.port);
        let tcp = match timeout(CONNECT_TIMEOUT, TcpStream::connect(server)).await {
            Ok(tcp) => tcp.map_err(|error| self.failure(&format!("cannot connect: {error}")))?,
            Err(_) => return Err(self.failure("cannot connect: no answer in time")),
        };
        let stream = Box::new(PlainStream::new(tcp));
        let connecting = AsyncSmtpConnection::connect_with_transport(stream, &self.hello);
        let mut smtp = connecting.await.map_err(|error| self.unusable("cannot connect", &error))?;
        match (rule, smtp.can_starttls()) {
            (StartTls::Required, false) => {
                return Err(self.failure(
                    "does not offer STARTTLS, which is required; use smtps:// or another port in smtp_url",
                ));
            }
            (StartTls::Required | StartTls::Opportunistic, true) => {
                let upgraded = smtp.starttls(self.tls.clone(), &self.hello).await;
                upgraded.map_err(|error| self.unusable("STARTTLS", &error))?;
            }
            (StartTls::Opportunistic, false) | (StartTls::Never, _) => {}
        }
        Ok(smtp)
    }

    async fn hand_over(&self, mail: &OutgoingMail) -> Result<(), MailFailure> {
        let (to, bytes) = message(mail, &self.from)?;
        let mut slot = self.connection.lock().await;
        let mut connection = self.begin(slot.take(), &to).await?;
        let result = match timeout(self.timeouts.recipient, self.recipient(&mut connection, to)).await {
            Ok(Ok(())) => match timeout(self.timeouts.end, connection.smtp.message(&bytes)).await {
                Ok(taken) => taken.map(drop).map_err(|error| self.refused("the end of the mail", &error)),
                Err(_) => Err(self.silent("the end of the mail")),
            },
            Ok(refused) => refused,
            Err(_) => Err(self.silent("RCPT TO")),
        };
        match &result {
            Ok(()) => *slot = Some(connection),
            // It may go on with another mail.
            Err(MailFailure::Temporary(_) | MailFailure::Permanent(_)) => {
                if matches!(timeout(RESET_TIMEOUT, connection.smtp.command(Rset)).await, Ok(Ok(_))) {
                    *slot = Some(connection);
                }
            }
            Err(MailFailure::Server(_) | MailFailure::Broken(_)) => {}
        }
        result
    }

    /// Names the sender, over the connection that is there or another one: a server may have closed it meanwhile, or takes
    /// only so many mails over one. A failure concerns the server or the sender, not the mail.
    async fn begin(&self, kept: Option<SmtpConnection>, to: &Address) -> Result<SmtpConnection, MailFailure> {
        if let Some(mut kept) = kept
            && !kept.smtp.has_broken()
            && self.sender(&mut kept, to).await.is_ok()
        {
            return Ok(kept);
        }
        let mut connection = match timeout(self.timeouts.hello, self.connect()).await {
            Ok(connected) => connected?,
            Err(_) => return Err(self.failure("does not answer in time")),
        };
        self.sender(&mut connection, to).await?;
        Ok(connection)
    }

    /// With the recipient and the announcement of the mail, where the server takes them at once.
    async fn sender(&self, connection: &mut SmtpConnection, to: &Address) -> Result<(), MailFailure> {
        let mut parameters = Vec::new();
        let is_ascii = |address: &Address| address.user().is_ascii() && address.domain().is_ascii();
        if !is_ascii(to) || !is_ascii(&self.from.email) {
            if !connection.smtp.server_info().supports_feature(Extension::SmtpUtfEight) {
                return Err(MailFailure::Permanent("the mail server takes no addresses beyond ASCII".into()));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let from = Mail::new(Some(self.from.email.clone()), parameters);
        let commands = match connection.pipelines {
            true => format!("{from}{}{Data}", Rcpt::new(to.clone(), Vec::new())),
            false => from.to_string(),
        };
        match timeout(self.timeouts.hello, connection.smtp.command(commands)).await {
            Ok(answer) => answer.map(drop).map_err(|error| self.unusable("MAIL FROM", &error)),
            Err(_) => Err(self.failure("MAIL FROM: it does not answer in time")),
        }
    }

    /// Names the recipient and announces the mail. Whatever fails from here on may be caused by this mail or its recipient:
    /// others are tried meanwhile.
    async fn recipient(&self, connection: &mut SmtpConnection, to: Address) -> Result<(), MailFailure> {
        let SmtpConnection { smtp, pipelines } = connection;
        if !*pipelines {
            let taken = smtp.command(Rcpt::new(to, Vec::new())).await;
            taken.map_err(|error| self.refused("RCPT TO", &error))?;
            let announced = smtp.command(Data).await;
            return announced.map(drop).map_err(|error| self.refused("DATA", &error));
        }
        let taken = smtp.read_response().await.map_err(|error| self.refused("RCPT TO", &error));
        let announced = match &taken {
            Err(MailFailure::Broken(_)) => return taken.map(drop),
            _ => smtp.read_response().await.map_err(|error| self.refused("DATA", &error)),
        };
        match (taken, announced) {
            // The server waits for a mail without a recipient.
            (Err(refused), Ok(_)) => {
                let _ = smtp.message(b"").await;
                Err(refused)
            }
            (Err(refused), Err(_)) => Err(refused),
            (Ok(_), announced) => announced.map(drop),
        }
    }

    fn silent(&self, step: &str) -> MailFailure {
        MailFailure::Broken(format!("{} {step}: it does not answer in time", self.server))
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
