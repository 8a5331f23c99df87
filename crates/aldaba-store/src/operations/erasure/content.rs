//! Removes what was sent: messages with their payloads, deliveries, attempts and event ids; and the keys of requests.

use super::step::{Eraser, PartEnd, ROWS_AT_ONCE};
use crate::Seq;
use crate::operations::Result;
use crate::operations::transaction::{ReadingExt, statements, values};
use aldaba_delivery::{AttemptId, MessageId};

statements! {
    MESSAGES = "SELECT id FROM message WHERE app = ?1 ORDER BY id LIMIT ?2";
    WAITS = "SELECT 1 FROM delivery WHERE message = ?1 AND state = 0 LIMIT 1";
    ATTEMPTS = "SELECT seq, id FROM attempt WHERE message = ?1 ORDER BY seq, id LIMIT ?2";
    REMOVE_ATTEMPT = "DELETE FROM attempt WHERE message = ?1 AND seq = ?2 AND id = ?3";
    DELIVERIES = "SELECT seq FROM delivery WHERE message = ?1 ORDER BY seq LIMIT ?2";
    REMOVE_DELIVERY = "DELETE FROM delivery WHERE seq = ?1";
    REMOVE_DEAD = "DELETE FROM dead_letter WHERE seq = ?1";
    REMOVE_MESSAGE = "DELETE FROM message WHERE app = ?1 AND id = ?2";
    KEYS = "SELECT kind, key FROM unique_key WHERE owner = ?1 ORDER BY kind, key LIMIT ?2";
    REMOVE_KEY = "DELETE FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3";
}

pub(super) fn erase(eraser: &mut Eraser<'_>) -> Result<PartEnd> {
    loop {
        let app = eraser.erasure.app;
        let messages: Vec<MessageId> = eraser.tx.all(&MESSAGES, values![app, ROWS_AT_ONCE])?;
        if messages.is_empty() {
            return eraser.all_of(keys);
        }
        for message in messages {
            match self::message(eraser, message)? {
                PartEnd::Done if eraser.slice.is_over() => return Ok(PartEnd::SliceOver),
                PartEnd::Done => {}
                end => return Ok(end),
            }
        }
    }
}

/// A message goes with the last of its deliveries: a delivery is never left without it.
fn message(eraser: &mut Eraser<'_>, message: MessageId) -> Result<PartEnd> {
    if eraser.tx.exists(&WAITS, values![message])? {
        return Ok(PartEnd::Waits);
    }
    for remove in [attempts, deliveries] {
        match eraser.all_of(|eraser| remove(eraser, message))? {
            PartEnd::Done => {}
            end => return Ok(end),
        }
    }
    let removed = eraser.tx.execute(&REMOVE_MESSAGE, values![eraser.erasure.app, message])?;
    eraser.erasure.removed.messages += removed as u64;
    eraser.erasure.reached = Some(message);
    Ok(PartEnd::Done)
}

fn attempts(eraser: &mut Eraser<'_>, message: MessageId) -> Result<usize> {
    let found: Vec<(Seq, AttemptId)> = eraser.tx.all(&ATTEMPTS, values![message, ROWS_AT_ONCE])?;
    for (seq, id) in &found {
        let removed = eraser.tx.execute(&REMOVE_ATTEMPT, values![message, seq, id])?;
        eraser.erasure.removed.attempts += removed as u64;
    }
    Ok(found.len())
}

fn deliveries(eraser: &mut Eraser<'_>, message: MessageId) -> Result<usize> {
    let found: Vec<Seq> = eraser.tx.all(&DELIVERIES, values![message, ROWS_AT_ONCE])?;
    for seq in &found {
        eraser.erasure.removed.deliveries += eraser.tx.execute(&REMOVE_DELIVERY, values![seq])? as u64;
        eraser.tx.execute(&REMOVE_DEAD, values![seq])?;
    }
    Ok(found.len())
}

/// Event ids and idempotency keys: nothing can be accepted for the application any more.
fn keys(eraser: &mut Eraser<'_>) -> Result<usize> {
    let owner = eraser.erasure.app;
    let found: Vec<(u8, Vec<u8>)> = eraser.tx.all(&KEYS, values![owner, ROWS_AT_ONCE])?;
    for (kind, key) in &found {
        eraser.erasure.removed.others += eraser.tx.execute(&REMOVE_KEY, values![owner, kind, key])? as u64;
    }
    Ok(found.len())
}
