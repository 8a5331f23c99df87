//! Links in mails: sealed, so that the reader of a mail may do what its link is for, and nothing else.

use crate::{Entropy, Vault};
use aldaba_delivery::{AppId, EndpointId, Language, OrgId, Timestamp};
use aldaba_store::NewMail;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a link to confirm an address may be used.
const CONFIRM_TIME: Duration = NewMail::CONFIRMATION_TIME;
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

/// What the mails are about that a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailScope {
    Endpoint(AppId, EndpointId),
    Application(AppId),
    /// All applications of an organization: a digest is about several endpoints.
    Organization(OrgId),
}

/// A link in a mail to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailLink {
    pub kind: MailLinkKind,
    pub scope: MailScope,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    a: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    o: Option<String>,
    m: String,
    t: i64,
    #[serde(default)]
    l: String,
}

impl MailLink {
    /// The token of a link.
    pub(super) fn sealed(&self, vault: &Vault, entropy: &dyn Entropy) -> String {
        let (a, e, o) = match self.scope {
            MailScope::Endpoint(app, endpoint) => (Some(app.to_string()), Some(endpoint.to_string()), None),
            MailScope::Application(app) => (Some(app.to_string()), None, None),
            MailScope::Organization(org) => (None, None, Some(org.to_string())),
        };
        let plain = PlainLink {
            k: self.kind,
            a,
            e,
            o,
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
            let scope = match (plain.a, plain.e, plain.o) {
                (Some(app), Some(endpoint), None) => {
                    MailScope::Endpoint(app.parse().ok()?, endpoint.parse().ok()?)
                }
                (Some(app), None, None) => MailScope::Application(app.parse().ok()?),
                (None, None, Some(org)) => MailScope::Organization(org.parse().ok()?),
                _ => return None,
            };
            Some(Self {
                kind: plain.k,
                scope,
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
        match self.scope {
            MailScope::Endpoint(_, endpoint) => *endpoint.as_bytes(),
            MailScope::Application(app) => *app.as_bytes(),
            MailScope::Organization(org) => *org.as_bytes(),
        }
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
            scope: MailScope::Endpoint(AppId::from_bytes([1; 20]), EndpointId::from_bytes([2; 20])),
            address: "people@example.com".into(),
            issued_at: at,
            language: Language::Spanish,
        };
        let token = link.sealed(&vault, &entropy);
        assert_eq!(MailLink::open(&vault, &token, at), Ok(link.clone()));
        let late = at + CONFIRM_TIME + Duration::from_millis(1);
        assert_eq!(MailLink::open(&vault, &token, late), Err(MailLinkError::Expired));
        let scope = MailScope::Organization(OrgId::from_bytes([3; 20]));
        let lasting = MailLink { kind: MailLinkKind::Unsubscribe, scope, ..link };
        assert_eq!(MailLink::open(&vault, &lasting.sealed(&vault, &entropy), late), Ok(lasting));
        let mut changed = token.clone();
        changed.replace_range(50..51, if &token[50..51] == "A" { "B" } else { "A" });
        for bad in [&changed[..], "", "AAAA", &token[1..], &"A".repeat(5000)] {
            assert_eq!(MailLink::open(&vault, bad, at), Err(MailLinkError::Unknown));
        }
        assert!(MailLink::open(&Vault::new([8; 32]), &token, at).is_err());
    }
}
