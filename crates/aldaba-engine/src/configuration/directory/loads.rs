//! What the filters of an application take together, and who may add to it.
//!
//! It is asked when a filter is given, so that whoever gives it hears that it is too much; messages are never refused because
//! of filters. One change of the filters of an application is under way at a time: what it adds is known before the next.

use super::ChangeError;
use crate::aside::Aside;
use aldaba_delivery::AppId;
use aldaba_delivery::filter::{CombinedMatchCost, Filter, MAX_MATCH_COST, MAX_MATCH_COST_PER_FILTER};
use aldaba_store::{Error, Tenant};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Applications that are remembered, but for those that are in use; and the largest, by [`CombinedMatchCost::len`]. Others are read again.
const MOST_APPLICATIONS: usize = 32;
const LARGEST: usize = 50_000;
/// Filters that are counted on the thread that asks.
const COUNTED_AT_ONCE: usize = 100;

/// Clones share what they know.
#[derive(Clone)]
pub(crate) struct Loads {
    known: Arc<Mutex<HashMap<AppId, Arc<Turn<Known>>>>>,
    counting: Aside,
}

impl Default for Loads {
    fn default() -> Self {
        Self { known: Arc::default(), counting: Aside::new() }
    }
}

/// `None`: it has to be read.
type Known = Option<CombinedMatchCost>;

/// A change of the filters of one application, which others wait for. It is counted already.
pub(super) struct Change {
    known: OwnedMutexGuard<Known>,
    new: Option<Arc<Filter>>,
    old: Option<Arc<Filter>>,
}

impl Loads {
    async fn turn(&self, app: AppId) -> OwnedMutexGuard<Known> {
        let turn = {
            let mut all = self.known.lock();
            if all.len() >= MOST_APPLICATIONS && !all.contains_key(&app) {
                all.retain(|_, turn| Arc::strong_count(turn) > 1);
            }
            all.entry(app).or_default().clone()
        };
        turn.lock_owned().await
    }

    /// Puts a filter in the place of another one; `None`: nothing changes. All together may be too much only where they
    /// were before.
    pub(super) async fn replace(
        &self,
        app: AppId,
        (new, old): (Option<Arc<Filter>>, Option<Arc<Filter>>),
        read: impl Future<Output = Result<Option<Tenant>, Error>>,
    ) -> Result<Option<Change>, ChangeError> {
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
        let mut change = Change { known: self.turn(app).await, new, old };
        let mut load = match change.known.take().filter(|load| load.len() <= LARGEST) {
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
        *change.known = Some(load);
        if work > MAX_MATCH_COST.max(before) {
            change.settle(false);
            return Err(ChangeError::FiltersTooCostly { work, most: MAX_MATCH_COST });
        }
        Ok(Some(change))
    }

    /// An endpoint goes, with whatever filter it has by then.
    pub(super) async fn remove(&self, app: AppId) -> Change {
        let mut known = self.turn(app).await;
        *known = None;
        Change { known, new: None, old: None }
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
            ..=COUNTED_AT_ONCE => count(&filters),
            _ => self.counting.run(move || count(&filters)).await,
        }
    }
}

impl Change {
    /// Whether it is on disk. Who does not know lets go of it, and all is read again.
    pub(super) fn settle(mut self, done: bool) {
        let Self { known, new, old } = &mut self;
        if let (Some(load), false) = (known.as_mut(), done) {
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

impl Drop for Change {
    fn drop(&mut self) {
        if self.new.is_some() || self.old.is_some() {
            *self.known = None;
        }
    }
}
