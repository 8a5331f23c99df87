//! Removes what is no longer kept, for as long as the slice lasts. What was found is looked at again: it may have changed since.

use super::search::{self, ExpiredItem, SettledPosition};
use super::{Removal, Removed};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{
    BULK_SLICE, Monotonic, Result, Slice, Transaction, alert, audit, endpoint, erasure, gate, health, keys,
    mail, message, replay, statistics, token,
};
use crate::{RemovedCounts, Seq};
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId, Timestamp};
use std::ops::RangeInclusive;

/// Attempts that are removed between two looks at the clock.
const ATTEMPTS_AT_ONCE: usize = 64;
/// Those of all rounds, and manual ones.
const ANY_ROUND: RangeInclusive<i64> = i64::MIN..=i64::MAX;

statements! {
    SETTLED = "SELECT endpoint, message FROM delivery WHERE seq = ?1 AND state <> 0 AND settled_at = ?2";
    OTHER_DELIVERY = "SELECT 1 FROM delivery WHERE message = ?1 AND seq <> ?2 LIMIT 1";
    ATTEMPTS = "SELECT seq, id FROM attempt WHERE message = ?1 AND seq BETWEEN ?2 AND ?3
        ORDER BY seq, id LIMIT ?4";
    REMOVE_ATTEMPT = "DELETE FROM attempt WHERE message = ?1 AND seq = ?2 AND id = ?3";
    REMOVE_DELIVERY = "DELETE FROM delivery WHERE seq = ?1";
    REMOVE_DEAD = "DELETE FROM dead_letter WHERE seq = ?1";
    MESSAGE = "SELECT created_at, event_id FROM message WHERE app = ?1 AND id = ?2";
    REMOVE_MESSAGE = "DELETE FROM message WHERE app = ?1 AND id = ?2";
    REMOVE_ENDPOINT = "DELETE FROM endpoint WHERE id = ?1";
    REMOVE_APPLICATION = "DELETE FROM application WHERE id = ?1";
}

pub(crate) fn remove(tx: &dyn Transaction, clock: &Monotonic, removal: &Removal) -> Result<Removed> {
    let slice = Slice::begin(clock, BULK_SLICE);
    let mut remover = Remover { tx, removal, slice, counts: RemovedCounts::default() };
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
    tx: &'a dyn Transaction,
    removal: &'a Removal,
    slice: Slice<'a>,
    counts: RemovedCounts,
}

impl Remover<'_> {
    /// `false`: the slice was over before the item was done with.
    fn remove(&mut self, item: &ExpiredItem) -> Result<bool> {
        let (tx, counts) = (self.tx, &mut self.counts);
        match item {
            ExpiredItem::Delivery(settled) => return self.delivery(*settled),
            ExpiredItem::Message(app, message) => return self.message_if_lonely(*app, *message),
            ExpiredItem::ApplicationCounters(app, hour) => loop {
                let (removed, is_all) = statistics::remove_types(tx, *app, *hour)?;
                self.counts.counters += removed as u64;
                if is_all || self.slice.is_over() {
                    return Ok(is_all);
                }
            },
            ExpiredItem::Endpoint(endpoint) => self.endpoint(*endpoint)?,
            ExpiredItem::Application(app) => self.application(*app)?,
            ExpiredItem::Payload(app, message) => {
                counts.payloads += message::expunge_old(tx, *app, *message, self.removal.now)? as u64;
            }
            ExpiredItem::Key(key) => counts.keys += keys::remove_expired(tx, key, self.removal.now)? as u64,
            ExpiredItem::Counters(endpoint, minute) => {
                counts.counters += statistics::remove_minute(tx, *endpoint, *minute)? as u64;
            }
            ExpiredItem::HourCounters(endpoint, hour) => {
                counts.counters += statistics::remove_hour(tx, *endpoint, *hour)? as u64;
            }
            ExpiredItem::Gate(key, before) => counts.gates += gate::remove_old(tx, key, *before)? as u64,
            ExpiredItem::Replay(id, before) => {
                counts.replays += replay::remove_ended(tx, *id, *before)? as u64;
            }
            ExpiredItem::Erasure(id, before) => {
                counts.replays += erasure::remove_ended(tx, *id, *before)? as u64;
            }
            ExpiredItem::Alert(id) => counts.alerts += alert::remove(tx, *id)? as u64,
            ExpiredItem::Audit(id) => counts.audit += audit::remove(tx, *id)? as u64,
            ExpiredItem::RevokedToken(mark, before) => {
                counts.revocations += token::remove_revoked(tx, mark, *before)? as u64;
            }
            ExpiredItem::PortalExpiry(cut) => counts.revocations += token::remove_cut(tx, cut)? as u64,
        }
        Ok(true)
    }

    /// The attempts first: a delivery that has many may need more than one slice. Those of former rounds, and manual ones, go
    /// with the message's last delivery, which is found again until they are gone.
    fn delivery(&mut self, SettledPosition { at, seq }: SettledPosition) -> Result<bool> {
        // It may have been opened again since it was found.
        let found: Option<(EndpointId, MessageId)> = self.tx.one(&SETTLED, values![seq, at])?;
        let Some((endpoint, message)) = found else { return Ok(true) };
        let is_last = !self.tx.exists(&OTHER_DELIVERY, values![message, seq])?;
        if !self.attempts(message, if is_last { ANY_ROUND } else { seq.0..=seq.0 })? {
            return Ok(false);
        }
        self.counts.deliveries += self.tx.execute(&REMOVE_DELIVERY, values![seq])? as u64;
        self.tx.execute(&REMOVE_DEAD, values![seq])?;
        if let Some(app) = endpoint::owner(self.tx, endpoint)? {
            self.message_if_lonely(app, message)?;
        }
        Ok(true)
    }

    /// Removes attempts of these rounds. `false`: there may be more, and the slice is over.
    fn attempts(&mut self, message: MessageId, rounds: RangeInclusive<i64>) -> Result<bool> {
        loop {
            let (first, last) = (rounds.start(), rounds.end());
            let found: Vec<(Seq, AttemptId)> =
                self.tx.all(&ATTEMPTS, values![message, first, last, ATTEMPTS_AT_ONCE])?;
            for (seq, id) in &found {
                self.counts.attempts += self.tx.execute(&REMOVE_ATTEMPT, values![message, seq, id])? as u64;
            }
            if found.len() < ATTEMPTS_AT_ONCE {
                return Ok(true);
            }
            if self.slice.is_over() {
                return Ok(false);
            }
        }
    }

    /// The message stays until its attempts are gone, or nobody would find those again.
    fn message_if_lonely(&mut self, app: AppId, message: MessageId) -> Result<bool> {
        if search::has_delivery(self.tx, message)? {
            return Ok(true);
        }
        let found: Option<(Timestamp, Option<String>)> = self.tx.one(&MESSAGE, values![app, message])?;
        let Some((created_at, event_id)) = found else { return Ok(true) };
        if !self.attempts(message, ANY_ROUND)? {
            return Ok(false);
        }
        self.counts.messages += self.tx.execute(&REMOVE_MESSAGE, values![app, message])? as u64;
        if let Some(event_id) = event_id {
            // An event id outlives its message for as long as a sender may repeat it.
            let until = created_at + self.removal.event_ids_kept;
            let removed = keys::outlive(self.tx, (app, message), &event_id, until, self.removal.now)?;
            self.counts.keys += removed as u64;
        }
        Ok(true)
    }

    fn endpoint(&mut self, endpoint: EndpointId) -> Result<()> {
        if search::is_endpoint_unused(self.tx, endpoint)? {
            self.counts.endpoints += self.tx.execute(&REMOVE_ENDPOINT, values![endpoint])? as u64;
            health::forget_changes(self.tx, endpoint)?;
            mail::forget_endpoint(self.tx, endpoint)?;
        }
        Ok(())
    }

    fn application(&mut self, app: AppId) -> Result<()> {
        if search::is_application_unused(self.tx, app)? {
            self.counts.applications += self.tx.execute(&REMOVE_APPLICATION, values![app])? as u64;
            self.counts.revocations += token::remove_cuts_of_application(self.tx, app)? as u64;
            statistics::remove_of_application(self.tx, app)?;
            mail::forget_application(self.tx, app)?;
        }
        Ok(())
    }
}
