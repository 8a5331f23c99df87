//! `aldaba mail test`: sends a mail with the server's settings, and says what the mail server has answered.

use super::DataOptions;
use crate::config::Config;
use crate::mail::{MailSettings, SmtpTransport};
use crate::server::{StartError, ca_pem};
use aldaba_api::names;
use aldaba_engine::{Clock, Entropy, MailFailure, MailTransport, SystemClock, SystemEntropy, test_mail};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum MailCommand {
    /// Send a test mail with the server's settings, and show what the mail server answers
    Test(TestOptions),
}

#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Who gets it [default: operator_email]
    #[arg(value_name = "ADDRESS")]
    address: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "no mail server is configured: set ALDABA_SMTP_URL and ALDABA_MAIL_FROM as for the server, or name its file with \
         --config"
    )]
    NoServer,
    #[error(
        "who is to get the mail? Name an address (`aldaba mail test people@example.com`), or set ALDABA_OPERATOR_EMAIL"
    )]
    NoAddress,
    #[error("ADDRESS: {0}")]
    Address(String),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the mail was not sent: {0}")]
    Failure(#[from] MailFailure),
}

impl MailCommand {
    pub(super) fn data_options(&self) -> DataOptions {
        let Self::Test(options) = self;
        DataOptions { data: None, config: options.config.clone() }
    }
}

pub(crate) async fn run(command: MailCommand, config: &Config) -> Result<(), Error> {
    let MailCommand::Test(TestOptions { address, .. }) = command;
    let MailSettings { server: Some(server), from: Some(from), operator, language, timeouts, .. } =
        &config.mail
    else {
        return Err(Error::NoServer);
    };
    let to = address.or_else(|| operator.clone()).ok_or(Error::NoAddress)?;
    names::email(&to).map_err(|why| Error::Address(format!("{to:?} {why}")))?;
    let entropy: &dyn Entropy = &SystemEntropy::new();
    let random: [u8; 12] = entropy.bytes();
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let message_id = format!("<{}.{random}@{}>", SystemClock::new().now().millis(), from.email.domain());
    let transport = SmtpTransport::new(server.clone(), from.clone(), &ca_pem(config)?, *timeouts)?;
    transport.send(&test_mail(&to, message_id.clone(), *language)).await?;
    println!("{server} has taken a test mail from {from} to {to}, with the Message-ID {message_id}");
    Ok(())
}
