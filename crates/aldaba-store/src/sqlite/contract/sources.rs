//! Sources and their events.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, message_list, source};
use crate::{
    Done, Error, Found, Key, Order, Page, Read, ReopenEvent, Source, SourceEvent, SourceEventsQuery, Sources,
    Waiting,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, SourceId};

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

    fn reopen_event(&self, reopen: ReopenEvent, done: Done<Vec<(EndpointId, Waiting)>>) {
        // What it opens makes results, which need room too.
        if self.space.is_low() {
            return done.call(Err(Error::Full));
        }
        self.write(Op::Reopen(reopen), Reply::Reopen(done));
    }

    fn source_event(&self, app: AppId, key: Key) -> Read<Option<SourceEvent>> {
        self.read(move |connection| source::event(connection, app, &key))
    }
}
