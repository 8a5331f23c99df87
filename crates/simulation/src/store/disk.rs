//! What survives a crash: tables and their indexes.

use aldaba_delivery::{AppId, AttemptId, EndpointId, Gate, GateScope, MessageId, OrgId, Origin, Timestamp};
use aldaba_store::{
    Application, Attempt, DeliveryState, DeliveryStatus, Endpoint, HealthChange, Message, OwnPolicy, Seq,
    Turn, Waiting,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub(super) applications: BTreeMap<AppId, ApplicationRow>,
    pub(super) endpoints: BTreeMap<EndpointId, Endpoint>,
    pub(super) messages: BTreeMap<(AppId, MessageId), Message>,
    pub(super) deliveries: BTreeMap<Seq, DeliveryStatus>,
    pub(super) of_message: BTreeMap<MessageId, Vec<Seq>>,
    /// Waiting deliveries by lane and turn.
    pub(super) lanes: BTreeMap<(EndpointId, Turn), Waiting>,
    /// Waiting deliveries by turn alone.
    pub(super) turns: BTreeMap<Turn, EndpointId>,
    pub(super) attempts: BTreeMap<AttemptId, Attempt>,
    pub(super) keys: BTreeMap<UniqueKey, KeyRow>,
    /// With why they are held.
    pub(super) gates: BTreeMap<(Origin, GateScope), (Gate, String)>,
    pub(super) health_changes: BTreeMap<EndpointId, Vec<HealthChange>>,
    pub(super) policies: BTreeMap<(OrgId, String), OwnPolicy>,
    pub(super) settings: BTreeMap<&'static str, Vec<u8>>,
    pub(super) last_seq: i64,
}

#[derive(Clone, Debug)]
pub(super) struct ApplicationRow {
    pub(super) application: Application,
    pub(super) version: u64,
    pub(super) deleted: bool,
}

/// What must not happen twice, by its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UniqueKey {
    EventId([u8; 20], String),
    Idempotency([u8; 20], [u8; 16]),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRow {
    pub(super) resource: [u8; 20],
    pub(super) expires_at: Option<Timestamp>,
}

impl Disk {
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.values()
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.values()
    }

    pub fn all_deliveries(&self) -> impl Iterator<Item = &DeliveryStatus> {
        self.deliveries.values()
    }

    pub fn all_attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.values()
    }

    /// The endpoints that have waiting deliveries.
    pub fn endpoints_with_work(&self) -> Vec<&Endpoint> {
        let mut ids: Vec<_> = self.lanes.keys().map(|(endpoint, _)| *endpoint).collect();
        ids.dedup();
        ids.iter().filter_map(|id| self.endpoints.get(id)).collect()
    }

    pub(super) fn key(&self, key: &UniqueKey, now: Timestamp) -> Option<[u8; 20]> {
        let row = self.keys.get(key)?;
        row.expires_at.is_none_or(|expires_at| expires_at > now).then_some(row.resource)
    }

    pub(super) fn put_in_lane(&mut self, endpoint: EndpointId, waiting: Waiting) {
        self.lanes.insert((endpoint, waiting.turn()), waiting);
        self.turns.insert(waiting.turn(), endpoint);
    }

    pub(super) fn take_from_lane(&mut self, endpoint: EndpointId, turn: Turn) {
        self.lanes.remove(&(endpoint, turn));
        self.turns.remove(&turn);
    }
}

/// A delivery as its lane sees it; `None`: it is settled.
pub(super) fn as_waiting(delivery: &DeliveryStatus) -> Option<Waiting> {
    match delivery.state {
        DeliveryState::Waiting { due_at } => Some(Waiting {
            seq: delivery.seq,
            message: delivery.message,
            due_at,
            attempts: delivery.attempts,
            clock_start: delivery.clock_start,
        }),
        DeliveryState::Delivered { .. } | DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => None,
    }
}
