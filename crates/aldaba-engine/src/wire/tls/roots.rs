use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use thiserror::Error;

/// Why a root certificate file cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RootsError {
    #[error("a block is not valid PEM")]
    Pem,
    #[error("it holds no certificate; expected PEM with one or more `CERTIFICATE` blocks")]
    Empty,
}

/// The certificates of a PEM bundle, for [`WireOptions::extra_roots`](crate::wire::WireOptions::extra_roots).
pub fn read_roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, RootsError> {
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match roots {
        Err(_) => Err(RootsError::Pem),
        Ok(roots) if roots.is_empty() => Err(RootsError::Empty),
        Ok(roots) => Ok(roots),
    }
}
