//! Due times that are found and corrected.

use super::disk::{Disk, as_waiting};
use aldaba_delivery::Timestamp;
use aldaba_store::{Changed, DeliveryState, NotDue, Rescheduled, Turn};
use std::ops::Bound;

impl Disk {
    pub(super) fn not_due(&self, after: Turn, limit: usize) -> Vec<NotDue> {
        let turns = self.turns.range((Bound::Excluded(after), Bound::Unbounded)).take(limit);
        let found = turns.filter_map(|(turn, id)| {
            let waiting = *self.lanes.get(&(*id, *turn))?;
            let endpoint = self.endpoints.get(id)?;
            let message =
                self.messages.get(&(endpoint.app, waiting.message)).filter(|_| waiting.attempts == 0);
            Some(NotDue {
                waiting,
                endpoint: *id,
                app: endpoint.app,
                org: endpoint.org,
                policy: endpoint.config.policy.clone(),
                deliver_at: message.and_then(|message| message.deliver_at),
                tried_at: self.tried.get(&waiting.seq).copied(),
            })
        });
        found.collect()
    }

    pub(super) fn reschedule(&mut self, deliveries: &[Rescheduled]) -> Changed {
        for Rescheduled { endpoint, was, due_at, clock_start } in deliveries {
            let Some(row) = self.deliveries.get_mut(&was.seq) else { continue };
            let waits = row.state == DeliveryState::Waiting { due_at: was.due_at };
            if !waits || row.attempts != was.attempts {
                continue;
            }
            (row.state, row.clock_start) = (DeliveryState::Waiting { due_at: *due_at }, *clock_start);
            let waiting = as_waiting(row);
            self.take_from_lane(*endpoint, was.turn());
            if let Some(waiting) = waiting {
                self.put_in_lane(*endpoint, waiting);
            }
        }
        Changed::Done { removed: Vec::new() }
    }

    pub(super) fn newest_moment(&self) -> Option<Timestamp> {
        let last = self.accepted.values().next_back().and_then(|key| self.messages.get(key));
        last.map(|message| message.created_at)
    }
}
