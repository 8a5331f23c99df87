//! What is no longer kept: found, removed, and put aside for the checks.

use super::SimStore;
use super::disk::{Disk, UniqueKey};
use super::queue::Op;
use crate::sabotage::Sabotage;
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use aldaba_store::{
    Attempt, Cut, DeliveryState, DeliveryStatus, Done, Endpoint, KeptEndpoint, Message, MessagesCursor,
    PayloadsCursor, Read, Removal, Removed, RemovedCounts, Replay, ReplayState, Retention, Seq, Settled,
    Stale, StoredKey, Walked,
};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What was removed. The server cannot see it; the checks can.
#[derive(Clone, Debug, Default)]
pub(super) struct Archive {
    pub(super) endpoints: BTreeMap<EndpointId, Endpoint>,
    pub(super) messages: BTreeMap<(AppId, MessageId), Message>,
    pub(super) deliveries: BTreeMap<Seq, DeliveryStatus>,
    pub(super) attempts: Vec<Attempt>,
}

/// Where a settled delivery is in the order of the ends, and whether it was delivered.
fn settled(delivery: &DeliveryStatus) -> Option<(Settled, bool)> {
    let seq = delivery.seq;
    match delivery.state {
        DeliveryState::Waiting { .. } => None,
        DeliveryState::Delivered { at } => Some((Settled { at, seq }, true)),
        DeliveryState::Dead { at, .. } | DeliveryState::Skipped { at, .. } => {
            Some((Settled { at, seq }, false))
        }
    }
}

fn stored(key: &UniqueKey) -> StoredKey {
    match key {
        UniqueKey::EventId(owner, id) => StoredKey { owner: *owner, kind: 0, key: id.clone().into_bytes() },
        UniqueKey::Idempotency(owner, digest) => StoredKey { owner: *owner, kind: 1, key: digest.to_vec() },
    }
}

impl Disk {
    fn kept_endpoints(&self, after: Option<(AppId, EndpointId)>, limit: usize) -> Vec<KeptEndpoint> {
        let mut all: Vec<_> = self.endpoints.values().map(|row| (row.app, row.id)).collect();
        all.sort();
        let kept = |(_, id): (AppId, EndpointId)| {
            let row = &self.endpoints[&id];
            let (policy, deleted) = (row.config.policy.clone(), row.deleted);
            KeptEndpoint { app: row.app, id, org: row.org, policy, deleted, direct: row.direct }
        };
        all.into_iter()
            .filter(|place| after.is_none_or(|after| *place > after))
            .take(limit)
            .map(kept)
            .collect()
    }

    /// The settled deliveries of an endpoint in the order of their ends.
    fn settled_of(&self, endpoint: EndpointId, delivered: bool) -> Vec<Settled> {
        let of = self.deliveries.values().filter(|delivery| delivery.endpoint == endpoint);
        let mut places: Vec<_> =
            of.filter_map(settled).filter(|(_, was)| *was == delivered).map(|(place, _)| place).collect();
        places.sort();
        places
    }

    pub(super) fn newest_delivered(
        &self,
        endpoints: &[EndpointId],
        after: Option<Settled>,
        limit: usize,
    ) -> Vec<Settled> {
        let mut places: Vec<_> = endpoints.iter().flat_map(|id| self.settled_of(*id, true)).collect();
        places.retain(|place| after.is_none_or(|after| *place > after));
        places.sort_by(|a, b| b.cmp(a));
        places.truncate(limit);
        places
    }

    fn cut_off(&self, cuts: &[Cut], limit: usize) -> Vec<Stale> {
        let of = |cut: &Cut| {
            let is_before = |place: &Settled, end: Option<Settled>| end.is_some_and(|end| *place < end);
            let mut delivered = self.settled_of(cut.endpoint, true);
            delivered.retain(|place| is_before(place, cut.delivered));
            let mut dead = self.settled_of(cut.endpoint, false);
            dead.retain(|place| {
                let discarded = self.discarded.contains(&place.seq);
                is_before(place, cut.dead) || discarded && is_before(place, cut.discarded)
            });
            delivered.into_iter().chain(dead)
        };
        cuts.iter().flat_map(of).take(limit).map(Stale::Delivery).collect()
    }

    fn is_endpoint_unused(&self, id: EndpointId) -> bool {
        self.endpoints.get(&id).is_some_and(|row| row.deleted || row.direct)
            && !self.deliveries.values().any(|delivery| delivery.endpoint == id)
    }

    fn is_application_unused(&self, id: AppId) -> bool {
        self.applications.get(&id).is_some_and(|row| row.deleted)
            && !self.endpoints.values().any(|row| row.app == id)
            && !self.messages.keys().any(|(app, _)| *app == id)
    }

    fn unused_applications(&self, after: Option<AppId>, limit: usize) -> Walked<AppId> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let deleted = self.applications.range((start, Bound::Unbounded)).filter(|(_, row)| row.deleted);
        let found: Vec<AppId> = deleted.map(|(id, _)| *id).take(limit).collect();
        let unused = found.iter().filter(|id| self.is_application_unused(**id));
        Walked {
            stale: unused.map(|id| Stale::Application(*id)).collect(),
            until: found.last().copied(),
            more: found.len() == limit,
        }
    }

    fn is_lonely(&self, message: MessageId) -> bool {
        self.of_message.get(&message).is_none_or(Vec::is_empty)
    }

    fn lonely_messages(
        &self,
        after: Option<MessagesCursor>,
        (since, before): (Timestamp, Timestamp),
        limit: usize,
    ) -> Walked<MessagesCursor> {
        let start =
            after.map_or(Bound::Unbounded, |MessagesCursor { app, message }| Bound::Excluded((app, message)));
        let between = MessageId::first_at(since)..MessageId::first_at(before);
        let later = self.messages.range((start, Bound::Unbounded)).map(|(key, _)| *key);
        let found: Vec<_> = later.filter(|(_, message)| between.contains(message)).take(limit).collect();
        let lonely = found.iter().filter(|(_, message)| self.is_lonely(*message));
        let more = found.len() == limit;
        let last = found.last().map(|(app, message)| MessagesCursor { app: *app, message: *message });
        Walked {
            stale: lonely.map(|(app, message)| Stale::Message(*app, *message)).collect(),
            until: last.filter(|_| more),
            more,
        }
    }

    fn waits(&self, message: MessageId) -> bool {
        self.deliveries(message).iter().any(|row| row.waiting().is_some())
    }

    /// `all`, for sabotage: those too of which something waits.
    fn old_payloads(
        &self,
        after: Option<PayloadsCursor>,
        now: Timestamp,
        (limit, all): (usize, bool),
    ) -> Walked<PayloadsCursor> {
        let cursor = |key: &(AppId, MessageId)| {
            let row = self.messages.get(key).filter(|row| !row.expunged)?;
            let until = row.payload_until.filter(|until| *until <= now)?;
            Some((PayloadsCursor { until, app: key.0, message: key.1 }, *key))
        };
        let mut found: Vec<_> = self.accepted.values().filter_map(cursor).collect();
        found.retain(|(cursor, _)| after.is_none_or(|after| *cursor > after));
        found.sort();
        found.truncate(limit);
        let stale = found.iter().filter(|(_, (_, message))| all || !self.waits(*message));
        Walked {
            stale: stale.map(|(_, (app, message))| Stale::Payload(*app, *message)).collect(),
            until: found.last().map(|(cursor, _)| *cursor),
            more: found.len() == limit,
        }
    }

    fn expired_keys(&self, after: Option<&StoredKey>, now: Timestamp, limit: usize) -> Walked<StoredKey> {
        let mut all: Vec<_> = self.keys.iter().map(|(key, row)| (stored(key), row.expires_at)).collect();
        all.retain(|(key, _)| after.is_none_or(|after| key > after));
        all.sort();
        all.truncate(limit);
        let expired = all.iter().filter(|(_, expires_at)| expires_at.is_some_and(|moment| moment <= now));
        Walked {
            stale: expired.map(|(key, _)| Stale::Key(key.clone())).collect(),
            until: all.last().map(|(key, _)| key.clone()),
            more: all.len() == limit,
        }
    }

    fn old_gates(&self, before: Timestamp, limit: usize) -> Vec<Stale> {
        let old =
            self.gates.iter().filter(|(_, (gate, _))| gate.held_until.is_some_and(|until| until < before));
        old.map(|(key, _)| Stale::Gate(key.clone(), before)).take(limit).collect()
    }

    fn has_ended(replay: &Replay, before: Timestamp) -> bool {
        replay.state != ReplayState::Running && replay.updated_at < before
    }

    fn ended_replays(&self, before: Timestamp, limit: usize) -> Vec<Stale> {
        let mut ended: Vec<_> =
            self.replays.values().filter(|replay| Self::has_ended(replay, before)).collect();
        ended.sort_by_key(|replay| (replay.updated_at, replay.id));
        ended.into_iter().take(limit).map(|replay| Stale::Replay(replay.id, before)).collect()
    }

    /// A delivery that is to go, and how many delivered ones of its application are newer, by policy.
    pub(super) fn rank(&self, place: Settled) -> Option<(DeliveryStatus, BTreeMap<String, usize>)> {
        let row = self.deliveries.get(&place.seq)?;
        let app = self.endpoints.get(&row.endpoint)?.app;
        let mut newer: BTreeMap<String, usize> = BTreeMap::new();
        for endpoint in self.endpoints.values().filter(|endpoint| endpoint.app == app) {
            let places = self.settled_of(endpoint.id, true);
            let count = places.into_iter().filter(|other| *other > place).count();
            *newer.entry(endpoint.config.policy.clone()).or_default() += count;
        }
        Some((row.clone(), newer))
    }

    /// Removes one, if it still is what was found.
    pub(super) fn remove(&mut self, item: &Stale, removal: &Removal, counts: &mut RemovedCounts) {
        match item {
            Stale::Payload(app, message) => {
                let waits = self.waits(*message);
                let over = |row: &&mut Message| {
                    !row.expunged && row.payload_until.is_some_and(|until| until <= removal.now)
                };
                let row = self.messages.get_mut(&(*app, *message)).filter(over);
                if let Some(row) = row.filter(|_| !waits) {
                    row.expunged = true;
                    counts.payloads += 1;
                }
            }
            Stale::Delivery(place) => self.remove_delivery(*place, removal, counts),
            Stale::Message(app, message) => self.remove_message(*app, *message, removal, counts),
            Stale::Key(key) => {
                let before = self.keys.len();
                let over = |at: Option<Timestamp>| at.is_some_and(|at| at <= removal.now);
                self.keys.retain(|other, row| stored(other) != *key || !over(row.expires_at));
                counts.keys += (before - self.keys.len()) as u64;
            }
            // There are none here.
            Stale::Counters(..) | Stale::HourCounters(..) | Stale::ApplicationCounters(..) => {}
            Stale::Gate(key, before) => {
                let until = self.gates.get(key).and_then(|(gate, _)| gate.held_until);
                if until.is_some_and(|until| until < *before) {
                    self.gates.remove(key);
                    counts.gates += 1;
                }
            }
            Stale::Replay(id, before) => {
                if self.replays.get(id).is_some_and(|replay| Self::has_ended(replay, *before)) {
                    self.replays.remove(id);
                    counts.replays += 1;
                }
            }
            Stale::Endpoint(id) if self.is_endpoint_unused(*id) => {
                let row = self.endpoints.remove(id).expect("it was there a moment ago");
                self.archive.endpoints.insert(*id, row);
                counts.endpoints += 1;
            }
            Stale::Application(id) if self.is_application_unused(*id) => {
                self.applications.remove(id);
                counts.applications += 1;
                let cuts = self.portal_cuts.len();
                self.portal_cuts.retain(|cut| cut.app != *id);
                counts.revocations += (cuts - self.portal_cuts.len()) as u64;
            }
            Stale::Audit(id) => counts.audit += u64::from(self.audit.remove(id).is_some()),
            Stale::RevokedToken(mark, before) => {
                let row = self.revoked_tokens.get(mark);
                if row.is_some_and(|row| row.expires_at.is_some_and(|until| until < *before)) {
                    self.revoked_tokens.remove(mark);
                    counts.revocations += 1;
                }
            }
            Stale::PortalCut(cut) => counts.revocations += u64::from(self.portal_cuts.remove(cut)),
            Stale::Endpoint(_) | Stale::Application(_) => {}
        }
    }

    fn remove_delivery(&mut self, place: Settled, removal: &Removal, counts: &mut RemovedCounts) {
        let Some(row) = self.deliveries.get(&place.seq) else { return };
        if settled(row).is_none_or(|(now, _)| now != place) {
            return;
        }
        let row = self.deliveries.remove(&place.seq).expect("it was there a moment ago");
        counts.deliveries += 1;
        self.dead_letter.remove(&place.seq);
        self.discarded.remove(&place.seq);
        self.remove_attempts(|other| other.seq == place.seq, counts);
        if let Some(others) = self.of_message.get_mut(&row.message) {
            others.retain(|seq| *seq != place.seq);
        }
        if let Some(app) = self.endpoints.get(&row.endpoint).map(|endpoint| endpoint.app) {
            self.remove_message(app, row.message, removal, counts);
        }
        self.archive.deliveries.insert(place.seq, row);
    }

    fn remove_attempts(&mut self, which: impl Fn(&Attempt) -> bool, counts: &mut RemovedCounts) {
        let gone: Vec<_> = self.attempts.values().filter(|row| which(row)).map(|row| row.id).collect();
        counts.attempts += gone.len() as u64;
        self.archive.attempts.extend(gone.iter().filter_map(|id| self.attempts.remove(id)));
    }

    fn remove_message(
        &mut self,
        app: AppId,
        message: MessageId,
        removal: &Removal,
        counts: &mut RemovedCounts,
    ) {
        if !self.is_lonely(message) {
            return;
        }
        let Some(row) = self.messages.remove(&(app, message)) else { return };
        counts.messages += 1;
        self.remove_attempts(|other| other.message == message, counts);
        self.of_message.remove(&message);
        self.accepted.retain(|_, key| *key != (app, message));
        if let Some(event_id) = &row.content.event_id {
            let key = UniqueKey::EventId(*app.as_bytes(), event_id.to_string());
            let until = row.created_at + removal.event_ids_kept;
            let ours = |row: &&mut super::disk::KeyRow| row.resource == *message.as_bytes();
            if let Some(row) = self.keys.get_mut(&key).filter(ours) {
                let until = row.at_least.map_or(until, |at_least| until.max(at_least));
                row.expires_at = Some(until);
                if until <= removal.now {
                    self.keys.remove(&key);
                    counts.keys += 1;
                }
            }
        }
        self.archive.messages.insert((app, message), row);
    }
}

impl Retention for SimStore {
    fn kept_endpoints(&self, after: Option<(AppId, EndpointId)>, limit: usize) -> Read<Vec<KeptEndpoint>> {
        self.background_read(move |disk| disk.kept_endpoints(after, limit))
    }

    fn newest_delivered(
        &self,
        endpoints: Vec<EndpointId>,
        after: Option<Settled>,
        limit: usize,
    ) -> Read<Vec<Settled>> {
        self.read(move |disk| disk.newest_delivered(&endpoints, after, limit))
    }

    fn cut_off(&self, mut cuts: Vec<Cut>, limit: usize) -> Read<Vec<Stale>> {
        if self.sabotage(Sabotage::RemoveEarly) {
            let end = Some(Settled { at: Timestamp::MAX, seq: Seq(i64::MAX) });
            cuts.iter_mut().for_each(|cut| (cut.delivered, cut.dead) = (end, end));
        }
        self.read(move |disk| disk.cut_off(&cuts, limit))
    }

    fn old_counters(&self, _: Vec<EndpointId>, _: Timestamp, _: usize) -> Read<Vec<Stale>> {
        self.read(|_| Vec::new())
    }

    fn old_application_counters(&self, _: Vec<AppId>, _: Timestamp, _: usize) -> Read<Vec<Stale>> {
        self.read(|_| Vec::new())
    }

    fn unused_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Stale>> {
        self.read(move |disk| {
            let unused = endpoints.into_iter().filter(|id| disk.is_endpoint_unused(*id));
            unused.map(Stale::Endpoint).collect()
        })
    }

    fn unused_applications(&self, after: Option<AppId>, limit: usize) -> Read<Walked<AppId>> {
        self.read(move |disk| disk.unused_applications(after, limit))
    }

    fn lonely_messages(
        &self,
        after: Option<MessagesCursor>,
        created: (Timestamp, Timestamp),
        limit: usize,
    ) -> Read<Walked<MessagesCursor>> {
        self.read(move |disk| disk.lonely_messages(after, created, limit))
    }

    fn old_payloads(
        &self,
        after: Option<PayloadsCursor>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<PayloadsCursor>> {
        let all = self.sabotage(Sabotage::RemovePayloads);
        self.read(move |disk| disk.old_payloads(after, now, (limit, all)))
    }

    fn expired_keys(
        &self,
        after: Option<StoredKey>,
        now: Timestamp,
        limit: usize,
    ) -> Read<Walked<StoredKey>> {
        self.read(move |disk| disk.expired_keys(after.as_ref(), now, limit))
    }

    fn old_gates(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |disk| disk.old_gates(before, limit))
    }

    fn ended_replays(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |disk| disk.ended_replays(before, limit))
    }

    fn old_audit(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |disk| disk.old_audit(before, limit))
    }

    fn needless_revocations(&self, before: Timestamp, limit: usize) -> Read<Vec<Stale>> {
        self.read(move |disk| disk.needless_revocations(before, limit))
    }

    fn remove(&self, removal: Removal, done: Done<Removed>) {
        if self.busy() {
            return done.call(Err(aldaba_store::Error::Busy));
        }
        self.put(Op::Remove(removal, done));
    }
}
