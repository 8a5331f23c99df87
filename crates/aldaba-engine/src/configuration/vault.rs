//! Encrypts secrets at rest with XChaCha20-Poly1305. Each is bound to its tenant and endpoint, so that a
//! sealed secret moved to another row does not open.

use crate::delivering::Target;
use crate::wire::Identity;
use crate::{EndpointHeaders, Entropy, ForwardedHeaders, SourceSecrets};
use aldaba_delivery::{AppId, EndpointId, OrgId, SourceId, Timestamp};
use aldaba_signature::SigningKey;
use aldaba_store::Content;
use bytes::Bytes;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;
const FORMAT: u8 = 1;
/// The first byte of sealed headers that are for all endpoints of an application, not for one address.
const FORWARDED_FORMAT: u8 = 2;
/// The plaintext of the check value.
const CHECK_TEXT: &[u8] = b"aldaba encryption key check";

/// The secrets of an endpoint.
#[derive(Clone)]
pub struct Secrets {
    pub key: SigningKey,
    /// Former keys that still sign, and until when.
    pub old_keys: Vec<(SigningKey, Timestamp)>,
    /// Custom headers, as given.
    pub headers: EndpointHeaders,
    /// User and password from the URL, sent as basic authentication.
    pub credentials: Option<(String, String)>,
    /// The client certificate and its private key.
    pub identity: Option<Arc<Identity>>,
}

#[derive(Serialize, Deserialize)]
struct PlainSecrets {
    key: Zeroizing<String>,
    /// With their end in milliseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    old_keys: Vec<(Zeroizing<String>, i64)>,
    #[serde(default, skip_serializing_if = "EndpointHeaders::is_empty")]
    headers: EndpointHeaders,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<(String, String)>,
    /// In PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Zeroizing<String>>,
}

/// Encrypts and decrypts secrets with one key.
#[derive(Clone)]
pub struct Vault {
    cipher: XChaCha20Poly1305,
    /// The root for derived keys, which are not stored.
    root: Hkdf<Sha256>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret cannot be opened with the configured encryption key")]
pub struct VaultError;

impl Vault {
    pub fn new(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&key.into()), root: Hkdf::new(None, &key) }
    }

    pub fn seal(
        &self,
        app: AppId,
        endpoint: EndpointId,
        secrets: &Secrets,
        entropy: &dyn Entropy,
    ) -> Vec<u8> {
        let plain = PlainSecrets {
            key: secrets.key.secret_text(),
            old_keys: secrets
                .old_keys
                .iter()
                .map(|(key, until)| (key.secret_text(), until.millis()))
                .collect(),
            headers: secrets.headers.clone(),
            credentials: secrets.credentials.clone(),
            identity: secrets.identity.as_ref().map(|identity| identity.pem().to_owned().into()),
        };
        let plain = Zeroizing::new(serde_json::to_vec(&plain).expect("strings serialise"));
        self.seal_bytes(&bound_to(app, endpoint), &plain, entropy)
    }

    pub fn open(&self, app: AppId, endpoint: EndpointId, sealed: &[u8]) -> Result<Secrets, VaultError> {
        let plain = self.open_bytes(&bound_to(app, endpoint), sealed)?;
        let plain: PlainSecrets = serde_json::from_slice(&plain).map_err(|_| VaultError)?;
        let key = SigningKey::parse(&plain.key).map_err(|_| VaultError)?;
        let identity = plain.identity.map(|pem| Identity::parse(&pem).map(Arc::new));
        let identity = identity.transpose().map_err(|_| VaultError)?;
        let old = |(text, until): &(Zeroizing<String>, i64)| {
            SigningKey::parse(text).map(|key| (key, Timestamp::from_millis(*until)))
        };
        let old_keys = plain.old_keys.iter().map(old).collect::<Result<_, _>>().map_err(|_| VaultError)?;
        Ok(Secrets { key, old_keys, headers: plain.headers, credentials: plain.credentials, identity })
    }

    /// Seals the headers of one message to one address. `None`: there are none.
    pub(crate) fn seal_headers(
        &self,
        app: AppId,
        address: EndpointId,
        headers: &EndpointHeaders,
        entropy: &dyn Entropy,
    ) -> Option<Bytes> {
        if headers.is_empty() {
            return None;
        }
        let plain = Zeroizing::new(serde_json::to_vec(headers).expect("strings serialise"));
        Some(self.seal_bytes(&bound_to_address(app, address), &plain, entropy).into())
    }

    /// Seals the forwarded headers of an inbound event, for all endpoints of its application.
    pub(crate) fn seal_forwarded(
        &self,
        app: AppId,
        headers: &ForwardedHeaders,
        entropy: &dyn Entropy,
    ) -> Bytes {
        let plain = Zeroizing::new(headers.write());
        let sealed = self.seal_bytes(&bound_to_application(app), &plain, entropy);
        [&[FORWARDED_FORMAT][..], &sealed].concat().into()
    }

    /// The headers of a message as they are sent. An ordinary endpoint gets none that were given for an
    /// address.
    pub(crate) fn open_headers(
        &self,
        target: &Target,
        address: EndpointId,
        content: &Content,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, VaultError> {
        match content.sealed_headers.as_deref() {
            Some([FORWARDED_FORMAT, sealed @ ..]) if !target.direct => {
                let plain = Zeroizing::new(self.open_bytes(&bound_to_application(target.app), sealed)?);
                ForwardedHeaders::read(&plain).map(ForwardedHeaders::into_inner).ok_or(VaultError)
            }
            Some(sealed) if target.direct => {
                let plain = Zeroizing::new(self.open_bytes(&bound_to_address(target.app, address), sealed)?);
                let headers: EndpointHeaders = serde_json::from_slice(&plain).map_err(|_| VaultError)?;
                Ok(headers.on_the_wire())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Seals the secrets of a source.
    pub(crate) fn seal_source(
        &self,
        org: OrgId,
        source: SourceId,
        secrets: &SourceSecrets,
        entropy: &dyn Entropy,
    ) -> Vec<u8> {
        let plain = Zeroizing::new(serde_json::to_vec(secrets).expect("strings serialise"));
        self.seal_bytes(&bound_to_source(org, source), &plain, entropy)
    }

    pub(crate) fn open_source(
        &self,
        org: OrgId,
        source: SourceId,
        sealed: &[u8],
    ) -> Result<SourceSecrets, VaultError> {
        let plain = Zeroizing::new(self.open_bytes(&bound_to_source(org, source), sealed)?);
        serde_json::from_slice(&plain).map_err(|_| VaultError)
    }

    /// The key for messages that an application dispatches without a key of their own. It is derived and
    /// never changes.
    pub(crate) fn dispatch_key(&self, app: AppId) -> SigningKey {
        SigningKey::generate_hmac(self.derive(&[b"aldaba dispatch key", app.as_bytes()]))
    }

    /// The id of an address. It does not reveal whether a guessed password is correct.
    pub(crate) fn address_id(&self, app: AppId, parts: &[&str]) -> EndpointId {
        let lengths: Vec<_> = parts.iter().map(|part| (part.len() as u64).to_be_bytes()).collect();
        let mut info: Vec<&[u8]> = vec![b"aldaba address", app.as_bytes()];
        for (length, part) in lengths.iter().zip(parts) {
            info.extend([&length[..], part.as_bytes()]);
        }
        // The first bytes of an id are a timestamp; an address has none.
        let mut id = [0; 20];
        id[4..].copy_from_slice(&self.derive::<16>(&info));
        EndpointId::from_bytes(id)
    }

    fn derive<const N: usize>(&self, info: &[&[u8]]) -> [u8; N] {
        let mut bytes = [0; N];
        self.root.expand_multi_info(info, &mut bytes).expect("it is short enough");
        bytes
    }

    /// A value by which a later start can recognize its key.
    pub fn check_value(&self, entropy: &dyn Entropy) -> Vec<u8> {
        self.seal_bytes(b"check", CHECK_TEXT, entropy)
    }

    pub fn matches_check_value(&self, check_value: &[u8]) -> bool {
        self.open_bytes(b"check", check_value).is_ok_and(|plain| plain == CHECK_TEXT)
    }

    /// Seals what a link in a mail is for.
    pub(crate) fn seal_link(&self, plain: &[u8], entropy: &dyn Entropy) -> Vec<u8> {
        self.seal_bytes(b"mail link", plain, entropy)
    }

    pub(crate) fn open_link(&self, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        self.open_bytes(b"mail link", sealed)
    }

    /// Seals the session of a browser, with a key of its own.
    pub(crate) fn seal_session(&self, plain: &[u8], entropy: &dyn Entropy) -> Vec<u8> {
        self.of_sessions().seal_bytes(b"session", plain, entropy)
    }

    pub(crate) fn open_session(&self, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        self.of_sessions().open_bytes(b"session", sealed)
    }

    fn of_sessions(&self) -> Self {
        Self::new(self.derive(&[b"aldaba browser sessions"]))
    }

    fn seal_bytes(&self, bound_to: &[u8], plain: &[u8], entropy: &dyn Entropy) -> Vec<u8> {
        let nonce: [u8; NONCE_BYTES] = entropy.bytes();
        let payload = Payload { msg: plain, aad: bound_to };
        let boxed = self.cipher.encrypt(&XNonce::from(nonce), payload).expect("a short text fits");
        let mut sealed = Vec::with_capacity(1 + NONCE_BYTES + boxed.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&boxed);
        sealed
    }

    fn open_bytes(&self, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let (&FORMAT, rest) = sealed.split_first().ok_or(VaultError)? else {
            return Err(VaultError);
        };
        let (nonce, boxed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(VaultError)?;
        let payload = Payload { msg: boxed, aad: bound_to };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| VaultError)
    }
}

/// Differs in length from the associated data of endpoint secrets, so that neither opens as the other.
fn bound_to_address(app: AppId, address: EndpointId) -> [u8; 41] {
    let mut bytes = [0; 41];
    bytes[..40].copy_from_slice(&bound_to(app, address));
    bytes
}

/// Differs in length from the others.
fn bound_to_application(app: AppId) -> [u8; 20] {
    *app.as_bytes()
}

/// Differs in length from the others.
fn bound_to_source(org: OrgId, source: SourceId) -> [u8; 42] {
    let mut bytes = [0; 42];
    bytes[..20].copy_from_slice(org.as_bytes());
    bytes[20..40].copy_from_slice(source.as_bytes());
    bytes
}

fn bound_to(app: AppId, endpoint: EndpointId) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..20].copy_from_slice(app.as_bytes());
    bytes[20..].copy_from_slice(endpoint.as_bytes());
    bytes
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Secrets {
    pub(crate) fn new(key: SigningKey) -> Self {
        let headers = EndpointHeaders::default();
        Self { key, old_keys: Vec::new(), headers, credentials: None, identity: None }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use http::HeaderMap;

    fn vault() -> (Vault, SystemEntropy) {
        (Vault::new([7; 32]), SystemEntropy::new())
    }

    #[test]
    fn secrets_sealed_for_a_source_open_for_no_other() {
        let (vault, entropy) = vault();
        let (org, source) = (OrgId::from_bytes([1; 20]), SourceId::from_bytes([2; 20]));
        let secrets = SourceSecrets { secrets: vec!["theirs".to_owned().into()], ..SourceSecrets::default() };
        let sealed = vault.seal_source(org, source, &secrets, &entropy);
        assert_eq!(vault.open_source(org, source, &sealed), Ok(secrets));
        assert!(vault.open_source(org, SourceId::from_bytes([3; 20]), &sealed).is_err());
        assert!(vault.open_source(OrgId::from_bytes([3; 20]), source, &sealed).is_err());
        assert!(!String::from_utf8_lossy(&sealed).contains("theirs"));
    }

    #[test]
    fn headers_of_a_message_open_only_for_their_application_or_address() {
        let (vault, entropy) = vault();
        let (target, endpoint) = (Target::sample("standard"), EndpointId::from_bytes([5; 20]));
        let mut came = HeaderMap::new();
        came.insert("x-topic", HeaderValue::from_static("paid"));
        let forwarded = ForwardedHeaders::pick(&[HeaderName::from_static("x-topic")], &came).unwrap();
        let content = |sealed: Option<Bytes>| Content { sealed_headers: sealed, ..Content::new("a", "") };
        let of_source = content(Some(vault.seal_forwarded(target.app, &forwarded, &entropy)));
        let opened = vault.open_headers(&target, endpoint, &of_source).unwrap();
        assert_eq!(opened, [(HeaderName::from_static("x-topic"), HeaderValue::from_static("paid"))]);
        let other = Target { app: AppId::from_bytes([9; 20]), ..Target::sample("standard") };
        assert!(vault.open_headers(&other, endpoint, &of_source).is_err());
        // Headers for an address are not sent to ordinary endpoints.
        let given = EndpointHeaders::new([("x-key".to_owned(), "secret".to_owned())]).unwrap();
        let dispatched = content(vault.seal_headers(target.app, endpoint, &given, &entropy));
        assert_eq!(vault.open_headers(&target, endpoint, &dispatched), Ok(Vec::new()));
        let address = Target { direct: true, ..Target::sample("standard") };
        assert_eq!(vault.open_headers(&address, endpoint, &dispatched).unwrap().len(), 1);
        assert!(vault.open_headers(&address, EndpointId::from_bytes([6; 20]), &dispatched).is_err());
    }
}
