//! What is no longer kept.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, audit, credentials, retention};
use crate::{
    Cut, Done, KeptEndpoint, MessagesCursor, PayloadsCursor, Read, Removal, Removed, Retention, Settled,
    Stale, StoredKey, Walked,
};
use aldaba_delivery::{AppId, EndpointId, Timestamp};

impl Retention for SqliteStore {
    fn kept_endpoints(&self, after: Option<(AppId, EndpointId)>, limit: usize) -> Read<Vec<KeptEndpoint>> {
        self.read(move |connection| retention::kept_endpoints(connection, after, limit))
    }

    fn newest_delivered(
        &self,
        endpoints: Vec<EndpointId>,
        after: Option<Settled>,
        limit: usize,
    ) -> Read<Vec<Settled>> {
        self.read(move |connection| retention::newest_delivered(connection, &endpoints, after, limit))
    }

    fn cut_off(&self, cuts: Vec<Cut>, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::cut_off(connection, &cuts, limit))
    }

    fn old_counters(&self, endpoints: Vec<EndpointId>, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::old_counters(connection, &endpoints, before, limit))
    }

    fn old_application_counters(
        &self,
        apps: Vec<AppId>,
        before: Timestamp,
        limit: usize,
    ) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::old_application_counters(connection, &apps, before, limit))
    }

    fn unused_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::unused_endpoints(connection, &endpoints))
    }

    fn unused_applications(&self, after: Option<AppId>, limit: usize) -> Read<Walked<AppId>> {
        self.read(move |connection| retention::unused_applications(connection, after, limit))
    }

    fn lonely_messages(
        &self,
        after: Option<MessagesCursor>,
        before: Timestamp,
        limit: usize,
    ) -> Read<Walked<MessagesCursor>> {
        self.read(move |connection| retention::lonely_messages(connection, after, before, limit))
    }

    fn old_payloads(
        &self,
        after: Option<PayloadsCursor>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<PayloadsCursor>> {
        self.read(move |connection| retention::old_payloads(connection, after, now, limit))
    }

    fn expired_keys(
        &self,
        after: Option<StoredKey>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<StoredKey>> {
        self.read(move |connection| retention::expired_keys(connection, after.as_ref(), now, limit))
    }

    fn old_gates(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::old_gates(connection, before, limit))
    }

    fn ended_replays(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| retention::ended_replays(connection, before, limit))
    }

    fn old_audit(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| audit::old(connection, before, limit))
    }

    fn needless_revocations(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |connection| credentials::needless(connection, before, limit))
    }

    fn remove(&self, removal: Removal, done: Done<Removed>) {
        self.write(Op::Remove(removal), Reply::Remove(done));
    }
}
