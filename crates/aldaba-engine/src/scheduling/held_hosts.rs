//! What the gates hold, and how an operator opens one.

use crate::scheduling::gates::GateBacklog;
use crate::scheduling::scheduler::Scheduler;
use aldaba_delivery::{Gate, GateKey, Timestamp};

/// A held origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldHost {
    pub key: GateKey,
    pub gate: Gate,
    /// The failure that caused the present hold.
    pub why: String,
    /// How much of the organization or application in question it holds.
    pub backlog: GateBacklog,
}

impl Scheduler {
    /// An operator has opened gates: the lanes that they held are woken.
    pub(crate) fn gates_opened(&mut self, gates: &[GateKey], now: Timestamp) {
        let mut woken: Vec<_> = gates.iter().flat_map(|key| self.gates.release(key, now)).collect();
        woken.sort_unstable();
        woken.dedup();
        for endpoint in woken {
            self.wake(endpoint);
        }
    }
}
