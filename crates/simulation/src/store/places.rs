//! Deliveries of ordered endpoints take their places.

use super::disk::{Disk, as_waiting};
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{Changed, Placed, Seq, Waiting};

impl Disk {
    /// When the next is to take its place.
    pub(super) fn next_place_at(&self) -> Option<Timestamp> {
        self.turns.keys().find(|turn| self.is_outside(turn.seq)).map(|turn| turn.due_at)
    }

    fn is_outside(&self, seq: Seq) -> bool {
        self.deliveries.get(&seq).is_some_and(|row| row.place.is_none())
    }

    /// `jumps`, for sabotage: each gets the place that it would have had when it was accepted.
    pub(super) fn take_places(&mut self, now: Timestamp, limit: usize, jumps: bool) -> Changed {
        let due = self.turns.iter().take_while(|(turn, _)| turn.due_at <= now);
        let due: Vec<_> = due
            .filter(|(turn, _)| self.is_outside(turn.seq))
            .map(|(turn, endpoint)| (turn.seq, *endpoint))
            .take(limit)
            .collect();
        let mut placed = Vec::new();
        for (seq, endpoint) in due {
            self.last_seq += 1;
            let place = Some(if jumps { seq } else { Seq(self.last_seq) });
            let Some(waiting) = self.give_place(endpoint, seq, place) else { continue };
            placed.push(Placed { endpoint, app: self.endpoints[&endpoint].app, waiting });
        }
        if placed.is_empty() { Changed::Unchanged } else { Changed::Placed(placed) }
    }

    /// What was never tried and is not due yet leaves the order that its endpoint gets.
    pub(super) fn put_in_order(&mut self, endpoint: EndpointId, now: Timestamp) {
        let lane = self.lanes.iter().filter(|((id, _), _)| *id == endpoint).map(|(_, waiting)| *waiting);
        let delayed = |row: &Waiting| row.attempts == 0 && row.due_at > now && row.place == Some(row.seq);
        for row in lane.filter(delayed).collect::<Vec<_>>() {
            self.give_place(endpoint, row.seq, None);
        }
    }

    fn give_place(&mut self, endpoint: EndpointId, seq: Seq, place: Option<Seq>) -> Option<Waiting> {
        let row = self.deliveries.get_mut(&seq)?;
        row.place = place;
        let waiting = as_waiting(row)?;
        self.put_in_lane(endpoint, waiting);
        Some(waiting)
    }
}
