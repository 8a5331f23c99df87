//! Removing what is no longer kept.
//!
//! Reads find it, in small walks, and [`Retention::remove`] removes it, in slices that the hot path does
//! not feel. Who decides what is kept is the engine; the store makes sure that what is removed still is what
//! was found, and that nothing goes that waits or is referred to.

use crate::{Done, Hour, PortalExpiry, Read, Seq};
use aldaba_delivery::{AppId, AuditId, EndpointId, GateKey, MessageId, OrgId, ReplayId, Timestamp};
use std::ops::AddAssign;
use std::time::Duration;

/// The place of a settled delivery in the order of the ends. Two deliveries never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settled {
    pub at: Timestamp,
    pub seq: Seq,
}

/// An endpoint, deleted or not, with what says how long its deliveries are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEndpoint {
    pub app: AppId,
    pub id: EndpointId,
    pub org: OrgId,
    pub policy: String,
    pub deleted: bool,
    /// It goes without having been deleted.
    pub direct: bool,
}

/// Of one endpoint: settled deliveries before these places are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub endpoint: EndpointId,
    pub delivered: Option<Settled>,
    pub dead: Option<Settled>,
    /// Of the dead ones, those that somebody has discarded.
    pub discarded: Option<Settled>,
}

/// Something that is no longer kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    /// A settled delivery with its attempts, and its message if that was the last delivery of it.
    Delivery(Settled),
    /// A message that no delivery is left of.
    Message(AppId, MessageId),
    /// The payload of a message that is kept itself.
    Payload(AppId, MessageId),
    /// An idempotency key or an event id whose time is over.
    Key(StoredKey),
    /// The counters of an endpoint for one minute since the Unix epoch.
    Counters(EndpointId, i64),
    /// The counters of an endpoint for one hour.
    HourCounters(EndpointId, Hour),
    /// The counters of an application for one hour, of all event types.
    ApplicationCounters(AppId, Hour),
    /// A gate that has held nobody since this moment.
    Gate(GateKey, Timestamp),
    /// A replay that has ended before this moment.
    Replay(ReplayId, Timestamp),
    /// A deleted endpoint that nothing refers to.
    Endpoint(EndpointId),
    /// A deleted application that nothing refers to.
    Application(AppId),
    /// A row of the audit log.
    Audit(AuditId),
    /// What says of a token that it counts no longer, if the token would have ended before this moment.
    RevokedToken([u8; 32], Timestamp),
    /// The same of portal tokens.
    PortalCut(PortalExpiry),
}

/// What must not happen twice, as it is kept. Only a store looks inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredKey {
    pub owner: [u8; 20],
    pub kind: u8,
    pub key: Vec<u8>,
}

/// A message, application by application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessagesCursor {
    pub app: AppId,
    pub message: MessageId,
}

/// A message whose payload is kept until a moment of its own, in the order of those moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayloadsCursor {
    pub until: Timestamp,
    pub app: AppId,
    pub message: MessageId,
}

/// A part of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked<Cursor> {
    pub stale: Vec<Stale>,
    /// How far it came; `None`: not a step.
    pub until: Option<Cursor>,
    /// Whether it ended at its limit, and there may be more behind.
    pub more: bool,
}

/// What to remove.
#[derive(Clone, Debug)]
pub struct Removal {
    pub items: Vec<Stale>,
    pub now: Timestamp,
    /// How long an event id is remembered at least, counted from the acceptance of its message, though the
    /// message is gone.
    pub event_ids_kept: Duration,
}

/// What became of a [`Removal`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many of the items are dealt with. The rest did not fit into the slice of time.
    pub seen: usize,
    pub counts: RemovedCounts,
    /// How long the writer was busy with it.
    pub took: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedCounts {
    pub deliveries: u64,
    pub attempts: u64,
    pub messages: u64,
    pub payloads: u64,
    pub keys: u64,
    pub counters: u64,
    pub gates: u64,
    pub replays: u64,
    pub endpoints: u64,
    pub applications: u64,
    pub audit: u64,
    pub revocations: u64,
}

impl AddAssign for RemovedCounts {
    fn add_assign(&mut self, more: Self) {
        self.deliveries += more.deliveries;
        self.attempts += more.attempts;
        self.messages += more.messages;
        self.payloads += more.payloads;
        self.keys += more.keys;
        self.counters += more.counters;
        self.gates += more.gates;
        self.replays += more.replays;
        self.endpoints += more.endpoints;
        self.applications += more.applications;
        self.audit += more.audit;
        self.revocations += more.revocations;
    }
}

pub trait Retention {
    /// All endpoints, in the order of application and id.
    fn kept_endpoints(&self, after: Option<(AppId, EndpointId)>, limit: usize) -> Read<Vec<KeptEndpoint>>;

    /// The newest delivered deliveries of these endpoints together, newest first; only those after the
    /// given place.
    fn newest_delivered(
        &self,
        endpoints: Vec<EndpointId>,
        after: Option<Settled>,
        limit: usize,
    ) -> Read<Vec<Settled>>;

    /// Settled deliveries that are cut off, of each endpoint the oldest first.
    fn cut_off(&self, cuts: Vec<Cut>, limit: usize) -> Read<Vec<Stale>>;

    /// Counters of these endpoints for minutes that were over before a moment, and for hours that began before
    /// it: an hour must not outlive its minutes, or nobody would find it when its endpoint is gone.
    fn old_counters(&self, endpoints: Vec<EndpointId>, before: Timestamp, limit: usize) -> Read<Vec<Stale>>;

    /// Counters of these applications for hours that began before a moment.
    fn old_application_counters(&self, apps: Vec<AppId>, before: Timestamp, limit: usize)
    -> Read<Vec<Stale>>;

    /// Those of these endpoints that are deleted, and that no delivery and no counter refers to.
    fn unused_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Stale>>;

    /// Deleted applications without endpoints and messages. `limit`: how many to look at.
    fn unused_applications(&self, after: Option<AppId>, limit: usize) -> Read<Walked<AppId>>;

    /// Messages that were made between two moments and that no delivery is left of. `limit`: how many to look at.
    fn lonely_messages(
        &self,
        after: Option<MessagesCursor>,
        created: (Timestamp, Timestamp),
        limit: usize,
    ) -> Read<Walked<MessagesCursor>>;

    /// Messages whose payloads were to be kept until `now` at most, and of which nothing waits. `limit`: how many to
    /// look at.
    fn old_payloads(
        &self,
        after: Option<PayloadsCursor>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<PayloadsCursor>>;

    /// Keys that count no longer. `limit`: how many to look at.
    fn expired_keys(&self, after: Option<StoredKey>, now: Timestamp, limit: usize)
    -> Read<Walked<StoredKey>>;

    /// Gates that have held nobody since a moment.
    fn old_gates(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>>;

    /// Replays that have ended before a moment, the oldest first.
    fn ended_replays(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>>;

    /// Rows of the audit log from before a moment, the oldest first.
    fn old_audit(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>>;

    /// What says of tokens that they have ended, where they would have ended before a moment anyway.
    fn needless_revocations(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>>;

    /// Removes what still is what was found, in one commit that takes a few milliseconds at most: what does
    /// not fit into them is left for the next call. Everything else that waits to be written goes first.
    fn remove(&self, removal: Removal, done: Done<Removed>);
}
