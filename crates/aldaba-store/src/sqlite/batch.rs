//! One commit: many operations, each with a result of its own.

use super::accept::Accepting;
use super::counters::Counters;
use super::failure::{describe, explain};
use super::op::{Op, Outcome};
use super::record::Recording;
use super::types::{Tally, Types};
use super::{
    Monotonic, audit, change, commits, deliveries, remove, replay, setting, source, statistics, subject,
};
use crate::Error;
use rusqlite::{Connection, ErrorCode};

/// How often the writer waits for a lock that another program holds on the file, each time for as
/// long as the connection's busy timeout.
const PATIENCE: usize = 12;

/// Runs `ops` in one transaction and returns when it is on disk, with one outcome for each, in
/// order. An error concerns them all: nothing of them was kept, or (with [`Error::Failed`]) nobody
/// knows what was.
pub fn run_batch(
    connection: &Connection,
    rules: Rules,
    clock: &Monotonic,
    types: &Types,
    ops: &[Op],
) -> Result<Vec<Outcome>, Error> {
    begin(connection)?;
    let changes = connection.total_changes();
    let done = types
        .write(connection, clock, false)
        .and_then(|()| apply(connection, rules, clock, ops))
        .and_then(|done| commits::count(connection, changes).map(|()| done))
        .and_then(|done| connection.prepare_cached("COMMIT")?.execute(()).map(|_| done));
    match done {
        Ok((outcomes, tally)) => {
            types.ended(clock, Some(tally));
            Ok(outcomes)
        }
        Err(error) => {
            types.ended(clock, None);
            Err(roll_back(connection, &error))
        }
    }
}

/// Writes what is counted and was not written yet.
pub(super) fn write_types(connection: &Connection, clock: &Monotonic, types: &Types) -> Result<(), Error> {
    begin(connection)?;
    let done = types
        .write(connection, clock, true)
        .and_then(|()| connection.prepare_cached("COMMIT")?.execute(()).map(drop));
    types.ended(clock, done.is_ok().then(Tally::default));
    done.map_err(|error| roll_back(connection, &error))
}

/// What the operations are held to.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub endpoints_per_application: usize,
}

fn apply(
    connection: &Connection,
    rules: Rules,
    clock: &Monotonic,
    ops: &[Op],
) -> rusqlite::Result<(Vec<Outcome>, Tally)> {
    let mut outcomes = Vec::with_capacity(ops.len());
    let mut accepting = None;
    let mut recording = None;
    let mut counters = Counters::default();
    for op in ops {
        outcomes.push(match op {
            Op::Accept(batch) => {
                let accepting = prepared(&mut accepting, || Accepting::new(connection))?;
                let accept = |accept| accepting.accept(accept, &mut counters);
                Outcome::Accept(batch.iter().map(accept).collect::<Result<_, _>>()?)
            }
            Op::Reopen(reopen) => Outcome::Reopen(source::reopen(connection, reopen, &mut counters)?),
            Op::Record(batch) => {
                let recording = prepared(&mut recording, || Recording::new(connection))?;
                let record = |record| recording.record(record, &mut counters);
                Outcome::Record(batch.iter().map(record).collect::<Result<_, _>>()?)
            }
            Op::Resent(resent) => {
                if let Some(app) = prepared(&mut recording, || Recording::new(connection))?.resent(resent)? {
                    counters.resent(app, resent);
                    if let Some(entry) = &resent.audit {
                        audit::note(connection, entry, 1)?;
                    }
                }
                Outcome::Resent
            }
            Op::Change(change, entry) => {
                // It may raise a version that accepts have looked up.
                accepting = None;
                let before = match entry.as_ref().and_then(|_| change.subject()) {
                    Some(subject) => subject::read(connection, subject)?,
                    None => None,
                };
                let changed = change::apply(connection, rules, change)?;
                if let Some(entry) = entry.as_ref().filter(|_| changed.is_change()) {
                    audit::note(connection, &entry.with_values_of(change, before.as_ref()), entry.count)?;
                }
                Outcome::Change(changed)
            }
            Op::StepReplay(step) => {
                Outcome::StepReplay(Box::new(replay::step(connection, clock, step, &mut counters)?))
            }
            Op::SettleSetting { name, value } => {
                Outcome::SettleSetting(setting::settle(connection, name, value)?)
            }
            Op::Discard { app, deliveries, audit: entry } => {
                let discarded = deliveries::discard(connection, *app, deliveries)?;
                if let Some(entry) = entry.as_ref().filter(|_| discarded > 0) {
                    audit::note(connection, entry, u32::try_from(discarded).unwrap_or(u32::MAX))?;
                }
                Outcome::Discard(discarded)
            }
            Op::SumUp(step) => Outcome::SumUp(statistics::sum_up(connection, clock, step)?),
            Op::Remove(removal) => Outcome::Remove(remove::remove(connection, clock, removal)?),
        });
    }
    counters.write(connection)?;
    Ok((outcomes, counters.types))
}

/// Statements are looked up once in a batch, and only where there is work for them.
fn prepared<T>(slot: &mut Option<T>, make: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<&mut T> {
    match slot {
        Some(value) => Ok(value),
        None => Ok(slot.insert(make()?)),
    }
}

fn begin(connection: &Connection) -> Result<(), Error> {
    let mut result = Ok(());
    for _ in 0..PATIENCE {
        result =
            connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute(())).map(drop);
        match &result {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                tracing::warn!("another program holds a lock on the database: nothing can be written");
            }
            _ => break,
        }
    }
    result.map_err(|error| explain(&error))
}

fn roll_back(connection: &Connection, error: &rusqlite::Error) -> Error {
    // SQLite may have rolled back by itself already.
    if !connection.is_autocommit()
        && let Err(second) = connection.execute_batch("ROLLBACK")
    {
        return Error::Failed(format!("{}; rolling back failed too: {}", describe(error), describe(&second)));
    }
    match explain(error) {
        Error::Full => Error::Full,
        // Nobody interrupts the writer.
        _ => Error::Failed(describe(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::in_memory;

    const RULES: Rules = Rules { endpoints_per_application: 10 };

    fn settle(value: usize) -> Op {
        Op::SettleSetting { name: "s", value: vec![7; value] }
    }

    #[test]
    fn a_batch_can_be_run_inline() {
        let connection = in_memory().unwrap();
        let outcomes =
            run_batch(&connection, RULES, &Monotonic::default(), &Types::default(), &[settle(1), settle(2)])
                .unwrap();
        assert_eq!(outcomes, [Outcome::SettleSetting(vec![7]), Outcome::SettleSetting(vec![7])]);
        assert_eq!(
            run_batch(&connection, RULES, &Monotonic::default(), &Types::default(), &[]),
            Ok(Vec::new())
        );
    }

    #[test]
    fn a_batch_that_does_not_fit_leaves_no_transaction_open() {
        let connection = in_memory().unwrap();
        connection.pragma_update_and_check(None, "max_page_count", 100, |_| Ok(())).unwrap();
        assert_eq!(
            run_batch(&connection, RULES, &Monotonic::default(), &Types::default(), &[settle(1 << 20)]),
            Err(Error::Full)
        );
        assert!(connection.is_autocommit());
        assert!(
            run_batch(&connection, RULES, &Monotonic::default(), &Types::default(), &[settle(1)]).is_ok()
        );
    }
}
