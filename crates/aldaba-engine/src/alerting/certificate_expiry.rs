//! When the certificate of the server's listener expires.

use aldaba_delivery::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const NEVER: i64 = i64::MAX;

/// The expiry of a certificate that may be replaced while the engine runs. Clones share it.
#[derive(Clone, Debug)]
pub struct CertificateExpiry(Arc<AtomicI64>);

impl Default for CertificateExpiry {
    /// There is no certificate.
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NEVER)))
    }
}

impl CertificateExpiry {
    pub fn set(&self, at: Option<Timestamp>) {
        self.0.store(at.map_or(NEVER, Timestamp::millis), Ordering::Relaxed);
    }

    pub fn get(&self) -> Option<Timestamp> {
        let at = self.0.load(Ordering::Relaxed);
        (at != NEVER).then(|| Timestamp::from_millis(at))
    }
}
