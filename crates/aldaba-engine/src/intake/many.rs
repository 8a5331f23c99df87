//! Several events of one application, in as few commits as can be.

use super::accept::{can_wait, takes};
use super::{Intake, MAX_MATCH_ROUNDS, NewEvent, Quotas, SendError, SendReceipt};
use crate::intake::matching::{MAX_INLINE_MATCH_COST, match_cost};
use aldaba_store::{ApplicationRef, Content, Tenant};
use std::sync::Arc;
use std::time::Duration;

/// Deliveries that several events together may bring into one commit, but for those of the last one: others
/// wait for it.
const MAX_DELIVERIES_PER_COMMIT: usize = 10_000;

/// How far several events have come.
struct Many {
    contents: Vec<Arc<Content>>,
    /// Whether it can be accepted, as far as that is known before.
    fits: Vec<bool>,
    results: Vec<Option<Result<SendReceipt, SendError>>>,
    quotas: Quotas,
    /// How long a commit is waited for.
    commit_timeout: Option<Duration>,
}

impl Many {
    fn new(events: &[NewEvent], quotas: Quotas, commit_timeout: Option<Duration>) -> Self {
        Self {
            contents: events.iter().map(NewEvent::content).collect(),
            fits: vec![true; events.len()],
            results: vec![None; events.len()],
            quotas,
            commit_timeout,
        }
    }

    fn is_open(&self, place: usize) -> bool {
        self.fits[place] && self.results[place].is_none()
    }

    /// This for all whose result is not known.
    fn fill(&mut self, error: &SendError) {
        for result in &mut self.results {
            result.get_or_insert_with(|| Err(error.clone()));
        }
    }
}

/// Whether all that can be accepted is.
enum Settled {
    Yes,
    /// The application has changed.
    NotYet,
}

impl Intake {
    /// Hands in several events of one application, in one commit unless they go to very many endpoints or its
    /// configuration changes meanwhile. What becomes of one is of no concern to the others. An error is about
    /// all: nothing was stored, unless it is [`SendError::Late`]. `commit_timeout`: how long a commit is waited for.
    pub(crate) async fn send_many(
        &self,
        which: &ApplicationRef,
        events: Vec<NewEvent>,
        commit_timeout: Option<Duration>,
    ) -> Result<Vec<Result<SendReceipt, SendError>>, SendError> {
        let mut many = Many::new(&events, self.quotas, commit_timeout);
        let unfit = self.check(which, &events).await;
        for (fits, unfit) in many.fits.iter_mut().zip(&unfit) {
            *fits = unfit.is_none();
        }
        self.settle(which, &events, &mut many).await?;
        // What cannot be accepted as it is is refused one by one, with all the care that this takes.
        let mut all = Vec::with_capacity(events.len());
        for ((event, result), unfit) in events.iter().zip(many.results).zip(unfit) {
            all.push(match result {
                Some(result) => result,
                None => self.send_checked(which, event, unfit, commit_timeout).await,
            });
        }
        Ok(all)
    }

    /// Hands in what the server itself has to say, as [`Self::send_many`] does. It counts for nobody, and no schema
    /// is asked about it.
    pub(crate) async fn send_own(
        &self,
        which: &ApplicationRef,
        events: &[NewEvent],
    ) -> Result<Vec<Result<SendReceipt, SendError>>, SendError> {
        let mut many = Many::new(events, Quotas::default(), None);
        self.settle(which, events, &mut many).await?;
        many.fill(&SendError::Unsettled);
        Ok(many.results.into_iter().flatten().collect())
    }

    /// Commits what fits, until all of it has a result or the application has changed too often. An error is about
    /// all: nothing was stored, unless it is [`SendError::Late`].
    async fn settle(
        &self,
        which: &ApplicationRef,
        events: &[NewEvent],
        many: &mut Many,
    ) -> Result<(), SendError> {
        // What is old is kept until the next is read: that has the most of it in common.
        let mut old = None;
        for _ in 0..MAX_MATCH_ROUNDS {
            let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
            events.iter().try_for_each(|event| takes(&tenant, event))?;
            drop(old.take());
            match self.commit_many(&tenant, events, many).await {
                Ok(Settled::Yes) => break,
                Ok(Settled::NotYet) => {
                    self.directory.forget(which, &tenant);
                    old = Some(tenant);
                }
                Err(error) if many.results.iter().all(Option::is_none) => return Err(error),
                Err(error) => {
                    many.fill(&error);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Those that have no result yet, by one version of the application.
    async fn commit_many(
        &self,
        tenant: &Arc<Tenant>,
        events: &[NewEvent],
        many: &mut Many,
    ) -> Result<Settled, SendError> {
        let now = self.clock.now();
        let mut cost_so_far = 0;
        let mut left = (0..events.len()).filter(|place| many.is_open(*place)).collect::<Vec<_>>().into_iter();
        loop {
            let (mut places, mut batch, mut deliveries) = (Vec::new(), Vec::new(), 0);
            for place in left.by_ref() {
                let (event, content) = (&events[place], &many.contents[place]);
                let accept = self.matched(tenant, event, content, now, many.quotas).await;
                cost_so_far += match_cost(tenant, event.payload.len());
                if cost_so_far > MAX_INLINE_MATCH_COST {
                    cost_so_far = 0;
                    tokio::task::yield_now().await;
                }
                if can_wait(&accept).is_err() {
                    many.fits[place] = false;
                    continue;
                }
                deliveries += accept.deliveries.len();
                places.push((place, SendReceipt::new(&accept.message)));
                batch.push(accept);
                if deliveries >= MAX_DELIVERIES_PER_COMMIT {
                    break;
                }
            }
            if batch.is_empty() {
                return Ok(Settled::Yes);
            }
            for ((place, new), accepted) in
                places.into_iter().zip(self.commit_all(batch, many.commit_timeout).await?)
            {
                many.results[place] = self.result(&events[place], new, &accepted, now);
                if many.results[place].is_none() {
                    return Ok(Settled::NotYet);
                }
            }
        }
    }
}
