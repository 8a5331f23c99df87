use aldaba_receiver::transactional::{Deadline, EventLock, EventLocks, Table};
use aldaba_receiver::{Claim, Event, LedgerError};
use std::future::Future;
use std::time::Duration;

/// The time limit of a claim besides the wait for other copies: a connection and a few short statements.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Claims an event under its lock. The claim runs to its end even if the caller is dropped.
pub(crate) async fn with_event_lock<W, F>(
    locks: &EventLocks,
    event: &Event,
    wait_timeout: Duration,
    claim: impl FnOnce(Event, Deadline, EventLock) -> F,
) -> Result<Claim<W>, LedgerError>
where
    W: Send + 'static,
    F: Future<Output = Result<Claim<W>, LedgerError>> + Send + 'static,
{
    Table::holds(&event.id).map_err(|error| LedgerError::Unavailable(error.into()))?;
    let deadline = Deadline::after(wait_timeout);
    let Some(lock) = locks.take(&event.id, &deadline).await else { return Ok(Claim::InProgress) };
    to_its_end(deadline.left() + STATEMENT_TIMEOUT, claim(event.clone(), deadline, lock)).await
}

/// Runs a future to its end even if the caller is dropped. A future of sqlx that is dropped while it begins a transaction
/// can leave it open in a connection that returns to the pool.
pub(crate) async fn to_its_end<T: Send + 'static>(
    longest: Duration,
    what: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
) -> Result<T, LedgerError> {
    match tokio::time::timeout(longest, tokio::spawn(what)).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(LedgerError::Unavailable(error.to_string().into())),
        Err(_) => Err(LedgerError::Unavailable(
            "no connection is free, or the database does not answer in time".into(),
        )),
    }
}
