//! Replays: messages of the past get another round with an endpoint.
//!
//! A replay walks the messages of an application in their order, in steps. A step looks at some of them,
//! opens deliveries for those that it wants, and keeps how far it has come: all in one commit. So
//! a replay that a crash has cut off goes on where it was, and opens nothing twice.

use crate::operations::replay;
use crate::{Order, Page, PendingDelivery};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Reason, ReplayId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    pub id: ReplayId,
    pub org: OrgId,
    pub app: AppId,
    pub endpoint: EndpointId,
    pub kind: ReplayKind,
    pub filter: ReplayFilter,
    /// Deliveries that it opens in a second, at most.
    pub rate: u32,
    pub state: ReplayState,
    /// The last message that it has looked at.
    pub reached: Option<MessageId>,
    pub looked_at: u64,
    pub opened: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Replay {
    /// How many replays of one application may be running.
    pub const MAX_RUNNING: usize = 100;
}

/// What it was asked for as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayKind {
    /// What has died.
    Recover,
    /// What the endpoint was never sent.
    Missing,
    /// What the filter says.
    Bulk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayState {
    Running,
    Finished,
    Cancelled,
    /// Its endpoint is deleted.
    EndpointGone,
    /// It has opened as many as one may, and ended there.
    TooMany,
}

/// Which messages a replay is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayFilter {
    /// When they were accepted: from this moment to that one, both included.
    pub since: Timestamp,
    pub until: Timestamp,
    /// Empty: all.
    pub event_types: Vec<String>,
    pub channel: Option<String>,
    pub tag: Option<String>,
    /// Those whose delivery to the endpoint has died and lies in the dead letter, …
    pub dead: bool,
    /// … was cancelled, …
    pub cancelled: bool,
    /// … was delivered, …
    pub delivered: bool,
    /// … or that the endpoint would get by what it is subscribed to now, and never got.
    pub missing: bool,
    /// Of those that were tried: the hundreds of the last answer's status, 0 for none.
    pub status_class: Option<u16>,
    /// Of those that have died: only if that was at this moment or later.
    pub died_since: Option<Timestamp>,
}

/// One step of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayStep {
    pub id: ReplayId,
    /// How many rows to look at, at most: messages, their deliveries, and attempts. A store ends a step earlier
    /// that takes it more than a few milliseconds, but not before it has come forward.
    pub look: usize,
    /// How many deliveries to open, at most.
    pub open: usize,
    /// How many the replay may open in all.
    pub most: u64,
    pub now: Timestamp,
}

/// What a step has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayStepped {
    /// As it is now; `None`: there is no such replay.
    pub replay: Option<Replay>,
    pub opened: Vec<PendingDelivery>,
}

/// How many messages a replay would be about, as far as the read got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCount {
    pub matched: u64,
    /// How many rows were looked at.
    pub rows: usize,
    /// Where to go on; `None`: that is all.
    pub next: Option<MessageId>,
}

/// How far replays have come, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayEnd {
    NotYet,
    Well,
    Early,
}

impl ReplayState {
    pub fn end(self) -> ReplayEnd {
        match self {
            Self::Running => ReplayEnd::NotYet,
            Self::Finished => ReplayEnd::Well,
            Self::Cancelled | Self::EndpointGone | Self::TooMany => ReplayEnd::Early,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ReplaysQuery {
    pub org: OrgId,
    pub ended: Option<ReplayEnd>,
    pub kind: Option<ReplayKind>,
    pub page: Page<ReplayId>,
    pub order: Order,
}

contract! {
    pub trait Replays {
        writes {
            /// A replay that is not running is left as it is. Everything else that waits to be written goes first.
            step_replay(step: ReplayStep) -> ReplayStepped = StepReplay(step);
        }
        reads {
            read replay(org: OrgId, id: ReplayId) -> Option<Replay>
                = |reading| replay::find(reading, org, id);
            read replays(query: ReplaysQuery) -> Vec<Replay> = |reading| replay::list(reading, query);

            /// Those of all organizations, in the order they were made.
            read running_replays() -> Vec<Replay> = |reading| replay::running(reading);

            /// How many messages a new replay would open deliveries for: looks at `look` rows from `after` on, or at
            /// fewer where that takes long.
            count count_replay(replay: Replay, after: Option<MessageId>, look: usize) -> ReplayCount
                = |reading, slice| replay::count_matches(reading, slice, &replay, after, look);
        }
    }
}

impl Replay {
    /// About what has died since an outage began. That may have been accepted long before, to be delivered
    /// later or for another round: it looks back to the `oldest` message that is kept.
    #[must_use]
    pub fn of_outage(&self, began: Timestamp, oldest: Timestamp) -> Self {
        let filter = ReplayFilter { since: oldest, died_since: Some(began), ..self.filter.clone() };
        Self { filter, ..self.clone() }
    }
}

impl ReplayFilter {
    /// About no message, of no time but this moment: to be widened.
    pub fn nothing(at: Timestamp) -> Self {
        Self {
            since: at,
            until: at,
            event_types: Vec::new(),
            channel: None,
            tag: None,
            dead: false,
            cancelled: false,
            delivered: false,
            missing: false,
            status_class: None,
            died_since: None,
        }
    }

    /// What a message itself says.
    pub fn wants(
        &self,
        created_at: Timestamp,
        event_type: &str,
        channels: &[String],
        tags: &[String],
    ) -> bool {
        (self.since..=self.until).contains(&created_at)
            && (self.event_types.is_empty() || self.event_types.iter().any(|name| name == event_type))
            && self.channel.as_ref().is_none_or(|channel| channels.contains(channel))
            && self.tag.as_ref().is_none_or(|tag| tags.contains(tag))
    }

    /// What its delivery, which has died, says.
    pub fn wants_dead(&self, at: Timestamp, reason: Reason, in_dead_letter: bool) -> bool {
        self.died_since.is_none_or(|since| at >= since)
            && match reason {
                Reason::Cancelled => self.cancelled,
                _ => self.dead && in_dead_letter,
            }
    }

    pub fn wants_status(&self, code: Option<u16>) -> bool {
        self.status_class.is_none_or(|class| class == code.map_or(0, |code| code / 100 * 100))
    }
}
