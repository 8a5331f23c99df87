use super::first_expiry;
use aldaba_delivery::Timestamp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::sync::Arc;
use thiserror::Error;
use zeroize::Zeroizing;

/// The longest PEM text of certificate and key, in bytes.
const MAX_PEM_BYTES: usize = 64 * 1024;

/// A client certificate with its private key. Neither debug output nor errors show the key.
pub struct Identity {
    pem: Zeroizing<String>,
    key: Arc<CertifiedKey>,
    certificate: [u8; 32],
    chain: Fingerprint,
    expires_at: Option<Timestamp>,
}

/// Identifies a certificate chain. Equal chains have equal keys, because a key must match its certificate.
pub(in crate::wire) type Fingerprint = [u8; 32];

/// Why a text is not accepted as an identity. No variant holds any of the text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum IdentityError {
    #[error("must be at most {MAX_PEM_BYTES} bytes long")]
    TooLong,
    #[error("is not PEM: a block between `-----BEGIN …-----` and `-----END …-----` cannot be read")]
    Pem,
    #[error("holds no certificate: add a `CERTIFICATE` block")]
    NoCertificate,
    #[error("holds no private key: add a `PRIVATE KEY` block (PKCS#8, PKCS#1 or SEC1)")]
    NoKey,
    #[error("holds an encrypted private key: store it without a passphrase")]
    Encrypted,
    #[error("holds more than one private key: keep the one of the first certificate")]
    ManyKeys,
    #[error("holds a certificate that is not X.509")]
    Certificate,
    #[error("holds a private key of a kind that cannot be used: RSA, ECDSA (P-256, P-384, P-521) or Ed25519")]
    Key,
    #[error(
        "holds a private key that does not belong to the first certificate: the endpoint's certificate comes \
         first, those of its issuers after it"
    )]
    Mismatch,
}

impl Identity {
    /// Reads a private key, its certificate and the issuer certificates. Key and certificates may come in
    /// any order.
    pub fn parse(pem: &str) -> Result<Self, IdentityError> {
        if pem.len() > MAX_PEM_BYTES {
            return Err(IdentityError::TooLong);
        }
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| IdentityError::Pem)?;
        let key = only_key(pem)?;
        let Some(first) = certificates.first() else {
            return Err(IdentityError::NoCertificate);
        };
        let certificate = Sha256::digest(first).into();
        let chain = fingerprint(&certificates);
        let expires_at = first_expiry(certificates.iter().map(|certificate| &**certificate));
        let readable = |certificate| rustls::server::ParsedCertificate::try_from(certificate).is_ok();
        if !certificates.iter().all(readable) {
            return Err(IdentityError::Certificate);
        }
        let key =
            CertifiedKey::from_der(certificates, key, &default_provider()).map_err(|error| reason(&error))?;
        Ok(Self { pem: Zeroizing::new(pem.to_owned()), key: Arc::new(key), certificate, chain, expires_at })
    }

    /// The PEM text including the private key. Seal it; never show it.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The SHA-256 fingerprint of the certificate in hexadecimal. It is not secret.
    pub fn certificate_fingerprint(&self) -> String {
        self.certificate.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// When the first of its certificates expires.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    pub(in crate::wire) fn chain(&self) -> Fingerprint {
        self.chain
    }

    pub(in crate::wire) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

fn only_key(pem: &str) -> Result<PrivateKeyDer<'static>, IdentityError> {
    if pem.contains("ENCRYPTED") {
        return Err(IdentityError::Encrypted);
    }
    let mut keys = PrivateKeyDer::pem_slice_iter(pem.as_bytes());
    let key = keys.next().ok_or(IdentityError::NoKey)?.map_err(|_| IdentityError::Pem)?;
    if keys.next().is_some() { Err(IdentityError::ManyKeys) } else { Ok(key) }
}

fn fingerprint(certificates: &[CertificateDer<'_>]) -> Fingerprint {
    let mut hash = Sha256::new();
    for certificate in certificates {
        hash.update((certificate.len() as u64).to_be_bytes());
        hash.update(certificate);
    }
    hash.finalize().into()
}

fn reason(error: &TlsError) -> IdentityError {
    match error {
        TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => IdentityError::Mismatch,
        TlsError::InvalidCertificate(_) => IdentityError::Certificate,
        _ => IdentityError::Key,
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificate", &self.certificate_fingerprint())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn key_and_certificates_are_read_in_any_order() {
        let (certificate, key) = pair();
        let (issuer, _) = pair();
        let first = Identity::parse(&format!("{key}{certificate}")).unwrap();
        let second = Identity::parse(&format!("{certificate}{key}")).unwrap();
        assert_eq!(first.chain(), second.chain());
        let longer = Identity::parse(&format!("{certificate}{issuer}{key}")).unwrap();
        assert_eq!(longer.certificate_fingerprint(), first.certificate_fingerprint());
        assert_ne!(longer.chain(), first.chain());
        assert_eq!(first.certificate_fingerprint().len(), 64);
        assert!(!format!("{first:?}").contains("PRIVATE"));
    }

    #[test]
    fn each_invalid_identity_has_its_own_error() {
        let (certificate, key) = pair();
        let (_, other) = pair();
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let long = "x".repeat(MAX_PEM_BYTES + 1);
        for (text, expected) in [
            (String::new(), IdentityError::NoKey),
            ("whatever".to_owned(), IdentityError::NoKey),
            (certificate.clone(), IdentityError::NoKey),
            (key.clone(), IdentityError::NoCertificate),
            (format!("{certificate}{other}"), IdentityError::Mismatch),
            (format!("{certificate}{key}{other}"), IdentityError::ManyKeys),
            (format!("{nonsense}{key}"), IdentityError::Certificate),
            (format!("{certificate}{nonsense}{key}"), IdentityError::Certificate),
            (format!("{certificate}{no_key}"), IdentityError::Key),
            (format!("{certificate}{locked}"), IdentityError::Encrypted),
            (format!("{certificate}-----BEGIN PRIVATE KEY-----\n!\n"), IdentityError::Pem),
            (long, IdentityError::TooLong),
        ] {
            assert_eq!(Identity::parse(&text).err(), Some(expected), "{text}");
        }
    }
}
