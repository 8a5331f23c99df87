//! What a handler below the layer works in. Handlers of axum take these as arguments; others take them from the
//! request's extensions.

use crate::slot::{Slot, Taken};
use crate::{Event, Guarantee, Ledger};
use http::Extensions;
use std::fmt;
use std::ops::{Deref, DerefMut};
use thiserror::Error;

/// What a handler asked for is not there: a mistake of the program.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misplaced {
    /// No receiver is around the handler's route.
    #[error(
        "this handler takes a webhook, but its route has no receiver around it: add `.layer(receiver.layer())` to the route"
    )]
    NoLayer,
    /// The receiver around the route has another type of ledger.
    #[error(
        "the receiver around this route has another ledger than the handler asks for: both must name the same type"
    )]
    OtherLedger,
    /// The work of the event was taken before; it can be taken once.
    #[error("the work of this event is taken already: a handler can take it once")]
    Taken,
    /// Two receivers are around the route.
    #[error(
        "two receivers are around this route, and one would wait for the other: leave `.layer(receiver.layer())` in one place, at the route or around the router"
    )]
    Nested,
}

/// The work of the event, whatever its ledger is. [`Transaction`] and [`Lease`] say which kind is meant, and do not build
/// with the other.
pub struct Held<L: Ledger>(Taken<L::Work>);

/// The transaction in which the event is marked. What the handler does in it is committed with the mark when the
/// handler has answered 2xx, and rolled back otherwise. It is given back when it is dropped: a handler has nothing to
/// commit, and cannot forget to.
///
/// Only ledgers that promise [`Guarantee::ExactlyOnceEffect`] have one:
///
/// ```compile_fail
/// # use aldaba_receiver::{Transaction, http::Extensions, lease::MemoryLeases};
/// let transaction = Transaction::<MemoryLeases>::of(&Extensions::new()); // a lease rolls nothing back
/// ```
pub struct Transaction<L: Ledger>(Taken<L::Work>);

/// The lease of the event. What the handler does is **not** undone when it fails, and is done again after a crash before the
/// mark: at least once.
///
/// ```
/// # use aldaba_receiver::{Lease, Misplaced, http::Extensions, lease::MemoryLeases};
/// let lease = Lease::<MemoryLeases>::of(&Extensions::new());
/// assert_eq!(lease.unwrap_err(), Misplaced::NoLayer);
/// ```
pub struct Lease<L: Ledger>(Taken<L::Work>);

impl Event {
    /// The event of a request that has come through the layer.
    pub fn of(extensions: &Extensions) -> Result<&Self, Misplaced> {
        extensions.get().ok_or(Misplaced::NoLayer)
    }
}

impl<L: Ledger> Held<L> {
    pub(crate) fn of_taken(work: Taken<L::Work>) -> Self {
        Self(work)
    }

    /// Takes the work of a request that has come through the layer.
    pub fn of(extensions: &Extensions) -> Result<Self, Misplaced> {
        take::<L>(extensions).map(Self)
    }
}

impl<L: Ledger> Transaction<L> {
    /// Takes the transaction of a request that has come through the layer.
    pub fn of(extensions: &Extensions) -> Result<Self, Misplaced> {
        const {
            assert!(
                matches!(L::GUARANTEE, Guarantee::ExactlyOnceEffect),
                "this ledger gives leases, which roll nothing back: take `Lease` in place of `Transaction`"
            );
        }
        take::<L>(extensions).map(Self)
    }
}

impl<L: Ledger> Lease<L> {
    /// Takes the lease of a request that has come through the layer.
    pub fn of(extensions: &Extensions) -> Result<Self, Misplaced> {
        const {
            assert!(
                matches!(L::GUARANTEE, Guarantee::AtLeastOnce),
                "this ledger gives transactions: take `Transaction` in place of `Lease`"
            );
        }
        take::<L>(extensions).map(Self)
    }
}

fn take<L: Ledger>(extensions: &Extensions) -> Result<Taken<L::Work>, Misplaced> {
    Event::of(extensions)?;
    extensions.get::<Slot<L::Work>>().ok_or(Misplaced::OtherLedger)?.take().ok_or(Misplaced::Taken)
}

macro_rules! leads_to_the_work {
    ($($name:ident),*) => {$(
        impl<L: Ledger> Deref for $name<L> {
            type Target = L::Work;

            fn deref(&self) -> &L::Work {
                &self.0
            }
        }

        impl<L: Ledger> DerefMut for $name<L> {
            fn deref_mut(&mut self) -> &mut L::Work {
                &mut self.0
            }
        }

        impl<L: Ledger> fmt::Debug for $name<L> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

leads_to_the_work!(Held, Transaction, Lease);
