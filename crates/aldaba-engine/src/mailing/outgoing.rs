//! A mail as it leaves, and what takes it.

use super::texts;
use aldaba_delivery::Language;
use std::fmt;
use std::pin::Pin;

/// A mail to one address. Its texts are inert: none has a line end in a header or markup of others in the HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingMail {
    /// Of the header, in angle brackets: a repeat carries the same one.
    pub message_id: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// A URL for `List-Unsubscribe`, which a POST with the body `List-Unsubscribe=One-Click` is for.
    pub unsubscribe: Option<String>,
    pub language: Language,
}

/// Why a mail server has not taken a mail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailFailure {
    /// The server cannot be reached, or does not accept this sender: another mail would not fare better.
    #[error("{0}")]
    Server(String),
    /// The conversation broke off after the sender was accepted. Another mail may fare better.
    #[error("{0}")]
    Broken(String),
    /// It refuses this mail for the time being.
    #[error("{0}")]
    Temporary(String),
    /// It refuses this mail for good.
    #[error("{0}")]
    Permanent(String),
}

/// Passes mails to a mail server.
pub trait MailTransport: fmt::Debug + Send + Sync {
    /// Returns when the server has taken the mail, or has not.
    fn send<'a>(&'a self, mail: &'a OutgoingMail) -> SendingMail<'a>;
}

pub type SendingMail<'a> = Pin<Box<dyn Future<Output = Result<(), MailFailure>> + Send + 'a>>;

/// A mail that shows that mails arrive.
pub fn test_mail(to: &str, message_id: String, language: Language) -> OutgoingMail {
    let texts = texts(language);
    super::render::outgoing(
        super::content::MailContent::of_text(texts.test_subject(), texts.test_text()),
        (to.to_owned(), message_id, None),
        language,
    )
}
