//! When certificates expire that the server depends on: for a metric, and for the alert `certificate-expiring`.

use aldaba_delivery::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CertificateKind {
    /// An issuer that the operator trusts, from `ca_file`.
    CaFile,
    /// What an endpoint shows to its receiver.
    Client,
    /// What the API shows to its callers.
    Listener,
}

impl CertificateKind {
    /// Its label in `/metrics`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CaFile => "ca_file",
            Self::Client => "client",
            Self::Listener => "listener",
        }
    }
}

/// When the first certificate of each kind expires. The part that uses one puts it here, at the start and after each change. Clones
/// share it.
#[derive(Clone, Debug, Default)]
pub struct CertificateExpiries(Arc<Mutex<BTreeMap<CertificateKind, Option<Timestamp>>>>);

impl CertificateExpiries {
    /// `None`: there is no certificate of this kind.
    pub fn put(&self, kind: CertificateKind, first_expiry: Option<Timestamp>) {
        self.0.lock().insert(kind, first_expiry);
    }

    /// Every kind that somebody has put.
    pub fn all(&self) -> BTreeMap<CertificateKind, Option<Timestamp>> {
        self.0.lock().clone()
    }
}
