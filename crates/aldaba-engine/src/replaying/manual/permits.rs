//! Permits for manual attempts: one for each delivery at a time, within limits for all and for each application.

use super::ResendError;
use aldaba_delivery::{AppId, EndpointId, MessageId};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const MAX_MANUAL_ATTEMPTS: u32 = 64;
/// So that one customer's slow receiver does not use all permits.
const MAX_PER_APPLICATION: usize = 16;

/// The delivery that is attempted.
type Which = (EndpointId, MessageId);

#[derive(Clone)]
pub(crate) struct ManualPermits {
    all: Arc<Semaphore>,
    used: Arc<Mutex<HashMap<AppId, HashSet<Which>>>>,
}

/// Returned when it is dropped.
pub(super) struct ManualPermit {
    permits: ManualPermits,
    app: AppId,
    which: Which,
    _of_all: OwnedSemaphorePermit,
}

impl ManualPermits {
    pub(crate) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_MANUAL_ATTEMPTS as usize)), used: Arc::default() }
    }

    pub(super) fn take(&self, app: AppId, which: Which) -> Result<ManualPermit, ResendError> {
        let mut used = self.used.lock();
        let of_app = used.get(&app);
        if of_app.is_some_and(|used| used.contains(&which)) {
            return Err(ResendError::InFlight);
        }
        if of_app.is_some_and(|used| used.len() >= MAX_PER_APPLICATION) {
            return Err(ResendError::TooMany);
        }
        let of_all = self.all.clone().try_acquire_owned().map_err(|_| ResendError::TooMany)?;
        used.entry(app).or_default().insert(which);
        Ok(ManualPermit { permits: self.clone(), app, which, _of_all: of_all })
    }

    /// How many permits are in use.
    pub(crate) fn taken(&self) -> usize {
        self.used.lock().values().map(HashSet::len).sum()
    }

    /// Issues no more permits, and resolves when all are returned.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.all.acquire_many(MAX_MANUAL_ATTEMPTS).await {
            all.forget();
        }
    }
}

impl Drop for ManualPermit {
    fn drop(&mut self) {
        let mut used = self.permits.used.lock();
        if let Some(of_app) = used.get_mut(&self.app) {
            of_app.remove(&self.which);
            if of_app.is_empty() {
                used.remove(&self.app);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(permits: &ManualPermits, app: u8, message: u8) -> Result<ManualPermit, ResendError> {
        let which = (EndpointId::from_bytes([1; 20]), MessageId::from_bytes([message; 20]));
        permits.take(AppId::from_bytes([app; 20]), which)
    }

    #[test]
    fn one_application_does_not_use_up_the_permits_of_the_others() {
        let permits = ManualPermits::new();
        let mut taken: Vec<_> = (0..=255).map_while(|message| take(&permits, 1, message).ok()).collect();
        assert_eq!(taken.len(), MAX_PER_APPLICATION);
        assert_eq!(take(&permits, 1, 255).err(), Some(ResendError::TooMany));
        let other = take(&permits, 2, 0);
        assert!(other.is_ok());
        taken.pop();
        assert!(take(&permits, 1, 255).is_ok());
        drop((taken, other));
        assert!(permits.used.lock().is_empty(), "nothing is remembered of who is done");
    }

    #[test]
    fn a_delivery_with_a_manual_attempt_in_flight_gets_no_second_one() {
        let permits = ManualPermits::new();
        let first = take(&permits, 1, 1);
        assert_eq!(take(&permits, 1, 1).err(), Some(ResendError::InFlight));
        drop(first);
        assert!(take(&permits, 1, 1).is_ok());
    }

    #[tokio::test]
    async fn once_closed_no_more_are_issued() {
        let permits = ManualPermits::new();
        let taken: Vec<_> = (0..10)
            .flat_map(|app| {
                (0..=255).map_while(|message| take(&permits, app, message).ok()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(taken.len(), MAX_MANUAL_ATTEMPTS as usize);
        let closing = tokio::spawn({
            let permits = permits.clone();
            async move { permits.close().await }
        });
        tokio::task::yield_now().await;
        assert!(!closing.is_finished());
        drop(taken);
        closing.await.unwrap();
        assert_eq!(take(&permits, 1, 1).err(), Some(ResendError::TooMany));
    }
}
