//! What was sent to addresses.

use crate::sqlite::{SqliteStore, dispatch};
use crate::{Dispatch, Dispatches, DispatchesQuery, Found, Read};
use aldaba_delivery::{AppId, MessageId};

impl Dispatches for SqliteStore {
    fn dispatches(&self, query: DispatchesQuery) -> Read<Found<Dispatch, MessageId>> {
        self.read(move |connection| dispatch::list(connection, &query))
    }

    fn dispatch(&self, app: AppId, message: MessageId) -> Read<Option<Dispatch>> {
        self.read(move |connection| dispatch::one(connection, app, message))
    }
}
