//! Small values that belong to the installation as a whole.

use crate::Changed;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};

statements! {
    READ = "SELECT value FROM setting WHERE name = ?1";
    SETTLE = "INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    PUT = "INSERT INTO setting (name, value) VALUES (?1, ?2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
}

pub(crate) fn read(reading: &dyn Reading, name: &str) -> Result<Option<Vec<u8>>> {
    reading.one(&READ, values![name])
}

/// The first value stays. Returns the one that is there afterwards.
pub(crate) fn settle(tx: &dyn Transaction, name: &str, value: &[u8]) -> Result<Vec<u8>> {
    tx.execute(&SETTLE, values![name, value])?;
    Ok(read(tx, name)?.unwrap_or_default())
}

pub(crate) fn put(tx: &dyn Transaction, name: &str, value: &[u8]) -> Result<Changed> {
    tx.execute(&PUT, values![name, value])?;
    Ok(Changed::done())
}
