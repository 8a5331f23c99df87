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

/// Applications that are cached, besides those in use; and the largest cached load, by [`CombinedMatchCost::len`]. Others
/// are read again.
const MAX_CACHED_APPLICATIONS: usize = 32;
const MAX_CACHED_LOAD: usize = 50_000;
/// Up to this many filters are counted on the calling thread.
const MAX_INLINE_FILTERS: usize = 100;

/// Clones share the cache.
#[derive(Clone)]
pub(crate) struct FilterBudgets {
    load: Arc<Mutex<HashMap<AppId, Arc<AsyncMutex<CachedLoad>>>>>,
    pool: BlockingPool,
}

impl Default for FilterBudgets {
    fn default() -> Self {
        Self { load: Arc::default(), pool: BlockingPool::new() }
    }
}

/// `None`: it must be read.
type CachedLoad = Option<CombinedMatchCost>;

/// A filter change whose cost is already counted. Other changes of the application wait for it.
pub(super) struct FilterReservation {
    load: OwnedMutexGuard<CachedLoad>,
    new: Option<Arc<Filter>>,
    old: Option<Arc<Filter>>,
}

impl FilterBudgets {
    async fn lock(&self, app: AppId) -> OwnedMutexGuard<CachedLoad> {
        let lock = {
            let mut all = self.load.lock();
            if all.len() >= MAX_CACHED_APPLICATIONS && !all.contains_key(&app) {
                all.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            all.entry(app).or_default().clone()
        };
        lock.lock_owned().await
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
            let work = alone.match_cost().total();
            if work > MAX_MATCH_COST_PER_FILTER {
                return Err(ChangeError::FilterTooCostly { work, most: MAX_MATCH_COST_PER_FILTER });
            }
        }
        let mut change = FilterReservation { load: self.lock(app).await, new, old };
        let mut load = match change.load.take().filter(|load| load.len() <= MAX_CACHED_LOAD) {
            Some(load) => load,
            None => self.load(read.await?).await,
        };
        let before = load.match_cost().total();
        if let Some(old) = &change.old {
            load.remove(old);
        }
        if let Some(new) = &change.new {
            load.add(new);
        }
        let work = load.match_cost().total();
        *change.load = Some(load);
        if work > MAX_MATCH_COST.max(before) {
            change.settle(false);
            return Err(ChangeError::FiltersTooCostly { work, most: MAX_MATCH_COST });
        }
        Ok(Some(change))
    }

    /// Removes an endpoint with whatever filter it has by then.
    pub(super) async fn remove(&self, app: AppId) -> FilterReservation {
        let mut load = self.lock(app).await;
        *load = None;
        FilterReservation { load, new: None, old: None }
    }

    async fn load(&self, tenant: Option<Tenant>) -> CombinedMatchCost {
        let count = |filters: &[Arc<Filter>]| {
            let mut load = CombinedMatchCost::default();
            filters.iter().for_each(|filter| load.add(filter));
            load
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
    /// load.
    pub(super) fn settle(mut self, done: bool) {
        let Self { load, new, old } = &mut self;
        if let (Some(load), false) = (load.as_mut(), done) {
            if let Some(new) = new {
                load.remove(new);
            }
            if let Some(old) = old {
                load.add(old);
            }
        }
        self.new = None;
        self.old = None;
    }
}

impl Drop for FilterReservation {
    fn drop(&mut self) {
        if self.new.is_some() || self.old.is_some() {
            *self.load = None;
        }
    }
}
