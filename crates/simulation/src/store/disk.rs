//! What survives a crash: tables and their indexes.

use super::retention::Archive;
use aldaba_delivery::{
    ApiKeyId, AppId, AttemptId, AuditId, EndpointId, Gate, GateKey, MessageId, OrgId, ReplayId, SourceId,
    Timestamp,
};
use aldaba_store::{
    ApiKey, Application, Attempt, AuditEntry, DeliveryStatus, Endpoint, EventType, HealthChange, Hour,
    IdempotencyKey, Message, Notice, NoticeNumber, OwnPolicy, OwnProfile, PortalCut, Replay, ReplayState,
    RequestDigest, RevokedToken, Seq, Source, Turn, Waiting,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub(super) applications: BTreeMap<AppId, ApplicationRow>,
    /// Messages of a day, by whose they are.
    pub(super) message_counts: BTreeMap<(i64, [u8; 20]), u64>,
    pub(super) endpoints: BTreeMap<EndpointId, Endpoint>,
    pub(super) messages: BTreeMap<(AppId, MessageId), Message>,
    pub(super) deliveries: BTreeMap<Seq, DeliveryStatus>,
    /// Messages in the order of acceptance.
    pub(super) accepted: BTreeMap<i64, (AppId, MessageId)>,
    pub(super) of_message: BTreeMap<MessageId, Vec<Seq>>,
    /// Waiting deliveries by lane and turn.
    pub(super) lanes: BTreeMap<(EndpointId, Turn), Waiting>,
    /// Waiting deliveries by turn alone.
    pub(super) turns: BTreeMap<Turn, EndpointId>,
    /// Dead deliveries that nobody has discarded.
    pub(super) dead_letter: BTreeSet<Seq>,
    /// Dead ones that somebody has discarded.
    pub(super) discarded: BTreeSet<Seq>,
    pub(super) attempts: BTreeMap<AttemptId, Attempt>,
    /// When the last scheduled attempt of each waiting delivery began.
    pub(super) tried: BTreeMap<Seq, Timestamp>,
    /// Attempts that were counted: when, of whom, and what became of them.
    pub(super) counted: Vec<Counted>,
    /// Up to which hour counters would be summed up.
    pub(super) summed_through: Option<Hour>,
    pub(super) keys: BTreeMap<UniqueKey, KeyRow>,
    /// With why they are held.
    pub(super) gates: BTreeMap<GateKey, (Gate, String)>,
    pub(super) health_changes: BTreeMap<EndpointId, Vec<HealthChange>>,
    pub(super) policies: BTreeMap<(OrgId, String), OwnPolicy>,
    pub(super) replays: BTreeMap<ReplayId, Replay>,
    pub(super) profiles: BTreeMap<(OrgId, String), OwnProfile>,
    pub(super) event_types: BTreeMap<(OrgId, String), EventType>,
    pub(super) settings: BTreeMap<&'static str, Vec<u8>>,
    pub(super) notices: BTreeMap<(OrgId, NoticeNumber), Notice>,
    pub(super) left_out_notices: BTreeMap<OrgId, u32>,
    pub(super) last_notice: i64,
    pub(super) api_keys: BTreeMap<ApiKeyId, ApiKey>,
    pub(super) sources: BTreeMap<SourceId, Source>,
    pub(super) revoked_tokens: BTreeMap<[u8; 32], RevokedToken>,
    pub(super) portal_cuts: BTreeSet<PortalCut>,
    pub(super) audit: BTreeMap<AuditId, AuditEntry>,
    pub(super) last_seq: i64,
    pub(super) last_message: i64,
    pub(super) archive: Archive,
}

#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) at: Timestamp,
    pub(super) app: AppId,
    pub(super) endpoint: EndpointId,
    pub(super) event_type: Arc<str>,
    pub(super) success: bool,
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
    /// It counts so long, though what it led to may be gone.
    pub(super) at_least: Option<Timestamp>,
}

impl KeyRow {
    pub(super) fn until(resource: [u8; 20], expires_at: Timestamp) -> Self {
        Self { resource, expires_at: Some(expires_at), at_least: None }
    }
}

impl Disk {
    /// Those that were removed too, here and below: the checks look at everything that ever was.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.values().chain(self.archive.messages.values())
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let gone = |row: &&Endpoint| !self.endpoints.contains_key(&row.id);
        self.endpoints.values().chain(self.archive.endpoints.values().filter(gone))
    }

    pub fn has_application(&self, app: AppId) -> bool {
        self.applications.get(&app).is_some_and(|row| !row.deleted)
    }

    /// Whether it is an address that was removed: the next dispatch made it anew.
    pub fn was_removed(&self, address: EndpointId) -> bool {
        self.archive.endpoints.get(&address).is_some_and(|row| row.direct)
    }

    pub fn all_deliveries(&self) -> impl Iterator<Item = &DeliveryStatus> {
        self.deliveries.values().chain(self.archive.deliveries.values())
    }

    pub fn all_attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.values().chain(&self.archive.attempts)
    }

    /// What the server can still read.
    pub fn has_message(&self, app: AppId, message: MessageId) -> bool {
        self.messages.contains_key(&(app, message))
    }

    /// Whether an event of a source is or was there, by its id if it has one.
    pub fn has_event(&self, app: AppId, id: Option<&str>, body: &[u8]) -> bool {
        let is_it = |message: &&Message| match id {
            Some(id) => message.content.event_id.as_deref() == Some(id),
            None => message.content.payload == body,
        };
        self.messages().filter(|message| message.app == app).any(|message| is_it(&message))
    }

    pub fn has_delivery(&self, seq: Seq) -> bool {
        self.deliveries.contains_key(&seq)
    }

    pub fn is_replaying(&self) -> bool {
        self.replays.values().any(|replay| replay.state == ReplayState::Running)
    }

    /// The endpoints that have waiting deliveries.
    pub fn endpoints_with_work(&self) -> Vec<&Endpoint> {
        let mut ids: Vec<_> = self.lanes.keys().map(|(endpoint, _)| *endpoint).collect();
        ids.dedup();
        ids.iter().filter_map(|id| self.endpoints.get(id)).collect()
    }

    /// It counts for as long as it is there.
    pub(super) fn key(&self, key: &UniqueKey) -> Option<[u8; 20]> {
        self.keys.get(key).map(|row| row.resource)
    }

    /// What a request has led to, under its current digest or its former one.
    pub(super) fn request(&self, owner: [u8; 20], digest: RequestDigest) -> Option<[u8; 20]> {
        let digests = [Some(digest.current), digest.former];
        let find = |digest| self.key(&UniqueKey::Idempotency(owner, digest));
        digests.into_iter().flatten().find_map(find)
    }

    pub(super) fn keep_request(&mut self, owner: [u8; 20], used: IdempotencyKey, resource: [u8; 20]) {
        let key = UniqueKey::Idempotency(owner, used.digest.current);
        self.keys.insert(key, KeyRow::until(resource, used.expires_at));
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
    delivery.waiting()
}
