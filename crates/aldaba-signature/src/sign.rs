use crate::key::Kind;
use crate::{HashKind, SigningKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer;

/// `v1` signatures.
pub(crate) const HMAC_VERSION: &str = "v1";
/// `v1a` signatures.
pub(crate) const ED25519_VERSION: &str = "v1a";

impl SigningKey {
    /// `v1,<base64>` or `v1a,<base64>` over `<id>.<timestamp>.<body>`.
    pub fn sign(&self, id: &str, timestamp_secs: i64, body: &[u8]) -> String {
        let mut text = String::new();
        self.sign_into(&mut text, &format!("{id}.{timestamp_secs}."), body);
        text
    }

    fn sign_into(&self, text: &mut String, head: &str, body: &[u8]) {
        match &self.0 {
            Kind::Hmac(secret) => {
                push(text, HMAC_VERSION, &HashKind::Sha256.hmac(secret, &[head.as_bytes(), body]));
            }
            Kind::Ed25519(key) => {
                // Ed25519 reads its message twice, so it needs one contiguous text.
                let signature = key.sign(&[head.as_bytes(), body].concat()).to_bytes();
                push(text, ED25519_VERSION, &signature);
            }
        }
    }
}

/// The value of the signature header: one signature per key, separated by spaces. The current key comes first.
pub fn signature_header(keys: &[SigningKey], id: &str, timestamp_secs: i64, body: &[u8]) -> String {
    let head = format!("{id}.{timestamp_secs}.");
    let mut text = String::with_capacity(keys.len() * 48);
    for key in keys {
        if !text.is_empty() {
            text.push(' ');
        }
        key.sign_into(&mut text, &head, body);
    }
    text
}

fn push(text: &mut String, version: &str, signature: &[u8]) {
    text.push_str(version);
    text.push(',');
    STANDARD.encode_string(signature, text);
}
