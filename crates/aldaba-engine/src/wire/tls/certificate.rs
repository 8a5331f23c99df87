//! Verifies receiver certificates and explains why one is rejected.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use std::sync::Arc;
use thiserror::Error as ThisError;

/// Verifies like the library, and additionally recognizes self-signed certificates to give a better error.
#[derive(Debug)]
pub(in crate::wire) struct CertificateVerifier {
    verifier: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

#[derive(Clone, Copy, Debug, ThisError)]
#[error("the certificate is self-signed")]
struct SelfSigned;

impl CertificateVerifier {
    pub(in crate::wire) fn new(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let verifier = verifier(roots, &provider)?;
        Ok(Self { verifier, provider })
    }

    /// Whether the certificate is signed with its own key: it verifies with itself as the only root.
    fn is_self_signed(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Option<()> {
        let mut itself = RootCertStore::empty();
        itself.add(certificate.clone().into_owned()).ok()?;
        let verifier = verifier(itself, &self.provider).ok()?;
        verifier.verify_server_cert(certificate, &[], name, &[], now).ok().map(drop)
    }
}

fn verifier(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    builder.build().map_err(|error| error.to_string())
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        verified.map_err(|error| {
            let self_signed = match &error {
                Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                    self.is_self_signed(end_entity, server_name, now).is_some()
                }
                // The library reports this for a certificate that is its own issuer, as `openssl req -x509`
                // makes them.
                Error::InvalidCertificate(CertificateError::Other(_)) => is_self_issued(end_entity),
                _ => false,
            };
            match self_signed {
                true => CertificateError::Other(OtherError(Arc::new(SelfSigned))).into(),
                false => error,
            }
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Uses own wording: the library's would name what the certificate is valid for, which can be an internal
/// host.
pub(in crate::wire) fn describe(describe: &CertificateError) -> &'static str {
    match describe {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name"
        }
        CertificateError::UnknownIssuer => "the certificate's issuer is not trusted",
        CertificateError::Other(other) if other.0.is::<SelfSigned>() => "the certificate is self-signed",
        CertificateError::Revoked => "the certificate has been revoked",
        CertificateError::BadSignature => "the certificate's signature is wrong",
        CertificateError::BadEncoding => "the certificate cannot be read",
        _ => "the certificate is not acceptable",
    }
}

/// Whether the certificate names itself as its issuer.
fn is_self_issued(certificate: &[u8]) -> bool {
    issuer_and_subject(certificate).is_some_and(|(issuer, subject)| issuer == subject)
}

/// Issuer and subject, in DER.
fn issuer_and_subject(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = der_element(certificate)?;
    let (_, mut rest, _) = der_element(certificate)?;
    if rest.first() == Some(&VERSION) {
        rest = der_element(rest)?.2;
    }
    // Serial number and signature algorithm.
    for _ in 0..2 {
        rest = der_element(rest)?.2;
    }
    let (_, issuer, rest) = der_element(rest)?;
    let (_, _validity, rest) = der_element(rest)?;
    let (_, subject, _) = der_element(rest)?;
    Some((issuer, subject))
}

/// The first DER element: its tag, its content, and the bytes after it.
fn der_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, length], rest) = der.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        // Long form with one to three length bytes: no certificate is longer.
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((kind, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    #[test]
    fn a_self_issued_certificate_is_recognized() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        assert!(is_self_issued(params.self_signed(&key).unwrap().der()));
        params.distinguished_name.push(DnType::CommonName, "Issuer");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        assert!(is_self_issued(params.clone().self_signed(&key).unwrap().der()));
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        assert!(!is_self_issued(leaf.signed_by(&key, &issuer).unwrap().der()));
    }

    #[test]
    fn invalid_der_is_not_read_past_its_end() {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let whole = params.self_signed(&key).unwrap().der().to_vec();
        for end in 0..whole.len() / 2 {
            assert!(!is_self_issued(&whole[..end]));
        }
        for garbage in [&[][..], &[0x30], &[0x30, 0x84, 1], &[0x30, 0x83, 0xff, 0xff, 0xff, 0]] {
            assert!(!is_self_issued(garbage));
        }
    }
}
