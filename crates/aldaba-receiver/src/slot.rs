//! The work of an event, while the handler may take it and has to give it back.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the handler finds its work. In the extensions of the request.
pub(crate) struct Slot<W>(Arc<Mutex<Place<W>>>);

enum Place<W> {
    Here(W),
    Taken,
    /// The handler has ended. What comes back now is dropped, which abandons it.
    Closed,
}

/// The layer's end of a slot. Dropping it closes the slot, so that nothing keeps a work alive behind its back.
pub(crate) struct Owner<W>(Slot<W>);

/// The work, in the handler's hands. It goes back when this is dropped.
pub(crate) struct Taken<W> {
    work: Option<W>,
    slot: Slot<W>,
}

impl<W> Slot<W> {
    pub(crate) fn holding(work: W) -> (Owner<W>, Self) {
        let slot = Self(Arc::new(Mutex::new(Place::Here(work))));
        (Owner(slot.clone()), slot)
    }

    /// Nothing, if it is taken already or the handler has ended.
    pub(crate) fn take(&self) -> Option<Taken<W>> {
        let mut place = self.lock();
        match std::mem::replace(&mut *place, Place::Taken) {
            Place::Here(work) => Some(Taken { work: Some(work), slot: self.clone() }),
            other => {
                *place = other;
                None
            }
        }
    }

    fn close(&self) -> Option<W> {
        match std::mem::replace(&mut *self.lock(), Place::Closed) {
            Place::Here(work) => Some(work),
            Place::Taken | Place::Closed => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Place<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Owner<W> {
    /// Takes the work for good; nothing, if the handler has not given it back.
    pub(crate) fn close(self) -> Option<W> {
        self.0.close()
    }
}

impl<W> Drop for Owner<W> {
    fn drop(&mut self) {
        drop(self.0.close());
    }
}

impl<W> Drop for Taken<W> {
    fn drop(&mut self) {
        let mut place = self.slot.lock();
        if matches!(*place, Place::Taken)
            && let Some(work) = self.work.take()
        {
            *place = Place::Here(work);
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
    fn what_is_kept_beyond_the_end_is_dropped_when_it_comes_back() {
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
