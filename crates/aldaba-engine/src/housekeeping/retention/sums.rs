//! Counters of minutes become those of hours, once an hour is over.

use super::{BUSY_RETRY_DELAY, PAUSE, Retention};
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{Done, Error, Hour, SumUp};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long after its end an hour is summed up. What is counted later is added to its sum; that costs more.
const GRACE: Duration = Duration::from_secs(300);
/// What one step sums up at most; the store ends it earlier when its time is over.
const STEP: usize = 100;
/// Endpoints that one read names.
const ENDPOINTS: usize = 500;

impl Retention {
    /// Sums up every hour that is over, of all endpoints.
    pub(super) async fn sum_up_hours(&self, now: Timestamp) -> Result<(), Error> {
        let store = self.store.clone();
        let Hour(present) = Hour::of(now.before(GRACE));
        let through = Hour(present - 1);
        if store.summed_through().await? >= through {
            return Ok(());
        }
        let mut after = None;
        loop {
            let page = store.kept_endpoints(after, ENDPOINTS).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.app, last.id));
            let endpoints = page.iter().map(|endpoint| endpoint.id).collect();
            let unsummed = store.unsummed(endpoints, through).await?;
            self.sum_up(&unsummed, through).await?;
        }
        // Only now can the sums be relied on.
        self.step(SumUp { through, endpoints: Vec::new(), last: true }).await.map(drop)
    }

    async fn sum_up(&self, endpoints: &[EndpointId], through: Hour) -> Result<(), Error> {
        let mut rest = endpoints;
        while !rest.is_empty() {
            let step = rest[..rest.len().min(STEP)].to_vec();
            let done = self.step(SumUp { through, endpoints: step, last: false }).await?;
            rest = &rest[done.min(rest.len())..];
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn step(&self, step: SumUp) -> Result<usize, Error> {
        loop {
            let (answer, answered) = oneshot::channel();
            self.store.sum_up(step.clone(), Done::new(move |result| drop(answer.send(result))));
            match answered.await.map_err(|_| Error::Closed)? {
                // The writer has better things to do.
                Err(Error::Busy) => tokio::time::sleep(BUSY_RETRY_DELAY).await,
                result => return result,
            }
        }
    }
}
