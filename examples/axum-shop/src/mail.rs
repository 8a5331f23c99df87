//! Mails to customers. They go out after the commit: one that fails changes nothing, and one that a crash swallows does not come
//! back. What must not get lost is written into the transaction, as a row that a worker sends off.

use lettre::message::Mailbox;
use lettre::transport::smtp::Error as SmtpError;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::error::Error;
use std::time::Duration;

/// How long a mail server may be silent.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct Mails {
    /// None: no mails are sent.
    server: Option<AsyncSmtpTransport<Tokio1Executor>>,
    from: Mailbox,
}

impl Mails {
    /// Through a server such as `smtp://localhost:1025` or `smtps://user:password@mail.example.com`.
    pub(crate) fn new(url: Option<String>) -> Result<Self, Box<dyn Error>> {
        let connect = |url: String| -> Result<_, SmtpError> {
            let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(&url)?;
            Ok(server.timeout(Some(WAIT_TIMEOUT)).build())
        };
        let from = std::env::var("MAIL_FROM").unwrap_or("shop@example.com".into());
        Ok(Self { server: url.map(connect).transpose()?, from: from.parse()? })
    }

    pub(crate) async fn confirm(
        &self,
        email: &str,
        order: &str,
        cents: i64,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(server) = &self.server else { return Ok(()) };
        let amount = cents as f64 / 100.0;
        let mail = Message::builder()
            .from(self.from.clone())
            // One address, or an error.
            .to(email.parse()?)
            .subject(format!("Your order {order}"))
            .body(format!("Thank you. We have received your payment of {amount:.2}.\n"))?;
        server.send(mail).await?;
        Ok(())
    }
}
