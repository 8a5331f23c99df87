use super::expired::Expired;
use super::keep::{Asked, Keep};
use super::owned::OwnedLease;
use super::times::LeaseTimes;
use crate::clock::instant;
use crate::{Claim, LedgerError};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::sleep;

/// How soon it is asked again whether another's work has ended: at first, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Asks for an event until there is an answer or the patience is over.
pub(crate) async fn claim(
    keep: Arc<dyn Keep>,
    times: LeaseTimes,
    patience: Duration,
    expired: &Expired,
) -> Result<Claim<OwnedLease>, LedgerError> {
    // None: there is no such moment, it lies too far ahead.
    let end = instant().checked_add(patience);
    let mut pause = FIRST_PAUSE;
    loop {
        let asked = instant();
        let asking = Asking(Some(Arc::clone(&keep)));
        let answer = keep.ask().await.map_err(LedgerError::Unavailable)?;
        asking.end();
        match answer {
            Asked::Granted => return Ok(Claim::New(OwnedLease::begin(keep, times, asked, expired.clone()))),
            Asked::Duplicate => return Ok(Claim::Duplicate),
            Asked::OtherBody => return Ok(Claim::OtherBody),
            Asked::InProgress => {}
        }
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(instant()));
        if left.is_zero() {
            return Ok(Claim::InProgress);
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A question that is under way. Whoever is dropped with it, or does not get the answer, may have been granted the
/// lease without knowing: it is given back.
struct Asking(Option<Arc<dyn Keep>>);

impl Asking {
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let (Some(keep), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            // Where this fails too, the lease expires by itself.
            runtime.spawn(async move { drop(keep.release().await) });
        }
    }
}
