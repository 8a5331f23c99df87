//! The certificate is replaced when its files change.

use super::certificate::{CertificateError, CertificateFiles, FilesDigest};
use super::{Current, ListenerTls};
use crate::api::shown_time;
use aldaba_delivery::Timestamp;
use aldaba_engine::{CertificateKind, Clock};
use std::time::Duration;

/// How often the files are read.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// What an operator is shown of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateState {
    pub(crate) expires_at: Option<Timestamp>,
    /// The files hold something that cannot be used, so the former certificate is still in use.
    pub(crate) is_outdated: bool,
}

/// What became of a look at the files.
#[derive(Debug)]
pub(crate) enum Renewal {
    Unchanged,
    /// New connections get the new certificate.
    Renewed {
        expires_at: Option<Timestamp>,
    },
    /// The former certificate stays.
    Refused(CertificateError),
}

impl ListenerTls {
    /// The task that looks at the files.
    pub(crate) const TASK: &'static str = "tls-certificate";

    pub(crate) fn state(&self) -> CertificateState {
        let current = self.0.current.read();
        CertificateState { expires_at: current.expires_at, is_outdated: current.problem.is_some() }
    }

    pub(crate) fn files(&self) -> CertificateFiles {
        self.0.current.read().files.clone()
    }

    /// Says in the log, at the start, if the certificate has expired.
    pub(crate) fn warn_if_expired(&self, now: Timestamp) {
        if let Some(error) = self.0.current.read().expired(now) {
            tracing::error!("{error}. Clients refuse it until then");
        }
    }

    /// Looks at the files every few seconds, without end.
    pub(crate) async fn watch(&self, clock: &dyn Clock) {
        let mut wrong = None;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let (tls, now) = (self.clone(), clock.wall());
            // A slow disk must delay no request.
            wrong = tokio::task::spawn_blocking(move || tls.look(now, wrong)).await.unwrap_or_default();
        }
    }

    /// One look at the files. Returns what they hold if that cannot be used. Two files are written one after the other, so it
    /// is refused only when it is found again: `wrong` was found last time.
    fn look(&self, now: Timestamp, wrong: Option<FilesDigest>) -> Option<FilesDigest> {
        let files = self.files();
        let found = files.read().map(|contents| contents.digest()).unwrap_or_default();
        let (in_use, problem) = {
            let current = self.0.current.read();
            (current.digest, current.problem.clone())
        };
        if in_use == found && problem.is_none() {
            return None;
        }
        if wrong == Some(found) || Current::load(files.clone()).is_ok() {
            match self.renew(&files, now) {
                // Once is enough.
                Renewal::Refused(error) if problem == Some(error.to_string()) => {}
                renewal => renewal.log(),
            }
        }
        Some(found)
    }

    /// Takes what these files hold, if it can be used.
    pub(crate) fn renew(&self, files: &CertificateFiles, now: Timestamp) -> Renewal {
        let loaded = Current::load(files.clone());
        let mut current = self.0.current.write();
        let loaded = loaded.and_then(|new| match new.expired(now) {
            Some(error) if current.expired(now).is_none() => Err(error),
            _ => Ok(new),
        });
        match loaded {
            Ok(new) if new.digest == current.digest && new.files == current.files => {
                current.problem = None;
                Renewal::Unchanged
            }
            Ok(new) => {
                let expires_at = new.expires_at;
                *current = new;
                self.0.expiries.put(CertificateKind::Listener, expires_at);
                Renewal::Renewed { expires_at }
            }
            Err(error) => {
                current.problem = Some(error.to_string());
                Renewal::Refused(error)
            }
        }
    }
}

impl Current {
    /// The error about a certificate that has expired.
    fn expired(&self, now: Timestamp) -> Option<CertificateError> {
        let at = self.expires_at.filter(|at| *at <= now)?;
        Some(CertificateError::Expired { file: self.files.certificate.clone(), expired_at: shown_time(at) })
    }
}

impl Renewal {
    pub(crate) fn log(&self) {
        match self {
            Self::Unchanged => {}
            Self::Renewed { expires_at } => {
                let expires_at = expires_at.map(shown_time);
                tracing::info!(expires_at, "the TLS certificate was replaced; new connections get it");
            }
            Self::Refused(error) => {
                tracing::error!("the TLS certificate was not replaced, the former one stays in use: {error}");
            }
        }
    }
}
