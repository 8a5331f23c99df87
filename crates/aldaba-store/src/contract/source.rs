//! Inbound doors: each takes in the webhooks of one sender, for the application that it owns.

use crate::operations::{message, source};
use crate::{
    DeliveryState, DeliveryStatus, DeliveryView, ListPage, ListRange, Message, Order, Page, PendingDelivery,
    ResourceKey, Seq,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Reason, SourceId, Timestamp};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

/// What a source is asked to be: what its owner gives, and may give again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    pub uid: Option<String>,
    pub name: String,
    /// A JSON object of strings.
    pub metadata: String,
    /// Who sends, such as `github`.
    pub kind: String,
    /// All else that may be shown, as JSON. The store never looks inside.
    pub settings: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub id: SourceId,
    pub org: OrgId,
    /// What has its endpoints and messages. It is made with the source, and goes with it.
    pub app: AppId,
    pub config: SourceConfig,
    /// What the sender signs with, and the text of the newest token, encrypted. The store never looks inside.
    pub sealed: Vec<u8>,
    /// By which it is found; the newest first.
    pub tokens: Vec<SourceToken>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A part of the URL that the sender was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceToken {
    /// SHA-256 of its text.
    pub digest: [u8; 32],
    /// `None`: it has no end. Only the newest has none.
    pub expires_at: Option<Timestamp>,
}

impl SourceToken {
    pub fn counts(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at > now)
    }
}

impl Source {
    /// How many an organization may have.
    pub const MAX_PER_ORGANIZATION: usize = 1000;
    /// How many former tokens count beside the newest.
    pub const MAX_OLD_TOKENS: usize = 3;
    /// For how long a former token still counts.
    pub const OLD_TOKEN_RETENTION: Duration = Duration::from_secs(48 * 3600);
    /// Characters.
    pub const MAX_NAME_CHARS: usize = 256;
    /// Bytes of what may be shown of it, and of what may not.
    pub const MAX_SETTINGS_BYTES: usize = 16 << 10;

    /// The names, as callers know them, of what is not as it was `before`.
    pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        let mut fields = self.config.changed_since(&before.config);
        fields.extend((self.sealed != before.sealed).then_some("config"));
        fields
    }
}

/// How far an event of a source has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventState {
    /// An attempt is to come.
    Processing,
    /// Every endpoint that wanted it has it; or there was none.
    Processed,
    /// At least one endpoint does not have it, and no attempt is to come.
    Failed,
}

impl EventState {
    /// By the newest rounds of all endpoints.
    pub fn of(states: impl IntoIterator<Item = DeliveryState>) -> Self {
        let mut so_far = Self::Processed;
        for state in states {
            match state {
                DeliveryState::Waiting { .. } => return Self::Processing,
                DeliveryState::Dead { .. } => so_far = Self::Failed,
                DeliveryState::Delivered { .. } | DeliveryState::Skipped { .. } => {}
            }
        }
        so_far
    }
}

/// An event that came in through a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEvent {
    /// Without its payload.
    pub message: Message,
    /// The newest round of each endpoint that it goes, or went, to.
    pub deliveries: Vec<DeliveryView>,
    /// Those of the endpoints that were deleted before they had it.
    pub deleted: Vec<EndpointId>,
}

impl SourceEvent {
    /// Of all rounds of a message those that count: of each endpoint the newest, in the order of their numbers. Two do not
    /// count: one that was never to be sent, because its endpoint was off; and a dead one of an endpoint that is deleted,
    /// where another endpoint has the event or may still get it.
    pub fn newest<E>(
        rounds: Vec<DeliveryStatus>,
        mut is_there: impl FnMut(EndpointId) -> Result<bool, E>,
    ) -> Result<Vec<DeliveryStatus>, E> {
        let mut sent: Vec<_> =
            newest_of_each(rounds).into_values().filter(DeliveryStatus::was_to_be_sent).collect();
        sent.sort_by_key(|round| round.seq);
        if sent.len() < 2 {
            return Ok(sent);
        }
        let mut counting = Vec::with_capacity(sent.len());
        for round in &sent {
            if !round.is_dead() || is_there(round.endpoint)? {
                counting.push(round.clone());
            }
        }
        Ok(if counting.is_empty() { sent } else { counting })
    }

    pub fn state(&self) -> EventState {
        EventState::of(self.deliveries.iter().map(|delivery| delivery.status.state))
    }

    /// The last of those that ended without success, and when.
    pub fn failure(&self) -> Option<(&DeliveryView, Timestamp)> {
        let dead = self.deliveries.iter().filter_map(|delivery| match delivery.status.state {
            DeliveryState::Dead { at, .. } => Some((delivery, at)),
            _ => None,
        });
        dead.max_by_key(|(delivery, at)| (*at, delivery.status.seq))
    }

    /// When the last endpoint had it. Where there was none, that was at once.
    pub fn processed_at(&self) -> Timestamp {
        let ends = self.deliveries.iter().filter_map(|delivery| delivery.status.state.settled_at());
        ends.max().unwrap_or(self.message.created_at)
    }
}

fn newest_of_each(rounds: Vec<DeliveryStatus>) -> BTreeMap<EndpointId, DeliveryStatus> {
    let mut newest: BTreeMap<EndpointId, DeliveryStatus> = BTreeMap::new();
    for round in rounds {
        let before = newest.get(&round.endpoint);
        if before.is_none_or(|before| before.seq < round.seq) {
            newest.insert(round.endpoint, round);
        }
    }
    newest
}

/// The sender has repeated an event: where its forwarding has failed, it is forwarded again.
#[derive(Clone, Debug)]
pub struct ReopenEvent {
    pub org: OrgId,
    pub app: AppId,
    pub message: MessageId,
    /// The endpoints that would get such an event now. They get this one if all that were to have it are deleted.
    pub wanting: Vec<EndpointId>,
    pub now: Timestamp,
}

/// What a delivery of an event to be reopened looks like.
#[derive(Clone, Debug)]
pub struct DeliveryRound {
    pub status: DeliveryStatus,
    /// Its endpoint is not deleted.
    pub is_there: bool,
    pub in_dead_letter: bool,
}

impl ReopenEvent {
    /// The endpoints that get a new round, each with the settled round that it replaces. None, unless the event has
    /// failed: then those that have failed, but for what somebody has cancelled or discarded.
    pub fn targets(
        &self,
        rounds: &[DeliveryRound],
        mut is_there: impl FnMut(EndpointId) -> bool,
    ) -> Vec<(EndpointId, Option<Seq>)> {
        let statuses = || rounds.iter().map(|round| round.status.clone()).collect();
        let known = |endpoint| rounds.iter().any(|round| round.status.endpoint == endpoint && round.is_there);
        let counting = SourceEvent::newest::<Infallible>(statuses(), |endpoint| Ok(known(endpoint)));
        let Ok(counting) = counting;
        if EventState::of(counting.iter().map(|round| round.state)) != EventState::Failed {
            return Vec::new();
        }
        let newest = newest_of_each(statuses());
        let is_newest = |round: &&DeliveryRound| {
            newest.get(&round.status.endpoint).is_some_and(|one| one.seq == round.status.seq)
        };
        let of_those_there: Vec<_> = rounds
            .iter()
            .filter(is_newest)
            .filter(|round| round.is_there && round.status.was_to_be_sent())
            .collect();
        if !of_those_there.is_empty() {
            let by_hand = |round: &DeliveryRound| round.status.state.reason().is_some_and(Reason::is_manual);
            let failed = of_those_there.into_iter().filter(|round| round.in_dead_letter && !by_hand(round));
            return failed.map(|round| (round.status.endpoint, Some(round.status.seq))).collect();
        }
        let before = |endpoint| newest.get(&endpoint).map(|round| round.seq);
        let wanting = self.wanting.iter().copied().filter(|endpoint| is_there(*endpoint));
        wanting.map(|endpoint| (endpoint, before(endpoint))).collect()
    }
}

/// The events that came in through a source, by its application.
#[derive(Clone, Debug)]
pub struct SourceEventsQuery {
    pub app: AppId,
    /// `None`: all.
    pub state: Option<EventState>,
    pub part: ListRange<MessageId>,
}

impl SourceEventsQuery {
    pub fn wants(&self, rounds: &[DeliveryStatus]) -> bool {
        self.state.is_none_or(|wanted| wanted == EventState::of(rounds.iter().map(|round| round.state)))
    }
}

contract! {
    pub trait Sources {
        writes {
            /// Opens the rounds that [`ReopenEvent::targets`] names, in one commit. Empty: there was nothing to open.
            reopen_event(reopen: ReopenEvent) -> Vec<(EndpointId, PendingDelivery)> = Reopen(reopen);
        }
        reads {
            /// By id or uid.
            read source(org: OrgId, key: ResourceKey) -> Option<Source>
                = |reading| source::find(reading, org, &key);

            /// Whose token this is the digest of, though it may count no longer.
            read source_of_token(digest: [u8; 32]) -> Option<Source>
                = |reading| source::of_token(reading, &digest);

            /// The one that owns an application.
            read source_of_application(app: AppId) -> Option<SourceId>
                = |reading| source::of_application(reading, app);

            read sources(org: OrgId, page: Page<SourceId>, order: Order) -> Vec<Source>
                = |reading| source::list(reading, org, page, order);

            /// In the order of the messages.
            walk source_events(query: SourceEventsQuery) -> ListPage<SourceEvent, MessageId>
                = |reading, slice| message::of_source(reading, slice, &query);

            /// By event id or by the message's id.
            read source_event(app: AppId, key: ResourceKey) -> Option<SourceEvent>
                = |reading| source::event(reading, app, &key);
        }
    }
}
