//! What the lanes read: which deliveries wait, in the order of their turns.

use crate::operations::{delivery, due_times, gate, lanes, retention, stop_dates};
use crate::{Content, Endpoint, KeptEndpoint};
use aldaba_delivery::{AppId, EndpointId, Gate, GateKey, MessageId, OrgId, Timestamp};
use bytes::Bytes;

/// The number of a delivery: given by the store, growing in the order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub i64);

/// The place of a waiting delivery in its lane. Two deliveries never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LanePosition {
    pub due_at: Timestamp,
    pub seq: Seq,
}

/// A delivery that is not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingDelivery {
    pub seq: Seq,
    pub message: MessageId,
    pub due_at: Timestamp,
    pub attempts: u32,
    pub clock_start: Timestamp,
    /// Somebody has replayed it: its first attempt is made however late.
    pub replayed: bool,
    /// Where it stands if its endpoint is an ordered one: its own number, or the one that it got when its message's
    /// `deliverAt` had come. `None`: that is still to come.
    pub sequence: Option<Seq>,
}

impl PendingDelivery {
    pub fn position(&self) -> LanePosition {
        LanePosition { due_at: self.due_at, seq: self.seq }
    }
}

/// Refills a lane.
#[derive(Clone, Copy, Debug)]
pub struct DueQuery {
    pub endpoint: EndpointId,
    /// In the order of their places, not of their due times: for ordered endpoints only. What has no place yet is
    /// left out.
    pub ordered: bool,
    /// Only turns after this one; where the read is ordered, its number is a place, and counts alone.
    pub after: Option<LanePosition>,
    pub limit: usize,
}

/// Finds lanes with work, walking all waiting deliveries in the order of their due time.
#[derive(Clone, Copy, Debug)]
pub struct LanesQuery {
    pub after: Option<LanesCursor>,
    /// Only deliveries due at or before this moment.
    pub until: Timestamp,
    /// How many waiting deliveries to walk over at most.
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanesCursor(pub LanePosition);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanesPage {
    /// Each endpoint once.
    pub lanes: Vec<FoundLane>,
    /// Where to go on; `None`: nothing more is due by `until`.
    pub next: Option<LanesCursor>,
}

/// An endpoint that has waiting deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLane {
    pub endpoint: EndpointId,
    pub app: AppId,
    /// The first due time seen in the page.
    pub due_at: Timestamp,
}

/// Finds what waits for the endpoints of a deleted application, endpoint by endpoint.
#[derive(Clone, Copy, Debug)]
pub struct OrphansQuery {
    pub app: AppId,
    pub after: Option<OrphansCursor>,
    /// How many endpoints and deliveries to look at, at most.
    pub limit: usize,
}

/// The last that was looked at: an endpoint, and how far in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphansCursor {
    pub endpoint: EndpointId,
    pub turn: LanePosition,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphansPage {
    pub waiting: Vec<(EndpointId, PendingDelivery)>,
    /// Where to go on; `None`: that is all.
    pub next: Option<OrphansCursor>,
}

/// Finds what waits for an endpoint and whose clock started before a moment, for the end of its stop date.
#[derive(Clone, Copy, Debug)]
pub struct StartedQuery {
    pub endpoint: EndpointId,
    pub before: Timestamp,
    pub after: Option<StartedCursor>,
    /// How many deliveries to look at, at most.
    pub limit: usize,
}

/// How far the two walks have come: first what is due when its clock starts, by its turn, then what is due later
/// than that, because it was tried, by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartedCursor {
    Untried(LanePosition),
    Tried { clock_start: Timestamp, seq: Seq },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartedPage {
    pub waiting: Vec<PendingDelivery>,
    /// Where to go on; `None`: that is all.
    pub next: Option<StartedCursor>,
    /// Of what else waits, nothing has a clock that started before this. `None`: nothing else was met.
    pub rest_since: Option<Timestamp>,
}

/// A delivery that waits for its due time, with what bounds that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutureDelivery {
    pub waiting: PendingDelivery,
    pub endpoint: EndpointId,
    pub app: AppId,
    pub org: OrgId,
    /// The name of the endpoint's policy.
    pub policy: String,
    /// The `deliverAt` of its message. Not read of what was tried, which has begun.
    pub deliver_at: Option<Timestamp>,
    /// When its last scheduled attempt began, by the clock of that time. Absent where it was never tried.
    pub tried_at: Option<Timestamp>,
}

/// A delivery of an ordered endpoint that has just got its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequenced {
    pub endpoint: EndpointId,
    pub app: AppId,
    pub waiting: PendingDelivery,
}

/// What a lane reads before it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneTarget {
    pub endpoint: Endpoint,
    /// Of its application: requests a second to all of its endpoints together.
    pub app_rate: Option<u16>,
}

/// A gate as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRecord {
    pub key: GateKey,
    pub gate: Gate,
    /// The failure that the present hold comes from.
    pub why: String,
}

contract! {
    pub trait Lanes {
        reads {
            /// Waiting deliveries of one endpoint, in the order of their turns or of their places.
            read due(query: DueQuery) -> Vec<PendingDelivery> = |reading| lanes::due(reading, query);

            background_read lanes(query: LanesQuery) -> LanesPage = |reading| lanes::lanes(reading, query);

            /// What waits for an endpoint and whose clock started before a moment.
            read started_before(query: StartedQuery) -> StartedPage
                = |reading| stop_dates::started_before(reading, query);

            /// Those of the endpoints for which something waits whose clock started before a moment.
            read have_started_before(endpoints: Vec<(EndpointId, Timestamp)>) -> Vec<EndpointId>
                = |reading| stop_dates::have_started_before(reading, &endpoints);

            /// What these messages say; `None` where it is gone.
            read contents(messages: Vec<(AppId, MessageId)>) -> Vec<Option<Content>>
                = |reading| lanes::contents(reading, &messages);

            /// Whether a message has this payload; `None`: it is not kept any more. One of another length is not
            /// read: a caller that sends little must not make a store read much.
            read has_payload(app: AppId, message: MessageId, payload: Bytes) -> Option<bool>
                = |reading| lanes::has_payload(reading, app, message, &payload);

            /// Endpoints by id, deleted ones included: their waiting deliveries still have to end.
            read lane_endpoints(endpoints: Vec<EndpointId>) -> Vec<Endpoint>
                = |reading| Ok(lanes::targets(reading, &endpoints)?.into_iter().map(|target| target.endpoint).collect());

            /// The same, with what binds all lanes of an application.
            read lane_targets(endpoints: Vec<EndpointId>) -> Vec<LaneTarget>
                = |reading| lanes::targets(reading, &endpoints);

            /// All endpoints, in the order of application and id.
            background_read kept_endpoints(
                after: Option<(AppId, EndpointId)>, limit: usize
            ) -> Vec<KeptEndpoint> = |reading| retention::kept_endpoints(reading, after, limit);

            /// Applications that are deleted and still have a history, by id.
            background_read deleted_applications(after: Option<AppId>, limit: usize) -> Vec<AppId>
                = |reading| retention::deleted_applications(reading, after, limit);

            /// Nothing is found for an application that is there.
            background_read orphans(query: OrphansQuery) -> OrphansPage
                = |reading| lanes::orphans(reading, query);

            /// All that are kept, in the order of their keys.
            read gates() -> Vec<GateRecord> = |reading| gate::all(reading);

            /// Waiting deliveries whose turns come after this one, by turn. `limit`: how many to look at.
            background_read future_deliveries(after: LanePosition, limit: usize) -> Vec<FutureDelivery>
                = |reading| due_times::future_deliveries(reading, after, limit);

            /// When the next delivery of an ordered endpoint is to take its place ([`Change::SequenceDue`](crate::Change)).
            background_read next_sequencing_at() -> Option<Timestamp>
                = |reading| delivery::next_sequencing_at(reading);

            /// When something last happened, by the rows that were written last; `None`: nothing has.
            read newest_moment() -> Option<Timestamp> = |reading| reading.newest_moment();
        }
    }
}
