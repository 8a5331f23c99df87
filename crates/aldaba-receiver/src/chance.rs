//! Random bytes of the operating system, taken nowhere else in this crate.

use crate::LedgerError;

/// What tells the owner of a lease from everybody else: nobody can guess it, and it is never drawn twice.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate takes random bytes")]
pub(crate) fn owner_token() -> Result<u128, LedgerError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| LedgerError::Unavailable(error.into()))?;
    Ok(u128::from_le_bytes(bytes))
}
