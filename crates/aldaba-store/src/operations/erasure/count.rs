//! How much there is of an application, for those who ask before they erase.

use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Slice, Statement, Value};
use crate::{ErasedCounts, ErasureCount};
use aldaba_delivery::{AppId, MessageId};

/// Messages that one statement reads.
const PAGE_ROWS: usize = 64;

statements! {
    ENDPOINTS = "SELECT count(*) FROM endpoint WHERE app = ?1";
    AUDIT = "SELECT count(*) FROM audit WHERE org = (SELECT org FROM application WHERE id = ?1) AND app = ?1
        AND app IS NOT NULL";
    MESSAGES = "SELECT id FROM message WHERE app = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    DELIVERIES = "SELECT count(*) FROM delivery WHERE message = ?1";
    ATTEMPTS = "SELECT count(*) FROM attempt WHERE message = ?1";
}

pub(crate) fn count_rows(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    app: AppId,
    after: Option<MessageId>,
    look: usize,
) -> Result<ErasureCount> {
    let mut counts = ErasedCounts::default();
    if after.is_none() {
        counts.endpoints = number(reading, &ENDPOINTS, values![app])?;
        counts.audit = number(reading, &AUDIT, values![app])?;
    }
    let (mut after, mut rows) = (after.unwrap_or(MessageId::from_bytes([0; 20])), 0);
    loop {
        let page: Vec<MessageId> = reading.all(&MESSAGES, values![app, after, PAGE_ROWS])?;
        let is_last = page.len() < PAGE_ROWS;
        for message in page {
            after = message;
            let deliveries = number(reading, &DELIVERIES, values![message])?;
            let attempts = number(reading, &ATTEMPTS, values![message])?;
            counts.messages += 1;
            counts.deliveries += deliveries;
            counts.attempts += attempts;
            rows += 1 + usize::try_from(deliveries + attempts).unwrap_or(usize::MAX);
            if rows >= look || slice.is_over() {
                return Ok(ErasureCount { counts, rows, next: Some(after) });
            }
        }
        if is_last {
            return Ok(ErasureCount { counts, rows, next: None });
        }
    }
}

fn number(reading: &dyn Reading, statement: &'static Statement, values: &[Value<'_>]) -> Result<u64> {
    Ok(u64::try_from(reading.number(statement, values)?).unwrap_or(0))
}
