//! What organizations want to hear of.

use super::rows;
use crate::{Changed, Notice, NoticeNumber};
use rusqlite::Connection;

pub(super) fn keep(connection: &Connection, notices: &[Notice]) -> rusqlite::Result<()> {
    for Notice { org, event, body } in notices {
        let mut insert =
            connection.prepare_cached("INSERT INTO notice (org, event, body) VALUES (?1, ?2, ?3)")?;
        insert.execute((org.as_bytes(), event, body))?;
    }
    Ok(())
}

pub(super) fn oldest(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<(NoticeNumber, Notice)>> {
    let mut find =
        connection.prepare_cached("SELECT seq, org, event, body FROM notice ORDER BY seq LIMIT ?1")?;
    let row = |row: &rusqlite::Row<'_>| {
        let notice = Notice { org: rows::id(row, 1)?, event: row.get(2)?, body: row.get(3)? };
        Ok((NoticeNumber(row.get(0)?), notice))
    };
    find.query_map((rows::count(limit),), row)?.collect()
}

pub(super) fn forget(connection: &Connection, notices: &[NoticeNumber]) -> rusqlite::Result<Changed> {
    let mut delete = connection.prepare_cached("DELETE FROM notice WHERE seq = ?1")?;
    for NoticeNumber(seq) in notices {
        delete.execute((seq,))?;
    }
    Ok(Changed::Done { removed: Vec::new() })
}
