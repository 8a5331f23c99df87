//! A ledger with a frequent mistake: it marks an event in one transaction, and works in another.

use aldaba_receiver::{Claim, Event, Guarantee, Ledger, LedgerError, Work};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Hasty<L>(pub(crate) L);

impl<L: Ledger> Ledger for Hasty<L> {
    type Work = L::Work;

    const GUARANTEE: Guarantee = L::GUARANTEE;

    async fn claim(&self, event: &Event, wait_timeout: Duration) -> Result<Claim<Self::Work>, LedgerError> {
        let claim = self.0.claim(event, wait_timeout).await?;
        let Claim::New(mark) = claim else { return Ok(claim) };
        mark.complete().await?;
        let work = Event::new(format!("{} at work", event.id), "", event.body.clone(), event.headers.clone());
        self.0.claim(&work, wait_timeout).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        self.0.clean(older_than).await
    }
}
