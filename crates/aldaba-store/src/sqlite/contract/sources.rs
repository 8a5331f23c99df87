//! Sources and their events.

use crate::sqlite::{SqliteStore, message_list, source};
use crate::{Found, Key, Order, Page, Read, Source, SourceEvent, SourceEventsQuery, Sources};
use aldaba_delivery::{AppId, MessageId, OrgId, SourceId};

impl Sources for SqliteStore {
    fn source(&self, org: OrgId, key: Key) -> Read<Option<Source>> {
        self.read(move |connection| source::one(connection, org, &key))
    }

    fn source_of_token(&self, digest: [u8; 32]) -> Read<Option<Source>> {
        self.read(move |connection| source::of_token(connection, &digest))
    }

    fn source_of_application(&self, app: AppId) -> Read<Option<SourceId>> {
        self.read(move |connection| source::of_application(connection, app))
    }

    fn sources(&self, org: OrgId, page: Page<SourceId>, order: Order) -> Read<Vec<Source>> {
        self.read(move |connection| source::all(connection, org, page, order))
    }

    fn source_events(&self, query: SourceEventsQuery) -> Read<Found<SourceEvent, MessageId>> {
        self.walk(move |connection, slice| message_list::of_source(connection, slice, &query))
    }

    fn source_event(&self, app: AppId, key: Key) -> Read<Option<SourceEvent>> {
        self.read(move |connection| source::event(connection, app, &key))
    }
}
