use crate::counters::Counters;
use crate::under_way::UnderWay;
use crate::{
    Builder, Challenge, Clock, DuplicateRate, Guarantee, Ledger, LedgerError, OnFailure, WhenSenderLeaves,
};
use aldaba_signature::inbound::Inspector;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Takes webhooks of one sender: checks them, hands each to its handler once, and says what to answer. Copies of it are
/// handles on the same receiver.
pub struct Receiver<L>(pub(crate) Arc<Shared<L>>);

pub(crate) struct Shared<L> {
    pub(crate) inspector: Inspector,
    pub(crate) ledger: L,
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) under_way: UnderWay,
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) patience: Duration,
    pub(crate) on_failure: OnFailure,
    pub(crate) when_sender_leaves: WhenSenderLeaves,
    pub(crate) max_body: usize,
    pub(crate) body_time: Duration,
    pub(crate) handler_time: Duration,
    pub(crate) after_commit_time: Duration,
    pub(crate) clock: Clock,
    pub(crate) challenge: Option<Challenge>,
}

impl<L: Ledger> Receiver<L> {
    /// With the limits that suit most; [`Receiver::builder`] sets others.
    pub fn new(inspector: Inspector, ledger: L) -> Self {
        Self::builder(inspector, ledger).build()
    }

    /// Begins to build a receiver that checks requests with `inspector` and remembers events in `ledger`.
    pub fn builder(inspector: Inspector, ledger: L) -> Builder<L> {
        Builder::new(inspector, ledger)
    }

    /// How often an event that arrives has its effect: what the ledger is able to promise.
    pub const fn guarantee(&self) -> Guarantee {
        L::GUARANTEE
    }

    /// The ledger that it was built with.
    pub fn ledger(&self) -> &L {
        &self.0.ledger
    }

    /// How many of the events were copies, since this receiver was made, in this process.
    pub fn duplicate_rate(&self) -> DuplicateRate {
        self.0.counters.duplicate_rate()
    }

    /// Removes marks that are older than this, and says how many there were. An event whose mark is gone is new again:
    /// keep marks for as long as the sender may send it, also by hand. [`Cleanup`](crate::Cleanup) does it daily.
    pub async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let cleaned = self.0.ledger.clean(older_than).await;
        match &cleaned {
            Ok(marks) => self.0.counters.cleaned(*marks),
            Err(_) => self.0.counters.cleanup_failed(),
        }
        cleaned
    }

    /// Lets handlers and actions after commits end, for this long at most, and says how many had not. For the end of a
    /// program: a handler goes on when its sender has gone, and a server that has closed its connections does not
    /// know of it.
    pub async fn finish(&self, limit: Duration) -> usize {
        self.0.under_way.ended(limit).await
    }
}

impl<L> Clone for Receiver<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L> fmt::Debug for Receiver<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("options", &self.0.options).finish_non_exhaustive()
    }
}
