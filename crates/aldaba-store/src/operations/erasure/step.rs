//! A step of an erasure: removes rows until its slice of the writer is over.

use super::{ONE, application, audit_rows, content, endpoints, keep_progress};
use crate::operations::transaction::{ReadingExt, values};
use crate::operations::{BULK_SLICE, Batch, Counters, Numbers, Result, Slice, Transaction};
use crate::{Erasure, ErasureState, ErasureStep, ErasureStepped};

/// Rows that are read, and removed, between two looks at the clock.
pub(super) const ROWS_AT_ONCE: usize = 32;

/// How a part of a step has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// Nothing of it is left.
    Done,
    /// The slice is over, and there may be more.
    SliceOver,
    /// A delivery still waits.
    Waits,
}

/// A step under way.
pub(super) struct Eraser<'a> {
    pub tx: &'a dyn Transaction,
    pub numbers: &'a mut Numbers,
    pub counters: &'a mut Counters,
    pub slice: Slice<'a>,
    pub erasure: Erasure,
    pub step: &'a ErasureStep,
}

/// In this order: what a customer has sent goes first, and the row that leads to everything else goes last.
const PARTS: [fn(&mut Eraser<'_>) -> Result<PartEnd>; 4] =
    [content::erase, endpoints::erase, audit_rows::redact, application::erase];

pub(crate) fn step(batch: &mut Batch<'_>, step: &ErasureStep) -> Result<ErasureStepped> {
    let slice = Slice::begin(batch.clock, BULK_SLICE);
    let found = batch.tx.one::<Erasure>(&ONE, values![step.id])?;
    let Some(erasure) = found.filter(|erasure| erasure.state == ErasureState::Running) else {
        let erasure = batch.tx.one(&ONE, values![step.id])?;
        return Ok(ErasureStepped { erasure, waits: false, took: slice.took() });
    };
    let mut eraser = Eraser {
        tx: batch.tx,
        numbers: &mut *batch.numbers,
        counters: &mut *batch.counters,
        slice,
        erasure,
        step,
    };
    eraser.erasure.updated_at = step.now;
    let end = eraser.run()?;
    if end == PartEnd::Done {
        eraser.erasure.state = ErasureState::Finished;
        audit_rows::note_end(&eraser)?;
    }
    keep_progress(eraser.tx, &eraser.erasure)?;
    let took = eraser.slice.took();
    Ok(ErasureStepped { erasure: Some(eraser.erasure), waits: end == PartEnd::Waits, took })
}

impl Eraser<'_> {
    fn run(&mut self) -> Result<PartEnd> {
        for part in PARTS {
            match part(self)? {
                PartEnd::Done => {}
                end => return Ok(end),
            }
        }
        Ok(PartEnd::Done)
    }

    /// Removes rows of one kind, some at a time, until there are none. `remove` says how many it has removed.
    pub(super) fn all_of(&mut self, mut remove: impl FnMut(&mut Self) -> Result<usize>) -> Result<PartEnd> {
        loop {
            match remove(self)? {
                0 => return Ok(PartEnd::Done),
                _ if self.slice.is_over() => return Ok(PartEnd::SliceOver),
                _ => {}
            }
        }
    }
}
