//! How the server is.

use crate::call::Call;
use crate::{Client, Error};
use aldaba_api::{Health, Liveness, Readiness};
use http::StatusCode;

impl Client {
    /// Whether the server responds at all.
    pub async fn live(&self) -> Result<Liveness, Error> {
        Call::get(&["health", "live"]).answer(self).await
    }

    /// Whether messages are accepted and delivered. Its status 503, while they are not, is an answer and no error.
    pub async fn ready(&self) -> Result<Readiness, Error> {
        Call::get(&["health", "ready"]).also(StatusCode::SERVICE_UNAVAILABLE).answer(self).await
    }

    /// How the server is.
    pub async fn health(&self) -> Result<Health, Error> {
        Call::get(&["health"]).answer(self).await
    }

    /// Whether it is there.
    pub async fn ping(&self) -> Result<(), Error> {
        Call::get(&["health", "ping"]).done(self).await
    }

    /// Does nothing. It exists for programs that were written for a server with a separate dead-letter queue.
    pub async fn redrive_dlq(&self) -> Result<(), Error> {
        Call::post(&["admin", "redrive-dlq"]).done(self).await
    }
}
