//! What lanes read.

use crate::sqlite::{SqliteStore, due_times, lanes, places, stop_dates};
use crate::{
    Content, DueQuery, Endpoint, GateRecord, LaneTarget, Lanes, LanesPage, LanesQuery, NotDue, OrphansPage,
    OrphansQuery, Read, StartedPage, StartedQuery, Turn, Waiting,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use bytes::Bytes;

impl Lanes for SqliteStore {
    fn due(&self, query: DueQuery) -> Read<Vec<Waiting>> {
        self.read(move |connection| lanes::due(connection, query))
    }

    fn lanes(&self, query: LanesQuery) -> Read<LanesPage> {
        self.read(move |connection| lanes::lanes(connection, query))
    }

    fn started_before(&self, query: StartedQuery) -> Read<StartedPage> {
        self.read(move |connection| stop_dates::started_before(connection, query))
    }

    fn have_started_before(&self, endpoints: Vec<(EndpointId, Timestamp)>) -> Read<Vec<EndpointId>> {
        self.read(move |connection| stop_dates::have_started_before(connection, &endpoints))
    }

    fn contents(&self, messages: Vec<(AppId, MessageId)>) -> Read<Vec<Option<Content>>> {
        self.read(move |connection| lanes::contents(connection, &messages))
    }

    fn has_payload(&self, app: AppId, message: MessageId, payload: Bytes) -> Read<Option<bool>> {
        self.read(move |connection| lanes::has_payload(connection, app, message, &payload))
    }

    fn lane_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Endpoint>> {
        self.read(move |connection| lanes::lane_endpoints(connection, &endpoints))
    }

    fn lane_targets(&self, endpoints: Vec<EndpointId>) -> Read<Vec<LaneTarget>> {
        self.read(move |connection| lanes::lane_targets(connection, &endpoints))
    }

    fn deleted_applications(&self, after: Option<AppId>, limit: usize) -> Read<Vec<AppId>> {
        self.read(move |connection| lanes::deleted_applications(connection, after, limit))
    }

    fn orphans(&self, query: OrphansQuery) -> Read<OrphansPage> {
        self.read(move |connection| lanes::orphans(connection, query))
    }

    fn gates(&self) -> Read<Vec<GateRecord>> {
        self.read(lanes::gates)
    }

    fn not_due(&self, after: Turn, limit: usize) -> Read<Vec<NotDue>> {
        self.read(move |connection| due_times::not_due(connection, after, limit))
    }

    fn next_place_at(&self) -> Read<Option<Timestamp>> {
        self.read(places::next_at)
    }

    fn newest_moment(&self) -> Read<Option<Timestamp>> {
        self.read(due_times::newest_moment)
    }
}
