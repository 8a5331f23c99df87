//! Wire profiles: which headers carry id, time and signature.

use aldaba_delivery::{MessageId, Timestamp};
use aldaba_signature::{SigningKey, signature_header};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::str::FromStr;

const AGENT: &str = concat!("Aldaba/", env!("CARGO_PKG_VERSION"));

/// The headers that a delivery goes out with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    #[default]
    Standard,
    /// The same under the names that receivers of Svix read: `svix-id` and so on.
    Svix,
}

impl Profile {
    pub const NAMES: [&str; 2] = ["standard", "svix"];

    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Svix => "svix",
        }
    }

    /// The headers of one attempt. The id is the message's, on every retry and replay.
    pub(crate) fn headers(
        self,
        message: MessageId,
        now: Timestamp,
        keys: &[SigningKey],
        body: &[u8],
    ) -> HeaderMap {
        let [id_name, time_name, signature_name] = self.header_names();
        let id = message.to_string();
        let seconds = now.millis().div_euclid(1000);
        let signature = signature_header(keys, &id, seconds, body);
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(id_name, ascii(&id));
        headers.insert(time_name, HeaderValue::from(seconds));
        headers.insert(signature_name, ascii(&signature));
        headers
    }

    fn header_names(self) -> [HeaderName; 3] {
        let names = match self {
            Self::Standard => ["webhook-id", "webhook-timestamp", "webhook-signature"],
            Self::Svix => ["svix-id", "svix-timestamp", "svix-signature"],
        };
        names.map(HeaderName::from_static)
    }
}

/// Ids and signatures are base62 and base64: always valid header values.
fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("letters, digits and a few signs")
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "standard" => Ok(Self::Standard),
            "svix" => Ok(Self::Svix),
            _ => Err(UnknownProfile(name.to_owned())),
        }
    }
}

#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no wire profile; there are: standard, svix")]
pub struct UnknownProfile(String);

impl fmt::Debug for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
