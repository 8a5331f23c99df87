//! Links in mails: sealed, so that the reader of a mail may do what its link is for, and nothing else.

use crate::{Entropy, Vault};
use aldaba_delivery::{AppId, EndpointId, Language, Timestamp};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a link to confirm an address may be used.
const CONFIRM_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Bytes of a token.
const MAX_TOKEN_BYTES: usize = 2_048;

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MailLinkKind {
    #[serde(rename = "u")]
    Unsubscribe,
    #[serde(rename = "c")]
    Confirm,
}

/// A link in a mail to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailLink {
    pub kind: MailLinkKind,
    pub app: AppId,
    /// `None`: about the whole application.
    pub endpoint: Option<EndpointId>,
    pub address: String,
    pub issued_at: Timestamp,
    pub language: Language,
}

/// Why a link cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailLinkError {
    #[error("the link is incomplete, or was not made by this server")]
    Unknown,
    #[error("the link has expired")]
    Expired,
}

#[derive(Serialize, Deserialize)]
struct PlainLink {
    k: MailLinkKind,
    a: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    m: String,
    t: i64,
    #[serde(default)]
    l: String,
}

impl MailLink {
    /// The token of a link.
    pub(super) fn sealed(&self, vault: &Vault, entropy: &dyn Entropy) -> String {
        let plain = PlainLink {
            k: self.kind,
            a: self.app.to_string(),
            e: self.endpoint.map(|endpoint| endpoint.to_string()),
            m: self.address.clone(),
            t: self.issued_at.millis(),
            l: self.language.code().into(),
        };
        let plain = serde_json::to_vec(&plain).expect("strings serialise");
        BASE64_URL_SAFE_NO_PAD.encode(vault.seal_link(&plain, entropy))
    }

    pub(crate) fn open(vault: &Vault, token: &str, now: Timestamp) -> Result<Self, MailLinkError> {
        let opened = || -> Option<Self> {
            let sealed = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
            let plain: PlainLink = serde_json::from_slice(&vault.open_link(&sealed).ok()?).ok()?;
            let endpoint = plain.e.map(|endpoint| endpoint.parse()).transpose().ok()?;
            Some(Self {
                kind: plain.k,
                app: plain.a.parse().ok()?,
                endpoint,
                address: plain.m,
                issued_at: Timestamp::from_millis(plain.t),
                language: Language::of_code(&plain.l).unwrap_or_default(),
            })
        };
        let link = Some(token).filter(|token| token.len() <= MAX_TOKEN_BYTES).and_then(|_| opened());
        match link {
            None => Err(MailLinkError::Unknown),
            Some(link) if link.kind == MailLinkKind::Confirm && now > link.issued_at + CONFIRM_TIME => {
                Err(MailLinkError::Expired)
            }
            Some(link) => Ok(link),
        }
    }

    /// The key among those who want no mails.
    pub(crate) fn subject(&self) -> [u8; 20] {
        self.endpoint.map_or(*self.app.as_bytes(), |endpoint| *endpoint.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    #[test]
    fn a_link_is_for_its_purpose_and_address_and_opens_with_its_key_only() {
        let (vault, entropy) = (Vault::new([7; 32]), SystemEntropy::new());
        let at = Timestamp::from_millis(1_000_000_000_000);
        let link = MailLink {
            kind: MailLinkKind::Confirm,
            app: AppId::from_bytes([1; 20]),
            endpoint: Some(EndpointId::from_bytes([2; 20])),
            address: "people@example.com".into(),
            issued_at: at,
            language: Language::Spanish,
        };
        let token = link.sealed(&vault, &entropy);
        assert_eq!(MailLink::open(&vault, &token, at), Ok(link.clone()));
        let late = at + CONFIRM_TIME + Duration::from_millis(1);
        assert_eq!(MailLink::open(&vault, &token, late), Err(MailLinkError::Expired));
        let lasting = MailLink { kind: MailLinkKind::Unsubscribe, ..link };
        assert_eq!(MailLink::open(&vault, &lasting.sealed(&vault, &entropy), late), Ok(lasting));
        let mut changed = token.clone();
        changed.replace_range(50..51, if &token[50..51] == "A" { "B" } else { "A" });
        for bad in [&changed[..], "", "AAAA", &token[1..], &"A".repeat(5000)] {
            assert_eq!(MailLink::open(&vault, bad, at), Err(MailLinkError::Unknown));
        }
        assert!(MailLink::open(&Vault::new([8; 32]), &token, at).is_err());
    }
}
