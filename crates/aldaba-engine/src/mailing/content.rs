//! What a mail is about, as it is stored, and what it says, before it is written as text and HTML.

use serde::{Deserialize, Serialize};

/// The trouble of an endpoint, in the body of a stored mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EndpointTrouble {
    /// The last error.
    pub(crate) error: String,
    /// Since when, in milliseconds.
    pub(crate) since: i64,
    /// When the message was accepted whose delivery this is about, in milliseconds.
    pub(crate) accepted_at: i64,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Of the delivery that was given up.
    pub(crate) retries: u32,
    pub(crate) cause: TroubleCause,
    /// The policy probes the endpoint, and ends the outage by itself.
    pub(crate) probes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TroubleCause {
    /// A delivery has used up its retries.
    #[default]
    Exhausted,
    /// It had no success for as long as the policy allows.
    WithoutSuccess,
    /// The receiver has answered 410.
    Gone,
    /// A delivery has ended without success, and none may overtake it.
    Blocked,
}

/// A mail with texts of its own, in every language: those of alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertMail {
    pub en: AlertText,
    pub es: AlertText,
    /// A path on this server, such as `/docs/guides/alerts`.
    #[serde(default)]
    pub path: Option<String>,
}

/// A subject and paragraphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertText {
    pub subject: String,
    pub paragraphs: Vec<String>,
}

impl AlertMail {
    /// What the kinds of such mails begin with.
    pub const KIND_PREFIX: &str = "alert.";

    /// As the body of a mail that is to be queued.
    pub fn body(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What a mail says.
#[derive(Clone, Debug, Default)]
pub(super) struct MailContent {
    pub(super) subject: String,
    pub(super) parts: Vec<MailPart>,
    /// In small print at the end.
    pub(super) footer: Vec<MailPart>,
}

#[derive(Clone, Debug)]
pub(super) enum MailPart {
    Heading(String),
    Paragraph(String),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A label and a URL.
    Link(String, String),
    /// To be copied.
    Command(String),
}

impl MailContent {
    pub(super) fn of_text(subject: String, text: String) -> Self {
        Self { subject, parts: vec![MailPart::Paragraph(text)], footer: Vec::new() }
    }
}
