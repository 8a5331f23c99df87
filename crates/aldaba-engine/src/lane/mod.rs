//! A lane: the queue of one endpoint, with what decides whether it may send.

mod backlog;
mod bucket;
mod pace;

pub(crate) use backlog::{Backlog, Entry};
pub(crate) use bucket::Bucket;
pub(crate) use pace::{Pace, Standing};

use crate::Options;
use crate::target::Target;
use aldaba_delivery::{AppId, Health, Passability, Timestamp};
use aldaba_store::Seq;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// A map whose order, though never relied on, is the same in every run.
pub(crate) type FixedMap<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

pub(crate) struct Lane {
    /// `None` until the endpoint has been read for the first time.
    pub(crate) target: Option<Arc<Target>>,
    pub(crate) reading: Reading,
    /// The endpoint is deleted. It stays so, whatever an older read of it may still say.
    pub(crate) deleted: bool,
    pub(crate) health: Health,
    pub(crate) backlog: Backlog,
    pub(crate) pace: Pace,
    pub(crate) bucket: Option<Bucket>,
    /// A probe of a failed endpoint is on its way.
    pub(crate) probing: Option<Seq>,
    pub(crate) place: Place,
    /// The lane stands in the line for a refill.
    pub(crate) thirsty: bool,
    /// When the lane is to be looked at again.
    pub(crate) alarm: Option<Timestamp>,
    pub(crate) idle_since: Timestamp,
}

/// How far the reading of the endpoint has come. At most one read is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    UnderWay,
    /// Under way, and the endpoint has changed since it began.
    Outdated,
    Done,
}

/// Where a lane stands between its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    /// Among the ready lanes of a standing, with this ticket.
    Ready(Standing, u64),
    /// Its application has as much in flight as it may have.
    Parked,
}

/// What a lane's own state says about its next delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The head may go.
    Ready { probe: bool },
    /// Not before this moment.
    At(Timestamp),
    /// Something else must happen first, and it will bring the lane back.
    Waits,
    /// The endpoint is deleted: what waits ends without being sent.
    Ends,
}

impl Lane {
    pub(crate) fn new(options: &Options, now: Timestamp) -> Self {
        Self {
            target: None,
            reading: Reading::UnderWay,
            deleted: false,
            health: Health::default(),
            backlog: Backlog::new(options.lane_buffer),
            pace: Pace::new(options.lane_start, options.lane_most),
            bucket: None,
            probing: None,
            place: Place::Nowhere,
            thirsty: false,
            alarm: None,
            idle_since: now,
        }
    }

    /// Everything about the lane itself; gates and the overall cap are the caller's.
    pub(crate) fn readiness(&mut self, now: Timestamp) -> Readiness {
        if self.reading != Reading::Done {
            return Readiness::Waits;
        }
        let Some(due_at) = self.backlog.next_due() else {
            return Readiness::Waits;
        };
        if self.deleted {
            return if self.backlog.has_entry() { Readiness::Ends } else { Readiness::Waits };
        }
        if due_at > now {
            return Readiness::At(due_at);
        }
        if !self.backlog.has_entry() {
            return Readiness::Waits;
        }
        let probe = match self.health.passability(now) {
            Passability::Open => false,
            Passability::Probe if self.probing.is_none() => true,
            Passability::Probe | Passability::Held(None) => return Readiness::Waits,
            Passability::Held(Some(until)) => return Readiness::At(until),
        };
        if !self.pace.has_room() {
            return Readiness::Waits;
        }
        match self.bucket.as_mut().map_or(Ok(()), |bucket| bucket.ready(now)) {
            Ok(()) => Readiness::Ready { probe },
            Err(at) => Readiness::At(at),
        }
    }

    /// Whose lane it is; `None` while the endpoint is being read.
    pub(crate) fn app(&self) -> Option<AppId> {
        self.target.as_ref().map(|target| target.app)
    }

    /// Nothing is on its way and nothing is due before `horizon`: whatever waits beyond it is on
    /// disk and brings the lane back when a sweep finds it.
    pub(crate) fn can_be_forgotten(&self, horizon: Timestamp) -> bool {
        self.reading == Reading::Done && self.backlog.is_idle(horizon)
    }
}
