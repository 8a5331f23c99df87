use super::expired::Expired;
use super::owned::OwnedLease;
use super::stored_lease::{Acquisition, StoredLease};
use super::times::LeaseTimes;
use crate::clock::instant;
use crate::{Claim, LedgerError};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::sleep;

/// The delay between two attempts to acquire a lease: the first, and the maximum.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(10);
const MAX_POLL_DELAY: Duration = Duration::from_millis(250);

/// Acquires a lease, or waits for another owner up to the timeout.
pub(crate) async fn claim(
    lease: Arc<dyn StoredLease>,
    times: LeaseTimes,
    wait_timeout: Duration,
    expired: &Expired,
) -> Result<Claim<OwnedLease>, LedgerError> {
    // `None`: the timeout is too long for a deadline.
    let end = instant().checked_add(wait_timeout);
    let mut pause = FIRST_POLL_DELAY;
    loop {
        let asked = instant();
        let asking = Asking(Some(Arc::clone(&lease)));
        let answer = lease.acquire().await.map_err(LedgerError::Unavailable)?;
        asking.end();
        match answer {
            Acquisition::Granted => {
                return Ok(Claim::New(OwnedLease::begin(lease, times, asked, expired.clone())));
            }
            Acquisition::Duplicate => return Ok(Claim::Duplicate),
            Acquisition::OtherBody => return Ok(Claim::OtherBody),
            Acquisition::InProgress => {}
        }
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(instant()));
        if left.is_zero() {
            return Ok(Claim::InProgress);
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(MAX_POLL_DELAY);
    }
}

/// An acquisition without an answer yet. When it is dropped, the lease may have been granted: it is released.
struct Asking(Option<Arc<dyn StoredLease>>);

impl Asking {
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let (Some(lease), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            // If this fails too, the lease expires.
            runtime.spawn(async move { drop(lease.release().await) });
        }
    }
}
