//! Every rule of the store that is not on the hot path, written once for all backends, over a small [`Transaction`].
//!
//! A file for each thing: its columns, its statements and what may be done with it. The statements are SQL that SQLite and
//! PostgreSQL both read. Reads get the read-only half, [`Reading`], which is a snapshot of one moment.

pub(crate) mod alert;
pub(crate) mod audit;
mod change;
mod configuration;
mod counting;
mod delivering;
pub(crate) mod erasure;
#[cfg(feature = "simulation")]
pub mod everything;
pub(crate) mod export;
pub(crate) mod mail;
mod messages;
mod monotonic;
pub(crate) mod notice;
mod numbers;
mod op;
pub(crate) mod replay;
pub(crate) mod retention;
mod sql;

pub(crate) use configuration::{
    api_key, application, endpoint, event_type, policy, profile, setting, source, token,
};
pub(crate) use counting::{commit_watch, counters, live, organizations, overviews, quota, statistics};
pub(crate) use delivering::{accepting, due_times, gate, health, lanes, recording, stop_dates};
pub(crate) use messages::{attempt, delivery, delivery_list, dispatch, keys, message, source_states};
pub(crate) use sql::{codes, column, lists, stored, transaction};

pub use column::Row;
pub use commit_watch::{CommitWatch, CommitWatcher};
pub use counters::{BatchCounts, Counters, TypeCounts};
pub(crate) use live::WriteCounts;
pub use live::{COMMIT_MICROS, COMMIT_OPERATIONS, CommitCounts, LiveCounts};
pub use monotonic::{BULK_SLICE, Monotonic, Slice};
pub use numbers::Numbers;
pub use op::{Class, Op, OpOutcome, Reply};
pub use retention::{
    Cutoff, ExpiredItem, Removal, Removed, RetentionWalk, Search, SettledPosition, StoredKey,
};
pub use transaction::{Reading, Result, Statement, Transaction, Value};

use crate::{Accepted, Error, Recorded};
use aldaba_delivery::{AppId, MessageId};
use std::collections::HashMap;

/// What the operations are held to.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub endpoints_per_application: usize,
    /// An endpoint with more failures in a row has an alert; `None`: none has one.
    pub endpoint_failures: Option<u32>,
}

/// One commit under way.
#[expect(missing_debug_implementations, reason = "a transaction has nothing to show")]
pub struct Batch<'a> {
    pub tx: &'a dyn Transaction,
    pub rules: Rules,
    pub clock: &'a Monotonic,
    pub numbers: &'a mut Numbers,
    pub counters: &'a mut Counters,
    /// The versions of the applications that accepts have looked up; `None`: there is no such application.
    pub versions: HashMap<AppId, Option<u64>>,
    /// Whether what the database refuses fails alone. It costs statements, so a batch is run without it first.
    pub isolates: bool,
}

static SAVEPOINT: Statement = Statement::new(|| "SAVEPOINT one".into());
static ROLL_BACK: Statement = Statement::new(|| "ROLLBACK TO one".into());
static RELEASE: Statement = Statement::new(|| "RELEASE one".into());

impl Batch<'_> {
    /// Runs a part of the batch. Where parts are isolated, one that is refused leaves nothing behind.
    fn part<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if !self.isolates {
            return run(self);
        }
        self.tx.execute(&SAVEPOINT, &[])?;
        let counted = self.counters.clone();
        let result = run(self);
        if let Err(Error::Refused(_)) = &result {
            self.tx.execute(&ROLL_BACK, &[])?;
            *self.counters = counted;
            self.numbers.roll_back();
        }
        self.tx.execute(&RELEASE, &[])?;
        result
    }

    /// Runs items that each have a result of their own.
    fn each<I, T>(
        &mut self,
        items: &[I],
        refused: fn(String) -> T,
        mut run: impl FnMut(&mut Self, &I) -> Result<T>,
    ) -> Result<Vec<T>> {
        let isolates = self.isolates;
        let mut run_one = |item| match self.part(|batch| run(batch, item)) {
            Err(Error::Refused(why)) if isolates => Ok(refused(why)),
            result => result,
        };
        items.iter().map(&mut run_one).collect()
    }
}

/// Carries out one operation. Where parts are isolated, one that is refused fails alone.
pub fn apply(batch: &mut Batch<'_>, op: &Op) -> Result<Result<OpOutcome>> {
    let isolates = batch.isolates;
    match batch.part(|batch| apply_part(batch, op)) {
        Err(error) if !(isolates && matches!(error, Error::Refused(_))) => Err(error),
        outcome => Ok(outcome),
    }
}

fn apply_part(batch: &mut Batch<'_>, op: &Op) -> Result<OpOutcome> {
    Ok(match op {
        Op::Accept(accepts) => {
            OpOutcome::Accept(batch.each(accepts, Accepted::Refused, accepting::accept)?)
        }
        Op::FindAccepted(app, digest) => {
            let found = keys::find_request(batch.tx, app.as_bytes(), digest)?;
            OpOutcome::FindAccepted(found.map(MessageId::from_bytes))
        }
        Op::Record(records) => {
            OpOutcome::Record(batch.each(records, Recorded::Refused, recording::record)?)
        }
        Op::Reopen(reopen) => {
            OpOutcome::Reopen(source::reopen(batch.tx, batch.numbers, batch.counters, reopen)?)
        }
        Op::CountDuplicate(org, at) => {
            batch.counters.duplicate(*org, *at);
            OpOutcome::CountDuplicate(())
        }
        Op::RecordManual(resent) => OpOutcome::RecordManual(recording::resent(batch, resent)?),
        Op::Change(change, entry) => {
            // It may raise versions that accepts of this batch have looked up.
            batch.versions.clear();
            OpOutcome::Change(change::change(batch, change, entry.as_deref())?)
        }
        Op::StepReplay(step) => {
            let Batch { tx, numbers, counters, clock, .. } = batch;
            OpOutcome::StepReplay(replay::step(*tx, numbers, counters, clock, step)?)
        }
        Op::StepErasure(step) => OpOutcome::StepErasure(erasure::step(batch, step)?),
        Op::SettleSetting(name, value) => OpOutcome::SettleSetting(setting::settle(batch.tx, name, value)?),
        Op::Discard(app, deliveries, entry) => {
            let discarded = delivery::discard(batch.tx, *app, deliveries)?;
            if let Some(entry) = entry.as_ref().filter(|_| discarded > 0) {
                audit::note(batch.tx, entry, u32::try_from(discarded).unwrap_or(u32::MAX))?;
            }
            OpOutcome::Discard(discarded)
        }
        Op::SumUp(step) => OpOutcome::SumUp(statistics::sum_up(batch.tx, batch.clock, step)?),
        Op::ChangeMails(change) => OpOutcome::ChangeMails(mail::change(batch, change)?),
        Op::Remove(removal) => OpOutcome::Remove(retention::remove(batch.tx, batch.clock, removal)?),
    })
}

/// All statements of all operations, for tests that prepare them.
#[cfg(any(test, feature = "conformance"))]
pub fn statements() -> Vec<&'static Statement> {
    [
        accepting::statements(),
        alert::statements(),
        api_key::statements(),
        application::statements(),
        attempt::statements(),
        audit::statements(),
        counters::statements(),
        delivery::statements(),
        delivery_list::statements(),
        dispatch::statements(),
        due_times::statements(),
        endpoint::statements(),
        erasure::all_statements(),
        event_type::statements(),
        export::statements(),
        gate::statements(),
        health::statements(),
        keys::statements(),
        lanes::statements(),
        mail::all_statements(),
        message::statements(),
        notice::statements(),
        numbers::statements(),
        organizations::statements(),
        overviews::statements(),
        policy::statements(),
        profile::statements(),
        quota::statements(),
        recording::statements(),
        replay::all_statements(),
        retention::all_statements(),
        setting::statements(),
        source::statements(),
        source_states::statements(),
        statistics::statements(),
        stop_dates::statements(),
        token::statements(),
    ]
    .concat()
}
