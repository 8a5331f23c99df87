//! Operator actions on failed endpoints and hosts.

use super::{ChangeError, ChangeOutcome, Directory, IdempotencyDigest};
use aldaba_delivery::{GateKey, ReplayId, Timestamp};
use aldaba_store::{Change, Endpoint, Recovery, Replay};
use serde_json::json;

/// The outage that a resume ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first failure since the last success, if known.
    pub failing_since: Option<Timestamp>,
    pub resumed_at: Timestamp,
    /// The recovery replay, if one was requested and anything failed.
    pub recovery: Option<Replay>,
}

impl Directory {
    /// Activates an endpoint that its policy disabled, and releases its held deliveries. `None`: there was
    /// nothing to resume.
    pub async fn resume_endpoint(&self, endpoint: &Endpoint) -> Result<Option<Outage>, ChangeError> {
        let resumed_at = self.clock.now();
        let notices = self.listeners.endpoint_notices(endpoint, "endpoint.enabled", json!({}));
        let (app, endpoint) = (endpoint.app, endpoint.id);
        let change = Change::ResumeEndpoint { app, endpoint, at: resumed_at, recovery: None, notices };
        match self.change(change).await? {
            ChangeOutcome::Resumed { failing_since, recovery } => {
                Ok(Some(Outage { failing_since, resumed_at, recovery }))
            }
            _ => Ok(None),
        }
    }

    /// Resumes and starts a replay of deliveries that failed since the outage began, at `rate` per second.
    /// Both or neither, so that a caller without a reply can retry. With a reused key: the earlier result.
    pub async fn resume_and_recover(
        &self,
        endpoint: &Endpoint,
        rate: u32,
        once: IdempotencyDigest,
    ) -> Result<Option<Outage>, ChangeError> {
        let replay = self.replays.recovery(endpoint, rate);
        let (app, resumed_at) = (endpoint.app, replay.created_at);
        let recovery = Some(Recovery { replay, idempotency: self.idempotency(once) });
        let notices = self.listeners.endpoint_notices(endpoint, "endpoint.enabled", json!({}));
        let change = Change::ResumeEndpoint { app, endpoint: endpoint.id, at: resumed_at, recovery, notices };
        let changed = self.change(change).await.map_err(|error| match error {
            ChangeError::TooMany => ChangeError::TooManyReplays,
            other => other,
        });
        match changed? {
            ChangeOutcome::Resumed { failing_since, recovery } => {
                Ok(Some(Outage { failing_since, resumed_at, recovery }))
            }
            ChangeOutcome::RepeatOf(resource) => {
                let before = self.store.replay(endpoint.org, ReplayId::from_bytes(resource)).await?;
                Ok(before.map(|replay| Outage {
                    failing_since: replay.filter.died_since,
                    resumed_at: replay.created_at,
                    recovery: Some(replay),
                }))
            }
            ChangeOutcome::Done | ChangeOutcome::Unchanged => Ok(None),
        }
    }

    /// Opens gates. Deliveries behind them are sent one at a time at first, then faster.
    pub async fn release_gates(&self, gates: Vec<GateKey>) -> Result<(), ChangeError> {
        self.change(Change::ReleaseGates { gates }).await.map(drop)
    }
}
