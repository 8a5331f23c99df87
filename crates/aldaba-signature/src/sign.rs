use crate::SigningKey;
use crate::key::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

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
                push(text, HMAC_VERSION, &hmac_sha256(secret, head, body));
            }
            Kind::Ed25519(key) => {
                let signature = key.sign(&contiguous(head, body)).to_bytes();
                push(text, ED25519_VERSION, &signature);
            }
        }
    }
}

/// The value of the signature header: one signature per key, joined by one space. The current key
/// comes first.
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

/// The body goes in as it lies: it may be a megabyte, and nobody needs a second one.
fn hmac_sha256(secret: &[u8], head: &str, body: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(head.as_bytes());
    mac.update(body);
    mac.finalize().into_bytes().into()
}

/// Ed25519 runs over its message twice, so it needs it in one piece.
pub(crate) fn contiguous(head: &str, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(head.len() + body.len());
    message.extend_from_slice(head.as_bytes());
    message.extend_from_slice(body);
    message
}

fn push(text: &mut String, version: &str, signature: &[u8]) {
    text.push_str(version);
    text.push(',');
    STANDARD.encode_string(signature, text);
}
