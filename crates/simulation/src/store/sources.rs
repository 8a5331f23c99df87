//! Inbound doors.

use super::SimStore;
use super::disk::Disk;
use super::lists::walk;
use super::query::paged;
use super::queue::Op;
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, SourceId, Timestamp};
use aldaba_store::{
    Application, Changed, DeliveryStatus, Done, Error, Found, Key, Message, Order, Page, Read, ReopenEvent,
    Round, Seq, Source, SourceEvent, SourceEventsQuery, Sources, Waiting,
};
use bytes::Bytes;
use std::convert::Infallible;

impl Sources for SimStore {
    fn source(&self, org: OrgId, key: Key) -> Read<Option<Source>> {
        self.read(move |disk| disk.source(org, &key).cloned())
    }

    fn source_of_token(&self, digest: [u8; 32]) -> Read<Option<Source>> {
        self.read(move |disk| disk.source_of_token(&digest).cloned())
    }

    fn source_of_application(&self, app: AppId) -> Read<Option<SourceId>> {
        self.read(move |disk| disk.source_of_application(app))
    }

    fn sources(&self, org: OrgId, page: Page<SourceId>, order: Order) -> Read<Vec<Source>> {
        self.read(move |disk| {
            let rows = disk.sources.values().filter(|row| row.org == org);
            paged(rows, |source| source.id, page, order)
        })
    }

    fn source_events(&self, query: SourceEventsQuery) -> Read<Found<SourceEvent, MessageId>> {
        self.read(move |disk| disk.source_events(&query))
    }

    fn reopen_event(&self, reopen: ReopenEvent, done: Done<Vec<(EndpointId, Waiting)>>) {
        if self.busy() {
            return done.call(Err(Error::Busy));
        }
        self.put(Op::Reopen(reopen, done));
    }

    fn source_event(&self, app: AppId, key: Key) -> Read<Option<SourceEvent>> {
        self.read(move |disk| disk.message(app, &key).map(|message| disk.source_event(&message)))
    }
}

impl Disk {
    fn source(&self, org: OrgId, key: &str) -> Option<&Source> {
        let own = |row: &&Source| row.org == org;
        let by_id = key.parse().ok().and_then(|id: SourceId| self.sources.get(&id)).filter(own);
        let named = |row: &&Source| row.config.uid.as_deref() == Some(key);
        by_id.or_else(|| self.sources.values().filter(own).find(named))
    }

    fn source_of_token(&self, digest: &[u8; 32]) -> Option<&Source> {
        self.sources.values().find(|row| row.tokens.iter().any(|token| token.digest == *digest))
    }

    pub(super) fn source_of_application(&self, app: AppId) -> Option<SourceId> {
        self.sources.values().find(|row| row.app == app).map(|row| row.id)
    }

    fn is_source_named(&self, source: &Source) -> bool {
        let same = |row: &Source| {
            row.org == source.org && row.config.uid == source.config.uid && row.id != source.id
        };
        source.config.uid.is_some() && self.sources.values().any(same)
    }

    pub(super) fn create_source(&mut self, source: &Source, application: &Application) -> Changed {
        if self.is_source_named(source) {
            return Changed::UidTaken;
        }
        if self.sources.values().filter(|row| row.org == source.org).count() >= Source::MOST {
            return Changed::TooMany;
        }
        let made = self.create_application(application);
        if matches!(made, Changed::Done { .. }) {
            self.sources.insert(source.id, source.clone());
        }
        made
    }

    pub(super) fn replace_source(&mut self, source: &Source, was: Timestamp) -> Changed {
        let taken = self.is_source_named(source);
        let Some(row) = self.sources.get_mut(&source.id).filter(|row| row.org == source.org) else {
            return Changed::NotFound;
        };
        if row.updated_at != was {
            return Changed::Stale;
        }
        if taken {
            return Changed::UidTaken;
        }
        *row = Source { app: row.app, created_at: row.created_at, ..source.clone() };
        Changed::Done { removed: Vec::new() }
    }

    pub(super) fn delete_source(&mut self, source: SourceId, app: AppId, at: Timestamp) -> Changed {
        if self.sources.get(&source).is_none_or(|row| row.app != app) {
            return Changed::NotFound;
        }
        self.sources.remove(&source);
        self.delete_application(app, at)
    }

    /// Whether an endpoint is not deleted.
    pub(super) fn is_there(&self, endpoint: EndpointId) -> bool {
        self.endpoints.get(&endpoint).is_some_and(|row| !row.deleted)
    }

    /// The endpoints that a message goes, or went, to. One that was off when it came is none of them.
    pub(super) fn sent_to(&self, message: MessageId) -> Vec<EndpointId> {
        let rounds = self.deliveries(message);
        rounds.iter().filter(|row| row.was_to_be_sent()).map(|row| row.endpoint).collect()
    }

    fn newest_rounds(&self, message: MessageId) -> Vec<DeliveryStatus> {
        let Ok(newest) = SourceEvent::newest::<Infallible>(self.deliveries(message), |endpoint| {
            Ok(self.is_there(endpoint))
        });
        newest
    }

    pub(super) fn reopen_event(&mut self, reopen: &ReopenEvent) -> Vec<(EndpointId, Waiting)> {
        let targets = self.to_reopen(reopen);
        let opens = |(endpoint, settled)| {
            (endpoint, self.reopen(endpoint, reopen.message, settled, (reopen.now, reopen.now)))
        };
        targets.into_iter().map(opens).collect()
    }

    /// What a repeat of an event would open, with the settled rounds that it would replace.
    pub fn to_reopen(&self, reopen: &ReopenEvent) -> Vec<(EndpointId, Option<Seq>)> {
        let message = self.messages.get(&(reopen.app, reopen.message));
        if message.is_none_or(|message| message.expunged) {
            return Vec::new();
        }
        let round = |status: DeliveryStatus| Round {
            is_there: self.is_there(status.endpoint),
            in_dead_letter: self.dead_letter.contains(&status.seq),
            status,
        };
        let rounds: Vec<_> = self.deliveries(reopen.message).into_iter().map(round).collect();
        reopen.targets(&rounds, |endpoint| self.is_there(endpoint))
    }

    /// The rounds of an event that have failed, and that a repeat opens again. Endpoints that came later do not count.
    pub fn failed_rounds(&self, app: AppId, id: Option<&str>) -> Vec<Seq> {
        let named = |message: &&Message| message.app == app && message.content.event_id.as_deref() == id;
        let Some(message) = id.and_then(|_| self.messages.values().find(named)) else { return Vec::new() };
        let reopen = ReopenEvent { app, message: message.id, wanting: Vec::new(), now: message.created_at };
        self.to_reopen(&reopen).into_iter().filter_map(|(_, settled)| settled).collect()
    }

    fn source_event(&self, message: &Message) -> SourceEvent {
        let newest = self.newest_rounds(message.id);
        let lost = newest.iter().filter(|row| row.is_dead() && !self.is_there(row.endpoint));
        let deleted = lost.map(|row| row.endpoint).collect();
        let deliveries = newest.iter().map(|row| self.view(message.app, row)).collect();
        let mut message = super::expunge::readable(message);
        message.content.payload = Bytes::new();
        SourceEvent { message, deliveries, deleted }
    }

    fn source_events(&self, query: &SourceEventsQuery) -> Found<SourceEvent, MessageId> {
        let wanted = |message: &Message| {
            let newest = self.newest_rounds(message.id);
            query.wants(&newest).then(|| (self.source_event(message), 0))
        };
        let messages = self.messages.values().filter(|message| message.app == query.app);
        walk(messages, &query.part, |message| (message.id, message.created_at), usize::MAX, wanted)
    }
}
