//! Lends the work of an event to its handler and takes it back.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holds the work for the handler, in the extensions of the request.
pub(crate) struct Slot<W>(Arc<Mutex<SlotState<W>>>);

enum SlotState<W> {
    Here(W),
    Taken,
    /// The handler has returned. Work that comes back later is dropped, which abandons it.
    Closed,
}

/// The receiver's side of a slot. Dropping it closes the slot, so that no handle keeps the work alive.
pub(crate) struct SlotOwner<W>(Slot<W>);

/// The work while the handler has it. Dropping this returns it.
pub(crate) struct Taken<W> {
    work: Option<W>,
    slot: Slot<W>,
}

impl<W> Slot<W> {
    pub(crate) fn holding(work: W) -> (SlotOwner<W>, Self) {
        let slot = Self(Arc::new(Mutex::new(SlotState::Here(work))));
        (SlotOwner(slot.clone()), slot)
    }

    /// Takes the work. `None` if it was already taken, or the handler has returned.
    pub(crate) fn take(&self) -> Option<Taken<W>> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, SlotState::Taken) {
            SlotState::Here(work) => Some(Taken { work: Some(work), slot: self.clone() }),
            other => {
                *state = other;
                None
            }
        }
    }

    fn close(&self) -> Option<W> {
        match std::mem::replace(&mut *self.lock(), SlotState::Closed) {
            SlotState::Here(work) => Some(work),
            SlotState::Taken | SlotState::Closed => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> SlotOwner<W> {
    /// Takes the work back. `None` if the handler still has it.
    pub(crate) fn close(self) -> Option<W> {
        self.0.close()
    }
}

impl<W> Drop for SlotOwner<W> {
    fn drop(&mut self) {
        drop(self.0.close());
    }
}

impl<W> Drop for Taken<W> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        if matches!(*state, SlotState::Taken)
            && let Some(work) = self.work.take()
        {
            *state = SlotState::Here(work);
        }
    }
}

impl<W> Deref for Taken<W> {
    type Target = W;

    fn deref(&self) -> &W {
        match &self.work {
            Some(work) => work,
            None => unreachable!("the work is there until the drop"),
        }
    }
}

impl<W> DerefMut for Taken<W> {
    fn deref_mut(&mut self) -> &mut W {
        match &mut self.work {
            Some(work) => work,
            None => unreachable!("the work is there until the drop"),
        }
    }
}

impl<W> Clone for Slot<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Slot;
    use std::sync::{Arc, Weak};

    fn work() -> (Arc<()>, Weak<()>) {
        let work = Arc::new(());
        let alive = Arc::downgrade(&work);
        (work, alive)
    }

    #[test]
    fn work_is_taken_once_and_comes_back_when_it_is_dropped() {
        let (owner, slot) = Slot::holding("work");
        let taken = slot.take().unwrap();
        assert!(slot.take().is_none());
        drop(taken);
        drop(slot.take().unwrap());
        assert_eq!(owner.close(), Some("work"));
        assert!(slot.take().is_none());
    }

    #[test]
    fn work_that_comes_back_after_the_end_is_dropped() {
        let (work, alive) = work();
        let (owner, slot) = Slot::holding(work);
        let taken = slot.take().unwrap();
        assert!(owner.close().is_none());
        assert!(alive.upgrade().is_some());
        drop(taken);
        assert!(alive.upgrade().is_none(), "a handle on the slot keeps a work that is nobody's");
        drop(slot);
    }

    #[test]
    fn a_handle_that_outlives_the_owner_keeps_no_work_alive() {
        let (work, alive) = work();
        let (owner, slot) = Slot::holding(work);
        drop(owner);
        assert!(alive.upgrade().is_none() && slot.take().is_none());
    }
}
