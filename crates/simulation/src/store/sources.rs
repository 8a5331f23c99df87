//! Inbound doors.

use super::SimStore;
use super::disk::Disk;
use super::lists::walk;
use super::query::paged;
use aldaba_delivery::{AppId, MessageId, OrgId, SourceId, Timestamp};
use aldaba_store::{
    Application, Changed, Found, Key, Message, Order, Page, Read, Source, SourceEvent, SourceEventsQuery,
    Sources,
};
use bytes::Bytes;

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

    fn source_event(&self, message: &Message) -> SourceEvent {
        let newest = SourceEvent::newest(self.deliveries(message.id));
        let deliveries = newest.iter().map(|row| self.view(message.app, row)).collect();
        let mut message = super::expunge::readable(message);
        message.content.payload = Bytes::new();
        SourceEvent { message, deliveries }
    }

    fn source_events(&self, query: &SourceEventsQuery) -> Found<SourceEvent, MessageId> {
        let wanted = |message: &Message| {
            let newest = SourceEvent::newest(self.deliveries(message.id));
            query.wants(&newest).then(|| (self.source_event(message), 0))
        };
        let messages = self.messages.values().filter(|message| message.app == query.app);
        walk(messages, &query.part, |message| (message.id, message.created_at), usize::MAX, wanted)
    }
}
