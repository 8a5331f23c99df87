//! Removes what belongs to the application itself, and then its row.

use super::step::{Eraser, PartEnd, ROWS_AT_ONCE};
use crate::Hour;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Result, alert, api_key, application, gate, mail, notice, quota, statistics, token};
use aldaba_delivery::ReplayId;

statements! {
    HOUR = "SELECT hour FROM application_hour WHERE app = ?1 ORDER BY hour LIMIT 1";
    REPLAYS = "SELECT id FROM replay WHERE app = ?1 ORDER BY id LIMIT ?2";
    REMOVE_REPLAY = "DELETE FROM replay WHERE id = ?1";
    DEAD = "SELECT seq FROM dead_letter WHERE app = ?1 ORDER BY settled_at, seq LIMIT ?2";
    REMOVE_DEAD = "DELETE FROM dead_letter WHERE seq = ?1";
    REMOVE = "DELETE FROM application WHERE id = ?1";
}

pub(super) fn erase(eraser: &mut Eraser<'_>) -> Result<PartEnd> {
    for remove in [hours, replays, dead_letters, alerts, mails] {
        match eraser.all_of(remove)? {
            PartEnd::Done => {}
            end => return Ok(end),
        }
    }
    let (tx, org, app) = (eraser.tx, eraser.erasure.org, eraser.erasure.app);
    eraser.counters.forget_application(app);
    let mut others = notice::forget_of_application(tx, eraser.numbers, org, app)?;
    others += quota::forget(tx, app.as_bytes())?;
    others += gate::remove_of_application(tx, org, app)?;
    others += token::remove_cuts_of_application(tx, app)?;
    if let Some(application) = application::with_deleted(tx, app)?
        && let Some(address) = application.alert_email
    {
        mail::forget_counts(tx, org, app, &address)?;
    }
    others += mail::forget_addresses(tx, org, app)?;
    api_key::revoke_of_application(tx, app)?;
    tx.execute(&REMOVE, values![app])?;
    eraser.erasure.removed.others += others as u64;
    Ok(PartEnd::Done)
}

fn hours(eraser: &mut Eraser<'_>) -> Result<usize> {
    let app = eraser.erasure.app;
    let Some(hour) = eraser.tx.one::<Hour>(&HOUR, values![app])? else { return Ok(0) };
    let (removed, _) = statistics::remove_types(eraser.tx, app, hour)?;
    eraser.erasure.removed.others += removed as u64;
    Ok(removed)
}

fn replays(eraser: &mut Eraser<'_>) -> Result<usize> {
    let found: Vec<ReplayId> = eraser.tx.all(&REPLAYS, values![eraser.erasure.app, ROWS_AT_ONCE])?;
    for replay in &found {
        eraser.erasure.removed.others += eraser.tx.execute(&REMOVE_REPLAY, values![replay])? as u64;
    }
    Ok(found.len())
}

/// Those whose deliveries are gone already.
fn dead_letters(eraser: &mut Eraser<'_>) -> Result<usize> {
    let found: Vec<i64> = eraser.tx.all(&DEAD, values![eraser.erasure.app, ROWS_AT_ONCE])?;
    for seq in &found {
        eraser.tx.execute(&REMOVE_DEAD, values![seq])?;
    }
    Ok(found.len())
}

fn alerts(eraser: &mut Eraser<'_>) -> Result<usize> {
    let removed = alert::remove_of_application(eraser.tx, eraser.erasure.app, ROWS_AT_ONCE)?;
    eraser.erasure.removed.others += removed as u64;
    Ok(removed)
}

fn mails(eraser: &mut Eraser<'_>) -> Result<usize> {
    let removed = mail::remove_of_application(eraser.tx, eraser.erasure.app, ROWS_AT_ONCE)?;
    eraser.erasure.removed.others += removed as u64;
    Ok(removed)
}
