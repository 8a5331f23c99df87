use aldaba_receiver::transactional::{Deadline, Table, Turn, Turns};
use aldaba_receiver::{Claim, Event, LedgerError};
use std::future::Future;
use std::time::Duration;

/// What a claim may take beyond the patience, which is for the work of others: a connection, a few short statements.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Claims an event when it is its turn, to the end, whether or not the caller waits for it.
pub(crate) async fn in_turn<W, F>(
    turns: &Turns,
    event: &Event,
    patience: Duration,
    claim: impl FnOnce(Event, Deadline, Turn) -> F,
) -> Result<Claim<W>, LedgerError>
where
    W: Send + 'static,
    F: Future<Output = Result<Claim<W>, LedgerError>> + Send + 'static,
{
    Table::holds(&event.id).map_err(|error| LedgerError::Unavailable(error.into()))?;
    let deadline = Deadline::after(patience);
    let Some(turn) = turns.take(&event.id, &deadline).await else { return Ok(Claim::InProgress) };
    to_its_end(deadline.left() + ANSWER_TIME, claim(event.clone(), deadline, turn)).await
}

/// Does something to its end, whether or not the caller waits for it. A future of sqlx that is dropped while it begins a
/// transaction can leave it open in a connection that goes back to the pool; here none is dropped.
pub(crate) async fn to_its_end<T: Send + 'static>(
    longest: Duration,
    what: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
) -> Result<T, LedgerError> {
    match tokio::time::timeout(longest, tokio::spawn(what)).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(LedgerError::Unavailable(error.to_string().into())),
        Err(_) => Err(LedgerError::Unavailable(
            "the database has no connection for it, or does not answer in time".into(),
        )),
    }
}
