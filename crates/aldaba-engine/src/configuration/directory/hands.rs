//! What a hand does about endpoints and hosts that have failed.

use super::{ChangeError, Directory, Once, Repeat};
use aldaba_delivery::{GateKey, ReplayId, Timestamp};
use aldaba_store::{Change, Endpoint, Recovery, Replay};
use serde_json::json;

/// The time that a resume has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first failure since the last success, as far as it is known.
    pub failing_since: Option<Timestamp>,
    pub resumed_at: Timestamp,
    /// The replay of what has died meanwhile, where that was asked for and anything has.
    pub recovery: Option<Replay>,
}

impl Directory {
    /// Makes an endpoint active that its policy has given up, and lets go what is held for it. `None`: there
    /// was nothing to resume.
    pub async fn resume_endpoint(&self, endpoint: &Endpoint) -> Result<Option<Outage>, ChangeError> {
        let resumed_at = self.clock.now();
        let notices = self.listeners.of_endpoint(endpoint, "endpoint.enabled", json!({}));
        let (app, endpoint) = (endpoint.app, endpoint.id);
        let change = Change::ResumeEndpoint { app, endpoint, at: resumed_at, recovery: None, notices };
        match self.change(change).await? {
            Repeat::Resumed { failing_since, recovery } => {
                Ok(Some(Outage { failing_since, resumed_at, recovery }))
            }
            _ => Ok(None),
        }
    }

    /// The same, and starts a replay of what has died since the outage began, of `rate` deliveries in a second:
    /// both or none, so that whoever gets no answer can ask again. With a key that was used before: what was
    /// started then.
    pub async fn resume_and_recover(
        &self,
        endpoint: &Endpoint,
        rate: u32,
        once: Once,
    ) -> Result<Option<Outage>, ChangeError> {
        let replay = self.replays.recovery(endpoint, rate);
        let (app, resumed_at) = (endpoint.app, replay.created_at);
        let recovery = Some(Recovery { replay, idempotency: self.idempotency(once) });
        let notices = self.listeners.of_endpoint(endpoint, "endpoint.enabled", json!({}));
        let change = Change::ResumeEndpoint { app, endpoint: endpoint.id, at: resumed_at, recovery, notices };
        let changed = self.change(change).await.map_err(|error| match error {
            ChangeError::TooMany => ChangeError::TooManyReplays,
            other => other,
        });
        match changed? {
            Repeat::Resumed { failing_since, recovery } => {
                Ok(Some(Outage { failing_since, resumed_at, recovery }))
            }
            Repeat::Of(resource) => {
                let before = self.store.replay(endpoint.org, ReplayId::from_bytes(resource)).await?;
                Ok(before.map(|replay| Outage {
                    failing_since: replay.filter.died_since,
                    resumed_at: replay.created_at,
                    recovery: Some(replay),
                }))
            }
            Repeat::No | Repeat::Unchanged => Ok(None),
        }
    }

    /// Opens gates at once. What they have held back goes out one by one at first, then faster.
    pub async fn release_gates(&self, gates: Vec<GateKey>) -> Result<(), ChangeError> {
        self.change(Change::ReleaseGates { gates }).await.map(drop)
    }
}
