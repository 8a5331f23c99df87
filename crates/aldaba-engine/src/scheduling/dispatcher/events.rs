//! Events: what has happened, as the store, the attempts and the configuration report it.

use super::Dispatcher;
use crate::delivering::{AttemptResult, BudgetedContent};
use crate::recording::RecordResult;
use crate::scheduling::lane::{BufferedDelivery, SearchResult};
use aldaba_delivery::{AppId, EndpointId, GateKey, OrgId, Timestamp};
use aldaba_store::{DueQuery, FoundLane, LaneTarget, PendingDelivery, Seq, Sequenced};
use std::sync::Arc;

/// A pending delivery that was just committed.
pub(crate) struct QueuedDelivery {
    pub(crate) endpoint: EndpointId,
    pub(crate) pending: PendingDelivery,
    pub(crate) content: Option<Arc<BudgetedContent>>,
}

/// What has happened.
pub(crate) enum SchedulingEvent {
    /// Deliveries of an application were committed.
    Accepted(AppId, Vec<QueuedDelivery>),
    /// Deliveries of ordered endpoints were committed that get their sequence numbers later.
    SequencingNeeded,
    /// Deliveries got their sequence numbers.
    Sequenced(Vec<Sequenced>),
    /// Endpoints of lanes were read: those that were requested, and those that exist.
    EndpointsRead(Vec<EndpointId>, Vec<LaneTarget>),
    /// A refill was read.
    LaneRefilled(DueQuery, Vec<PendingDelivery>),
    AttemptEnded(Box<AttemptResult>),
    /// The store has written a record, or could not.
    Recorded(Box<RecordResult>),
    /// A manual attempt is over, and its delivery is pending as before.
    ReservationReturned(EndpointId, PendingDelivery),
    /// Reserved deliveries are no longer reserved. `true`: it is on disk that they have ended.
    ReservationsEnded(Vec<(EndpointId, Seq, bool)>),
    EndpointsDeleted(AppId, Vec<EndpointId>),
    /// An application was deleted, with all its endpoints.
    ApplicationDeleted(AppId),
    /// An endpoint was changed: its lane must read it again before it sends.
    EndpointChanged(EndpointId),
    /// An endpoint was resumed: its lane must read it again, and send what was held.
    EndpointResumed(AppId, EndpointId),
    /// An operator has opened gates.
    GatesOpened(Vec<GateKey>),
    /// Due times of lanes were corrected in the store.
    Rescheduled(Vec<(EndpointId, AppId)>),
    PolicyChanged(OrgId, String),
    ProfileChanged(OrgId, String),
    ApplicationChanged(AppId),
    /// A sweep has found lanes with work.
    LanesFound(Vec<FoundLane>),
    /// A sweep is over. `false`: it could not be finished.
    SweepEnded(bool),
    /// The search of a lane for expired deliveries is over. `None`: it could not be finished.
    SearchEnded(EndpointId, Option<SearchResult>),
    /// The walk over all endpoints has searched one of them.
    WalkSearched(EndpointId, SearchResult),
}

impl Dispatcher {
    pub(super) fn on_event(&mut self, event: SchedulingEvent, now: Timestamp) {
        match event {
            SchedulingEvent::Accepted(app, deliveries) => {
                for QueuedDelivery { endpoint, pending, content } in deliveries {
                    self.scheduler.enqueue(endpoint, app, BufferedDelivery { pending, content }, now);
                }
            }
            SchedulingEvent::SequencingNeeded => self.sequencing_needed.notify_one(),
            SchedulingEvent::Sequenced(placed) => {
                for Sequenced { endpoint, app, waiting } in placed {
                    let delivery = BufferedDelivery { pending: waiting, content: None };
                    self.scheduler.enqueue(endpoint, app, delivery, now);
                }
            }
            SchedulingEvent::EndpointsRead(requested, found) => self.endpoints_read(&requested, &found, now),
            SchedulingEvent::LaneRefilled(query, rows) => {
                self.scheduler.refilled(query.endpoint, &rows, query.limit);
            }
            SchedulingEvent::AttemptEnded(result) => self.attempt_ended(*result, now),
            SchedulingEvent::Recorded(result) => self.recorded(*result, now),
            SchedulingEvent::ReservationReturned(endpoint, pending) => {
                self.scheduler.recorded(endpoint, pending.seq, Some(pending), now);
            }
            SchedulingEvent::ReservationsEnded(deliveries) => {
                for (endpoint, seq, ended) in deliveries {
                    self.scheduler.reservation_ended(endpoint, seq, ended, now);
                }
            }
            SchedulingEvent::EndpointsDeleted(app, endpoints) => {
                for endpoint in endpoints {
                    self.scheduler.endpoint_deleted(endpoint, app, now);
                }
            }
            SchedulingEvent::ApplicationDeleted(app) => self.scheduler.application_deleted(app),
            SchedulingEvent::EndpointChanged(endpoint) => {
                // It may be an ordered one now, with deliveries that have no sequence number yet.
                self.sequencing_needed.notify_one();
                self.scheduler.endpoint_changed(endpoint);
            }
            SchedulingEvent::EndpointResumed(app, endpoint) => {
                self.scheduler.endpoint_resumed(endpoint, app, now);
            }
            SchedulingEvent::GatesOpened(gates) => self.scheduler.gates_opened(&gates, now),
            SchedulingEvent::Rescheduled(lanes) => {
                self.sequencing_needed.notify_one();
                for (endpoint, app) in lanes {
                    self.scheduler.rescheduled(endpoint, app, now);
                }
            }
            SchedulingEvent::PolicyChanged(org, name) => {
                self.scheduler.policy_changed(org, &name);
                self.expirer.policy_changed.notify_one();
            }
            SchedulingEvent::ProfileChanged(org, name) => self.scheduler.profile_changed(org, &name),
            SchedulingEvent::ApplicationChanged(app) => self.scheduler.application_changed(app),
            SchedulingEvent::LanesFound(lanes) => {
                for FoundLane { endpoint, app, .. } in lanes {
                    self.scheduler.open_lane(endpoint, app, now);
                }
            }
            SchedulingEvent::SweepEnded(finished) => self.sweep.ended(finished, now),
            SchedulingEvent::SearchEnded(endpoint, result) => {
                self.scheduler.search_ended(endpoint, result, now);
            }
            SchedulingEvent::WalkSearched(endpoint, result) => {
                self.scheduler.search_after(endpoint, result, now);
            }
        }
    }
}
