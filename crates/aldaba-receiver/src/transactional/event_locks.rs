use super::Deadline;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// One lock for each event: copies of an event are handled one after another.
///
/// Within a process the copies wait here, where a wait needs no connection. So each event uses one connection at most,
/// and many copies of one event cannot keep other events from the database.
#[derive(Clone, Debug, Default)]
pub struct EventLocks(Arc<Mutex<HashMap<String, WaitingCopies>>>);

/// The copies that hold or await the lock of one event.
#[derive(Debug)]
struct WaitingCopies {
    lock: Arc<tokio::sync::Mutex<()>>,
    count: usize,
}

/// The right to claim one event. Dropping it passes the right to the next copy.
#[derive(Debug)]
pub struct EventLock {
    // Released before the registration ends: the lock exists while a copy holds or awaits it.
    _lock: OwnedMutexGuard<()>,
    _registration: Registration,
}

/// Counts one copy until it is dropped.
#[derive(Debug)]
struct Registration {
    locks: EventLocks,
    event_id: String,
}

impl EventLocks {
    /// Locks an event, first come, first served. `None` after the deadline.
    pub async fn take(&self, event_id: &str, deadline: &Deadline) -> Option<EventLock> {
        let (lock, registration) = self.register(event_id);
        let lock = tokio::time::timeout_at(deadline.at(), lock.lock_owned()).await.ok()?;
        Some(EventLock { _lock: lock, _registration: registration })
    }

    fn register(&self, event_id: &str) -> (Arc<tokio::sync::Mutex<()>>, Registration) {
        let mut events = self.events();
        let copies = events
            .entry(event_id.to_owned())
            .or_insert_with(|| WaitingCopies { lock: Arc::default(), count: 0 });
        copies.count += 1;
        (Arc::clone(&copies.lock), Registration { locks: self.clone(), event_id: event_id.to_owned() })
    }

    fn events(&self) -> MutexGuard<'_, HashMap<String, WaitingCopies>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut events = self.locks.events();
        if let Some(copies) = events.get_mut(&self.event_id) {
            copies.count -= 1;
            if copies.count == 0 {
                events.remove(&self.event_id);
            }
        }
    }
}

/// The former name of [`EventLocks`].
#[deprecated(note = "use `EventLocks`")]
pub type Turns = EventLocks;

/// The former name of [`EventLock`].
#[deprecated(note = "use `EventLock`")]
pub type Turn = EventLock;

#[cfg(test)]
mod tests {
    use super::EventLocks;
    use crate::transactional::Deadline;
    use std::time::Duration;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_millis(300))
    }

    #[tokio::test]
    async fn the_second_copy_gets_the_lock_when_the_first_is_dropped() {
        let locks = EventLocks::default();
        let first = locks.take("evt_1", &soon()).await.unwrap();
        let second = tokio::spawn({
            let locks = locks.clone();
            async move { locks.take("evt_1", &soon()).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.unwrap());
    }

    #[tokio::test]
    async fn other_events_do_not_wait() {
        let locks = EventLocks::default();
        let _first = locks.take("evt_1", &soon()).await.unwrap();
        assert!(locks.take("evt_2", &Deadline::after(Duration::ZERO)).await.is_some());
    }

    #[tokio::test]
    async fn a_wait_that_times_out_leaves_nothing_behind() {
        let locks = EventLocks::default();
        let first = locks.take("evt_1", &soon()).await.unwrap();
        assert!(locks.take("evt_1", &soon()).await.is_none());
        drop(first);
        assert!(locks.events().is_empty());
    }
}
