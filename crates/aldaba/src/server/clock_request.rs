//! Requests to trust the machine's clock, which `aldaba clock trust` leaves for a running server.

use aldaba_engine::Engine;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

const REQUEST_FILE: &str = "clock.trust";
/// The interval at which a server looks for a request.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The operator's request to a running server: a file in its data folder.
pub(crate) struct ClockRequest(PathBuf);

impl ClockRequest {
    pub(crate) fn of(data: &Path) -> Self {
        Self(data.join(REQUEST_FILE))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Takes requests until it is dropped. A request from before the start is not for this server.
    pub(crate) async fn take_for(self, engine: Engine) {
        let _ = std::fs::remove_file(&self.0);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.0.try_exists() {
                Ok(true) => {}
                Ok(false) | Err(_) => continue,
            }
            if let Err(error) = engine.trust_clock().await {
                tracing::warn!(%error, "cannot note that the operator trusts the clock; trying again");
                continue;
            }
            match std::fs::remove_file(&self.0) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, "cannot remove the request to trust the clock");
                }
                _ => {}
            }
        }
    }
}
