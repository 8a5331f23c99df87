//! Reads the messages of an application in their order, each with its deliveries and attempts.

use super::stored::columns;
use super::transaction::{ReadingExt, statements, values};
use super::{Reading, Result, Slice, application, delivery, erasure};
use crate::{Attempt, DeliveryStatus, ExportCursor, ExportPage, ExportQuery, Exported, Message, Seq};
use aldaba_delivery::{AppId, AttemptId, MessageId};

/// Rows that one statement reads. Payloads and responses are large: messages and attempts are read one at a time.
const PAGE_ROWS: usize = 64;
/// Rows of a page at most.
const MAX_ROWS: usize = 2000;

statements! {
    NEWEST = "SELECT id FROM message WHERE app = ?1 ORDER BY id DESC LIMIT 1";
    NEXT = format!(
        "SELECT {} FROM message WHERE app = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT 1", columns::<Message>()
    );
    DELIVERIES = format!(
        "SELECT {} FROM delivery WHERE message = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3", delivery::COLUMNS
    );
    ATTEMPT = format!(
        "SELECT {} FROM attempt WHERE message = ?1 AND (seq, id) > (?2, ?3) ORDER BY seq, id LIMIT 1",
        columns::<Attempt>()
    );
}

/// Before the first attempt: those of no delivery have 0.
const BEFORE_ALL: Seq = Seq(-1);

pub(crate) fn newest(reading: &dyn Reading, app: AppId) -> Result<Option<MessageId>> {
    reading.one(&NEWEST, values![app])
}

pub(crate) fn page(reading: &dyn Reading, slice: &Slice<'_>, query: &ExportQuery) -> Result<ExportPage> {
    let is_deleted =
        application::version(reading, query.app)?.is_none() || erasure::is_running_for(reading, query.app)?;
    let mut page = ExportSlice { reading, query, items: Vec::new(), bytes: 0 };
    let mut cursor = Some(query.from);
    // The walk always comes forward, or a slow machine would never come to an end.
    while let Some(from) = cursor {
        if !page.items.is_empty() && (page.is_full() || slice.is_over()) {
            break;
        }
        cursor = page.read(from)?;
    }
    Ok(ExportPage { items: page.items, next: cursor, is_deleted })
}

struct ExportSlice<'a> {
    reading: &'a dyn Reading,
    query: &'a ExportQuery,
    items: Vec<Exported>,
    bytes: usize,
}

impl ExportSlice<'_> {
    fn is_full(&self) -> bool {
        self.bytes >= self.query.bytes || self.items.len() >= MAX_ROWS
    }

    /// Reads what follows. `None`: there is nothing more.
    fn read(&mut self, from: ExportCursor) -> Result<Option<ExportCursor>> {
        match from {
            ExportCursor::Message(after) => self.message(after),
            ExportCursor::Delivery(message, after) => self.deliveries(message, after).map(Some),
            ExportCursor::Attempt(message, seq, id) => self.attempt(message, seq, id).map(Some),
        }
    }

    fn message(&mut self, after: MessageId) -> Result<Option<ExportCursor>> {
        let query = self.query;
        let next: Option<Message> = self.reading.one(&NEXT, values![query.app, after, query.until])?;
        let Some(message) = next else { return Ok(None) };
        let id = message.id;
        self.bytes += message.content.bytes();
        self.items.push(Exported::Message(Box::new(message)));
        Ok(Some(ExportCursor::Delivery(id, Seq(i64::MIN))))
    }

    fn deliveries(&mut self, message: MessageId, after: Seq) -> Result<ExportCursor> {
        let found: Vec<DeliveryStatus> = self.reading.all(&DELIVERIES, values![message, after, PAGE_ROWS])?;
        let last = found.last().map(|delivery| delivery.seq);
        let is_last = found.len() < PAGE_ROWS;
        self.items.extend(found.into_iter().map(Exported::Delivery));
        Ok(match last {
            Some(last) if !is_last => ExportCursor::Delivery(message, last),
            _ => ExportCursor::Attempt(message, BEFORE_ALL, AttemptId::from_bytes([0; 20])),
        })
    }

    fn attempt(&mut self, message: MessageId, seq: Seq, id: AttemptId) -> Result<ExportCursor> {
        let next: Option<Attempt> = self.reading.one(&ATTEMPT, values![message, seq, id])?;
        let Some(attempt) = next else { return Ok(ExportCursor::Message(message)) };
        let cursor = ExportCursor::Attempt(message, attempt.seq, attempt.id);
        self.bytes += attempt.response.len();
        self.items.push(Exported::Attempt(Box::new(attempt)));
        Ok(cursor)
    }
}
