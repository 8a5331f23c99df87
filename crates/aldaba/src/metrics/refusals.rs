//! Counts requests that were answered with an error.

use crate::api::Code;
use std::sync::atomic::{AtomicU64, Ordering};

/// By code, since the start.
#[derive(Debug)]
pub(crate) struct Refusals([AtomicU64; Code::ALL.len()]);

/// Marks an answer as an error with this code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal(pub(crate) Code);

impl Default for Refusals {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Refusals {
    pub(crate) fn count(&self, Refusal(code): Refusal) {
        self.0[code as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Code::ALL.iter().map(|code| (code.name(), self.0[*code as usize].load(Ordering::Relaxed)))
    }
}
