//! How many attempts by hand may be under way at once, in all and of one application.

use aldaba_delivery::AppId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const AT_ONCE: u32 = 64;
/// So that one customer's slow receiver does not use them all up.
const OF_ONE: usize = 16;

#[derive(Clone)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    used: Arc<Mutex<HashMap<AppId, usize>>>,
}

/// Given back when it is dropped.
pub(super) struct Place {
    places: Places,
    app: AppId,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE as usize)), used: Arc::default() }
    }

    pub(super) fn take(&self, app: AppId) -> Option<Place> {
        let mut used = self.used.lock();
        if used.get(&app).is_some_and(|used| *used >= OF_ONE) {
            return None;
        }
        let of_all = self.all.clone().try_acquire_owned().ok()?;
        *used.entry(app).or_default() += 1;
        Some(Place { places: self.clone(), app, _of_all: of_all })
    }

    /// Resolves when all have been given back. No more are given out.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.all.acquire_many(AT_ONCE).await {
            all.forget();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = self.places.used.lock();
        if let Some(count) = used.get_mut(&self.app) {
            *count -= 1;
            if *count == 0 {
                used.remove(&self.app);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    fn app(number: u8) -> AppId {
        AppId::new(Timestamp::MIN, [number; 15])
    }

    #[test]
    fn one_application_does_not_use_up_the_places_of_the_others() {
        let places = Places::new();
        let mut taken: Vec<_> = std::iter::from_fn(|| places.take(app(1))).collect();
        assert_eq!(taken.len(), OF_ONE);
        let other = places.take(app(2));
        assert!(other.is_some());
        taken.pop();
        assert!(places.take(app(1)).is_some());
        drop((taken, other));
        assert!(places.used.lock().is_empty(), "nothing is remembered of who is done");
    }

    #[tokio::test]
    async fn once_closed_no_more_are_given_out() {
        let places = Places::new();
        let taken: Vec<_> = (0..10)
            .flat_map(|number| std::iter::repeat_with(move || app(number)).take(OF_ONE))
            .filter_map(|app| places.take(app))
            .collect();
        assert_eq!(taken.len(), AT_ONCE as usize);
        let closing = tokio::spawn({
            let places = places.clone();
            async move { places.close().await }
        });
        tokio::task::yield_now().await;
        assert!(!closing.is_finished());
        drop(taken);
        closing.await.unwrap();
        assert!(places.take(app(1)).is_none());
    }
}
