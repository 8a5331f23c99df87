//! Lists of messages and attempts: which items, and which part of them.
//!
//! A list is walked along an index, and a walk is bounded: one that finds little is given up at a place,
//! from which the next one goes on.

use crate::{Attempt, DeliveryState, DeliveryStatus, Message, Order, Page};
use aldaba_delivery::{AppId, EndpointId, Id, IdKind, MessageId, Reason, Timestamp};
use std::time::Duration;

/// Moments between two bounds. Neither of them is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub after: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

impl TimeRange {
    pub fn includes(self, at: Timestamp) -> bool {
        self.after.is_none_or(|after| at > after) && self.before.is_none_or(|before| at < before)
    }
}

/// Which part of a list to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRange<Id> {
    pub within: TimeRange,
    pub page: Page<Id>,
    pub order: Order,
    /// How many items to look at, at most, counting what else has to be read to tell whether they fit.
    pub walk: usize,
}

impl<Id> ListRange<Id> {
    /// A page of everything there is.
    pub fn page(page: Page<Id>, order: Order) -> Self {
        Self { within: TimeRange::default(), page, order, walk: usize::MAX }
    }
}

/// Ids know the moment they were made at to so many milliseconds.
const STEP: Duration = Duration::from_millis(4);

impl<K: IdKind> ListRange<Id<K>> {
    /// The ids between which everything lies that is to be read, and perhaps a little more: ids know their
    /// moments roughly. Neither bound is one of them.
    pub fn bounds(&self) -> (Id<K>, Id<K>) {
        let lowest = self.within.after.map(|after| Id::last_at(after.before(STEP)));
        let highest = self.within.before.map(|before| Id::first_at(before + STEP));
        let lowest = lowest.unwrap_or(Id::from_bytes([0; 20]));
        let highest = highest.unwrap_or(Id::from_bytes([u8::MAX; 20]));
        match (self.page.after, self.order) {
            (None, _) => (lowest, highest),
            (Some(beside), Order::Ascending) => (lowest.max(beside), highest),
            (Some(beside), Order::Descending) => (lowest, highest.min(beside)),
        }
    }
}

/// What was found of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T, Id> {
    pub items: Vec<T>,
    /// Where the walk was given up before the page was full. Others may follow.
    pub stopped: Option<Id>,
}

impl<T, Id> Default for ListPage<T, Id> {
    fn default() -> Self {
        Self { items: Vec::new(), stopped: None }
    }
}

/// What a message must be like to be on a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// One of these; empty: any.
    pub event_types: Vec<String>,
    pub channel: Option<String>,
    pub tag: Option<String>,
}

impl MessageFilter {
    pub fn wants_all(&self) -> bool {
        self.event_types.is_empty() && self.channel.is_none() && self.tag.is_none()
    }

    pub fn wants(&self, event_type: &str, channels: &[String], tags: &[String]) -> bool {
        let has = |list: &[String], wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| list.contains(wanted))
        };
        let of_type = self.event_types.is_empty() || self.event_types.iter().any(|name| name == event_type);
        of_type && has(channels, &self.channel) && has(tags, &self.tag)
    }
}

/// How much of the payloads a list of messages has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    /// Messages come with empty ones.
    Without,
    /// The page ends early when it has more bytes than this.
    UpTo(usize),
}

/// The messages of an application.
#[derive(Clone, Debug)]
pub struct MessagesQuery {
    pub app: AppId,
    pub filter: MessageFilter,
    pub part: ListRange<MessageId>,
    pub payloads: Payloads,
}

impl MessagesQuery {
    /// A page of all messages, with their payloads.
    pub fn all(app: AppId, page: Page<MessageId>, order: Order) -> Self {
        let part = ListRange::page(page, order);
        Self { app, filter: MessageFilter::default(), part, payloads: Payloads::UpTo(usize::MAX) }
    }
}

/// What an attempt must be like to be on a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptFilter {
    pub success: Option<bool>,
    /// The hundreds of the status code; 0 for attempts that have none.
    pub status_class: Option<u16>,
    pub endpoint: Option<EndpointId>,
    /// What its message must be like, and whose that is.
    pub message: Option<(AppId, MessageFilter)>,
}

impl AttemptFilter {
    pub fn wants_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whatever its message is.
    pub fn wants(&self, success: bool, status_code: Option<u16>, endpoint: EndpointId) -> bool {
        self.success.is_none_or(|wanted| wanted == success)
            && self.status_class.is_none_or(|class| status_code.unwrap_or(0) / 100 * 100 == class)
            && self.endpoint.is_none_or(|wanted| wanted == endpoint)
    }

    /// Only what a delivery that succeeds at once does not leave: a failure, or an answer that is no 2xx.
    pub fn wants_only_unusual(&self) -> bool {
        self.success == Some(false) || self.status_class.is_some_and(|class| class != 200)
    }
}

/// A message that goes, or went, to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointMessage {
    pub message: Message,
    pub delivery: DeliveryStatus,
}

/// How far a message has come with an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageProgress {
    /// It was not tried yet.
    Pending,
    /// It was tried, and will be again.
    Retrying,
    Delivered,
    /// It ended without success.
    Failed,
    /// Its owner has ended it.
    Cancelled,
}

impl DeliveryStatus {
    /// `None`: it was never to be sent.
    pub fn progress(&self) -> Option<MessageProgress> {
        Some(match self.state {
            DeliveryState::Waiting { .. } if self.attempts == 0 => MessageProgress::Pending,
            DeliveryState::Waiting { .. } => MessageProgress::Retrying,
            DeliveryState::Delivered { .. } => MessageProgress::Delivered,
            DeliveryState::Dead { reason: Reason::Cancelled, .. } => MessageProgress::Cancelled,
            DeliveryState::Dead { .. } => MessageProgress::Failed,
            DeliveryState::Skipped { .. } => return None,
        })
    }
}

/// The messages that go, or went, to an endpoint: each once, with its newest round.
#[derive(Clone, Debug)]
pub struct EndpointMessagesQuery {
    pub app: AppId,
    pub endpoint: EndpointId,
    /// One of these; empty: any.
    pub progress: Vec<MessageProgress>,
    pub filter: MessageFilter,
    pub part: ListRange<MessageId>,
    pub payloads: Payloads,
}

impl EndpointMessagesQuery {
    pub fn wants(&self, delivery: &DeliveryStatus) -> bool {
        let progress = delivery.progress();
        delivery.endpoint == self.endpoint
            && progress.is_some_and(|now| self.progress.is_empty() || self.progress.contains(&now))
    }
}

/// How many attempts a list has, as far as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundedCount {
    pub counted: u64,
    /// Counting was given up; there may be more.
    pub more: bool,
}

impl Attempt {
    /// What stands in the place of a response that was deleted.
    pub const EXPUNGED: &'static [u8] = b"EXPUNGED";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000 + millis)
    }

    fn id(millis: i64, random: u8) -> MessageId {
        MessageId::new(at(millis), [random; 15])
    }

    fn bounds(
        after: Option<i64>,
        before: Option<i64>,
        beside: Option<MessageId>,
        order: Order,
    ) -> Vec<MessageId> {
        let within = TimeRange { after: after.map(at), before: before.map(at) };
        let part = ListRange { within, page: Page { after: beside, limit: 1 }, order, walk: 1 };
        let (lowest, highest) = part.bounds();
        let all = (0..40).flat_map(|millis| [id(millis, 0), id(millis, 255)]);
        let mut all: Vec<_> = all.filter(|id| lowest < *id && *id < highest).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn everything_between_the_moments_is_between_the_bounds_and_hardly_more() {
        for order in [Order::Ascending, Order::Descending] {
            let found = bounds(Some(9), Some(22), None, order);
            let millis: Vec<_> = found.iter().map(|id| id.created_at().millis() - at(0).millis()).collect();
            // The moments 10 to 21, in steps of 4.
            assert_eq!((millis.first(), millis.last()), (Some(&8), Some(&20)));
            assert_eq!(bounds(None, None, None, order).len(), 20);
        }
        assert_eq!(bounds(None, Some(20), Some(id(12, 0)), Order::Ascending).first(), Some(&id(12, 255)));
        assert_eq!(bounds(Some(4), None, Some(id(12, 255)), Order::Descending).last(), Some(&id(12, 0)));
        // What lies beyond the moments does not count.
        assert_eq!(bounds(Some(20), None, Some(id(4, 0)), Order::Ascending).first(), Some(&id(20, 0)));
        assert_eq!(bounds(None, Some(9), Some(id(30, 0)), Order::Descending).last(), Some(&id(8, 255)));
    }

    #[test]
    fn an_attempt_without_an_answer_has_the_class_none() {
        let of = |class| AttemptFilter { status_class: Some(class), ..Default::default() };
        let endpoint = EndpointId::from_bytes([1; 20]);
        assert!(of(0).wants(false, None, endpoint));
        assert!(!of(0).wants(true, Some(200), endpoint));
        assert!(of(500).wants(false, Some(503), endpoint));
        assert!(!of(500).wants(false, Some(499), endpoint));
    }
}
