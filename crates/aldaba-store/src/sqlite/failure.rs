//! What an error of SQLite means for the store.

use crate::Error;
use rusqlite::ErrorCode;
use tokio::sync::watch;

/// Whether the store has failed for good. Once set it never goes away: an error of the disk leaves
/// open what is on it, and trying again could hide that.
#[derive(Debug)]
pub(super) struct Failure(watch::Sender<Option<String>>);

impl Failure {
    pub(super) fn none() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn get(&self) -> Option<Error> {
        self.0.borrow().clone().map(Error::Failed)
    }

    /// The first failure stays: those after it are mostly its consequences.
    pub(super) fn mark(&self, message: &str) {
        self.0.send_if_modified(|failure| {
            let first = failure.is_none();
            if first {
                tracing::error!(message, "the store has failed");
                *failure = Some(message.to_owned());
            }
            first
        });
    }

    /// Resolves with the message once the store has failed; never, if it never does.
    pub(super) fn wait(&self) -> impl Future<Output = String> + Send + 'static {
        let mut failure = self.0.subscribe();
        async move {
            let message = match failure.wait_for(Option::is_some).await {
                Ok(message) => message.clone(),
                Err(_) => None,
            };
            match message {
                Some(message) => message,
                None => std::future::pending().await,
            }
        }
    }
}

/// Sorts an error of SQLite by who must act.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::OperationInterrupted) => Self::Timeout,
            // For longer than the connection waits for it.
            Some(ErrorCode::DatabaseBusy) => Self::Unavailable("another program holds a lock on it".into()),
            // The file or the disk cannot be trusted any more.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseLocked,
            ) => Self::Failed(describe(&error)),
            _ => Self::Refused(describe(&error)),
        }
    }
}

pub(super) fn describe(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, inner) => inner.to_string(),
        _ => match error.sqlite_extended_error_code() {
            Some(code) => format!("{error} (SQLite result code {code})"),
            None => error.to_string(),
        },
    }
}
