//! Events and results reach the disk.

use super::disk::{Disk, KeyRow, UniqueKey, as_waiting};
use crate::sabotage::Sabotage;
use aldaba_delivery::filter::Facts;
use aldaba_delivery::{AppId, Ending, EndpointId, MessageId, Timestamp, Transition};
use aldaba_store::{
    Accept, Accepted, Content, DeliveryState, DeliveryStatus, Endpoint, GateRecord, IdempotencyKey, Message,
    NewAttempt, NewMessage, Quota, QuotaOf, Record, Recorded, Resent, Seq, Waiting,
};
use bytes::Bytes;

impl Disk {
    pub(super) fn accept(&mut self, accept: &Accept, sabotage: Option<Sabotage>) -> Accepted {
        let message = &accept.message;
        let owner = *accept.app.as_bytes();
        let event_id = message.content.event_id.as_ref().map(|id| UniqueKey::EventId(owner, id.to_string()));
        let find = |key: &UniqueKey| match sabotage {
            Some(Sabotage::ForgetKeys) => None,
            Some(Sabotage::ExpireKeys) => {
                let row = self.keys.get(key)?;
                let expired = row.expires_at.is_some_and(|expires_at| expires_at <= message.created_at);
                (!expired).then(|| MessageId::from_bytes(row.resource))
            }
            // As if it were kept no longer than its message.
            Some(Sabotage::ForgetWindow) => {
                let first = MessageId::from_bytes(self.key(key)?);
                self.messages.contains_key(&(accept.app, first)).then_some(first)
            }
            _ => self.key(key).map(MessageId::from_bytes),
        };
        let digests = accept.idempotency.map(|used| [Some(used.digest.current), used.digest.former]);
        let mut digests = digests.into_iter().flatten().flatten();
        if let Some(first) = digests.find_map(|digest| find(&UniqueKey::Idempotency(owner, digest))) {
            return Accepted::Repeated { message: first };
        }
        let version = self.applications.get(&accept.app).filter(|row| !row.deleted).map(|row| row.version);
        let stale = version != Some(accept.version) && accept.creates.is_none();
        if accept.creates.as_ref().is_some_and(|new| self.has_taken_uid(&new.application)) {
            return Accepted::Stale;
        }
        if stale && (version.is_none() || sabotage != Some(Sabotage::AcceptStale)) {
            return Accepted::Stale;
        }
        let looked_up = event_id.as_ref().filter(|_| sabotage != Some(Sabotage::LookThenStore));
        if let Some(first) = looked_up.and_then(find) {
            return Accepted::EventIdTaken { message: first };
        }
        if self.messages.contains_key(&(accept.app, message.id)) {
            return Accepted::Repeated { message: message.id };
        }
        if let Some(address) = &accept.direct {
            if !self.knows_policy(address) {
                return Accepted::NoSuchPolicy;
            }
            if !self.knows_profile(address) {
                return Accepted::NoSuchProfile;
            }
        }
        if let Some(whose) = accept.quota.and_then(|quota| self.count_message(accept, &quota)) {
            return Accepted::OverQuota(whose);
        }
        if let Some(new) = &accept.creates {
            self.create_application(&new.application);
            self.note_deed(Some(&new.audit.with_values_of_new(&new.application)), 1);
        }
        self.insert_message(accept, message, sabotage);
        if let Some(address) = &accept.direct {
            self.endpoints.entry(address.id).or_insert_with(|| Endpoint::clone(address));
        }
        let first = self.insert_deliveries(accept, sabotage == Some(Sabotage::ForgetDelay));
        let resource = *message.id.as_bytes();
        if let Some(key) = event_id {
            self.keys.insert(key, KeyRow { resource, expires_at: None, at_least: message.event_id_until });
        }
        if let Some(used) = accept.idempotency {
            self.keep_request(owner, used, resource);
        }
        Accepted::New { first }
    }

    /// Counts a message, or says whose limit is reached.
    fn count_message(&mut self, accept: &Accept, quota: &Quota) -> Option<QuotaOf> {
        let day = Quota::day_of(accept.message.created_at);
        let of_organization = (QuotaOf::Organization, (day, *quota.org.as_bytes()), quota.organization);
        let of_application = (QuotaOf::Application, (day, *accept.app.as_bytes()), quota.application);
        let limited = [of_organization, of_application].into_iter();
        let limited: Vec<_> = limited.filter_map(|(whose, key, most)| Some((whose, key, most?))).collect();
        for (whose, key, most) in &limited {
            if self.message_counts.get(key).is_some_and(|sent| sent >= most) || *most == 0 {
                return Some(*whose);
            }
        }
        for (_, key, _) in limited {
            *self.message_counts.entry(key).or_default() += 1;
        }
        None
    }

    /// The endpoints that should get a message at this moment, found without the engine's help.
    pub(super) fn subscribers(&self, accept: &Accept) -> Vec<EndpointId> {
        let message = &accept.message;
        if let Some(address) = &accept.direct {
            return vec![address.id];
        }
        let subscribed = |endpoint: &&Endpoint| {
            let of_type = endpoint.config.event_types.is_empty()
                || endpoint.config.event_types.iter().any(|name| **name == *message.content.event_type);
            let of_channel = endpoint.config.channels.is_empty()
                || endpoint.config.channels.iter().any(|name| message.channels.contains(name));
            let facts = Facts {
                event_type: &message.content.event_type,
                channels: &message.channels,
                tags: &message.tags,
                headers: &message.headers,
                payload: &message.content.payload,
            };
            let passes = endpoint.config.filter.as_ref().is_none_or(|filter| filter.holds(&facts));
            endpoint.app == accept.app
                && !endpoint.deleted
                && !endpoint.direct
                && of_type
                && of_channel
                && passes
        };
        self.endpoints.values().filter(subscribed).map(|endpoint| endpoint.id).collect()
    }

    /// Sabotage: the message that has the event id of another, at this moment.
    pub(super) fn looked_up(&self, accept: &Accept) -> Option<MessageId> {
        let key =
            UniqueKey::EventId(*accept.app.as_bytes(), accept.message.content.event_id.as_ref()?.to_string());
        self.key(&key).map(MessageId::from_bytes)
    }

    /// Sabotage: what a source receives is not kept as it came.
    fn spoil(&self, accept: &Accept, content: &mut Content, sabotage: Option<Sabotage>) {
        if accept.message.event_id_until.is_none() {
            return;
        }
        match sabotage {
            Some(Sabotage::TidyBody) => {
                content.payload = Bytes::copy_from_slice(content.payload.trim_ascii());
            }
            Some(Sabotage::MixHeaders) => {
                let before = self.messages.values().rfind(|other| other.app == accept.app);
                content.sealed_headers = before
                    .map_or(content.sealed_headers.take(), |other| other.content.sealed_headers.clone());
            }
            _ => {}
        }
    }

    fn insert_message(&mut self, accept: &Accept, message: &NewMessage, sabotage: Option<Sabotage>) {
        let mut content = (*message.content).clone();
        self.spoil(accept, &mut content, sabotage);
        let row = Message {
            id: message.id,
            app: accept.app,
            content,
            expunged: false,
            channels: message.channels.clone(),
            tags: message.tags.clone(),
            headers: message.headers.clone(),
            created_at: message.created_at,
            deliver_at: message.deliver_at,
            payload_until: message.payload_until,
            only_for: message.only_for,
            job: message.job.clone(),
        };
        self.messages.insert((accept.app, message.id), row);
        self.last_message += 1;
        self.accepted.insert(self.last_message, (accept.app, message.id));
    }

    fn insert_deliveries(&mut self, accept: &Accept, at_once: bool) -> Seq {
        let message = &accept.message;
        let mut first = None;
        for delivery in &accept.deliveries {
            self.last_seq += 1;
            let seq = Seq(self.last_seq);
            first.get_or_insert(seq);
            let due_at = if at_once { message.created_at } else { delivery.due_at };
            let waiting = Waiting {
                seq,
                message: message.id,
                due_at,
                attempts: 0,
                clock_start: message.created_at.max(due_at),
                replayed: false,
                place: (!accept.takes_place_later(delivery)).then_some(seq),
            };
            let state = match delivery.skipped {
                None => {
                    self.put_in_lane(delivery.endpoint, waiting);
                    DeliveryState::Waiting { due_at }
                }
                Some(reason) => DeliveryState::Skipped { at: message.created_at, reason },
            };
            let row = DeliveryStatus {
                seq,
                endpoint: delivery.endpoint,
                message: message.id,
                attempts: 0,
                clock_start: waiting.clock_start,
                replayed: false,
                retries: 0,
                place: waiting.place,
                state,
            };
            self.deliveries.insert(seq, row);
            self.of_message.entry(message.id).or_default().push(seq);
        }
        first.unwrap_or(Seq(0))
    }

    pub(super) fn record(&mut self, record: &Record, sabotage: Option<Sabotage>) -> Recorded {
        let Some(row) = self.deliveries.get_mut(&record.seq) else {
            return Recorded::Fenced;
        };
        let Some(before) = as_waiting(row).filter(|row| row.attempts == record.attempts_before) else {
            return Recorded::Fenced;
        };
        let endpoint = row.endpoint;
        row.attempts += u32::from(record.counts());
        row.retries += u32::from(record.plans_retry());
        row.state = state_after(record, before.due_at, sabotage);
        let after = as_waiting(row);
        let deleted = self.endpoints.get(&endpoint).is_none_or(|endpoint| endpoint.deleted);
        if !deleted && let DeliveryState::Dead { .. } = row.state {
            self.dead_letter.insert(record.seq);
        }
        self.take_from_lane(endpoint, before.turn());
        if let Some(after) = after {
            self.put_in_lane(endpoint, after);
        }
        self.insert_attempt(record);
        match record.attempt.as_ref().filter(|_| record.counts()) {
            _ if after.is_none() => drop(self.tried.remove(&record.seq)),
            Some(attempt) => drop(self.tried.insert(record.seq, attempt.started_at)),
            None => {}
        }
        if let Some(attempt) = &record.attempt {
            self.count(record.app, record.endpoint, record.at, attempt);
        }
        self.health_after(record);
        for GateRecord { key, gate, why } in &record.gates {
            if gate.is_clear() {
                self.gates.remove(key);
            } else {
                self.gates.insert(key.clone(), (gate.clone(), why.clone()));
            }
        }
        self.keep_notices(&record.notices);
        self.note_deed(record.audit.as_deref(), 1);
        if let (Some(key), Some(attempt)) = (record.idempotency, &record.attempt) {
            self.keep_key(record.app, key, attempt);
        }
        Recorded::Applied
    }

    pub(super) fn insert_attempt(&mut self, record: &Record) {
        if let Some(attempt) = &record.attempt {
            let row = attempt.clone().of((record.seq, record.endpoint, record.message));
            self.attempts.insert(attempt.id, row);
        }
    }

    /// `false`: nothing was written.
    pub(super) fn resent(&mut self, resent: &Resent) -> bool {
        let Resent { endpoint, message, attempt, at, .. } = resent;
        let app = self.endpoints.get(endpoint).map(|row| row.app);
        let Some(app) = app.filter(|app| self.messages.contains_key(&(*app, *message))) else {
            return false;
        };
        let delivered = DeliveryState::Delivered { at: *at };
        let rounds = self.of_message.entry(*message).or_default();
        let of_endpoint = |seq: &&Seq| self.deliveries.get(seq).is_some_and(|row| row.endpoint == *endpoint);
        let seq = match rounds.iter().rfind(of_endpoint).copied() {
            Some(seq) => {
                if let Some(row) = self.deliveries.get_mut(&seq)
                    && matches!(row.state, DeliveryState::Dead { .. } | DeliveryState::Skipped { .. })
                    && attempt.success
                {
                    row.state = delivered;
                    self.dead_letter.remove(&seq);
                    self.discarded.remove(&seq);
                }
                seq
            }
            None if attempt.success => {
                self.last_seq += 1;
                let seq = Seq(self.last_seq);
                let row = DeliveryStatus {
                    seq,
                    endpoint: *endpoint,
                    message: *message,
                    attempts: 0,
                    clock_start: *at,
                    replayed: false,
                    retries: 0,
                    place: Some(seq),
                    state: delivered,
                };
                rounds.push(seq);
                self.deliveries.insert(seq, row);
                seq
            }
            None => Seq(0),
        };
        self.attempts.insert(attempt.id, attempt.clone().of((seq, *endpoint, *message)));
        self.count(app, *endpoint, *at, attempt);
        if let Some(key) = resent.idempotency {
            self.keep_key(app, key, attempt);
        }
        true
    }

    fn keep_key(&mut self, app: AppId, key: IdempotencyKey, attempt: &NewAttempt) {
        self.keep_request(*app.as_bytes(), key, *attempt.id.as_bytes());
    }
}

fn state_after(record: &Record, due_before: Timestamp, sabotage: Option<Sabotage>) -> DeliveryState {
    match record.transition {
        Transition::Retry { .. } if sabotage == Some(Sabotage::ForgetDue) => {
            DeliveryState::Waiting { due_at: due_before }
        }
        Transition::Retry { .. } if record.is_by_hand() && sabotage != Some(Sabotage::RestoreDue) => {
            DeliveryState::Waiting { due_at: due_before }
        }
        Transition::Retry { due_at } => DeliveryState::Waiting { due_at },
        Transition::Settle(Ending::Delivered) => DeliveryState::Delivered { at: record.at },
        Transition::Settle(Ending::Dead(reason)) | Transition::Stop { reason, .. } => {
            DeliveryState::Dead { at: record.at, reason }
        }
    }
}
