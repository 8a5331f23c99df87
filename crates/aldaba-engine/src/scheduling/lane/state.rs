//! The state of a lane between its selections, and of what it knows of its endpoint. Both are small enums with a transition
//! function, so that every transition is in one table.
//!
//! # The lane
//!
//! | state | selected | returned | loads | lacks share | lacks origin | lacks rate | released | woken |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | waiting | | ready | loading | awaits share | awaits origin | awaits rate | | ready |
//! | ready | waiting | | | | | | | ready; in another queue if its queue has changed |
//! | loading | | | | | | | | ready |
//! | awaits share | | | | | | | waiting | ready if it has become responsive |
//! | awaits origin | | | | awaits share | awaits origin | | waiting | ready if its class has changed or its endpoint is deleted |
//! | awaits rate | | | | | | | waiting | ready if its endpoint is deleted |
//!
//! An empty field means that the state stays as it is. A lane holds a [`Slot`](super::Slot) exactly while it is loading or in
//! the queue [`ReadyQueue::Granted`].
//!
//! # The endpoint
//!
//! | state | read starts | read ends | endpoint changes | lane becomes idle |
//! | --- | --- | --- | --- | --- |
//! | needed | running | current | | |
//! | running | | current | outdated | |
//! | outdated | | needed | | |
//! | current | | | needed | needed |

use super::LaneClass;

/// Where a lane is between its selections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// Its alarm, a record, a refill or a change wakes it.
    Waiting,
    /// In a ready queue, with this ticket.
    Ready(ReadyQueue, u64),
    /// It holds a slot, and its endpoint or its first deliveries are being read.
    Loading,
    /// In the fair queue: its application or organization has used up its concurrency share.
    AwaitsShare,
    /// In the fair queue of its origin, as a lane of this class.
    AwaitsOrigin(LaneClass),
    /// In the queue for the rate of its application.
    AwaitsRate,
}

/// The queues of the lanes that a pass can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyQueue {
    /// Lanes that were selected before, and hold a slot.
    Granted,
    Responsive,
    New,
    Slow,
}

impl ReadyQueue {
    pub(crate) const ALL: [Self; 4] = [Self::Granted, Self::Responsive, Self::New, Self::Slow];

    pub(crate) fn of(has_slot: bool, class: LaneClass) -> Self {
        match (has_slot, class) {
            (true, _) => Self::Granted,
            (false, LaneClass::Responsive) => Self::Responsive,
            (false, LaneClass::New) => Self::New,
            (false, LaneClass::Slow) => Self::Slow,
        }
    }
}

/// What happens to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneEvent {
    /// A pass has taken it from its ready queue.
    Selected,
    /// The in-flight limit is reached: it goes back to a ready queue with its ticket.
    Returned(ReadyQueue, u64),
    /// It got a slot, and has to read something before it can send.
    Loads,
    LacksShare,
    LacksOrigin(LaneClass),
    LacksRate,
    /// It leaves the queue in which it waited for capacity.
    Released,
    Woken(Wake),
}

/// What decides whether a lane becomes ready, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) has_slot: bool,
    pub(crate) class: LaneClass,
    /// The endpoint is deleted: its deliveries end without being sent, and need no capacity.
    pub(crate) deleted: bool,
    /// Its ticket if it enters a ready queue.
    pub(crate) ticket: u64,
}

impl LaneState {
    pub(crate) fn after(self, event: LaneEvent) -> Self {
        match (self, event) {
            (Self::Ready(..), LaneEvent::Selected) => Self::Waiting,
            (Self::Waiting, LaneEvent::Returned(queue, ticket)) => Self::Ready(queue, ticket),
            (Self::Waiting, LaneEvent::Loads) => Self::Loading,
            (Self::Waiting | Self::AwaitsOrigin(_), LaneEvent::LacksShare) => Self::AwaitsShare,
            (Self::Waiting | Self::AwaitsOrigin(_), LaneEvent::LacksOrigin(class)) => {
                Self::AwaitsOrigin(class)
            }
            (Self::Waiting, LaneEvent::LacksRate) => Self::AwaitsRate,
            (Self::AwaitsShare | Self::AwaitsOrigin(_) | Self::AwaitsRate, LaneEvent::Released) => {
                Self::Waiting
            }
            (_, LaneEvent::Woken(wake)) => self.woken(wake),
            _ => self,
        }
    }

    fn woken(self, wake: Wake) -> Self {
        let queue = ReadyQueue::of(wake.has_slot, wake.class);
        let stays = match self {
            Self::Waiting | Self::Loading => false,
            Self::Ready(present, _) => present == queue,
            // It is woken when capacity is free. A responsive lane need not wait for that.
            Self::AwaitsShare => queue != ReadyQueue::Responsive,
            // Another class may have more capacity there.
            Self::AwaitsOrigin(class) => class == wake.class && !wake.deleted,
            Self::AwaitsRate => !wake.deleted,
        };
        if stays { self } else { Self::Ready(queue, wake.ticket) }
    }
}

/// How far the read of a lane's endpoint has come. At most one read is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointRead {
    /// It must be read, for the first time or again, before the lane sends.
    Needed,
    Running,
    /// Running, and the endpoint has changed since it started.
    Outdated,
    Current,
}

/// What happens to a lane's copy of its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointEvent {
    ReadStarts,
    ReadEnds,
    Changes,
    BecomesIdle,
}

impl EndpointRead {
    pub(crate) fn after(self, event: EndpointEvent) -> Self {
        match (self, event) {
            (Self::Needed, EndpointEvent::ReadStarts) => Self::Running,
            (Self::Needed | Self::Running, EndpointEvent::ReadEnds) => Self::Current,
            (Self::Running, EndpointEvent::Changes) => Self::Outdated,
            (Self::Outdated, EndpointEvent::ReadEnds)
            | (Self::Current, EndpointEvent::Changes | EndpointEvent::BecomesIdle) => Self::Needed,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: u64 = 7;

    fn woken(class: LaneClass, has_slot: bool, deleted: bool) -> LaneEvent {
        LaneEvent::Woken(Wake { has_slot, class, deleted, ticket: TICKET })
    }

    #[test]
    fn every_transition_of_a_lane_is_the_one_of_the_table() {
        use LaneClass::{New, Responsive, Slow};
        use LaneEvent::{LacksOrigin, LacksRate, LacksShare, Loads, Released, Returned, Selected};
        use LaneState::{AwaitsOrigin, AwaitsRate, AwaitsShare, Loading, Ready, Waiting};
        let ready = Ready(ReadyQueue::New, 1);
        let states = [Waiting, ready, Loading, AwaitsShare, AwaitsOrigin(New), AwaitsRate];
        let to = |queue| Ready(queue, TICKET);
        let (granted, new) = (to(ReadyQueue::Granted), to(ReadyQueue::New));
        let (responsive, slow) = (to(ReadyQueue::Responsive), to(ReadyQueue::Slow));
        let origin = AwaitsOrigin(New);
        // The states in their order after each event.
        let table = [
            (Selected, [Waiting, Waiting, Loading, AwaitsShare, origin, AwaitsRate]),
            (Returned(ReadyQueue::Slow, TICKET), [slow, ready, Loading, AwaitsShare, origin, AwaitsRate]),
            (Loads, [Loading, ready, Loading, AwaitsShare, origin, AwaitsRate]),
            (LacksShare, [AwaitsShare, ready, Loading, AwaitsShare, AwaitsShare, AwaitsRate]),
            (
                LacksOrigin(Slow),
                [AwaitsOrigin(Slow), ready, Loading, AwaitsShare, AwaitsOrigin(Slow), AwaitsRate],
            ),
            (LacksRate, [AwaitsRate, ready, Loading, AwaitsShare, origin, AwaitsRate]),
            (Released, [Waiting, ready, Loading, Waiting, Waiting, Waiting]),
            (woken(New, false, false), [new, ready, new, AwaitsShare, origin, AwaitsRate]),
            (woken(Slow, false, false), [slow, slow, slow, AwaitsShare, slow, AwaitsRate]),
            (
                woken(Responsive, false, false),
                [responsive, responsive, responsive, responsive, responsive, AwaitsRate],
            ),
            (woken(New, true, false), [granted, granted, granted, AwaitsShare, origin, AwaitsRate]),
            (woken(New, false, true), [new, ready, new, AwaitsShare, new, new]),
        ];
        for (event, expected) in table {
            for (state, expected) in states.into_iter().zip(expected) {
                assert_eq!(state.after(event), expected, "{state:?} after {event:?}");
            }
        }
    }

    #[test]
    fn every_transition_of_an_endpoint_read_is_the_one_of_the_table() {
        use EndpointEvent::{BecomesIdle, Changes, ReadEnds, ReadStarts};
        use EndpointRead::{Current, Needed, Outdated, Running};
        let table = [
            (ReadStarts, [Running, Running, Outdated, Current]),
            (ReadEnds, [Current, Current, Needed, Current]),
            (Changes, [Needed, Outdated, Outdated, Needed]),
            (BecomesIdle, [Needed, Running, Outdated, Needed]),
        ];
        for (event, expected) in table {
            for (state, expected) in [Needed, Running, Outdated, Current].into_iter().zip(expected) {
                assert_eq!(state.after(event), expected, "{state:?} after {event:?}");
            }
        }
    }

    #[test]
    fn the_states_of_a_lane_take_little_memory() {
        assert!(size_of::<LaneState>() <= 16 && size_of::<EndpointRead>() == 1);
    }
}
