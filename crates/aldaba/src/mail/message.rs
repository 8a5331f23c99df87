//! A mail as bytes: headers, and the same text as plain text and as HTML.

use aldaba_engine::{MailFailure, OutgoingMail};
use lettre::address::AddressError;
use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, Message};
use url::Host;

/// A header that this crate writes itself. Its value is ASCII on one line.
macro_rules! header {
    ($(#[$doc:meta])* $type:ident $name:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        struct $type(String);

        impl Header for $type {
            fn name() -> HeaderName {
                HeaderName::new_from_ascii_str($name)
            }

            fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
                Ok(Self(text.to_owned()))
            }

            fn display(&self) -> HeaderValue {
                let plain: String = self.0.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
                HeaderValue::dangerous_new_pre_encoded(Self::name(), plain.clone(), plain)
            }
        }
    };
}

header! { ListUnsubscribe "List-Unsubscribe" }
header! { ListUnsubscribePost "List-Unsubscribe-Post" }
header! {
    /// Programs do not answer it.
    AutoSubmitted "Auto-Submitted"
}
header! { ContentLanguage "Content-Language" }

/// A domain as every mail server takes it.
pub(super) fn ascii_domain(domain: &str) -> String {
    Host::parse(domain).map_or_else(|_| domain.to_owned(), |host| host.to_string())
}

/// An address with its domain in ASCII: only a name beyond ASCII asks for a server that takes it.
fn recipient(text: &str) -> Result<Address, AddressError> {
    let address: Address = text.parse()?;
    Address::new(address.user(), ascii_domain(address.domain()))
}

/// The recipient and the message.
pub(super) fn message(mail: &OutgoingMail, from: &Mailbox) -> Result<(Address, Vec<u8>), MailFailure> {
    let refused = |why: String| MailFailure::Permanent(format!("the mail cannot be composed: {why}"));
    let to = recipient(&mail.to).map_err(|error| refused(format!("its address: {error}")))?;
    let mut builder = Message::builder()
        .message_id(Some(mail.message_id.clone()))
        .from(from.clone())
        .to(Mailbox::new(None, to.clone()))
        .subject(mail.subject.clone())
        .header(AutoSubmitted("auto-generated".into()))
        .header(ContentLanguage(mail.language.code().into()));
    if let Some(url) = &mail.unsubscribe {
        builder = builder
            .header(ListUnsubscribe(format!("<{url}>")))
            .header(ListUnsubscribePost("List-Unsubscribe=One-Click".into()));
    }
    let body = MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone());
    let message = builder.multipart(body).map_err(|error| refused(error.to_string()))?;
    Ok((to, message.formatted()))
}
