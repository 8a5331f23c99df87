//! The statements worth writing for SQLite alone: accepting, recording, and what the lanes read. They name the index that they
//! use, and the order of a table's rows where no column has it.

mod accept;
mod due_times;
mod lanes;
mod record;
mod stop_dates;
mod types;

pub(super) use due_times::newest_moment;
pub(crate) use types::Types;

use super::transaction::SqliteTransaction;
use crate::backend::HotReads;
use crate::operations::{Batch, HotWrites, Reading, Result, Row, Statement, Value};
use crate::{
    Accept, Accepted, ApplicationAttemptsQuery, AttemptCounts, Content, DueQuery, FutureDelivery,
    LanePosition, LaneTarget, LanesPage, LanesQuery, OrphansPage, OrphansQuery, PendingDelivery, Record,
    Recorded, StartedPage, StartedQuery,
};
use accept::Accepting;
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use record::Recording;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// The prepared statements of one batch, looked up where there is work for them.
pub(super) struct Hot<'c> {
    connection: &'c Connection,
    accepting: Option<Accepting<'c>>,
    recording: Option<Recording<'c>>,
}

impl<'c> Hot<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, accepting: None, recording: None }
    }
}

impl HotWrites for Hot<'_> {
    fn accept(&mut self, batch: &mut Batch<'_>, accept: &Accept) -> Result<Accepted> {
        let accepting = match &mut self.accepting {
            Some(accepting) => accepting,
            none => none.insert(Accepting::new(self.connection)?),
        };
        accepting.accept(batch, accept)
    }

    fn record(&mut self, batch: &mut Batch<'_>, record: &Record) -> Result<Recorded> {
        let recording = match &mut self.recording {
            Some(recording) => recording,
            none => none.insert(Recording::new(self.connection)?),
        };
        recording.record(batch, record)
    }

    fn forget_versions(&mut self) {
        self.accepting = None;
    }
}

/// A snapshot of a reader.
pub(super) struct Reader<'c> {
    pub(super) connection: &'c Connection,
    pub(super) types: &'c Types,
}

impl<'c> Reader<'c> {
    /// Runs a read in a transaction, so that all of its statements see one moment.
    pub(super) fn on_snapshot<T>(
        connection: &'c Connection,
        types: &'c Types,
        read: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let reader = Self { connection, types };
        reader.begin()?;
        let result = read(&reader);
        let ended = reader.end();
        result.and_then(|found| ended.map(|()| found))
    }

    fn begin(&self) -> Result<()> {
        // A read that has panicked, or whose end was interrupted, has left it open.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.connection.prepare_cached("BEGIN")?.execute(())?;
        Ok(())
    }

    fn end(&self) -> Result<()> {
        // An error may have ended it already.
        if !self.connection.is_autocommit() {
            self.connection.prepare_cached("COMMIT")?.execute(())?;
        }
        Ok(())
    }

    /// What is read from now on is of a later moment.
    fn renew(&self) -> Result<()> {
        self.end()?;
        self.begin()
    }
}

impl Reading for Reader<'_> {
    fn query(
        &self,
        statement: &Statement,
        parameters: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        SqliteTransaction(self.connection).query(statement, parameters, each)
    }
}

impl HotReads for Reader<'_> {
    fn due(&self, query: DueQuery) -> Result<Vec<PendingDelivery>> {
        lanes::due(self.connection, query)
    }

    fn lanes(&self, query: LanesQuery) -> Result<LanesPage> {
        lanes::lanes(self.connection, query)
    }

    fn started_before(&self, query: StartedQuery) -> Result<StartedPage> {
        stop_dates::started_before(self.connection, query)
    }

    fn have_started_before(&self, endpoints: &[(EndpointId, Timestamp)]) -> Result<Vec<EndpointId>> {
        stop_dates::have_started_before(self.connection, endpoints)
    }

    fn contents(&self, messages: &[(AppId, MessageId)]) -> Result<Vec<Option<Content>>> {
        lanes::contents(self.connection, messages)
    }

    fn has_payload(&self, app: AppId, message: MessageId, payload: &[u8]) -> Result<Option<bool>> {
        lanes::has_payload(self.connection, app, message, payload)
    }

    fn lane_targets(&self, endpoints: &[EndpointId]) -> Result<Vec<LaneTarget>> {
        lanes::lane_targets(self.connection, endpoints)
    }

    fn orphans(&self, query: OrphansQuery) -> Result<OrphansPage> {
        lanes::orphans(self.connection, query)
    }

    fn future_deliveries(&self, after: LanePosition, limit: usize) -> Result<Vec<FutureDelivery>> {
        due_times::not_due(self.connection, after, limit)
    }

    fn newest_moment(&self) -> Result<Option<Timestamp>> {
        newest_moment(self.connection)
    }

    fn application_attempts(
        &self,
        query: &ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>> {
        self.types.read(self, || self.renew(), query)
    }
}
