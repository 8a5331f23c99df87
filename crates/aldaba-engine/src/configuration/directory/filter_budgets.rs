//! Limits the match cost of an application's filters.
//!
//! The limit is checked when a filter is set, so that its author sees the error; messages are never refused
//! because of filters. Filter changes of one application run one at a time, so that each sees the cost of
//! the one before.

use super::ChangeError;
use crate::blocking_pool::BlockingPool;
use aldaba_delivery::AppId;
use aldaba_delivery::filter::{CombinedMatchCost, Filter, MAX_MATCH_COST, MAX_MATCH_COST_PER_FILTER};
use aldaba_store::{Error, Tenant};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Applications that are cached, besides those in use; and the largest cached cost, by
/// [`CombinedMatchCost::len`]. Others are computed again.
const MAX_CACHED_APPLICATIONS: usize = 32;
const MAX_CACHED_FILTERS: usize = 50_000;
/// Up to this many filters are counted on the calling thread.
const MAX_INLINE_FILTERS: usize = 100;

/// Clones share the cache.
#[derive(Clone)]
pub(crate) struct FilterBudgets {
    cached: Arc<Mutex<HashMap<AppId, Arc<AsyncMutex<CachedCost>>>>>,
    pool: BlockingPool,
}

impl Default for FilterBudgets {
    fn default() -> Self {
        Self { cached: Arc::default(), pool: BlockingPool::new() }
    }
}

/// `None`: it must be read.
type CachedCost = Option<CombinedMatchCost>;

/// A filter change whose cost is already counted. Other changes of the application wait for it.
pub(super) struct FilterReservation {
    cached: OwnedMutexGuard<CachedCost>,
    new: Option<Arc<Filter>>,
    old: Option<Arc<Filter>>,
}

impl FilterBudgets {
    async fn lock(&self, app: AppId) -> OwnedMutexGuard<CachedCost> {
        let entry = {
            let mut all = self.cached.lock();
            if all.len() >= MAX_CACHED_APPLICATIONS && !all.contains_key(&app) {
                all.retain(|_, entry| Arc::strong_count(entry) > 1);
            }
            all.entry(app).or_default().clone()
        };
        entry.lock_owned().await
    }

    /// Replaces a filter. `None`: nothing changes. The total may exceed the limit only if it did before.
    pub(super) async fn replace(
        &self,
        app: AppId,
        (new, old): (Option<Arc<Filter>>, Option<Arc<Filter>>),
        read: impl Future<Output = Result<Option<Tenant>, Error>>,
    ) -> Result<Option<FilterReservation>, ChangeError> {
        if new == old {
            return Ok(None);
        }
        if let Some(new) = &new {
            let mut alone = CombinedMatchCost::default();
            alone.add(new);
            let cost = alone.match_cost().total();
            if cost > MAX_MATCH_COST_PER_FILTER {
                return Err(ChangeError::FilterTooCostly { cost, limit: MAX_MATCH_COST_PER_FILTER });
            }
        }
        let mut reservation = FilterReservation { cached: self.lock(app).await, new, old };
        let mut total_cost =
            match reservation.cached.take().filter(|total_cost| total_cost.len() <= MAX_CACHED_FILTERS) {
                Some(total_cost) => total_cost,
                None => self.count(read.await?).await,
            };
        let before = total_cost.match_cost().total();
        if let Some(old) = &reservation.old {
            total_cost.remove(old);
        }
        if let Some(new) = &reservation.new {
            total_cost.add(new);
        }
        let cost = total_cost.match_cost().total();
        *reservation.cached = Some(total_cost);
        if cost > MAX_MATCH_COST.max(before) {
            reservation.settle(false);
            return Err(ChangeError::FiltersTooCostly { cost, limit: MAX_MATCH_COST });
        }
        Ok(Some(reservation))
    }

    /// Removes an endpoint with whatever filter it has by then.
    pub(super) async fn remove(&self, app: AppId) -> FilterReservation {
        let mut cached = self.lock(app).await;
        *cached = None;
        FilterReservation { cached, new: None, old: None }
    }

    async fn count(&self, tenant: Option<Tenant>) -> CombinedMatchCost {
        let count = |filters: &[Arc<Filter>]| {
            let mut total_cost = CombinedMatchCost::default();
            filters.iter().for_each(|filter| total_cost.add(filter));
            total_cost
        };
        let endpoints = tenant.into_iter().flat_map(|tenant| tenant.endpoints);
        let filters: Vec<_> = endpoints.filter_map(|endpoint| endpoint.filter).collect();
        match filters.len() {
            ..=MAX_INLINE_FILTERS => count(&filters),
            _ => self.pool.run(move || count(&filters)).await,
        }
    }
}

impl FilterReservation {
    /// Settles the reservation: `done` if the change is on disk. Dropping it unsettled discards the cached
    /// cost.
    pub(super) fn settle(mut self, done: bool) {
        let Self { cached, new, old } = &mut self;
        if let (Some(total_cost), false) = (cached.as_mut(), done) {
            if let Some(new) = new {
                total_cost.remove(new);
            }
            if let Some(old) = old {
                total_cost.add(old);
            }
        }
        self.new = None;
        self.old = None;
    }
}

impl Drop for FilterReservation {
    fn drop(&mut self) {
        if self.new.is_some() || self.old.is_some() {
            *self.cached = None;
        }
    }
}
