//! The walk over the messages that a replay is about.

use crate::sqlite::monotonic::Slice;
use crate::sqlite::rows::{self, count, id, moment};
use crate::{DeliveryState, DeliveryStatus, Replay, Seq, Subscription};
use aldaba_delivery::filter::{Facts, Filters};
use aldaba_delivery::{MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension};

/// Tags lie behind the payload, and are read only for who asks for them.
pub(super) const MESSAGES: &str = "
    SELECT id, created_at, event_type, channels, CASE WHEN ?6 THEN tags ELSE '' END FROM message
    WHERE app = ?1 AND id >= ?2 AND (?3 IS NULL OR id > ?3) AND id <= ?4 ORDER BY id LIMIT ?5";
/// The attempts of a delivery, the newest first, and then those of former rounds and of other endpoints.
pub(super) const ATTEMPTS: &str = "
    SELECT endpoint, status_code FROM attempt INDEXED BY attempt_message
    WHERE message = ?1 AND seq <= ?2 ORDER BY seq DESC, id DESC";

/// The messages that a replay is about, as they are now.
pub(super) struct Search<'a> {
    connection: &'a Connection,
    replay: &'a Replay,
    endpoint: &'a Subscription,
    /// The endpoint's, if it has one.
    filters: Option<Filters>,
    now: Timestamp,
}

#[derive(Default)]
pub(super) struct Walk {
    pub(super) reached: Option<MessageId>,
    pub(super) messages: u64,
    /// Messages, their deliveries and the attempts of those.
    pub(super) rows: usize,
    /// There are no more.
    pub(super) done: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        replay: &'a Replay,
        endpoint: &'a Subscription,
        now: Timestamp,
    ) -> Self {
        let filters = endpoint.filter.clone().map(Filters::of_one);
        Self { connection, replay, endpoint, filters, now }
    }

    /// Looks at messages in their order and calls `take` for each that is wanted, with the settled delivery that
    /// it has. `take` says whether to go on. It ends at `look` rows or with the slice, and comes forward by one
    /// message at least, or a slow machine would never come to an end.
    pub(super) fn walk(
        &self,
        after: Option<MessageId>,
        look: usize,
        slice: &Slice<'_>,
        mut take: impl FnMut(MessageId, Option<Seq>) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<Walk> {
        let filter = &self.replay.filter;
        let mut messages = self.connection.prepare_cached(MESSAGES)?;
        let from = after.unwrap_or_else(|| MessageId::first_at(filter.since));
        let (last, after) = (MessageId::last_at(filter.until), after.map(|id| *id.as_bytes()));
        let (app, tagged) = (self.replay.app.as_bytes(), filter.tag.is_some());
        let mut found =
            messages.query((app, from.as_bytes(), after, last.as_bytes(), count(look), tagged))?;
        let mut walk = Walk::default();
        while let Some(row) = found.next()? {
            let message = id(row, 0)?;
            let (channels, tags) = (rows::list(row, 3)?, rows::list(row, 4)?);
            let event_type = row.get_ref(2)?.as_str()?;
            walk.reached = Some(message);
            walk.messages += 1;
            walk.rows += 1;
            let mut goes_on = true;
            if filter.wants(moment(row, 1)?, event_type, &channels, &tags)
                && let Some(settled) = self.wanted(message, event_type, &channels, &mut walk.rows)?
            {
                goes_on = take(message, settled)?;
            }
            if !goes_on || walk.rows >= look || slice.is_over() {
                return Ok(walk);
            }
        }
        walk.done = true;
        Ok(walk)
    }

    /// `Some` for a message that the endpoint is to get, with the settled delivery that it has.
    fn wanted(
        &self,
        message: MessageId,
        event_type: &str,
        channels: &[String],
        rows: &mut usize,
    ) -> rusqlite::Result<Option<Option<Seq>>> {
        let filter = &self.replay.filter;
        let delivery = self.delivery(message, rows)?;
        let seq = delivery.as_ref().map(|delivery| delivery.seq);
        let wanted = match delivery.map(|delivery| (delivery.seq, delivery.state)) {
            None | Some((_, DeliveryState::Skipped { .. })) => {
                filter.missing
                    && self.endpoint.lists(event_type, channels)
                    && self.passes(message, event_type, channels)?
                    && self.is_for_it(message)?
            }
            // Somebody has sent it there by hand. That was that, and is no record of the address.
            Some(_) if self.endpoint.direct && !self.is_for_it(message)? => false,
            Some((_, DeliveryState::Waiting { .. })) => false,
            Some((seq, DeliveryState::Delivered { .. })) => {
                filter.delivered && self.has_status(message, seq, rows)?
            }
            Some((seq, DeliveryState::Dead { at, reason })) => {
                filter.wants_dead(at, reason, in_dead_letter(self.connection, seq)?)
                    && self.has_status(message, seq, rows)?
            }
        };
        let can_be_sent = wanted && !self.is_expunged(message)?;
        Ok(can_be_sent.then_some(seq))
    }

    /// Whether the endpoint's own filter lets the message through.
    fn passes(&self, message: MessageId, event_type: &str, channels: &[String]) -> rusqlite::Result<bool> {
        let Some(filters) = &self.filters else { return Ok(true) };
        let mut find = self
            .connection
            .prepare_cached("SELECT payload, tags, headers FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        find.query_row(key, |row| {
            let (tags, headers) = (rows::list(row, 1)?, rows::headers(row, 2)?);
            let payload = row.get_ref(0)?.as_blob()?;
            let facts = Facts { event_type, channels, tags: &tags, headers: &headers, payload };
            Ok(filters.over(facts).passes(0))
        })
    }

    fn delivery(&self, message: MessageId, rows: &mut usize) -> rusqlite::Result<Option<DeliveryStatus>> {
        let select = format!("SELECT {} FROM delivery WHERE message = ?1", rows::DELIVERY);
        let mut of_message = self.connection.prepare_cached(&select)?;
        let mut found = of_message.query((message.as_bytes(),))?;
        let mut delivery = None;
        while let Some(row) = found.next()? {
            *rows += 1;
            if id::<_>(row, 1)? == self.endpoint.id {
                delivery = Some(rows::delivery(row)?);
            }
        }
        Ok(delivery)
    }

    /// Whether the last answer was of the class that is asked for, if one is. A round that ended without an
    /// attempt has that of the round before.
    fn has_status(&self, message: MessageId, Seq(seq): Seq, rows: &mut usize) -> rusqlite::Result<bool> {
        let filter = &self.replay.filter;
        if filter.status_class.is_none() {
            return Ok(true);
        }
        let mut attempts = self.connection.prepare_cached(ATTEMPTS)?;
        let mut found = attempts.query((message.as_bytes(), seq))?;
        while let Some(row) = found.next()? {
            *rows += 1;
            if id::<_>(row, 0)? == self.endpoint.id {
                return Ok(filter.wants_status(row.get(1)?));
            }
        }
        Ok(filter.wants_status(None))
    }

    /// What was sent to one endpoint alone is missing nowhere else.
    fn is_for_it(&self, message: MessageId) -> rusqlite::Result<bool> {
        let mut find =
            self.connection.prepare_cached("SELECT only_for FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        let only = find.query_row(key, |row| rows::id_or_none(row, 0)).optional()?.flatten();
        Ok(only.map_or(!self.endpoint.direct, |only| only == self.endpoint.id))
    }

    /// Without its payload there is nothing to send.
    fn is_expunged(&self, message: MessageId) -> rusqlite::Result<bool> {
        let mut find =
            self.connection.prepare_cached("SELECT expunged FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        Ok(find.query_row(key, |row| row.get(0)).optional()?.unwrap_or(false))
    }

    /// What is to be delivered later still is.
    pub(super) fn not_before(&self, message: MessageId) -> rusqlite::Result<Timestamp> {
        let mut find =
            self.connection.prepare_cached("SELECT deliver_at FROM message WHERE app = ?1 AND id = ?2")?;
        let key = (self.replay.app.as_bytes(), message.as_bytes());
        let later = find.query_row(key, |row| rows::moment_or_none(row, 0)).optional()?.flatten();
        Ok(later.map_or(self.now, |later| later.max(self.now)))
    }
}

pub(in crate::sqlite) fn in_dead_letter(connection: &Connection, Seq(seq): Seq) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM dead_letter WHERE seq = ?1")?.exists((seq,))
}
