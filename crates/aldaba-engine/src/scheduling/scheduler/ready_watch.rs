//! How long the lane that is next has been so: a lane that stays next for long is not sent to, although nothing of its own
//! holds it.

use super::Scheduler;
use crate::scheduling::lane::ReadyQueue;
use aldaba_delivery::Timestamp;
use std::time::Duration;

/// The ticket that was next in each ready queue when somebody asked, and since when it has been seen there.
#[derive(Default)]
pub(super) struct ReadyWatch([Option<(u64, Timestamp)>; ReadyQueue::ALL.len()]);

impl ReadyWatch {
    /// `tickets`: those that are next now. Returns the longest time that one has been seen.
    fn look(&mut self, tickets: [Option<u64>; ReadyQueue::ALL.len()], now: Timestamp) -> Duration {
        for (seen, ticket) in self.0.iter_mut().zip(tickets) {
            *seen = match (*seen, ticket) {
                (Some((before, since)), Some(ticket)) if before == ticket => Some((ticket, since)),
                (_, ticket) => ticket.map(|ticket| (ticket, now)),
            };
        }
        self.0.iter().flatten().map(|(_, since)| now.since(*since)).max().unwrap_or_default()
    }
}

/// Whether deliveries are getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingProgress {
    /// Nothing is sent: results cannot be written, or the server stops.
    pub paused: bool,
    /// How long the endpoint that is next has waited for its turn, as far as questions before this one have seen it.
    pub longest_wait: Duration,
}

impl Scheduler {
    pub(crate) fn progress(&mut self, now: Timestamp) -> SchedulingProgress {
        let tickets = ReadyQueue::ALL
            .map(|queue| self.ready[queue as usize].first_key_value().map(|(ticket, _)| *ticket));
        SchedulingProgress { paused: self.halted, longest_wait: self.ready_watch.look(tickets, now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lane_that_stays_next_waits_long() {
        let at = |seconds: i64| Timestamp::from_millis(1_800_000_000_000 + seconds * 1000);
        let seconds = Duration::from_secs;
        let mut watch = ReadyWatch::default();
        assert_eq!(watch.look([None; 4], at(0)), seconds(0));
        assert_eq!(watch.look([None, Some(1), Some(2), None], at(1)), seconds(0));
        assert_eq!(watch.look([None, Some(1), Some(3), None], at(5)), seconds(4));
        assert_eq!(watch.look([None, Some(4), Some(3), None], at(7)), seconds(2), "the others move on");
        assert_eq!(watch.look([None, None, Some(3), None], at(65)), seconds(60));
        assert_eq!(watch.look([None; 4], at(66)), seconds(0));
    }
}
