//! What the gates hold back, for those who want to know, and what happens when a hand opens one.

use crate::scheduling::gates::GateBacklog;
use crate::scheduling::scheduler::Scheduler;
use aldaba_delivery::{Gate, GateKey, Timestamp};

/// An origin that is held back, with what waits behind it as far as it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldHost {
    pub key: GateKey,
    pub gate: Gate,
    /// The failure that the present hold comes from.
    pub why: String,
    /// Of those who were asked about.
    pub backlog: GateBacklog,
}

impl Scheduler {
    /// Gates were opened by a hand: whoever waited behind them looks again.
    pub(crate) fn released(&mut self, gates: &[GateKey], now: Timestamp) {
        let mut woken: Vec<_> = gates.iter().flat_map(|key| self.gates.release(key, now)).collect();
        woken.sort_unstable();
        woken.dedup();
        for endpoint in woken {
            self.wake(endpoint);
        }
    }
}
