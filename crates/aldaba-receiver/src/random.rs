//! Random bytes of the operating system, taken nowhere else in this crate.

use crate::LedgerError;

/// A random token that identifies the owner of a lease. Nobody can guess it.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate takes random bytes")]
pub(crate) fn owner_token() -> Result<u128, LedgerError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| LedgerError::Unavailable(error.into()))?;
    Ok(u128::from_le_bytes(bytes))
}
