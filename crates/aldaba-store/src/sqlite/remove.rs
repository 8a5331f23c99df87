//! Removes what is no longer kept, for as long as the slice lasts.

use super::expunge;
use super::keys::KeyKind;
use super::monotonic::{Monotonic, Slice};
use super::retention::{self, DELIVERY_OF, EndpointUnused};
use super::rows::{self, IS_GATE, gate_key};
use crate::{Hour, PortalCut, Removal, Removed, RemovedCounts, Settled, Stale, StoredKey};
use aldaba_delivery::{AppId, AuditId, EndpointId, GateKey, MessageId, ReplayId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long the writer may be busy with work that nobody waits for, when others wait.
pub(super) const SLICE: Duration = Duration::from_millis(5);
/// Rows that are removed between two looks at the clock.
const PART: usize = 64;

const OTHER_DELIVERY: &str =
    "SELECT 1 FROM delivery INDEXED BY delivery_message WHERE message = ?1 AND seq != ?2";
const ATTEMPTS_OF: &str = "
    DELETE FROM attempt WHERE rowid IN (SELECT rowid FROM attempt INDEXED BY attempt_message
        WHERE message = ?1 AND seq BETWEEN ?2 AND ?3 LIMIT ?4)";
const TYPES_OF: &str = "
    DELETE FROM application_hour WHERE app = ?1 AND hour = ?2 AND event_type IN (
        SELECT event_type FROM application_hour WHERE app = ?1 AND hour = ?2 LIMIT ?3)";
/// Those of all rounds, and those made by hand.
const ANY_ROUND: RangeInclusive<i64> = i64::MIN..=i64::MAX;

pub(super) fn remove(
    connection: &Connection,
    clock: &Monotonic,
    removal: &Removal,
) -> rusqlite::Result<Removed> {
    let slice = Slice::begin(clock, SLICE);
    let mut remover = Remover { connection, removal, slice, counts: RemovedCounts::default() };
    let mut seen = 0;
    for item in &removal.items {
        // The first one is always begun, or a slow machine would never come to an end.
        if (seen > 0 && remover.slice.is_over()) || !remover.remove(item)? {
            break;
        }
        seen += 1;
    }
    Ok(Removed { seen, counts: remover.counts, took: remover.slice.took() })
}

struct Remover<'a> {
    connection: &'a Connection,
    removal: &'a Removal,
    slice: Slice<'a>,
    counts: RemovedCounts,
}

impl Remover<'_> {
    /// `false`: the slice was over before the item was done with.
    fn remove(&mut self, item: &Stale) -> rusqlite::Result<bool> {
        match item {
            Stale::Delivery(settled) => return self.delivery(*settled),
            Stale::Message(app, message) => return self.message_if_lonely(*app, *message),
            Stale::Payload(app, message) => self.payload(*app, *message)?,
            Stale::Key(key) => self.key(key)?,
            Stale::Counters(endpoint, minute) => self.counters(*endpoint, *minute)?,
            Stale::HourCounters(endpoint, hour) => self.hour_counters(*endpoint, *hour)?,
            Stale::ApplicationCounters(app, hour) => return self.application_counters(*app, *hour),
            Stale::Gate(key, before) => self.gate(key, *before)?,
            Stale::Replay(replay, before) => self.replay(*replay, *before)?,
            Stale::Endpoint(endpoint) => self.endpoint(*endpoint)?,
            Stale::Application(app) => self.application(*app)?,
            Stale::Audit(id) => self.audit(*id)?,
            Stale::RevokedToken(mark, before) => self.revoked_token(mark, *before)?,
            Stale::PortalCut(cut) => self.portal_cut(cut)?,
        }
        Ok(true)
    }

    /// The attempts first: a delivery that has many may need more than one slice. Those of former rounds, and
    /// those made by hand, go with the message's last delivery, which is found again until they are gone.
    fn delivery(&mut self, settled: Settled) -> rusqlite::Result<bool> {
        let Settled { at, seq } = settled;
        // The fence: it may have been opened again since it was found.
        let mut find = self.connection.prepare_cached(
            "SELECT endpoint, message FROM delivery WHERE seq = ?1 AND state != 0 AND settled_at = ?2",
        )?;
        let found = find.query_row((seq.0, at.millis()), |row| Ok((rows::id(row, 0)?, rows::id(row, 1)?)));
        let Some((endpoint, message)): Option<(EndpointId, MessageId)> = found.optional()? else {
            return Ok(true);
        };
        let mut others = self.connection.prepare_cached(OTHER_DELIVERY)?;
        let is_last = !others.exists((message.as_bytes(), seq.0))?;
        if !self.attempts(message, if is_last { ANY_ROUND } else { seq.0..=seq.0 })? {
            return Ok(false);
        }
        let mut delete = self.connection.prepare_cached("DELETE FROM delivery WHERE seq = ?1")?;
        self.counts.deliveries += delete.execute((seq.0,))? as u64;
        self.connection.prepare_cached("DELETE FROM dead_letter WHERE seq = ?1")?.execute((seq.0,))?;
        let mut app = self.connection.prepare_cached("SELECT app FROM endpoint WHERE id = ?1")?;
        if let Some(app) = app.query_row((endpoint.as_bytes(),), |row| rows::id(row, 0)).optional()? {
            self.message_if_lonely(app, message)?;
        }
        Ok(true)
    }

    /// Removes attempts of these numbers. `false`: there may be more, and the slice is over.
    fn attempts(&mut self, message: MessageId, numbers: RangeInclusive<i64>) -> rusqlite::Result<bool> {
        let mut delete = self.connection.prepare_cached(ATTEMPTS_OF)?;
        let which = (message.as_bytes(), *numbers.start(), *numbers.end(), rows::count(PART));
        self.in_parts(|| delete.execute(which), |counts| &mut counts.attempts)
    }

    /// Removes a part of the rows again and again. `false`: there may be more, and the slice is over.
    fn in_parts(
        &mut self,
        mut remove: impl FnMut() -> rusqlite::Result<usize>,
        counted: impl Fn(&mut RemovedCounts) -> &mut u64,
    ) -> rusqlite::Result<bool> {
        loop {
            let removed = remove()?;
            *counted(&mut self.counts) += removed as u64;
            if removed < PART {
                return Ok(true);
            }
            if self.slice.is_over() {
                return Ok(false);
            }
        }
    }

    /// The message stays until its attempts are gone, or nobody would find those again.
    fn message_if_lonely(&mut self, app: AppId, message: MessageId) -> rusqlite::Result<bool> {
        if self.connection.prepare_cached(DELIVERY_OF)?.exists((message.as_bytes(),))? {
            return Ok(true);
        }
        let mut find = self
            .connection
            .prepare_cached("SELECT rowid, created_at, event_id FROM message WHERE app = ?1 AND id = ?2")?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, rows::moment(row, 1)?, row.get(2)?));
        let found = find.query_row((app.as_bytes(), message.as_bytes()), read).optional()?;
        let Some((rowid, created_at, event_id)): Option<(i64, Timestamp, Option<String>)> = found else {
            return Ok(true);
        };
        if !self.attempts(message, ANY_ROUND)? {
            return Ok(false);
        }
        let mut delete = self.connection.prepare_cached("DELETE FROM message WHERE rowid = ?1")?;
        self.counts.messages += delete.execute((rowid,))? as u64;
        if let Some(event_id) = event_id {
            self.event_id(app, message, &event_id, created_at + self.removal.event_ids_kept)?;
        }
        Ok(true)
    }

    /// The fence: something may wait for it by now.
    fn payload(&mut self, app: AppId, message: MessageId) -> rusqlite::Result<()> {
        let removed = expunge::old_payload(self.connection, app, message, self.removal.now)?;
        self.counts.payloads += u64::from(removed);
        Ok(())
    }

    /// An event id outlives its message for as long as a sender may repeat it.
    fn event_id(
        &mut self,
        app: AppId,
        message: MessageId,
        event_id: &str,
        until: Timestamp,
    ) -> rusqlite::Result<()> {
        let key = (app.as_bytes(), KeyKind::EventId as i64, event_id.as_bytes(), message.as_bytes());
        let mut expire = self.connection.prepare_cached(
            "UPDATE unique_key SET expires_at = max(?5, coalesce(at_least, ?5))
             WHERE owner = ?1 AND kind = ?2 AND key = ?3 AND resource = ?4
                 AND max(?5, coalesce(at_least, ?5)) > ?6",
        )?;
        let (until, now) = (until.millis(), self.removal.now.millis());
        if expire.execute((key.0, key.1, key.2, key.3, until, now))? > 0 {
            return Ok(());
        }
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3 AND resource = ?4",
        )?;
        self.counts.keys += delete.execute(key)? as u64;
        Ok(())
    }

    fn key(&mut self, key: &StoredKey) -> rusqlite::Result<()> {
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3 AND expires_at <= ?4",
        )?;
        let removed = delete.execute((&key.owner[..], key.kind, &key.key, self.removal.now.millis()))?;
        self.counts.keys += removed as u64;
        Ok(())
    }

    fn counters(&mut self, endpoint: EndpointId, minute: i64) -> rusqlite::Result<()> {
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM endpoint_minute WHERE endpoint = ?1 AND minute = ?2")?;
        self.counts.counters += delete.execute((endpoint.as_bytes(), minute))? as u64;
        Ok(())
    }

    fn hour_counters(&mut self, endpoint: EndpointId, hour: Hour) -> rusqlite::Result<()> {
        let mut delete =
            self.connection.prepare_cached("DELETE FROM endpoint_hour WHERE endpoint = ?1 AND hour = ?2")?;
        self.counts.counters += delete.execute((endpoint.as_bytes(), hour.0))? as u64;
        Ok(())
    }

    /// There is one for every event type that was met in the hour.
    fn application_counters(&mut self, app: AppId, hour: Hour) -> rusqlite::Result<bool> {
        let mut delete = self.connection.prepare_cached(TYPES_OF)?;
        self.in_parts(
            || delete.execute((app.as_bytes(), hour.0, rows::count(PART))),
            |counts| &mut counts.counters,
        )
    }

    fn gate(&mut self, key: &GateKey, before: Timestamp) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM gate WHERE {IS_GATE} AND held_until < ?4");
        let mut delete = self.connection.prepare_cached(&sql)?;
        let (org, origin, scope) = gate_key(key);
        let removed = delete.execute((org, origin, scope, before.millis()))?;
        self.counts.gates += removed as u64;
        Ok(())
    }

    fn replay(&mut self, replay: ReplayId, before: Timestamp) -> rusqlite::Result<()> {
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM replay WHERE id = ?1 AND state > 0 AND updated_at < ?2")?;
        self.counts.replays += delete.execute((replay.as_bytes(), before.millis()))? as u64;
        Ok(())
    }

    fn endpoint(&mut self, endpoint: EndpointId) -> rusqlite::Result<()> {
        if EndpointUnused::new(self.connection)?.is(endpoint)? {
            let mut delete = self.connection.prepare_cached("DELETE FROM endpoint WHERE id = ?1")?;
            self.counts.endpoints += delete.execute((endpoint.as_bytes(),))? as u64;
            let mut changes =
                self.connection.prepare_cached("DELETE FROM health_change WHERE endpoint = ?1")?;
            changes.execute((endpoint.as_bytes(),))?;
        }
        Ok(())
    }

    fn application(&mut self, app: AppId) -> rusqlite::Result<()> {
        if retention::application_unused(self.connection, app)? {
            let mut delete = self.connection.prepare_cached("DELETE FROM application WHERE id = ?1")?;
            self.counts.applications += delete.execute((app.as_bytes(),))? as u64;
            let mut cuts = self.connection.prepare_cached("DELETE FROM portal_cut WHERE app = ?1")?;
            self.counts.revocations += cuts.execute((app.as_bytes(),))? as u64;
            let mut counters =
                self.connection.prepare_cached("DELETE FROM application_hour WHERE app = ?1")?;
            counters.execute((app.as_bytes(),))?;
        }
        Ok(())
    }

    fn audit(&mut self, id: AuditId) -> rusqlite::Result<()> {
        let mut delete = self.connection.prepare_cached("DELETE FROM audit WHERE id = ?1")?;
        self.counts.audit += delete.execute((id.as_bytes(),))? as u64;
        Ok(())
    }

    fn revoked_token(&mut self, mark: &[u8; 32], before: Timestamp) -> rusqlite::Result<()> {
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM revoked_token WHERE mark = ?1 AND expires_at < ?2")?;
        self.counts.revocations += delete.execute((mark, before.millis()))? as u64;
        Ok(())
    }

    fn portal_cut(&mut self, cut: &PortalCut) -> rusqlite::Result<()> {
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM portal_cut WHERE app = ?1 AND session = ?2 AND issued_before = ?3",
        )?;
        let session = cut.session.as_deref().unwrap_or_default();
        let removed = delete.execute((cut.app.as_bytes(), session, cut.issued_before.millis()))?;
        self.counts.revocations += removed as u64;
        Ok(())
    }
}
