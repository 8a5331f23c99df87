//! What organizations want to hear of.

use super::rows;
use crate::{Changed, Notice, NoticeNumber};
use aldaba_delivery::OrgId;
use rusqlite::{Connection, OptionalExtension};

/// In the order of their numbers: the index holds those too.
const OLDEST: &str = "SELECT seq, event, body FROM notice WHERE org = ?1 ORDER BY seq LIMIT ?2";

/// How many wait, and how many were left out.
fn counts(connection: &Connection, org: OrgId) -> rusqlite::Result<(u32, u32)> {
    let mut find = connection.prepare_cached("SELECT waiting, left_out FROM notice_count WHERE org = ?1")?;
    let found = find.query_row((org.as_bytes(),), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.unwrap_or_default())
}

fn set_counts(connection: &Connection, org: OrgId, waiting: u32, left_out: u32) -> rusqlite::Result<()> {
    if (waiting, left_out) == (0, 0) {
        connection
            .prepare_cached("DELETE FROM notice_count WHERE org = ?1")?
            .execute((org.as_bytes(),))
            .map(drop)
    } else {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO notice_count (org, waiting, left_out) VALUES (?1, ?2, ?3)",
            )?
            .execute((org.as_bytes(), waiting, left_out))
            .map(drop)
    }
}

fn insert(connection: &Connection, notice: &Notice) -> rusqlite::Result<()> {
    let Notice { org, event, body } = notice;
    let mut insert =
        connection.prepare_cached("INSERT INTO notice (org, event, body) VALUES (?1, ?2, ?3)")?;
    insert.execute((org.as_bytes(), event, body)).map(drop)
}

pub(super) fn keep(connection: &Connection, notices: &[Notice]) -> rusqlite::Result<()> {
    for of_one in notices.chunk_by(|a, b| a.org == b.org) {
        let org = of_one[0].org;
        let (mut waiting, mut left_out) = counts(connection, org)?;
        for notice in of_one {
            if waiting < Notice::MOST_WAITING {
                insert(connection, notice)?;
                waiting += 1;
            } else {
                left_out = left_out.saturating_add(1);
            }
        }
        set_counts(connection, org, waiting, left_out)?;
    }
    Ok(())
}

pub(super) fn organizations(
    connection: &Connection,
    after: Option<OrgId>,
    limit: usize,
) -> rusqlite::Result<Vec<OrgId>> {
    // Every id is greater than nothing.
    let after = after.as_ref().map_or(&[][..], |org| &org.as_bytes()[..]);
    let mut find =
        connection.prepare_cached("SELECT org FROM notice_count WHERE org > ?1 ORDER BY org LIMIT ?2")?;
    find.query_map((after, rows::count(limit)), |row| rows::id(row, 0))?.collect()
}

pub(super) fn oldest(
    connection: &Connection,
    org: OrgId,
    limit: usize,
) -> rusqlite::Result<Vec<(NoticeNumber, Notice)>> {
    let mut find = connection.prepare_cached(OLDEST)?;
    let row = |row: &rusqlite::Row<'_>| {
        let notice = Notice { org, event: row.get(1)?, body: row.get(2)? };
        Ok((NoticeNumber(row.get(0)?), notice))
    };
    find.query_map((org.as_bytes(), rows::count(limit)), row)?.collect()
}

pub(super) fn forget(
    connection: &Connection,
    org: OrgId,
    notices: &[NoticeNumber],
) -> rusqlite::Result<Changed> {
    let mut delete = connection.prepare_cached("DELETE FROM notice WHERE seq = ?1 AND org = ?2")?;
    let mut forgotten = 0;
    for NoticeNumber(seq) in notices {
        forgotten += u32::from(delete.execute((seq, org.as_bytes()))? > 0);
    }
    let (waiting, mut left_out) = counts(connection, org)?;
    let mut waiting = waiting.saturating_sub(forgotten);
    if left_out > 0 && waiting < Notice::MOST_WAITING {
        insert(connection, &Notice::left_out(org, left_out))?;
        (waiting, left_out) = (waiting + 1, 0);
    }
    set_counts(connection, org, waiting, left_out)?;
    Ok(Changed::Done { removed: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::plan::plan;

    #[test]
    fn the_oldest_of_an_organization_are_read_without_looking_at_those_of_others() {
        assert_eq!(plan(OLDEST), "SEARCH notice USING INDEX notice_org (org=?)");
    }
}
