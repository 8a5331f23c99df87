//! Mails: what owners of endpoints and the operator are told, composed and handed to a mail server.
//!
//! What is to be told is decided with an attempt (`recording/mails.rs`) and stored in its commit. [`MailSender`] takes it from
//! the queue: [`sorting`] decides what becomes of each mail, [`compose`] writes one message, and a [`MailTransport`] passes it
//! on. Nothing of it runs in the way of a delivery.

mod compose;
mod content;
mod inert;
mod links;
mod outgoing;
mod queue;
mod render;
mod sender;
mod sorting;
mod texts;

pub(crate) use compose::{FAILED, GIVEN_UP, RECOVERED, WARNING};
pub use content::{AlertMail, AlertText};
pub(crate) use content::{EndpointTrouble, TroubleCause};
pub use inert::{escaped, one_line};
pub use links::{MailLink, MailLinkError, MailLinkKind, MailScope};
pub use outgoing::{MailFailure, MailTransport, OutgoingMail, SendingMail, test_mail};
pub(crate) use queue::MailQueue;
pub(crate) use sender::{MailSender, ServerState};
pub use texts::{MailTexts, texts};

use aldaba_delivery::Language;
use std::sync::Arc;
use std::time::Duration;

/// Mails of one organization that one address gets on a UTC day. The rest waits for the next day, in one digest.
pub const MAX_MAILS_PER_DAY: u32 = 20;
/// Mails that one address gets of all organizations together on a UTC day.
pub const MAX_MAILS_PER_DAY_OF_ALL: u32 = 100;
/// Mails that one organization causes on a UTC day, to all addresses together.
pub const MAX_MAILS_PER_DAY_OF_ORGANIZATION: u32 = 2_000;
/// Between two mails to the operator. What comes meanwhile is joined.
pub const OPERATOR_INTERVAL: Duration = Duration::from_secs(60);
/// The same once the operator got as many mails as others get on a day. What is critical does not wait for it.
pub(crate) const LATER_OPERATOR_INTERVAL: Duration = Duration::from_secs(3600);
/// Mails for one address that come together and are still sent one by one. More become a digest.
pub const MAX_SINGLE_MAILS: usize = 3;
/// How long a mail is tried.
pub const MAX_MAIL_AGE: Duration = Duration::from_secs(5 * 24 * 3600);

/// How mails are sent.
#[derive(Clone, Debug)]
pub struct MailOptions {
    pub transport: Arc<dyn MailTransport>,
    /// Who gets what concerns the whole server. `None`: nobody.
    pub operator: Option<String>,
    /// Of mails for those who have not chosen one.
    pub language: Language,
    /// The beginning of links, without a slash at the end.
    pub public_url: String,
    /// The host in `Message-ID`.
    pub domain: String,
    /// How long a mail about an endpoint waits for others to the same address.
    pub delay: Duration,
}
