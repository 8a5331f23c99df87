//! Notices: events that organizations want to hear of.

use super::column::count;
use super::transaction::{ReadingExt, statements, values};
use super::{Numbers, Reading, Result, Transaction};
use crate::{Changed, Notice, NoticeNumber};
use aldaba_delivery::{AppId, OrgId};

statements! {
    COUNTS = "SELECT waiting, left_out FROM notice_count WHERE org = ?1";
    SET_COUNTS = "INSERT INTO notice_count (org, waiting, left_out) VALUES (?1, ?2, ?3)
        ON CONFLICT (org) DO UPDATE SET waiting = excluded.waiting, left_out = excluded.left_out";
    REMOVE_COUNTS = "DELETE FROM notice_count WHERE org = ?1";
    INSERT = "INSERT INTO notice (seq, org, event, body) VALUES (?1, ?2, ?3, ?4)";
    REMOVE = "DELETE FROM notice WHERE seq = ?1 AND org = ?2";
    ORGANIZATIONS = "SELECT org FROM notice_count WHERE org > ?1 ORDER BY org LIMIT ?2";
    OF_APPLICATION = "SELECT seq FROM notice WHERE org = ?1 AND body LIKE ?2 ORDER BY seq LIMIT ?3";
    OLDEST = "SELECT seq, event, body FROM notice WHERE org = ?1 ORDER BY seq LIMIT ?2";
}

/// How many notices of an organization wait, and how many were left out.
fn counts(reading: &dyn Reading, org: OrgId) -> Result<(u32, u32)> {
    Ok(reading.one(&COUNTS, values![org])?.unwrap_or_default())
}

fn set_counts(tx: &dyn Transaction, org: OrgId, waiting: u32, left_out: u32) -> Result<()> {
    match (waiting, left_out) {
        (0, 0) => tx.execute(&REMOVE_COUNTS, values![org])?,
        _ => tx.execute(&SET_COUNTS, values![org, waiting, left_out])?,
    };
    Ok(())
}

fn insert(tx: &dyn Transaction, numbers: &mut Numbers, notice: &Notice) -> Result<()> {
    let Notice { org, event, body } = notice;
    let number = numbers.draw(tx, 1)?;
    tx.execute(&INSERT, values![number, org, event, body]).map(drop)
}

pub(crate) fn keep(tx: &dyn Transaction, numbers: &mut Numbers, notices: &[Notice]) -> Result<()> {
    for of_one in notices.chunk_by(|a, b| a.org == b.org) {
        let org = of_one[0].org;
        let (mut waiting, mut left_out) = counts(tx, org)?;
        for notice in of_one {
            if waiting < Notice::MAX_PENDING {
                insert(tx, numbers, notice)?;
                waiting += 1;
            } else {
                left_out = left_out.saturating_add(1);
            }
        }
        set_counts(tx, org, waiting, left_out)?;
    }
    Ok(())
}

pub(crate) fn forget(
    tx: &dyn Transaction,
    numbers: &mut Numbers,
    org: OrgId,
    notices: &[NoticeNumber],
) -> Result<Changed> {
    let mut forgotten = 0;
    for number in notices {
        forgotten += u32::from(tx.execute(&REMOVE, values![number, org])? > 0);
    }
    let (waiting, mut left_out) = counts(tx, org)?;
    let mut waiting = waiting.saturating_sub(forgotten);
    if left_out > 0 && waiting < Notice::MAX_PENDING {
        insert(tx, numbers, &Notice::left_out(org, left_out))?;
        (waiting, left_out) = (waiting + 1, 0);
    }
    set_counts(tx, org, waiting, left_out)?;
    Ok(Changed::done())
}

/// Removes the notices about an application, which are told nobody any more.
pub(crate) fn forget_of_application(
    tx: &dyn Transaction,
    numbers: &mut Numbers,
    org: OrgId,
    app: AppId,
) -> Result<usize> {
    let found: Vec<NoticeNumber> =
        tx.all(&OF_APPLICATION, values![org, format!("%{app}%"), count(Notice::MAX_PENDING as usize)])?;
    if !found.is_empty() {
        forget(tx, numbers, org, &found)?;
    }
    Ok(found.len())
}

pub(crate) fn organizations(reading: &dyn Reading, after: Option<OrgId>, limit: usize) -> Result<Vec<OrgId>> {
    reading.all(&ORGANIZATIONS, values![after.unwrap_or(OrgId::from_bytes([0; 20])), limit])
}

pub(crate) fn oldest(reading: &dyn Reading, org: OrgId, limit: usize) -> Result<Vec<(NoticeNumber, Notice)>> {
    let found: Vec<(NoticeNumber, String, String)> = reading.all(&OLDEST, values![org, limit])?;
    let notice = |(number, event, body)| (number, Notice { org, event, body });
    Ok(found.into_iter().map(notice).collect())
}
