//! The work of an event as handlers below the layer get it. Handlers of axum take it as an argument; others take it from
//! the request's extensions.

use crate::slot::{Slot, Taken};
use crate::{Event, Guarantee, Ledger};
use http::Extensions;
use std::fmt;
use std::ops::{Deref, DerefMut};
use thiserror::Error;

/// Why a handler cannot get its event or its work: a mistake in the program.
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
    /// The work of the event was taken before.
    #[error("the work of this event was already taken: a handler can take it once")]
    Taken,
    /// Two receivers are around the route.
    #[error(
        "two receivers are around this route, and one would wait for the other: keep `.layer(receiver.layer())` in one place, on the route or on the router"
    )]
    Nested,
}

/// The work of an event with any ledger. [`Transaction`] and [`Lease`] compile only with the matching kind of ledger.
pub struct Held<L: Ledger>(Taken<L::Work>);

/// The transaction in which the event is marked. The receiver commits it when the handler succeeds, and rolls it back
/// otherwise. Drop it when you are done; there is nothing to commit.
///
/// Only ledgers with [`Guarantee::ExactlyOnceEffect`] have one:
///
/// ```compile_fail
/// # use aldaba_receiver::{Transaction, http::Extensions, lease::MemoryLeases};
/// let transaction = Transaction::<MemoryLeases>::of(&Extensions::new()); // a lease rolls nothing back
/// ```
pub struct Transaction<L: Ledger>(Taken<L::Work>);

/// The lease of the event: at least once. A failed handler is **not** undone, and after a crash before the mark the event
/// is handled again.
///
/// ```
/// # use aldaba_receiver::{Lease, Misplaced, http::Extensions, lease::MemoryLeases};
/// let lease = Lease::<MemoryLeases>::of(&Extensions::new());
/// assert_eq!(lease.unwrap_err(), Misplaced::NoLayer);
/// ```
pub struct Lease<L: Ledger>(Taken<L::Work>);

impl Event {
    /// The event of a request that passed the layer.
    pub fn of(extensions: &Extensions) -> Result<&Self, Misplaced> {
        extensions.get().ok_or(Misplaced::NoLayer)
    }
}

impl<L: Ledger> Held<L> {
    pub(crate) fn of_taken(work: Taken<L::Work>) -> Self {
        Self(work)
    }

    /// Takes the work of a request that passed the layer.
    pub fn of(extensions: &Extensions) -> Result<Self, Misplaced> {
        take::<L>(extensions).map(Self)
    }
}

impl<L: Ledger> Transaction<L> {
    /// Takes the transaction of a request that passed the layer.
    pub fn of(extensions: &Extensions) -> Result<Self, Misplaced> {
        const {
            assert!(
                matches!(L::GUARANTEE, Guarantee::ExactlyOnceEffect),
                "this ledger gives leases, which roll nothing back: take `Lease` instead of `Transaction`"
            );
        }
        take::<L>(extensions).map(Self)
    }
}

impl<L: Ledger> Lease<L> {
    /// Takes the lease of a request that passed the layer.
    pub fn of(extensions: &Extensions) -> Result<Self, Misplaced> {
        const {
            assert!(
                matches!(L::GUARANTEE, Guarantee::AtLeastOnce),
                "this ledger gives transactions: take `Transaction` instead of `Lease`"
            );
        }
        take::<L>(extensions).map(Self)
    }
}

fn take<L: Ledger>(extensions: &Extensions) -> Result<Taken<L::Work>, Misplaced> {
    Event::of(extensions)?;
    extensions.get::<Slot<L::Work>>().ok_or(Misplaced::OtherLedger)?.take().ok_or(Misplaced::Taken)
}

macro_rules! deref_to_work {
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

deref_to_work!(Held, Transaction, Lease);
