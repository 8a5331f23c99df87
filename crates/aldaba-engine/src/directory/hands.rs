//! What a hand does about endpoints and hosts that have failed.

use super::{ChangeError, Directory, Repeat};
use aldaba_delivery::{AppId, EndpointId, GateScope, Origin, Timestamp};
use aldaba_store::Change;

/// The time that a resume has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first failure since the last success, as far as it is known.
    pub failing_since: Option<Timestamp>,
    pub resumed_at: Timestamp,
}

impl Directory {
    /// Makes an endpoint active that its policy has given up, and lets go what is held for it. `None`: there
    /// was nothing to resume.
    pub async fn resume_endpoint(
        &self,
        app: AppId,
        endpoint: EndpointId,
    ) -> Result<Option<Outage>, ChangeError> {
        let at = self.clock.now();
        match self.change(Change::ResumeEndpoint { app, endpoint, at }).await? {
            Repeat::Resumed { failing_since } => Ok(Some(Outage { failing_since, resumed_at: at })),
            _ => Ok(None),
        }
    }

    /// Opens gates at once. What they have held back goes out one by one at first, then faster.
    pub async fn release_gates(&self, gates: Vec<(Origin, GateScope)>) -> Result<(), ChangeError> {
        self.change(Change::ReleaseGates { gates }).await.map(drop)
    }
}
